package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"gitland/internal/fault"
	"gitland/internal/git"
)

// codeUnexpected is the exit code of a failure that nobody foresaw.
const codeUnexpected = 1

// codeSignal is added to the number of the signal that ended a command.
const codeSignal = 128

// exitTable is the meaning of every exit code, in both tools.
var exitTable = []exitCode{
	{code: 0, meaning: "done", always: true},
	{code: codeUnexpected, class: fault.Failed, meaning: "unexpected failure", always: true},
	{code: 3, class: fault.Held, meaning: "lease held (even by this session), frozen, not provably gone, free already"},
	{code: 4, class: fault.Unverified, meaning: "no passing verification, or the check just run failed"},
	{code: 5, class: fault.Conflict, meaning: "conflict with the base, ambiguous choice, or a guard or hook that refuses"},
	{code: 6, class: fault.Lost, meaning: "the lease was broken or recovered while in use"},
	{code: 7, class: fault.Disagree, meaning: "repository, record and log disagree"},
	{code: 8, class: fault.Ambiguous, meaning: "the lease's chain is malformed, rewritten, deleted or of a newer format"},
	{code: 9, class: fault.Unreachable, meaning: "no answer from the remote, a refused write, or no compare-and-swap"},
	{code: 129, class: fault.Usage, meaning: "usage", always: true},
	{code: codeSignal, meaning: "ended by signal N", always: true},
}

type exitCode struct {
	code    int
	class   fault.Class
	meaning string
	always  bool // every command can end so
}

func (e exitCode) name() string {
	if e.code == codeSignal {
		return "128+N"
	}
	return strconv.Itoa(e.code)
}

// codeOf is the exit code of an error.
func codeOf(err error) int {
	if err == nil {
		return 0
	}
	class := fault.ClassOf(err)
	i := slices.IndexFunc(exitTable, func(e exitCode) bool { return class != "" && e.class == class })
	if i < 0 {
		return codeUnexpected
	}
	return exitTable[i].code
}

// A status is an exit code that a command chose: that of a command of the
// user's, say. Err is told as well; it may be nil.
type status struct {
	code int
	err  error
}

func (s *status) Error() string {
	if s.err == nil {
		return fmt.Sprintf("exit status %d", s.code)
	}
	return s.err.Error()
}

func (s *status) Unwrap() error { return s.err }

// end tells how a command ended, and returns its exit code.
func (inv *invocation) end(err error, sig syscall.Signal) int {
	if err == nil {
		return 0
	}
	if errors.Is(err, syscall.EPIPE) && errors.Is(err, inv.out.failure) { // "git lease log | head"
		return codeSignal + int(syscall.SIGPIPE)
	}
	code := codeOf(err)
	if s, ok := errors.AsType[*status](err); ok {
		if code = s.code; s.err == nil {
			return code
		}
		err = s.err
	}
	told := explain(err)
	if sig != 0 && !inv.passed {
		code = codeSignal + int(sig)
		told = append(slices.DeleteFunc(told, ofContext), interrupt{sig})
	}
	for _, e := range told {
		inv.tell(e)
	}
	if _, asked := inv.in.last("json"); asked || inv.format() == "json" {
		object := map[string]any{"error": inv.failure(told)}
		maps.Copy(object, inv.partial)
		if err := inv.out.json(object); err != nil {
			inv.tell(err)
		}
	} else {
		inv.failClosed(code)
	}
	return code
}

// tell prints one error, its details and its hint.
func (inv *invocation) tell(err error) {
	inv.err.printf("%s %v\n", paint(red, inv.name+":"), err)
	if f, ok := errors.AsType[*fault.Error](err); ok {
		for _, line := range f.Details {
			inv.err.printf("    %s\n", line)
		}
	}
	if hint := inv.hint(err); hint != "" {
		inv.err.printf("%s %s\n", paint(yellow, "hint:"), hint)
	}
}

func (inv *invocation) hint(err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case !ok:
		return ""
	case f.Hint != "" || f.Class != fault.Usage:
		return f.Hint
	case inv.in.command == nil:
		return inv.name + " -h"
	}
	return inv.in.command.fullName(inv.tool) + " -h"
}

// explain takes apart what errors.Join has joined, and gives errors that every
// command can meet the form of a refusal.
func explain(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if ok && err.Error() == errors.Join(joined.Unwrap()...).Error() {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, explain(e)...)
		}
		return all
	}
	if unsafe, ok := errors.AsType[*git.UnsafeError](err); ok {
		err = fault.New(fault.Failed, "%w", err).
			WithHint("%s   (if you trust its owner: what is configured there runs commands)", fault.Command("git", "config", "--global", "--add", "safe.directory", unsafe.Path))
	}
	if errors.Is(err, git.ErrNoRepository) {
		err = fault.New(fault.Failed, "%w", err).WithHint("cd to a clone first, or name one: git -C DIRECTORY ...")
	}
	return []error{err}
}

// ofContext reports whether err only says that its context has ended.
func ofContext(err error) bool {
	_, refusal := errors.AsType[*fault.Error](err)
	_, cause := errors.AsType[interrupt](err)
	return !refusal && (cause || errors.Is(err, context.Canceled))
}

// failure is what --json tells of errors: the first one, its facts, and the
// words of any others.
func (inv *invocation) failure(told []error) map[string]any {
	object := map[string]any{}
	f, refusal := errors.AsType[*fault.Error](told[0])
	i, interrupted := errors.AsType[interrupt](told[0])
	code := "unexpected"
	switch {
	case refusal:
		for key, v := range f.Facts {
			object[key] = v
		}
		code = string(f.Class)
		if hint := inv.hint(f); hint != "" {
			object["hint"] = hint
		}
	case interrupted:
		code = "interrupted"
		object["signal"] = unix.SignalName(i.signal)
	}
	object["code"], object["message"] = code, told[0].Error()
	var also []string
	for _, e := range told[1:] {
		also = append(also, e.Error())
	}
	if also != nil {
		object["also"] = also
	}
	return object
}

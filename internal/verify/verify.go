// Package verify runs a check on exactly one tree.
//
// It owns where that happens: in place when the working tree has just the
// content of the tree, before the run and after it, else in a verification
// worktree, which it makes, keeps, locks while in use, heals and reuses. It
// promises that a verdict is about the tree it names, that a run which ended for
// another reason than its own is no verdict, and that the check gets neither
// git's repository variables nor a lease's token.
//
// In place, a check that changes what git tracks, or leaves behind what git does
// not ignore, proves nothing: nobody could say which content it saw. In its own
// worktree it may, as builds do; what it changed is put back before the next
// run. A change that is undone before the check ends is not seen.
//
// The package refuses to publish: the caller does. It does not initialise
// submodules: a check that needs them says so ("git submodule update --init &&
// make test"). It does not look at what git ignores: caches and installed
// dependencies stay from run to run, which is the point of keeping a worktree.
package verify

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gitland/internal/child"
	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

// A Request asks for one run of one check.
type Request struct {
	Tree object.OID // what is verified
	// Base is the target's commit when the tree was built; empty for an unborn
	// branch. In a verification worktree it is the parent of HEAD.
	Base    object.OID
	Check   string // the check's name, recorded as it is
	Command string // for sh -c, recorded as it is
	Unit    string // cleaned
	ID      string // is in every temporary name
	// Setup is land.verify.setup: for sh -c, run once in each new verification
	// worktree. Empty means that there is nothing to set up.
	Setup   string
	Output  io.Writer // what check and setup print, as they run; may be nil
	Environ []string  // the user's, for check and setup
}

// maxLine bounds an encoded verification. It is a part of note.MaxLine, since a
// landing's record copies the verifications of all its checks into one line.
const maxLine = note.MaxLine / 4

// Run runs the check and says what it found: a pass for exit code 0, a fail for
// any other, also for a command that was not found. The result is complete and
// can be encoded; nothing is recorded. What a check printed that failed is kept in
// the clone, and found by OutputOf.
//
// A check that ctx or a signal ended has no verdict: the error wraps the
// context's cause, or is of class Unverified and wraps a *SignalError. So has
// one during which the working tree changed (class Unverified), and one whose
// worktree could not be made or set up (class Failed for the setup).
func Run(ctx context.Context, l *ledger.Ledger, r Request) (note.Verification, error) {
	v, err := r.claim(l)
	if err != nil {
		return note.Verification{}, err
	}
	printed := &recorder{to: r.Output}
	r.Output = printed
	result, err := r.run(ctx, l)
	if err != nil {
		return note.Verification{}, err
	}
	v.Verdict, v.Exit, v.Duration, v.Time = note.Pass, result.Code, result.Duration, l.Now()
	if result.Code != 0 {
		v.Verdict = note.Fail
		if err := l.Dir.KeepOutput(v.ID, printed.text()); err != nil { // the verdict counts all the same
			l.Notice("the output of the check %s could not be kept: %v", r.Check, err)
		}
	}
	return v, nil
}

// run runs the check in the right place.
func (r Request) run(ctx context.Context, l *ledger.Ledger) (child.Result, error) {
	if l.Repo.Top != "" {
		differing, err := r.differing(ctx, l.Repo)
		if err != nil {
			return child.Result{}, err
		}
		if len(differing) == 0 {
			return r.inPlace(ctx, l.Repo)
		}
	}
	w, err := r.openWorktree(ctx, l)
	if err != nil {
		return child.Result{}, err
	}
	defer w.close(ctx)
	return r.shell(ctx, "check "+r.Check, r.Command, w.dir, w.lock.File())
}

// inPlace runs the check in the working tree, which has the content of r.Tree.
func (r Request) inPlace(ctx context.Context, repo *git.Repo) (child.Result, error) {
	result, err := r.shell(ctx, "check "+r.Check, r.Command, repo.Top)
	if err != nil {
		return result, err
	}
	changed, err := r.differing(ctx, repo)
	if err != nil || len(changed) == 0 {
		return result, err
	}
	shown := changed[:min(len(changed), 3)]
	text := event.CleanText(strings.Join(shown, ", "), event.MaxText)
	if more := len(changed) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return result, fault.New(fault.Unverified, "the working tree changed while the check %s ran (exit code %d), which so proves nothing: %s",
		r.Check, result.Code, text).
		WithHint("have git ignore what the check makes, and run it again").
		WithFacts(map[string]any{"paths": changed, "exit": result.Code})
}

// differing lists the paths in which the working tree is not r.Tree.
func (r Request) differing(ctx context.Context, repo *git.Repo) ([]string, error) {
	index, err := repo.TempIndex(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	defer index.Close()
	if err := index.Reset(ctx, r.Tree); err != nil {
		return nil, err
	}
	return index.Differing(ctx)
}

// claim fills in what is known before the run, and refuses what could not be
// recorded after it.
func (r Request) claim(l *ledger.Ledger) (note.Verification, error) {
	v := note.Verification{Format: note.Format, ID: l.NewID(), Check: r.Check, Command: r.Command,
		Tree: r.Tree, Base: r.Base, Unit: event.CleanText(r.Unit, event.MaxText), Host: l.Host}
	switch {
	case r.Check == "" || event.CleanText(r.Check, event.MaxText) != r.Check:
		return v, fault.New(fault.Usage, "the name of a check must be one line of text, and %q is not", r.Check)
	case strings.TrimSpace(r.Command) == "":
		return v, fault.New(fault.Usage, "the check %s has no command", r.Check)
	case strings.ContainsRune(r.Command, 0):
		return v, fault.New(fault.Usage, "the command of the check %s contains a NUL byte", r.Check)
	}
	actor, err := l.Repo.Ident()
	if err != nil {
		return v, err
	}
	v.Actor = event.CleanText(actor, event.MaxText)
	// As it would be at its longest.
	longest := v
	longest.Verdict, longest.Exit, longest.Duration, longest.Time = note.Fail, 255, 1<<62, l.Now()
	line, err := note.EncodeLine(longest)
	if err != nil {
		return v, fault.New(fault.Usage, "the check %s cannot be recorded: %w", r.Check, err)
	}
	if len(line) > maxLine {
		return v, fault.New(fault.Usage, "the command of the check %s is too long to be recorded", r.Check).
			WithHint("put it into a script, and give the script's name")
	}
	return v, nil
}

// shell has a shell run command in dir. The error says that there is no result:
// what was interrupted has none.
func (r Request) shell(ctx context.Context, what, command, dir string, inherit ...*os.File) (child.Result, error) {
	result, err := child.Run(ctx, child.Request{
		Argv: child.Shell(command), Dir: dir, Env: environ(r.Environ, dir),
		Stdout: r.Output, Stderr: r.Output, Inherit: inherit, All: true,
	})
	if ctx.Err() != nil {
		return result, fmt.Errorf("%s did not finish: %w", what, context.Cause(ctx))
	}
	if sig := interrupted(result); sig != 0 {
		return result, fault.New(fault.Unverified, "%s was %w, which says nothing of what it would have found", what, &SignalError{sig})
	}
	if err != nil {
		return result, fmt.Errorf("run %s: %w", what, err)
	}
	return result, nil
}

// A SignalError says that a signal from outside ended a command.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string { return "ended by " + unix.SignalName(e.Signal) }

// crashes are the signals that a program brings upon itself. To crash is to
// fail, and as reproducible; any other signal came from somebody else.
var crashes = []syscall.Signal{
	syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGSEGV, syscall.SIGSYS, syscall.SIGTRAP,
}

// interruptions are those that may have ended a command of which only the
// shell's code is left, 128+n. SIGHUP is none of them: 129 is a usage error, too.
var interruptions = []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL, syscall.SIGTERM}

// interrupted is the signal that somebody sent to end the command, or 0. Ctrl-C
// reaches the command and us at once, so that the command may be gone before
// anybody here has noticed.
func interrupted(result child.Result) syscall.Signal {
	sig := syscall.Signal(result.Code - 128)
	if result.Signal != 0 && !slices.Contains(crashes, result.Signal) {
		return result.Signal
	}
	if result.Signal == 0 && slices.Contains(interruptions, sig) {
		return sig
	}
	return 0
}

// withheld are the variables that a check has no business with: with the token
// it could land or release under the lease of the session that verifies.
var withheld = []string{"GIT_LEASE_TOKEN", "GIT_LEASE_SESSION"}

// environ is the user's environment as a command in dir gets it.
func environ(user []string, dir string) []string {
	env := slices.DeleteFunc(git.WithoutRepoEnv(user), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "PWD" || slices.Contains(withheld, name)
	})
	return append(env, "PWD="+dir)
}

// lookup is the value of a variable, the last one as for a process; "" is unset.
func lookup(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

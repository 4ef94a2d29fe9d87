package step

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/child"
	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

// A Course is the steps of one motion on their way, under a hold that announces them.
type Course struct {
	Ledger *ledger.Ledger
	Want   ledger.Want
	// Motion is the landing that they follow, or the operation that lands nothing.
	Motion ulid.ULID
	// Operation is what git land resume takes.
	Operation ulid.ULID
	// Hold is the operation under whose hold they run, and Root its token, which is zero
	// where only the holder's operation is known.
	Hold ulid.ULID
	Root session.Root
	// Own means that the motion took the lease for itself: its last step gives it back.
	Own   bool
	Steps []Step // all of them, in their order
	// Resumed means that another process may have begun the first of those that are to
	// come.
	Resumed bool
	Word    Word
	Save    func() error // puts Steps on disk
	// End is called for the last step, while its event is drafted on v, to add what else
	// says that the motion has ended; may be nil.
	End func(ctx context.Context, v ledger.View, d *ledger.Draft) error

	Facts []string // variables that tell commands what they are about
	Setting

	// Unsaid is set by Run: the lease was lost while a step was run that is done, as only we
	// know.
	Unsaid bool

	why   string   // it is not known how the step went that is told of next
	place []string // variables by which git finds the repository from where commands run
}

// A Setting is what the commands of steps run in.
type Setting struct {
	Environ []string // before the variables of the lease and of the motion
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Tell    func(name, text string) // told what is done, and how it went; may be nil
}

// A Word is what a person says of the next step, where nobody else can.
type Word struct {
	Done   string // the name of a step that is done
	Redo   string // that of one that is to be run, whatever it may have done
	Reason string // how they know that it is done
	Anyway bool   // it is to come, whatever has come after the landing since
}

// Words are the options by which a word is given.
func (w Word) Words() (words []string) {
	switch {
	case w.Done != "":
		words = append(words, "--done", w.Done, "--reason", w.Reason)
	case w.Redo != "":
		words = append(words, "--redo", w.Redo)
	}
	if w.Anyway {
		words = append(words, "--anyway")
	}
	return words
}

// Run runs the steps that the hold says are to come, and puts on the chain how each
// went. It ends at the first that is not done, with a fault of class Failed, and leaves
// the lease held then; of class Lost when the lease was taken off the motion meanwhile;
// and of class Unreachable when it is not known whether the chain says how a step went.
func (c *Course) Run(ctx context.Context) error {
	v, err := c.Ledger.Fetch(ctx, c.Want)
	if err != nil {
		return c.notBegun(ctx, err)
	}
	if v.Problem != nil {
		return v.Problem
	}
	hold := v.Hold()
	if !c.onItsWay(hold) {
		return c.over(ctx, v)
	}
	if err := c.allowed(v); err != nil {
		return err
	}
	c.locate(ctx)
	for c.onItsWay(hold) {
		s := c.find(hold.Pending()[0])
		if c.Word.Done != hold.Pending()[0] || s == nil {
			if err := c.Commanded(hold.Pending()[0]); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return c.stopped(ctx, s.Name)
		}
		outcome, err := c.do(ctx, s, hold.Fence)
		if err != nil {
			return err
		}
		others := false
		if hold, others, err = c.say(ctx, *s, outcome); err != nil {
			return err
		}
		if !outcome.Ends() {
			return c.unfinished(*s)
		}
		if others && c.onItsWay(hold) { // and they may be in the next one
			if next := c.find(hold.Pending()[0]); next != nil && !next.Begun {
				next.Begun, next.Elsewhere = true, true
			}
		}
	}
	return nil
}

func (c *Course) onItsWay(h *event.Hold) bool {
	return h != nil && h.Operation == c.Hold && h.Motion == c.Motion
}

// Say puts on the chain how the next steps went, where it does not say so: as it is known, or
// that it is not known of one that was begun. It needs the hold that announces them.
func (c *Course) Say(ctx context.Context) error {
	v, err := c.Ledger.Fetch(ctx, c.Want)
	if err != nil {
		return err
	}
	for hold := v.Hold(); c.onItsWay(hold); {
		s := c.find(hold.Pending()[0])
		if s == nil || !s.Begun {
			return nil
		}
		o := s.Outcome
		if o == "" {
			o = event.Unknown
		}
		if hold.Stuck == o {
			return nil
		}
		if hold, _, err = c.say(ctx, *s, o); err != nil || !o.Ends() {
			return err
		}
	}
	return nil
}

// over is how a motion has ended that the lease does not announce any more: well, if all
// of it is done. Who ended it with the token alone has left the lease to who took it.
func (c *Course) over(ctx context.Context, v ledger.View) error {
	m, err := Find(ctx, c.Ledger, v, c.Motion)
	if err != nil {
		return err
	}
	if m == nil || m.Ended == nil || m.GivenUp {
		return c.lost(ctx, v)
	}
	CatchUp(c.Steps, m, false)
	if c.Own && lease.Owns(c.Root, v.Tip) {
		_, err = lease.GiveBack(ctx, c.Ledger, c.Want, c.Root)
	}
	return err
}

func (c *Course) find(name string) *Step {
	i := slices.IndexFunc(c.Steps, func(s Step) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Steps[i]
}

// allowed refuses a word about a step that is not the next one.
func (c *Course) allowed(v ledger.View) error {
	name := c.Word.Done + c.Word.Redo
	if name == "" {
		return nil
	}
	if pending := v.Hold().Pending(); pending[0] != name {
		again := []string{"--redo", pending[0]}
		if c.Word.Done != "" {
			again = []string{"--done", pending[0], "--reason", c.Word.Reason}
		}
		return fault.New(fault.Usage, "the next step is %s, not %s", pending[0], name).
			WithHint("%s   (if that is meant)", c.resume(again...))
	}
	return nil
}

// do brings one step as far as it comes, and returns how it went.
func (c *Course) do(ctx context.Context, s *Step, fence uint64) (event.Outcome, error) {
	before := *s
	switch word := c.Word; {
	case s.Outcome.Ends(): // it was known, and could not be said
		return s.Outcome, nil
	case word.Done == s.Name:
		return c.known(s, event.Declared, 0, 0)
	case word.Redo == s.Name:
	case !c.Resumed && !s.Begun:
	case s.Check != "":
		result, err := c.run(ctx, s, s.Check, fence, nil)
		if err != nil {
			return "", err
		}
		code := result.Code
		c.tell("checked", fmt.Sprintf("%s: %s (exit %d)", s.Name, []string{"done", "not done", "unknown"}[min(code, 2)], code))
		switch code {
		case 0:
			return c.known(s, event.Already, 0, 0)
		case 1:
		default:
			c.why = fmt.Sprintf("its check, which says 0 for done and 1 for not done, ended with %d: %s", code, short(s.Check))
			return c.known(s, event.Unknown, 0, code)
		}
	case s.Begun && s.Outcome != event.Failed:
		switch c.why = "its process died in it, and it has no check"; {
		case s.Elsewhere:
			c.why = "it may have been begun in another clone, and it has no check"
		case s.Exit != 0:
			c.why = fmt.Sprintf("a signal ended it (exit %d), and it has no check", s.Exit)
		}
		return c.known(s, event.Unknown, 0, s.Exit)
	}
	c.Resumed = false
	s.Begun, s.Witness, s.Elsewhere, s.Outcome, s.TookMS, s.Exit = true, c.Ledger.NewID(), false, "", 0, 0
	witness, err := c.Ledger.Dir.Witness(s.Witness)
	if err == nil {
		err = c.Save()
	}
	if err != nil {
		*s = before
		return "", fmt.Errorf("write the journal: %w", err)
	}
	c.tell("step", s.Name+": "+short(s.Run))
	result, err := c.run(ctx, s, s.Run, fence, witness)
	if result.Cut() { // what was told to end may have left something that goes on
		_ = witness.Close()
	} else { // what it leaves running now, a service say, is no part of it
		_ = witness.Remove()
	}
	if err != nil { // it was not begun
		*s = before
		return "", errors.Join(err, c.Save())
	}
	ms := uint64(max(result.Duration.Milliseconds(), 1))
	switch {
	case result.Code == 0:
		return c.known(s, event.Done, ms, 0)
	case result.Cut():
		c.why = fmt.Sprintf("a signal ended it (exit %d): %s", result.Code, short(s.Run))
		return c.known(s, event.Unknown, ms, result.Code)
	}
	return c.known(s, event.Failed, ms, result.Code)
}

// known puts on disk how a step went, before it is said to anybody.
func (c *Course) known(s *Step, o event.Outcome, ms uint64, exit int) (event.Outcome, error) {
	c.Resumed = false
	s.Begun, s.Outcome, s.TookMS, s.Exit = true, o, ms, exit
	if err := c.Save(); err != nil {
		return o, fmt.Errorf("write the journal: %w", err)
	}
	return o, nil
}

// run runs one of a step's commands, which has the witness open; that may be nil. Signals
// are the command's, and it is waited for. The error is of one that was not started, and
// says nothing of the step.
func (c *Course) run(ctx context.Context, s *Step, command string, fence uint64, w *session.Witness) (child.Result, error) {
	req := child.Request{Argv: child.Shell(command), Dir: dir(c.Ledger), Env: c.environ(s.Name, fence),
		Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, All: true}
	started := false
	req.Started = func(int) { started = true }
	if w != nil {
		req.Inherit = []*os.File{w.File()}
	}
	result, err := child.Run(context.WithoutCancel(ctx), req)
	switch {
	case started:
	case ctx.Err() != nil:
		return result, c.stopped(ctx, s.Name)
	case err != nil:
		return result, fault.New(fault.Failed, "of the step %s, %q could not be started, and the lease %s stays held: %w", s.Name, short(command), c.Want.Name, err).
			WithHint("%s   (when that is mended; or, to give up: %s)", c.resume(), c.abort())
	}
	return result, nil
}

// short is what a message has of a command.
func short(command string) string {
	if r := []rune(command); len(r) > 200 {
		return string(r[:200]) + "..."
	}
	return command
}

// locate finds out whether git finds the repository from where the commands run: who says by
// variables which one is meant may be in the work tree of another. Only then are they handed
// down, since a command may go on to some other repository.
func (c *Course) locate(ctx context.Context) {
	repo := c.Ledger.Repo
	if !slices.ContainsFunc(c.Environ, func(kv string) bool {
		return strings.HasPrefix(kv, "GIT_DIR=") || strings.HasPrefix(kv, "GIT_WORK_TREE=")
	}) {
		return
	}
	found, err := git.Open(ctx, git.Options{Dir: dir(c.Ledger), Environ: git.WithoutRepoEnv(c.Environ), Unattended: true})
	if err == nil {
		defer found.Close()
		if found.GitDir == repo.GitDir {
			return
		}
	}
	if c.place = []string{"GIT_DIR=" + repo.GitDir}; repo.Top != "" {
		c.place = append(c.place, "GIT_WORK_TREE="+repo.Top)
	}
}

// environ is the environment of a step's commands.
func (c *Course) environ(name string, fence uint64) []string {
	environ := slices.DeleteFunc(git.WithoutRepoEnv(c.Environ), func(kv string) bool {
		return strings.HasPrefix(kv, "GIT_LEASE_") || strings.HasPrefix(kv, "GIT_LAND_")
	})
	environ = append(environ, c.place...)
	g := lease.Grant{Remote: c.Ledger.Remote, Name: c.Want.Name, Operation: c.Hold, Fence: fence}
	environ = append(environ, g.Environ(c.Root)...)
	environ = append(environ, "GIT_LAND_STEP="+name, "GIT_LAND_OPERATION="+c.Operation.String(), fmt.Sprintf("GIT_LAND_FENCE=%d", fence))
	return append(environ, c.Facts...)
}

// say appends how a step went, and returns the hold after that, nil where the lease was
// given back by it. It reports whether others, who have the same token, have said it.
func (c *Course) say(ctx context.Context, s Step, o event.Outcome) (hold *event.Hold, others bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTime) // what was done has to be said
	defer cancel()
	var seen ledger.View
	compose := func(v ledger.View, d *ledger.Draft) error {
		if hold = v.Hold(); !c.onItsWay(hold) {
			seen = v
			return errOver
		}
		if hold.Pending()[0] != s.Name || o == event.Unknown && hold.Stuck == o {
			return errSaid
		}
		act := event.Event{Kind: event.Step, By: event.By{Operation: c.Hold,
			Step: &event.StepResult{Motion: c.Motion, Name: s.Name, Outcome: o, Took: s.TookMS}}}
		if o == event.Declared {
			act.By.Reason = event.CleanText(c.Word.Reason, event.MaxText)
		}
		if last := len(hold.Pending()) == 1 && o.Ends(); last {
			if c.Own && lease.Owns(c.Root, v.Tip) {
				act.By.Secret = lease.SecretOf(c.Root, v.Tip)
			}
			if c.End != nil {
				if err := c.End(ctx, v, d); err != nil {
					return err
				}
			}
		}
		_, err := d.Add(ctx, act)
		return err
	}
	e, err := c.Ledger.Append(ctx, c.Want, compose)
	again := git.Terminated(err)
	if again { // what asked the step to end went to the whole group, and does not come again
		e, err = c.Ledger.Append(ctx, c.Want, compose)
	}
	switch {
	case errors.Is(err, errOver):
		err := c.over(ctx, seen)
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Class == fault.Lost && o.Ends() {
			c.Unsaid = true
			f.WithDetails(fmt.Sprintf("the step %s is %s, and the log does not say so", s.Name, o))
		}
		return nil, false, err
	case errors.Is(err, errSaid):
		return hold, !again, nil
	case err != nil && e == nil:
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Class == fault.Unreachable {
			f.What = fmt.Sprintf("the step %s is %s, which could not be put on the record: %s", s.Name, o, f.What)
			f.WithHint("%s", c.resume())
		}
		return nil, false, err
	}
	c.tell(string(o), s.Name+took(s))
	return e.State.Hold, false, nil
}

// sayTime is how long we go on after Ctrl-C to say how a step went.
const sayTime = 30 * time.Second

// An append that has nothing left to say ends by one of these.
var (
	errSaid = errors.New("said before")
	errOver = errors.New("not on its way any more")
)

func took(s Step) string {
	if s.TookMS == 0 {
		return ""
	}
	return fmt.Sprintf(" in %.1fs", float64(s.TookMS)/1000)
}

// lost tells the end of the hold under which the steps ran.
func (c *Course) lost(ctx context.Context, v ledger.View) error {
	end, err := lease.Ending(ctx, c.Ledger, v, c.Root)
	if err != nil {
		return err
	}
	if end != nil {
		if f := end.Lost(c.Ledger); f != nil {
			return f
		}
	}
	return fault.New(fault.Lost, "operation %s no longer holds the lease %s", c.Hold, v.Name).
		WithHint("%s", c.Ledger.Command("git", "lease", "log", v.Name))
}

func (c *Course) tell(name, text string) {
	if c.Tell != nil {
		c.Tell(name, text)
	}
}

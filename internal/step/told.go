package step

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
)

// What a motion that does not go on is told to whoever runs it, with the commands that lead on.

func (c *Course) resume(more ...string) string {
	if c.Word.Anyway {
		more = append(more, "--anyway")
	}
	return c.Ledger.Command(append([]string{"git", "land", "resume", c.Operation.String()}, more...)...)
}

func (c *Course) abort() string {
	return c.Ledger.Command("git", "land", "abort", c.Operation.String(), "--reason", "WHY")
}

// unfinished is the fault of a step that is not done.
func (c *Course) unfinished(s Step) error {
	facts := map[string]any{"operation": c.Operation.String(), "lease": c.Want.Name, "step": s.Name, "outcome": s.Outcome}
	if s.Exit != 0 {
		facts["exit"] = s.Exit
	}
	if s.Outcome == event.Failed {
		return fault.New(fault.Failed, "the step %s failed (exit %d), and the lease %s stays held until it is done, or given up: %s", s.Name, s.Exit, c.Want.Name, short(s.Run)).
			WithHint("%s   (it goes on from there; or, to give up: %s)", c.resume(), c.abort()).WithFacts(facts)
	}
	f := fault.New(fault.Failed, "it is not known whether the step %s is done: %s", s.Name, c.why).WithFacts(facts)
	done, redo := c.resume("--done", s.Name, "--reason", "WHY"), c.resume("--redo", s.Name)
	if s.Check != "" {
		return f.WithHint("%s   (it asks the check again; or, when you know: %s, or: %s; or, to give up: %s)", c.resume(), done, redo, c.abort())
	}
	return f.WithHint("look whether it is, then: %s, or: %s   (or, to give up: %s)", done, redo, c.abort())
}

// UnderWay refuses to go on with a motion, or to end it, while the command of one of its
// steps goes on, though whoever began that is gone. The fault is of class Held.
func (c *Course) UnderWay() error {
	i := slices.IndexFunc(c.Steps, func(s Step) bool {
		if s.Witness.IsZero() || s.Outcome != "" && s.Outcome != event.Unknown {
			return false
		}
		alive, _ := c.Ledger.Dir.Alive(s.Witness)
		return alive
	})
	if i < 0 {
		return nil
	}
	s := c.Steps[i]
	who := "a process that cannot be seen from here"
	if found, err := c.Ledger.Dir.Evidence(s.Witness); err == nil && len(found.Holders) > 0 {
		var names []string
		for _, h := range found.Holders {
			names = append(names, h.String())
		}
		who = strings.Join(names, ", ")
	}
	return fault.New(fault.Held, "the step %s goes on, though what began it is gone: %s", s.Name, who).
		WithHint("%s   (when that has ended; or, if it is meant to go on without the step: %s)", c.resume(), c.resume("--dead")).
		WithFacts(map[string]any{"operation": c.Operation.String(), "lease": c.Want.Name, "step": s.Name})
}

// notBegun is the fault of steps of which the hold could not be read.
func (c *Course) notBegun(ctx context.Context, cause error) error {
	i := slices.IndexFunc(c.Steps, func(s Step) bool { return !s.Outcome.Ends() })
	if ctx.Err() != nil && i >= 0 {
		return c.stopped(ctx, c.Steps[i].Name)
	}
	if f, ok := errors.AsType[*fault.Error](cause); ok && f.Class == fault.Unreachable {
		f.What = "the steps could not go on: " + f.What
		f.WithHint("%s", c.resume())
	}
	return cause
}

// stopped is the fault of a motion that was told to stop before a step.
func (c *Course) stopped(ctx context.Context, name string) error {
	return errors.Join(context.Cause(ctx), fault.New(fault.Failed, "stopped before the step %s, and the lease %s stays held until it is done, or given up", name, c.Want.Name).
		WithHint("%s   (or, to give up: %s)", c.resume(), c.abort()))
}

// Commanded refuses, with class Conflict, a step that the hold announces and nobody here has
// a command for, unless it is known to be done.
func (c *Course) Commanded(name string) error {
	if s := c.find(name); s != nil && (s.Run != "" || s.Outcome.Ends()) {
		return nil
	}
	return fault.New(fault.Conflict, "the next step is %s, and no command for it is known here", name).
		WithHint("%s   (with the command of the step, and that of its check if it has one)", c.resume("--step", name+"=COMMAND", "--step-check", name+"=COMMAND")).
		WithFacts(map[string]any{"step": name, "operation": c.Operation.String()})
}

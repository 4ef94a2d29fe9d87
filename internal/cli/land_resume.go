package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/land"
	"gitland/internal/ledger"
)

func resumeCommand() *command {
	return &command{
		name:     "resume",
		synopsis: "[OPERATION] [--json] [OPTION...]",
		summary:  "bring a landing that did not end to its end",
		about: `
Asks the remote what became of a landing whose process died, and finishes it;
or makes sure that it can no longer arrive, and says that it did not land, with
exit code 1. Without OPERATION it does so for all that this worktree began,
as every git land does first. One that died in another clone is finished here
as far as it reached the remote, once its lease was broken. A copy of a clone
refuses; --dead is for one that was restored, or moved to another disk.`,
		examples: `
git land resume
git land resume 01JZ6Y8T3N4V5W6X7Y8Z9ABCDE`,
		exits: []int{1, 3, 8, 9},
		flags: []cli.Flag{deadFlag(), jsonFlag(), ontoFlag(), remoteFlag()},
		run:   resumeLanding,
	}
}

func abortCommand() *command {
	return &command{
		name:     "abort",
		synopsis: "[OPERATION] --reason TEXT [--json] [OPTION...]",
		summary:  "give up a landing that did not end, on the record",
		about: `
Makes sure that a landing whose process died can no longer arrive, and writes
down who gave it up, and why. One that has landed meanwhile is finished instead.
OPERATION may be left out when only one landing of this worktree did not end.`,
		examples: `
git land abort --reason "not wanted any more"
git land abort 01JZ6Y8T3N4V5W6X7Y8Z9ABCDE --reason "laptop is gone"`,
		exits: []int{3, 8, 9},
		flags: []cli.Flag{text("reason", "`TEXT` for the record"), deadFlag(), jsonFlag(), ontoFlag(), remoteFlag()},
		run:   abortLanding,
	}
}

func deadFlag() cli.Flag {
	return boolean("dead", "its process is dead, though this clone cannot prove that")
}

func resumeLanding(ctx context.Context, c *call) error {
	return c.ending(ctx, func(l *ledger.Ledger, e land.Ending) error {
		list, err := land.Resume(ctx, l, e)
		c.printConclusions(list, err)
		if err == nil && len(list) == 0 {
			c.note("no landing of this worktree is unfinished")
		}
		return errors.Join(err, notLanded(list))
	})
}

func abortLanding(ctx context.Context, c *call) error {
	if _, explained := c.in.last("reason"); !explained {
		return fault.New(fault.Usage, "giving up a landing needs a reason").WithHint("add --reason 'why it is not wanted any more'")
	}
	return c.ending(ctx, func(l *ledger.Ledger, e land.Ending) error {
		e.Reason = c.opts.String("reason")
		done, err := land.Abort(ctx, l, e)
		if err == nil {
			c.printConclusions([]land.Conclusion{done}, nil)
		}
		return err
	})
}

// ending opens what resume and abort need.
func (c *call) ending(ctx context.Context, end func(*ledger.Ledger, land.Ending) error) error {
	op, err := c.operation()
	if err != nil {
		return err
	}
	e := land.Ending{Operation: op, Dead: c.opts.Bool("dead")}
	if e.Dead && op.IsZero() {
		return fault.New(fault.Usage, "--dead is about one operation, and none is named").
			WithHint("git land status   (it names those that did not end)")
	}
	l, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	if e.Want, err = c.want(l, ""); err != nil {
		return err
	}
	if e.Session, err = l.Dir.FromEnv(c.env.Get); err != nil {
		return err
	}
	return end(l, e)
}

// operation is the operand that names one; the zero id when there is none.
func (c *call) operation() (ulid.ULID, error) {
	words := append(slices.Clone(c.in.operands), c.in.rest...)
	switch len(words) {
	case 0:
		return ulid.Zero, nil
	case 1:
	default:
		return ulid.Zero, fault.New(fault.Usage, "one operation at a time, and %q is one too many", words[1])
	}
	op, err := ulid.ParseStrict(words[0])
	if err != nil {
		return ulid.Zero, fault.New(fault.Usage, "%q is not the id of an operation", words[0]).
			WithHint("git land status   (it names those that did not end)")
	}
	return op, nil
}

func (c *call) printConclusions(list []land.Conclusion, err error) {
	if c.opts.Bool("json") {
		if list == nil {
			list = []land.Conclusion{}
		}
		object := map[string]any{"concluded": list}
		if err != nil || notLanded(list) != nil && c.in.command.name == "resume" {
			c.partial = object
			return
		}
		c.out.json(object)
		return
	}
	for _, done := range list {
		c.out.printf("%s\n", done)
		if done.Hint != "" {
			c.err.printf("note: the local branch was left where it is: %s\n%s %s\n", done.Local, paint(yellow, "hint:"), done.Hint)
		}
	}
}

// notLanded is the fault of resuming what turned out not to have landed.
func notLanded(list []land.Conclusion) error {
	for _, done := range list {
		switch {
		case done.Landed:
		case done.MayArrive != "":
			hint := "git land reconcile   (it names the landing if that happens)"
			if done.Kept {
				hint = fmt.Sprintf("git land   (to land it anew, which keeps that push out; or, to give it up: git land abort %s --reason WHY)", done.Operation)
			}
			return fault.New(fault.Failed, "%s is not on %s, and may come there yet", done.Unit, done.Branch.Branch()).WithHint("%s", hint)
		default:
			return fault.New(fault.Failed, "%s did not land", cmp.Or(done.Unit, "operation "+done.Operation.String())).WithHint("git land   (to land it anew)")
		}
	}
	return nil
}

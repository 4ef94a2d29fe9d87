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
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/step"
)

func resumeCommand() *command {
	return &command{
		name:     "resume",
		synopsis: "[OPERATION] [--done NAME --reason TEXT | --redo NAME]\n [--json] [OPTION...]",
		summary:  "bring a landing that did not end to its end",
		about: `
Asks the remote what became of a landing whose process died, or of an override,
and finishes it; or makes sure that it can no longer arrive, and says that it
did not land, with exit code 1. Without OPERATION it does so for all that this
worktree began, as every git land does first. Where there is none, exit code 0
says of no change that it landed: for that, run the same git land again. One
that died in another clone is finished here as far as it reached the remote,
after a break.

It goes on with steps, too: the check of the first that is to come says whether
that is done; where it has none, and was begun, a person has to.`,
		examples: `
git land resume
git land resume 01JZ6Y8T3N4V5W6X7Y8Z9ABCDE`,
		exits: []int{3, 5, 8, 9},
		one:   "it did not land, or a step failed",
		flags: slices.Concat([]cli.Flag{
			text("done", "`NAME` of the next step, which is done: --reason TEXT says how"),
			beside(text("reason", "`TEXT` for the record")),
			text("redo", "`NAME` of the next step, to be run whatever it has done"),
			boolean("anyway", "bring steps though others have landed since, say"),
		}, stepFlags("if its command is unknown, or wrong"), []cli.Flag{deadFlag(), jsonFlag(), ontoFlag(), remoteFlag()}),
		run: resumeLanding,
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
	return boolean("dead", "its process is dead, though this clone cannot prove it")
}

func resumeLanding(ctx context.Context, c *call) error {
	word := step.Word{Done: c.opts.String("done"), Redo: c.opts.String("redo"), Reason: c.opts.String("reason"), Anyway: c.opts.Bool("anyway")}
	if err := cmp.Or(c.apart("done", "redo"), c.only("done", "reason")); err != nil {
		return err
	}
	if word.Done != "" {
		var err error
		if word.Reason, err = lease.Reason(word.Reason, "a step is declared done", "how you know that it is"); err != nil {
			return err
		}
	}
	steps, err := c.givenSteps()
	if err != nil {
		return err
	}
	return c.ending(ctx, func(l *ledger.Ledger, e land.Ending) error {
		e.Word, e.Steps = word, steps
		list, err := land.Resume(ctx, l, e)
		c.printConclusions(l, list, err)
		if err == nil && len(list) == 0 {
			c.note("no landing of this worktree is unfinished")
		}
		return errors.Join(err, notLanded(l, list))
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
			c.printConclusions(l, []land.Conclusion{done}, nil)
		}
		return err
	})
}

// ending opens what resume and abort need.
func (c *call) ending(ctx context.Context, end func(*ledger.Ledger, land.Ending) error) error {
	word, err := c.operation()
	if err != nil {
		return err
	}
	e := land.Ending{Dead: c.opts.Bool("dead"), Setting: c.setting()}
	if e.Dead && word == "" {
		return fault.New(fault.Usage, "--dead is about one operation, and none is named").
			WithHint("git land status   (it names those that did not end)")
	}
	l, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	e.Want = c.want("")
	if word != "" {
		if e.Operation, err = ulid.ParseStrict(word); err != nil {
			return c.noOperation(ctx, l, e.Want, word)
		}
	}
	if e.Session, err = l.Dir.FromEnv(c.env.Get); err != nil {
		return err
	}
	return end(l, e)
}

// operation is the operand that names one; "" when there is none.
func (c *call) operation() (string, error) {
	words := append(slices.Clone(c.in.operands), c.in.rest...)
	switch {
	case len(words) == 0:
		return "", nil
	case words[0] == "": // such as an unset "$OPERATION", which asks for no other
		return "", fault.New(fault.Usage, "the operation's id is empty").WithHint("git land status   (it names those that did not end)")
	case len(words) == 1:
		return words[0], nil
	}
	return "", fault.New(fault.Usage, "one operation at a time, and %q is one too many", words[1])
}

// noOperation is the fault of a word that is no operation's id, and says what it is
// instead.
func (c *call) noOperation(ctx context.Context, l *ledger.Ledger, w ledger.Want, word string) error {
	if v, err := l.Fetch(ctx, w); err == nil {
		if err := land.OperationOf(ctx, l, v, word, c.opts.String("reason")); err != nil {
			return err
		}
	}
	return fault.New(fault.Usage, "%q is not the id of an operation, which has 26 letters and digits", word).
		WithHint("git land status   (it names those that did not end)")
}

func (c *call) printConclusions(l *ledger.Ledger, list []land.Conclusion, err error) {
	if c.opts.Bool("json") {
		if list == nil {
			list = []land.Conclusion{}
		}
		object := map[string]any{"concluded": list}
		if err == nil && len(list) > 0 {
			object["landed"] = notLanded(l, list) == nil
		}
		if err != nil || notLanded(l, list) != nil && c.in.command.name == "resume" {
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

// unitOf says what a landing was about, where that was said.
func unitOf(c land.Conclusion) string {
	if _, err := ulid.ParseStrict(c.Unit); err == nil || c.Unit == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", c.Unit)
}

// notLanded is the fault of resuming what turned out not to have landed.
func notLanded(l *ledger.Ledger, list []land.Conclusion) error {
	for _, done := range list {
		switch {
		case done.Landed:
		case done.Motion:
			return fault.New(fault.Failed, "did not begin: the steps of operation %s", done.Operation).WithHint("run them again as before")
		case done.Override != nil:
			return fault.New(fault.Failed, "did not happen: the override of operation %s", done.Operation).WithHint("%s   (makes it anew)", done.Again)
		case done.MayArrive != "":
			hint := l.Command("git", "land", "reconcile", "--onto", done.Branch.Branch()) + "   (it names the landing if that happens)"
			if done.Kept {
				hint = fmt.Sprintf("%s   (lands it anew, which keeps that push out; or, to give it up: %s)",
					cmp.Or(done.Again, l.Command("git", "land", "--onto", done.Branch.Branch())), l.Command("git", "land", "abort", done.Operation.String(), "--reason", "WHY"))
			}
			return fault.New(fault.Failed, "not landed yet: operation %s%s may still come to %s", done.Operation, unitOf(done), done.Branch.Branch()).WithHint("%s", hint)
		default:
			f := fault.New(fault.Failed, "did not land: operation %s%s", done.Operation, unitOf(done))
			switch {
			case done.Again != "":
				return f.WithHint("%s   (lands it anew)", done.Again)
			case done.Unit == "": // it was begun in another clone
				return f.WithHint("land its change again where that is, or, to put on the record that it is given up: %s",
					l.Command("git", "land", "abort", done.Operation.String(), "--reason", "WHY"))
			}
			return f.WithHint("its change is where it was made: land it again as before")
		}
	}
	return nil
}

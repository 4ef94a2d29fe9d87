package cli

import (
	"cmp"
	"context"

	"github.com/urfave/cli/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/session"
)

func recoverCommand() *command {
	return &command{
		name:     "recover",
		synopsis: "[NAME] [--operation ID]\n [--acquire [-m PURPOSE] [--format=sh|fish|json]]",
		summary:  "free a lease whose holder is provably gone",
		about: `
Frees the lease only on proof that the operation which holds it is gone: on the
machine and in the clone where it ran, by the file that it keeps locked, and by
machine, boot and process. Never because of the time that has passed.

What was compared is printed. Where it proves nothing, the command that breaks
the lease without proof is shown; git land resume finishes a landing that died.
--acquire takes the lease in the same push.`,
		examples: `
git lease recover
git lease recover docs --operation 01JZ6Y8T3N4V5W6X7Y8Z9ABCDE --json
eval "$(git lease recover --acquire -m 'release 1.2, again')"`,
		exits: []int{3, 8, 9},
		flags: []cli.Flag{operationFlag("`ID` of the operation that has to be the one that holds it"),
			boolean("acquire", "take the lease at once, and print what acquire prints"), purposeFlag(),
			choice("format", "`FORMAT` of that: sh (the default), fish or json", formats...), jsonFlag(), remoteFlag()},
		evaluated: func(a arguments) bool { _, taking := a.last("acquire"); return taking },
		run:       recoverLease,
	}
}

type recoveredJSON struct {
	Lease      string          `json:"lease"`
	Remote     string          `json:"remote"`
	Recovered  *holdJSON       `json:"recovered"`
	Verdict    session.Verdict `json:"verdict"`
	Comparison string          `json:"comparison"`
	Event      string          `json:"event"`
	// Left are those that the operation may hold besides.
	Left []session.LeaseAt `json:"left,omitempty"`
}

func recoverLease(ctx context.Context, c *call) error {
	name, err := c.name()
	if err := cmp.Or(err, c.only("acquire", "message", "format"), c.apart("json", "format")); err != nil {
		return err
	}
	l, err := c.open(ctx, "", name)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want := c.want(name)
	operation, err := c.holder(ctx, l, want)
	if err != nil {
		return err
	}
	r := lease.Recovery{Want: want, Operation: operation, Root: c.ownRoot(l), Proved: c.tellProof}
	var k keeping
	if r.Take, k, err = c.takingToo(l, want); err != nil {
		return err
	}
	done, err := lease.Recover(ctx, l, r)
	if err != nil && done.Grant != nil {
		return c.notKnown(k, *done.Grant, err)
	}
	if err != nil {
		return err
	}
	c.err.printf("%s %s at %s: operation %s of %s\n", paint(green, "recovered"), done.Name, l.Remote, done.Hold.Operation, done.Hold.Holder)
	for _, at := range done.Left {
		line := l.Command("git", "lease", "recover", at.Lease)
		if at.Remote != l.Remote {
			line = fault.Command("git", "lease", "recover", at.Lease, "--remote", at.Remote)
		}
		c.err.printf("hint: %s   (the same operation may hold it, too)\n", line)
	}
	return c.tookToo(ctx, l, k, done.Grant, recoveredJSON{done.Name, l.Remote, c.hold(done.Hold, false), done.Judgement.Verdict,
		done.Judgement.Why, string(done.Event.OID), done.Left})
}

// tellProof says what decided. A refusal has it in its own sentence.
func (c *call) tellProof(h event.Hold, j session.Judgement) {
	c.err.printf("%s operation %s: %s\n", paint(yellow, string(j.Verdict)), h.Operation, j.Why)
}

package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

func adoptCommand() *command {
	return &command{
		name:     "adopt",
		synopsis: "[NAME]\n[NAME] --over OID --reason TEXT",
		summary:  "begin a lease's history, or lead out of a broken one",
		about: `
Begins the history of the lease and puts the target branch under it. The first
acquire or landing does so by itself.

With --over it goes on from the last good event, over a tip that is malformed,
rewritten or deleted, and says what that leaves out. Look first: where events
are missing, git lease show names a push that puts them back. A holder stays
the holder. Every other clone accepts it by the same command, once.`,
		examples: `
git lease adopt
git lease adopt main --over 52f0b0ad... --reason "force-pushed by mistake"`,
		exits: []int{8, 9},
		flags: []cli.Flag{oidFlag("over", "`OID` of the tip to go over, in full"), text("reason", "`TEXT` for the record"),
			jsonFlag(), remoteFlag()},
		run: adopt,
	}
}

type adoptedJSON struct {
	Lease    string     `json:"lease"`
	Remote   string     `json:"remote"`
	Event    object.OID `json:"event,omitempty"` // absent when there was nothing to do
	Accepted bool       `json:"accepted"`
	From     object.OID `json:"from,omitempty"`     // the event that the chain goes on from
	LeftOut  int        `json:"left_out,omitempty"` // events of the other chain that are not in this one
}

func adopt(ctx context.Context, c *call) error {
	name, err := c.name()
	if err := cmp.Or(err, c.only("over", "reason")); err != nil {
		return err
	}
	over, _ := value[object.OID](c, "over")
	l, err := c.open(ctx, "", name)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want := c.want(name)
	done, err := lease.Adopt(ctx, l, lease.Adoption{Want: want, Over: over, Reason: c.opts.String("reason")})
	if err != nil {
		return err
	}
	how, j := "adopted before:", adoptedJSON{Lease: done.Name, Remote: l.Remote, Accepted: done.Accepted, LeftOut: done.LeftOut}
	if done.From != nil {
		j.From = done.From.OID
	}
	switch {
	case done.Accepted:
		how = "accepted"
	case done.Event != nil:
		how, j.Event = "adopted", done.Event.OID
	}
	c.err.printf("%s %s at %s\n", paint(green, how), done.Name, l.Remote)
	if over != "" {
		c.printLeft(l, done)
	}
	if c.opts.Bool("json") {
		return c.out.json(j)
	}
	return nil
}

// printLeft says what a chain was led over, and what that left out.
func (c *call) printLeft(l *ledger.Ledger, done lease.Adopted) {
	from := "it begins anew"
	switch {
	case done.Accepted:
		from = fmt.Sprintf("this clone follows the chain as %s has it, up to event %d, and pushed nothing", l.Remote, done.From.Seq)
	case done.From != nil:
		from = fmt.Sprintf("it goes on from event %d, %s", done.From.Seq, done.From.OID.Short())
	}
	whose := l.Remote + " had"
	if done.Accepted {
		whose = "this clone had seen"
	}
	switch {
	case done.Deleted:
		c.err.printf("  %s; what other clones have seen after that is left out\n", from)
		return
	case done.LeftOut == 0 && done.Unread == 0:
		c.err.printf("  %s; no event is left out\n", from)
		return
	case done.LeftOut == 0:
		c.err.printf("  %s; what is left out is no event\n", from)
		return
	}
	c.err.printf("  %s; %s that %s left out:\n", from, counted(done.LeftOut, "event"), whose+verb(done.LeftOut))
	for _, e := range done.Left {
		c.err.printf("    %d  %s  %s  by %s\n", e.Seq, e.Time.Format(timeLayout), e.Kind, e.Actor)
	}
	if more := done.LeftOut - len(done.Left); more > 0 {
		c.err.printf("    and %d before them\n", more)
	}
}

func verb(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

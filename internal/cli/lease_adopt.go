package cli

import (
	"cmp"
	"context"

	"github.com/urfave/cli/v2"

	"gitland/internal/lease"
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
rewritten or deleted: look at that first. A holder stays the holder. Every
other clone accepts it by the same command, once.`,
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
}

func adopt(ctx context.Context, c *call) error {
	name, err := c.name()
	if err := cmp.Or(err, c.only("over", "reason")); err != nil {
		return err
	}
	over, _ := value[object.OID](c, "over")
	l, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want, err := c.want(l, name)
	if err != nil {
		return err
	}
	done, err := lease.Adopt(ctx, l, lease.Adoption{Want: want, Over: over, Reason: c.opts.String("reason")})
	if err != nil {
		return err
	}
	how, j := "adopted before:", adoptedJSON{Lease: done.Name, Remote: l.Remote, Accepted: done.Accepted}
	switch {
	case done.Accepted:
		how = "accepted"
	case done.Event != nil:
		how, j.Event = "adopted", done.Event.OID
	}
	c.err.printf("%s %s at %s\n", paint(green, how), done.Name, l.Remote)
	if c.opts.Bool("json") {
		return c.out.json(j)
	}
	return nil
}

package cli

import (
	"context"

	"github.com/urfave/cli/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/lease"
)

func freezeCommand() *command {
	return &command{
		name:     "freeze",
		synopsis: "[NAME] --reason TEXT",
		summary:  "keep everybody from taking a lease and from landing, until thaw",
		about: `
Freezes the lease NAME, by default the one of the target branch: until git lease
thaw nobody acquires it or lands under it, so that a team can change the format
or move the repository. It waits for nobody: a lease that is held is not frozen.
Reason and name stand in the lease's history, and are told to whoever it stops.`,
		examples: `
git lease freeze --reason "moving to the new server until noon"
git lease freeze docs --reason "format 2" --json`,
		exits: []int{3, 8, 9},
		flags: []cli.Flag{text("reason", "`TEXT` for the record"), jsonFlag(), remoteFlag()},
		run:   freeze,
	}
}

// movedJSON is a freeze or a thaw.
type movedJSON struct {
	Lease     string      `json:"lease"`
	Remote    string      `json:"remote"`
	State     event.Phase `json:"state"`
	Operation string      `json:"operation"`
	Fence     uint64      `json:"fence"`
	Event     string      `json:"event"`
}

func freeze(ctx context.Context, c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	if _, explained := c.in.last("reason"); !explained {
		return fault.New(fault.Usage, "freezing a lease needs a reason").WithHint("add --reason 'why nothing may land'")
	}
	l, err := c.open(ctx, "", name)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want := c.want(name)
	e, err := lease.Freeze(ctx, l, lease.Freezing{Want: want, Reason: c.opts.String("reason"), Root: c.ownRoot(l)})
	if err != nil {
		return err
	}
	return c.moved("frozen", l.Remote, e)
}

// moved tells of a freeze or a thaw.
func (c *call) moved(how, remote string, e event.Event) error {
	c.err.printf("%s %s at %s: operation %s\n", paint(yellow, how), e.Name, remote, e.By.Operation)
	if !c.opts.Bool("json") {
		return nil
	}
	return c.out.json(movedJSON{e.Name, remote, e.State.Phase, e.By.Operation.String(), e.Seq, string(e.OID)})
}

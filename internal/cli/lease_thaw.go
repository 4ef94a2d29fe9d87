package cli

import (
	"context"

	"github.com/urfave/cli/v2"

	"gitland/internal/lease"
)

func thawCommand() *command {
	return &command{
		name:     "thaw",
		synopsis: "[NAME] [--reason TEXT]",
		summary:  "end a freeze",
		about: `
Lets a frozen lease be taken again, on the record. Anyone may: git lease show
tells who froze it, when and why, so ask first.`,
		examples: `
git lease thaw
git lease thaw docs --reason "everybody has the new version"`,
		exits: []int{3, 8, 9},
		flags: []cli.Flag{text("reason", "`TEXT` for the record"), jsonFlag(), remoteFlag()},
		run:   thaw,
	}
}

func thaw(ctx context.Context, c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	l, err := c.open(ctx, "", name)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want := c.want(name)
	e, err := lease.Thaw(ctx, l, lease.Thawing{Want: want, Reason: c.opts.String("reason")})
	if err != nil {
		return err
	}
	return c.moved("thawed", l.Remote, e)
}

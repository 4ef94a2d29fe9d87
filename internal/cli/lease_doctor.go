package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"gitland/internal/doctor"
	"gitland/internal/fault"
)

func doctorCommand() *command {
	return &command{
		name:     "doctor",
		synopsis: "[--json] [OPTION...]",
		summary:  "look over this clone and its remote, and say what does not work",
		about: `
Looks at git, identity, remote, hooks and what is left over, a line each, and
says which command mends what is wrong. It tries things: it writes refs of its
own to the remote and deletes them, and runs the pre-push hook on made-up input.`,
		examples: `
git lease doctor
git lease doctor --json`,
		exits: []int{},
		flags: []cli.Flag{jsonFlag(), ontoFlag(), remoteFlag()},
		run:   examine,
	}
}

func examine(ctx context.Context, c *call) error {
	if err := c.noOperands("git lease doctor"); err != nil {
		return err
	}
	repo, err := c.repo(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	r := doctor.Request{Repo: repo, Remote: c.opts.String("remote"), Now: c.env.Now, Notice: c.note}
	if r.Tool, err = ownPath(); err != nil {
		return err
	}
	r.Branch = c.want("").Branch
	checks := doctor.Examine(ctx, r)
	wrong := 0
	for _, check := range checks {
		if !check.OK {
			wrong++
		}
		if c.opts.Bool("json") {
			continue
		}
		mark := paint(green, "ok   ")
		if !check.OK {
			mark = paint(red, "WRONG")
		}
		c.out.printf("%s  %-11s %s\n", mark, check.Name, check.Text)
		if check.Command != "" {
			c.out.printf("       %s %s\n", paint(yellow, "hint:"), check.Command)
		}
	}
	object := map[string]any{"checks": checks}
	switch {
	case wrong > 0:
		c.partial = object
		what := "one thing is"
		if wrong > 1 {
			what = fmt.Sprintf("%d things are", wrong)
		}
		return errors.Join(fault.New(fault.Failed, "%s not as it should be", what), ctx.Err())
	case c.opts.Bool("json"):
		return c.out.json(object)
	}
	return ctx.Err()
}

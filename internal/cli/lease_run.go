package cli

import (
	"context"

	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/lease"
)

func runCommand() *command {
	return &command{
		name:     "run",
		synopsis: "[NAME] [-m PURPOSE] [--wait [--timeout DURATION]]\n [--close] [--conflict-exit-code N] -- COMMAND...",
		summary:  "run a command while holding a lease",
		about: `
Takes the lease, runs the command, and gives the lease back however the command
ends, by a signal too. The command finds the hold in its environment, so that
git land uses it; GIT_LEASE_FENCE is a number that only ever grows. Should git
lease itself be killed, the lease counts as in use while the command, or what
it started, goes on; with --close it does not, as with flock(1).

The exit code is the command's own, unless that is 0: then 6 when the lease was
lost meanwhile, and 9 when it may be held still (git lease recover frees it).
That of --conflict-exit-code is for a lease that is held: nothing was run.`,
		examples: `
git lease run -- ./release.sh
git lease run docs -m "publish the manual" --wait -- make publish
git lease run --conflict-exit-code 0 nightly -- ./nightly.sh`,
		exits: []int{3, 6, 8, 9},
		flags: append(append([]cli.Flag{purposeFlag()}, waitFlags()...),
			boolean("close", "the lease is in use while git lease runs, no longer"),
			number("conflict-exit-code", "`N` is the exit code when the lease is held by another (3)", 0, 255),
			remoteFlag()),
		run: runLease,
	}
}

func runLease(ctx context.Context, c *call) error {
	if err := c.checkCommand(); err != nil {
		return err
	}
	waiting, err := c.waiting()
	if err != nil {
		return err
	}
	l, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want := c.want(one(c.in.operands))
	code, err := lease.Run(ctx, l, lease.Running{
		Acquisition: lease.Acquisition{Want: want, Purpose: c.opts.String("message"), Waiting: waiting},
		Argv:        c.in.rest,
		Environ:     c.env.Environ,
		Stdin:       c.env.Stdin, Stdout: c.env.Stdout, Stderr: c.env.Stderr,
		Close: c.opts.Bool("close"),
		Taken: func(g lease.Grant) {
			c.passed = true // from here on a signal is the command's
			c.tellGrant(g)
		},
	})
	err = c.toWait(err, "%s", "--wait")
	conflict, given := value[int](c, "conflict-exit-code")
	switch {
	case code != 0:
		return &status{code, err}
	case given && !c.passed && fault.ClassOf(err) == fault.Held:
		return &status{conflict, err}
	}
	return err
}

func (c *call) checkCommand() error {
	switch {
	case len(c.in.operands) > 1 && !c.in.cut:
		return fault.New(fault.Usage, "the command to run goes behind --").
			WithHint("%s", c.line(behind(c.tool, c.in.command, c.args, nil)...))
	case len(c.in.rest) == 0 || c.in.rest[0] == "":
		return fault.New(fault.Usage, "there is no command to run").WithHint("git lease run [NAME] -- COMMAND...")
	}
	return checkNames(c.in.operands, 1, "git lease run")
}

// one is the only name, "" when there is none.
func one(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

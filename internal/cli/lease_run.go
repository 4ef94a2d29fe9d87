package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/policy"
	"gitland/internal/step"
)

func runCommand() *command {
	return &command{
		name:     "run",
		synopsis: "[NAME] [-m PURPOSE] [--wait [--timeout DURATION]]\n [--close] [--conflict-exit-code N] -- COMMAND...\n [NAME] [OPTION...] --step NAME=COMMAND...\n--name [REMOTE:]NAME... [OPTION...] -- COMMAND...",
		summary:  "run a command while holding a lease",
		about: `
Takes the lease, runs the command, and gives the lease back however the command
ends, by a signal too. The command finds the hold in its environment, so that
git land uses it; GIT_LEASE_FENCE is a number that only ever grows. Should git
lease itself be killed, the lease counts as in use while the command, or what
it started, goes on; with --close it does not, as with flock(1).

Several leases are taken all or none, in one order everywhere, so that no runs
wait in a circle; who waits holds those before it. GIT_LEASE_NAME and its like
are of the first; GIT_LEASE_HOLDS has fence, remote and name of each, by lines.

The exit code is the command's own, unless that is 0: then 6 when the lease was
lost meanwhile, and 9 when it may be held still (git lease recover frees it).
That of --conflict-exit-code is for a lease that is held: nothing was run.

With --step, steps run in place of COMMAND, in their order. Each is on the
record. Where one is not done the exit code is 1, the lease stays held, whoever
dies, and git land resume goes on from there.`,
		examples: `
git lease run -- ./release.sh
git lease run docs -m "publish the manual" --wait -- make publish
git lease run --name main --name site:docs --wait -- ./release.sh
git lease run --conflict-exit-code 0 nightly -- ./nightly.sh
git lease run site --step 'copy=./copy.sh' --step 'announce=./announce.sh'`,
		exits: []int{3, 6, 8, 9},
		flags: append(slices.Concat([]cli.Flag{texts("name", "`[REMOTE:]NAME` of a lease; several times for several"), purposeFlag()}, waitFlags(), stepFlags("in place of COMMAND")),
			boolean("close", "the lease is in use while git lease runs, no longer"),
			number("conflict-exit-code", "`N` is the exit code when the lease is held by another (3)", 0, 255),
			remoteFlag()),
		run: runLease,
	}
}

func runLease(ctx context.Context, c *call) error {
	given, err := c.givenSteps()
	if err != nil {
		return err
	}
	if err := c.checkCommand(len(given) > 0); err != nil {
		return err
	}
	waiting, err := c.waiting()
	if err != nil {
		return err
	}
	parts, done, err := c.parts(ctx)
	defer done()
	if err != nil {
		return err
	}
	if len(given) > 0 {
		if len(parts) > 1 {
			return fault.New(fault.Usage, "steps run under one lease, and %d are named", len(parts)).
				WithHint("%s   (or, in one command under all of them: git lease run --name NAME --name NAME -- COMMAND...)", c.line(c.instead(1)...))
		}
		return c.runSteps(ctx, parts[0].Ledger, parts[0].Want, waiting, given)
	}
	code, err := lease.RunUnder(ctx, parts, lease.Running{
		Acquisition: lease.Acquisition{Purpose: c.opts.String("message"), Waiting: waiting, Asking: c.ownRoot(parts[0].Ledger)},
		Argv:        c.in.rest,
		Environ:     c.env.Environ,
		Stdin:       c.env.Stdin, Stdout: c.env.Stdout, Stderr: c.env.Stderr,
		Close: c.opts.Bool("close"),
		Taken: func(g lease.Grant) {
			c.passed = true // from here on a signal is the command's
			c.tellGrant(g)
		},
	})
	err = c.within(c.toWait(c.once(err), "%s", "--wait"))
	if code != 0 {
		return &status{code, err}
	}
	return c.conflict(err)
}

// within has the refusal of a lease that this session holds itself, by a run around this one
// say, end with the command alone: it finds that hold in its environment.
func (c *call) within(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Facts["own"] == true && len(c.opts.StringSlice("name")) == 0 {
		f.WithHint("%s   (it runs under that)", fault.Command(c.in.rest...))
	}
	return err
}

// conflict is err with the exit code that was asked for where the lease is held.
func (c *call) conflict(err error) error {
	if code, given := value[int](c, "conflict-exit-code"); given && !c.passed && fault.ClassOf(err) == fault.Held {
		return &status{code, err}
	}
	return err
}

// runSteps runs steps in place of a command.
func (c *call) runSteps(ctx context.Context, l *ledger.Ledger, want ledger.Want, waiting lease.Waiting, given []policy.Step) error {
	steps, err := step.New(nil, given...)
	if err != nil {
		return err
	}
	r := step.Running{Want: want, Purpose: c.opts.String("message"), Waiting: waiting, Asking: c.ownRoot(l), Steps: steps, Taken: c.tellGrant, Setting: c.setting()}
	r.Stdin, r.Stdout = c.env.Stdin, c.env.Stdout
	_, err = step.Run(ctx, l, r)
	return c.conflict(c.toWait(err, "%s", "--wait"))
}

func (c *call) checkCommand(steps bool) error {
	switch {
	case steps && (c.in.cut || len(c.in.rest) > 0):
		return fault.New(fault.Usage, "--step takes the place of the command to run").WithHint("have the command be a step, too: --step 'NAME=COMMAND'")
	case steps && c.opts.Bool("close"):
		return fault.New(fault.Usage, "options --step and --close exclude each other")
	case steps:
		return checkNames(c.in.operands, 1, "git lease run")
	case len(c.in.operands) > 1 && !c.in.cut:
		return fault.New(fault.Usage, "the command to run goes behind --").
			WithHint("%s", c.line(behind(c.tool, c.in.command, c.args, nil)...))
	case len(c.in.rest) == 0 || c.in.rest[0] == "":
		return fault.New(fault.Usage, "there is no command to run").WithHint("git lease run [NAME] -- COMMAND...")
	case len(c.in.operands) > 1 && !slices.Contains(c.in.operands, ""):
		return fault.New(fault.Usage, "%q is one more lease, and several are named by --name", c.in.operands[1]).
			WithHint("%s", c.line(c.byOption()...))
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

package cli

import (
	"context"

	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

func acquireCommand() *command {
	return &command{
		name:     "acquire",
		synopsis: "[NAME] [-m PURPOSE] [--wait [--timeout DURATION]]\n [--watch-pid PID] [--format=sh|fish|json]",
		summary:  "take a lease, and print what the shell needs to hold it",
		about: `
Takes the lease NAME, by default the one of the target branch. The token that
proves it is printed for the shell to evaluate; or, where GIT_LEASE_SESSION
names this session, kept for it in the repository and printed nowhere.

Where it is not known whether the lease was taken, the token is printed all the
same, and the command fails: the same again, in that shell, finds out.

The lease is held until it is released. --watch-pid lets git lease recover free
it when that process is gone: a shell's, which is $$ ($fish_pid in fish).`,
		examples: `
eval "$(git lease acquire -m 'release 1.2')" && ./release.sh
eval "$(git lease acquire --watch-pid $$)"
git lease acquire --format=fish | source
GIT_LEASE_SESSION=job-42 git lease acquire --wait --timeout 10m docs`,
		exits: []int{3, 8, 9},
		flags: append([]cli.Flag{purposeFlag()}, append(waitFlags(),
			number("watch-pid", "`PID` of a process without which the lease may be recovered", 1, 1<<30),
			choice("format", "`FORMAT` of what is printed: sh (the default), fish or json", formats...),
			jsonFlag(), remoteFlag())...),
		evaluated: func(arguments) bool { return true },
		run:       acquire,
	}
}

func acquire(ctx context.Context, c *call) error {
	name, err := c.name()
	if err == nil {
		err = c.apart("json", "format")
	}
	if err != nil {
		return err
	}
	waiting, err := c.waiting()
	if err != nil {
		return err
	}
	tie, given := value[int](c, "watch-pid")
	if given {
		if err := session.CanTie(tie); err != nil {
			return fault.New(fault.Usage, "--watch-pid: %w", err)
		}
	}
	l, err := c.open(ctx, "", name)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want := c.want(name)
	k, err := c.keeping(l)
	if err != nil {
		return err
	}
	grant, err := lease.Acquire(ctx, l, lease.Acquisition{
		Want: want, Purpose: c.opts.String("message"), Root: k.root, Waiting: waiting, Tie: tie, Unknown: c.unknown(k)})
	if ledger.IsUnsettled(err) {
		return c.notKnown(k, grant, err)
	}
	if err != nil {
		return c.toWait(err, k.form(), "--wait")
	}
	if err := c.keep(ctx, l, k, grant); err != nil {
		return err
	}
	c.tellGrant(grant)
	return nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/land"
	"gitland/internal/lease"
	"gitland/internal/ledger"
)

func overrideCommand() *command {
	return &command{
		name:     "override",
		synopsis: "--reason TEXT [--json] [OPTION...] REFSPEC...",
		summary:  "push refs past the lease, on the record",
		about: `
Pushes REFSPEC..., as git push has them (HEAD:main, main, or :old to delete),
past lease and verification, whoever holds the lease. In the same transaction it
writes down who did so, why, and which refs moved from where to where. What a
branch has is dropped only where the refspec says so, by a + before it. The same
command again finds what was made; where it was killed, git land resume tells.

It stands in the log of the lease that keeps the branch. A branch that no lease
keeps is begun by it, under the lease that landings there will take, or, with
--onto, moves on the log of that branch's lease.`,
		examples: `
git land override --reason "the release broke, reverting by hand" HEAD:main
git land override --reason "that landing has to go" +origin/main~1:main
git land override --reason "release 3" origin/main:refs/heads/release/3.0
git land override --reason "made by mistake" :wrong-branch`,
		exits: []int{5, 8, 9},
		flags: []cli.Flag{text("reason", "`TEXT` for the record"), branchFlag("onto", "`BRANCH` whose lease's log has it, where no lease keeps what moves"), remoteFlag(), jsonFlag()},
		run:   override,
	}
}

type overrideJSON struct {
	Lease     string         `json:"lease"`
	Remote    string         `json:"remote"`
	Operation string         `json:"operation"`
	Fence     uint64         `json:"fence"`
	Event     string         `json:"event"`
	Reason    string         `json:"reason"`
	Updates   []event.Update `json:"updates"`
	// Already means that it was made before, by an earlier run.
	Already bool `json:"already,omitempty"`
}

func override(ctx context.Context, c *call) error {
	specs := append(c.in.operands[:len(c.in.operands):len(c.in.operands)], c.in.rest...)
	if len(specs) == 0 {
		return fault.New(fault.Usage, "nothing to push is named").WithHint("git land override --reason TEXT HEAD:main")
	}
	if _, explained := c.in.last("reason"); !explained {
		return fault.New(fault.Usage, "an override is on the record, and needs a reason").WithHint("add --reason 'why it cannot go by git land'")
	}
	l, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	o := lease.Overriding{Reason: c.opts.String("reason")}
	o.Want = c.want("")
	for _, spec := range specs {
		u, err := lease.Refspec(spec).Update(ctx, l.Repo)
		if err != nil {
			return err
		}
		o.Updates = append(o.Updates, u)
		if lease.Refspec(spec).Rewrites() {
			o.Rewrite = append(o.Rewrite, u.Ref)
		}
	}
	made, err := lease.Override(ctx, l, o)
	earlier := c.concludeOverrides(ctx, l)
	if err != nil {
		return errors.Join(err, earlier)
	}
	if earlier != nil { // which takes nothing back
		c.note("an override that died earlier is not ended yet: %v", earlier)
	}
	e := made.Event
	for _, u := range e.By.Updates {
		c.err.printf("%s %s: %s to %s%s\n", paint(yellow, "moved"), u.Ref.Branch(), orNone(u.Old.Short()), orNone(u.New.Short()), c.dropped(ctx, l, u))
	}
	if c.opts.Bool("json") {
		return c.out.json(overrideJSON{e.Name, l.Remote, e.By.Operation.String(), e.Seq, string(e.OID), e.By.Reason, e.By.Updates, made.Already})
	}
	how := "past"
	if made.Already {
		how = "already past"
	}
	c.out.printf("%s the lease %s at %s: operation %s\n", paint(yellow, how), e.Name, l.Remote, e.By.Operation)
	return nil
}

// concludeOverrides ends those of this worktree that died before.
func (c *call) concludeOverrides(ctx context.Context, l *ledger.Ledger) error {
	source, err := l.Dir.FromEnv(c.env.Get)
	if err != nil {
		return err
	}
	ended, err := land.ConcludeOverrides(ctx, l, source)
	for _, e := range ended {
		c.note("%s", e)
	}
	return err
}

// dropped says what a branch lost, as far as this clone has it.
func (c *call) dropped(ctx context.Context, l *ledger.Ledger, u event.Update) string {
	if u.Old == "" || u.New == "" {
		return ""
	}
	lost, err := l.Repo.Unlanded(ctx, u.New, u.Old)
	lost = slices.DeleteFunc(lost, func(e git.RevListEntry) bool { return e.Alike })
	switch {
	case err != nil || len(lost) == 0:
		return ""
	case len(lost) == 1:
		return ", which drops a commit"
	}
	return fmt.Sprintf(", which drops %d commits", len(lost))
}

package land

import (
	"cmp"
	"context"
	"fmt"

	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

// concludeOverride ends an override that died.
func concludeOverride(ctx context.Context, l *ledger.Ledger, j journal, from session.Source, reason string) (Conclusion, error) {
	c := Conclusion{Operation: j.Operation, Remote: l.Remote, Lease: j.Lease, Branch: j.Branch, Override: j.Override}
	o := lease.DeadOverride{Want: ledger.Want{Name: j.Lease, Branch: j.Branch}, Operation: j.Operation, Updates: j.Override,
		Reason: j.Reason, Rewrite: j.Rewrite, Apart: j.Follow, Tries: j.attempts()}
	end, err := o.Settle(ctx, l, from, reason)
	c.ByOthers = end.ByOthers
	if c.Landed = end.Made || end.ByOthers; err == nil && !c.Landed {
		c.GivenUp, c.Again = reason != "", o.Again(l)
	}
	if c.left, c.missed = end.Left, end.Missed; len(end.Left) > 0 {
		c.MayArrive = end.Left[0].Old
	}
	return c, err
}

func (c Conclusion) overrideString() string {
	moves := c.Override[0].Ref.Branch()
	if more := len(c.Override) - 1; more > 0 {
		moves += fmt.Sprintf(" and %d more", more)
	}
	if len(c.left) > 0 {
		return fmt.Sprintf("operation %s, which has announced that it moves %s past the lease %s, is given up; a push of it that is still on its way could do so as long as %s is at %s",
			c.Operation, moves, c.Lease, c.left[0].Ref.Branch(), nonEmpty(c.left[0].Old.Short(), "(none)"))
	}
	if len(c.missed) > 0 {
		return fmt.Sprintf("operation %s has announced that it moves %s past the lease %s, and had died before it moved %s, which others have moved since; it can no longer arrive",
			c.Operation, moves, c.Lease, c.missed[0].Ref.Branch())
	}
	if c.ByOthers {
		return fmt.Sprintf("operation %s had died, and %s has what it was to bring there past the lease %s, by no event of its own", c.Operation, moves, c.Lease)
	}
	if c.Landed {
		return fmt.Sprintf("operation %s had died after it had moved %s past the lease %s", c.Operation, moves, c.Lease)
	}
	return fmt.Sprintf("operation %s had died before it moved %s past the lease %s; it can no longer arrive", c.Operation, moves, c.Lease)
}

// ConcludeOverrides ends the overrides of this worktree that died, and returns them.
// Those that cannot be ended now are left for the next time; the error is of the first of
// them of which more is wrong than that somebody is in the way.
func ConcludeOverrides(ctx context.Context, l *ledger.Ledger, from session.Source) ([]Conclusion, error) {
	list, err := ListUnfinished(l.Dir)
	if err != nil {
		return nil, err
	}
	var done []Conclusion
	var wrong error
	for _, u := range list {
		if !u.Override || u.Alive || u.Doubt != "" || u.gitDir != l.Repo.Place() {
			continue
		}
		c, err := concludeOne(ctx, l, Ending{Operation: u.Operation, Session: from})
		switch {
		case err != nil && ctx.Err() != nil:
			return done, err
		case err != nil && fault.ClassOf(err) != fault.Held:
			wrong = cmp.Or(wrong, err)
		case err == nil && c != nil:
			done = append(done, *c)
		}
	}
	return done, wrong
}

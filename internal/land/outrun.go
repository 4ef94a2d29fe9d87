package land

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// outrun advances the chain past every push of a landing that has not arrived,
// and returns the attempt that has, if one did. Under a lease that the landing
// had acquired, it ends the hold; from a free chain, and under the lease that the
// session brought, it appends a void. Where the branch moved and the chain did
// not, because the server died between the two or the lease was taken off the
// landing there, it appends the landing's event instead.
func (s *sequence) outrun(ctx context.Context, reason string) (*attempt, error) {
	l, j := s.l, *s.journal
	if reason == "" {
		reason = "operation " + j.Operation.String() + " ended before it landed"
	}
	var arrived *attempt
	_, err := l.Append(ctx, s.want, func(v ledger.View, d *ledger.Draft) error {
		arrived = nil
		fate, err := l.Trace(ctx, v, j.attempts())
		if err != nil {
			return err
		}
		if landed(fate) {
			if a, ok := j.byEvent(fate.Arrived.OID); ok {
				arrived = &a
			}
			return errSettled
		}
		act := event.Event{Kind: event.Void, By: event.By{Operation: j.Operation, Reason: reason}}
		hold, own, brought := v.Hold(), lease.Owns(s.root, v.Tip), lease.Owns(s.brought, v.Tip)
		half, err := halfLanded(ctx, l, v, j, fate)
		if err == nil && half != nil {
			act, err = relanding(ctx, l, v, *half)
		}
		if brought {
			act.By.Operation = hold.Operation
		}
		switch {
		case err != nil:
			return err
		case half != nil && v.Phase() == event.Frozen:
			return frozenHalf(ctx, l, v, *half)
		case half != nil && hold != nil && hold.Operation != act.By.Operation:
			return fault.New(fault.Held, "%s of operation %s is on %s, but its event is not on the chain, and the lease %s is held by %s",
				half.Commit.Short(), j.Operation, v.Branch.Branch(), v.Name, lease.Describe(*hold, l.Now())).
				WithHint("run git land again when the lease is free: it adds the event first")
		case half != nil:
			arrived = half
		case v.Phase() == event.Frozen:
			return errSettled // no push ever named a frozen tip, so none can arrive on it
		case own:
			act.Kind = event.Abort
		case brought && (fate.Pending || s.announced(v)):
		case fate.Pending && hold != nil:
			return fault.New(fault.Held, "the push of operation %s may still arrive, and the lease %s is held by %s",
				j.Operation, v.Name, lease.Describe(*hold, l.Now())).
				WithHint("run git land in the session that holds it, or: %s   (then run git land again)",
					l.Command("git", "lease", "release", v.Name))
		case hold != nil, !fate.Pending && j.Token == "":
			return errSettled // the chain has moved past the push by itself
		}
		if own {
			act.By.Secret = lease.SecretOf(s.root, v.Tip)
		}
		if err := d.Adopt(ctx, v.Branch, v.Base); err != nil {
			return err
		}
		_, err = d.Add(act)
		return err
	})
	if errors.Is(err, errSettled) {
		err = nil
	}
	return arrived, err
}

// frozenHalf is the refusal to mend, under a freeze, what a server left half
// done: nothing is written then.
func frozenHalf(ctx context.Context, l *ledger.Ledger, v ledger.View, a attempt) error {
	err := lease.InFrost(ctx, l, v)
	if f, ok := errors.AsType[*fault.Error](err); ok {
		f.What = fmt.Sprintf("%s was brought to %s by a landing of which %s lacks the record or the event, and %s",
			a.Commit.Short(), v.Branch.Branch(), l.Remote, f.What)
		f.Hint += "   (then run git land again: it adds the rest first)"
	}
	return err
}

// halfLanded is an attempt whose commit is on the branch although the chain has
// no event for it: the server died between the two refs. Others may have landed
// on top of it since.
func halfLanded(ctx context.Context, l *ledger.Ledger, v ledger.View, j journal, fate ledger.Fate) (*attempt, error) {
	if landed(fate) {
		return nil, nil
	}
	for i, a := range slices.Backward(j.Attempts) {
		if v.Base == a.base(v.Branch) {
			continue // it has not moved, most often
		}
		in, err := isIn(ctx, l, a.Commit, v.Base)
		if err != nil {
			return nil, err
		}
		if !in {
			continue
		}
		others, err := broughtBy(ctx, l, v.Branch, a.Commit, fate.Others)
		if err != nil {
			return nil, err
		}
		if !others {
			return &j.Attempts[i], nil
		}
	}
	return nil, nil
}

// broughtBy reports whether one of the events is of a landing that brought the
// commit to the branch: of somebody else, who had the same commits.
func broughtBy(ctx context.Context, l *ledger.Ledger, branch object.Ref, commit object.OID, events []event.Event) (bool, error) {
	for _, e := range events {
		if e.Kind != event.Land || e.By.Land.Branch != branch {
			continue
		}
		in, err := isIn(ctx, l, commit, e.By.Land.Commit)
		if errors.Is(err, git.ErrNotFound) {
			continue // its landing is not on the branch any more
		}
		if err != nil {
			return false, err
		}
		if in {
			before, err := isIn(ctx, l, commit, e.By.Land.Base)
			return !before, err
		}
	}
	return false, nil
}

// relanding is the landing's event once more, to be put where the chain is now.
func relanding(ctx context.Context, l *ledger.Ledger, v ledger.View, a attempt) (event.Event, error) {
	e, err := l.Event(ctx, a.Events[len(a.Events)-1], v.Name)
	if err != nil {
		return e, err
	}
	return event.Event{Kind: event.Land, By: event.By{Operation: e.By.Operation, Land: e.By.Land}}, nil
}

// errSettled ends an append that has nothing left to do.
var errSettled = errors.New("settled")

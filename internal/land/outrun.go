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
// landing there, it appends the landing's event instead, after the record.
// byOthers means that another landing, or a repair, accounts for the commit.
// With a reason the landing is given up.
func (s *sequence) outrun(ctx context.Context, reason string) (arrived *attempt, byOthers bool, err error) {
	_, err = s.l.Append(ctx, s.want, func(v ledger.View, d *ledger.Draft) error {
		arrived, byOthers = nil, false
		fate, err := s.l.Trace(ctx, v, s.journal.attempts())
		if err != nil {
			return err
		}
		if arrived, _ = s.journal.ended(fate); arrived != nil {
			return errSettled
		}
		if arrived, byOthers, err = onBranch(ctx, s.l, v, *s.journal, fate); err != nil {
			return err
		}
		var act event.Event
		if arrived != nil && !byOthers {
			act, v, err = s.completing(ctx, v, *arrived)
		} else {
			act, err = s.withdrawing(v, fate, reason)
		}
		if err != nil {
			return err
		}
		if lease.Owns(s.root, v.Tip) && (act.By.Land == nil || act.By.Land.Steps == "") {
			act.By.Secret = lease.SecretOf(s.root, v.Tip)
		}
		if err := d.Adopt(ctx, v.Branch, v.Base); err != nil {
			return err
		}
		_, err = d.Add(ctx, act)
		return err
	})
	if errors.Is(err, errSettled) {
		err = nil
	}
	return arrived, byOthers, err
}

// completing writes the record that a server left out, and gives the event that is
// missing after it, since that says that the landing is done.
func (s *sequence) completing(ctx context.Context, v ledger.View, half attempt) (event.Event, ledger.View, error) {
	act, hold := relanding(*s.journal, half), v.Hold()
	switch {
	case v.Phase() == event.Frozen:
		return act, v, frozenHalf(ctx, s.l, v, half)
	case hold != nil && !s.own(v):
		return act, v, fault.New(fault.Held, "%s of operation %s is on %s, but its event is not on the chain, and the lease %s is held by %s",
			half.Commit.Short(), s.journal.Operation, v.Branch.Branch(), v.Name, lease.Describe(*hold, s.l.Now())).
			WithHint("git land resume %s   (in the session that holds it, or when it is free)", s.journal.Operation)
	case s.lent(v):
		act.By.Operation = hold.Operation
	}
	v, err := completeRecord(ctx, s.l, s.want, v, half)
	return act, v, err
}

// withdrawing gives the event by which the chain moves past what the landing may have
// on its way; the error is errSettled where it has, or nothing is.
func (s *sequence) withdrawing(v ledger.View, fate ledger.Fate, reason string) (event.Event, error) {
	j, hold := s.journal, v.Hold()
	act := event.Event{Kind: event.Void, By: event.By{Operation: j.Operation, Reason: reason}}
	if reason == "" {
		act.By.Reason = "operation " + j.Operation.String() + " ended before it landed"
	}
	brought := s.lent(v)
	if brought {
		act.By.Operation = hold.Operation
		if reason != "" {
			act.By.Reason = s.givenUp(reason)
		}
	}
	// Without an attempt only the acquire may be on its way: it names a tip
	// that was free.
	pending := fate.Pending && (len(j.Attempts) > 0 || hold == nil)
	switch {
	case v.Phase() == event.Frozen:
		return act, errSettled // no push ever named a frozen tip, so none can arrive on it
	case lease.Owns(s.root, v.Tip):
		act.Kind = event.Abort
		return act, nil
	case brought && s.announced(v):
		return act, nil
	case brought && pending && hold.Intent.IsZero():
		return act, nil
	case hold == nil && (pending || j.Token != "" && !s.had(fate)):
		return act, nil
	case hold == nil:
		return act, errSettled // the chain has moved past the push by itself
	}
	return act, s.inTheWay(v, pending)
}

// inTheWay is why the chain cannot be moved under a hold that does not let it;
// errSettled where it needs not.
func (s *sequence) inTheWay(v ledger.View, pending bool) error {
	l, j, hold := s.l, s.journal, v.Hold()
	switch {
	case pending && s.lent(v):
		return fault.New(fault.Held, "landing %s was announced under the lease %s and has not ended", hold.Intent, v.Name).
			WithHint("%s", l.Command("git", "land", "resume", hold.Operation.String()))
	case hold.Intent == j.Landing:
		return fault.New(fault.Held, "landing %s is announced, and the lease %s is held by %s", j.Landing, v.Name, lease.Describe(*hold, l.Now())).
			WithHint("run git land resume in the session that holds it, or, if that is dead: %s && git land resume %s", lease.TakeCommand(l, v), j.Operation)
	case pending:
		return fault.New(fault.Held, "the push of operation %s may still arrive, and the lease %s is held by %s",
			j.Operation, v.Name, lease.Describe(*hold, l.Now())).
			WithHint("run git land in the session that holds it, or: %s   (then run git land again)",
				l.Command("git", "lease", "release", v.Name))
	}
	return errSettled
}

// had reports whether the acquire of the lease that the landing took for itself is
// known to have arrived: then it is not on its way any more.
func (s *sequence) had(fate ledger.Fate) bool {
	return slices.ContainsFunc(fate.Others, func(e event.Event) bool { return lease.Owns(s.root, &e) })
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

// onBranch is an attempt whose commit is on the branch although the chain has no
// event of the landing: the server died between the two refs. Others may have
// landed on top of it since. byOthers means that an event of somebody else
// accounts for it: who had the same commits, or has repaired.
func onBranch(ctx context.Context, l *ledger.Ledger, v ledger.View, j journal, fate ledger.Fate) (a *attempt, byOthers bool, err error) {
	if a, _ := j.ended(fate); a != nil {
		return nil, false, nil
	}
	for i, a := range slices.Backward(j.Attempts) {
		if v.Base == a.base(v.Branch) {
			continue // it has not moved, most often
		}
		in, err := isIn(ctx, l, a.Commit, v.Base)
		if err != nil {
			return nil, false, err
		}
		if !in {
			continue
		}
		others, err := broughtBy(ctx, l, v.Branch, a.Commit, fate.Others)
		return &j.Attempts[i], others, err
	}
	return nil, false, nil
}

// broughtBy reports whether one of the events accounts for the commit's being on
// the branch.
func broughtBy(ctx context.Context, l *ledger.Ledger, branch object.Ref, commit object.OID, events []event.Event) (bool, error) {
	for _, e := range events {
		land := e.By.Land
		if land == nil || land.Branch != branch || e.Kind != event.Land && e.Kind != event.Repair {
			continue
		}
		in, err := isIn(ctx, l, commit, land.Commit)
		if errors.Is(err, git.ErrNotFound) {
			continue // its landing is not on the branch any more
		}
		if err != nil {
			return false, err
		}
		if in {
			before, err := isIn(ctx, l, commit, land.Base)
			return !before, err
		}
	}
	return false, nil
}

// relanding is the landing's event once more, to be put where the chain is now.
func relanding(j journal, a attempt) event.Event {
	land := a.Land
	return event.Event{Kind: event.Land, By: event.By{Operation: j.Operation, Land: &land}}
}

// errSettled ends an append that has nothing left to do.
var errSettled = errors.New("settled")

package ledger

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
)

// limits of the compare-and-swap loop. Losing to others is progress of theirs,
// and bounded only against a server that answers nonsense; a push that neither
// arrives nor is overtaken is refused, or stands before a lock that a dead
// server left.
const (
	maxLosses  = 100
	maxRepeats = 4
)

// Backoff is how long to wait before the n-th repetition, with jitter, so that
// those who collided do not collide again.
func Backoff(n int, most time.Duration) time.Duration {
	d := min(most, 25*time.Millisecond<<min(n, 20))
	return d/2 + rand.N(d/2+1)
}

// Pause waits, or until ctx is done.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Append publishes events that move nothing but the chain, and what goes with it
// (Draft.With). compose adds them to a draft on what was just fetched; it is called again after each lost race,
// and may refuse. Append returns the last event that it published. An event
// that could not be seen to arrive is an UnsettledError: of class Unreachable, if
// the authority did not tell, or what kept it from being read.
//
// When ctx ends in the middle, Append finds out what happened before it
// returns, so that nothing arrives behind its back: the error then is the
// context's, and the event is not nil if it stands on the chain.
func (l *Ledger) Append(ctx context.Context, w Want, compose func(View, *Draft) error) (*event.Event, error) {
	v, err := l.Fetch(ctx, w)
	for loss := 0; err == nil; loss++ {
		if loss == maxLosses {
			return nil, fault.New(fault.Unreachable, "the lease %s changed %d times while it was being written", v.Name, loss)
		}
		var d *Draft
		if d, err = l.Draft(v); err != nil {
			return nil, err
		}
		if err = compose(v, d); err != nil {
			return nil, err
		}
		var e *event.Event
		if e, v, err = l.publishDraft(ctx, d, w); e != nil || err != nil {
			return e, err
		}
	}
	return nil, err
}

// publishDraft pushes a draft until it is known to have arrived, or to have
// been overtaken; then it returns no event and the state to compose on.
func (l *Ledger) publishDraft(ctx context.Context, d *Draft, w Want) (*event.Event, View, error) {
	if err := l.Ready(ctx); err != nil {
		return nil, View{}, err
	}
	if err := d.Write(ctx); err != nil {
		return nil, View{}, err
	}
	w.Name, w.Branch = d.view.Name, d.view.Branch
	p := Publication{Moves: slices.Concat([]git.Move{d.Move()}, d.further, d.along), Hooks: d.further != nil, Message: "lease: " + string(d.Tip().Kind),
		Environ: HookEnviron(d.Tip().By.Operation, d.Tip().OID)}
	var out Outcome
	answered := true // with no, each time
	for repeat := range maxRepeats {
		if repeat > 0 {
			if err := Pause(ctx, Backoff(repeat, time.Second)); err != nil {
				return l.interrupted(ctx, d, w)
			}
		}
		var err error
		if out, err = l.Publish(ctx, p); err != nil {
			if repeat > 0 { // an earlier one was sent
				err = Unsettled(err)
			}
			return nil, View{}, err
		}
		if out.Done {
			l.remember(d.view.Name, d.view.LastGood, d.Tip().OID)
			l.Moved(d.view, d.along)
			if l.Begun(d) {
				if err := l.ShowRecords(ctx); err != nil {
					l.Notice("git log will not show the landing records: %v", err)
				}
			}
			return d.Tip(), View{}, nil
		}
		if ctx.Err() != nil {
			return l.interrupted(ctx, d, w)
		}
		var fate Fate
		v, err := l.Fetch(ctx, w)
		if err == nil {
			fate, err = l.Trace(ctx, v, []Attempt{d.Attempt()})
		}
		if err != nil && ctx.Err() != nil { // the push was ended by what ends us, and we hear of it only now
			return l.interrupted(ctx, d, w)
		}
		if err != nil || fate.Arrived != nil || !fate.Pending {
			return fate.Arrived, v, Unsettled(err)
		}
		if answered = answered && out.Refused; answered && out.Declined {
			break
		}
	}
	f := l.refused(out.Said, d.Move().Ref)
	if !answered {
		return nil, View{}, Unsettled(f)
	}
	f.Err = &refusal{f.Err}
	return nil, View{}, f
}

// Begun reports whether a published draft has put a branch under the lease, or
// begun its chain, and says so.
func (l *Ledger) Begun(d *Draft) bool {
	for _, e := range d.Events {
		switch {
		case e.Kind != event.Adopt || e.By.Adopt != nil && e.By.Adopt.Over != "":
			continue
		case e.By.Adopt == nil:
			l.Notice("began the lease %s at %s", e.Name, l.Remote)
		default:
			l.Notice("began to keep the branch %s under the lease %s at %s", e.By.Adopt.Branch.Branch(), e.Name, l.Remote)
		}
		return true
	}
	return false
}

// settleTime is how long we go on after Ctrl-C to leave nothing behind.
const settleTime = 20 * time.Second

// interrupted settles a push whose sender was told to stop. The dead process is
// not a dead push: until the chain has moved past the tip that it named it may
// still arrive. From a free lease a void moves it; a holder's own event is
// pushed again, since it only ends what the user wanted to end. An override under
// somebody's hold is neither: what becomes of it is not known then.
func (l *Ledger) interrupted(ctx context.Context, d *Draft, w Want) (*event.Event, View, error) {
	cause := context.Cause(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	attempts := []Attempt{d.Attempt()}
	next := d
	for repeat := range maxRepeats {
		v, err := l.Fetch(ctx, w)
		if err != nil {
			break
		}
		fate, err := l.Trace(ctx, v, attempts)
		if err != nil || fate.Arrived != nil && fate.Arrived.Kind != event.Void || fate.Arrived == nil && !fate.Pending {
			return fate.Arrived, v, errors.Join(cause, Unsettled(err))
		}
		if fate.Arrived != nil {
			return nil, v, cause
		}
		if v.Phase() == event.Free && repeat == 0 {
			if next, err = l.voidDraft(ctx, v, d); err != nil {
				break
			}
			attempts = append(attempts, next.Attempt())
			if err := next.Write(ctx); err != nil {
				break
			}
		}
		if next == d && (d.further != nil || d.along != nil) {
			break // the event alone would say that they moved
		}
		l.Publish(ctx, Publication{Moves: []git.Move{next.Move()}, Message: "lease: " + string(next.Tip().Kind)})
	}
	return nil, View{}, errors.Join(cause, Unsettled(fault.New(fault.Unreachable,
		"it is not known whether the last push to %s arrived", l.Remote).WithHint("%s", l.Command("git", "lease", "show", d.view.Name))))
}

// voidDraft builds the event that outruns the push of d.
func (l *Ledger) voidDraft(ctx context.Context, v View, d *Draft) (*Draft, error) {
	void, err := l.Draft(v)
	if err != nil {
		return nil, err
	}
	if v.Tip == nil { // d begins with an adopt, and so must what outruns it
		var begin event.Adoption
		if a := d.Events[0].By.Adopt; a != nil {
			begin = *a
		}
		if err := void.Adopt(ctx, begin.Branch, begin.Tip); err != nil {
			return nil, err
		}
	}
	_, err = void.Add(ctx, event.Event{Kind: event.Void, By: event.By{
		Operation: d.Tip().By.Operation, Reason: "the push was interrupted"}})
	return void, err
}

// Overrule publishes a draft that leads over a bad tip: old is what the chain's
// ref must be. It is tried once; whoever was faster has changed what the user
// decided on.
func (l *Ledger) Overrule(ctx context.Context, v View, d *Draft, old git.Expect) error {
	if err := l.Ready(ctx); err != nil {
		return err
	}
	if err := d.Write(ctx); err != nil {
		return err
	}
	move := d.Move()
	move.Old = old
	out, err := l.Publish(ctx, Publication{Moves: []git.Move{move}, Message: "lease: adopt"})
	if err != nil {
		return err
	}
	if !out.Done {
		return l.refused(out.Said, move.Ref)
	}
	l.remember(v.Name, v.LastGood, move.New)
	return nil
}

// Follow makes tip the last good event of this clone, although it does not
// descend from the one before.
func (l *Ledger) Follow(v View, tip event.Event) { l.remember(v.Name, v.LastGood, tip.OID) }

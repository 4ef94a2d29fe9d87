package land

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// intentWithoutLand is the code under which reconcile finds an announced landing
// of which the chain never says how it ended (docs/format.md).
const intentWithoutLand = "intent-without-land"

// giveUp puts on the record that an operation which left nothing behind is given
// up: where this session holds the lease that it had, or it is free. A landing
// that had been announced is settled by that, as by reconcile.
func (s *sequence) giveUp(ctx context.Context, reason string) error {
	act := event.Event{Kind: event.Void, By: event.By{Reason: s.givenUp(reason)}}
	if len(s.journal.Attempts) > 0 {
		act = settling(s.journal.Attempts[0].Events[0], act.By.Reason)
	}
	return s.append(ctx, func(ledger.View) (*event.Event, error) { return &act, nil })
}

func (s *sequence) givenUp(reason string) string {
	return event.CleanText(fmt.Sprintf("operation %s given up: %s", s.journal.Operation, reason), event.MaxText)
}

// settling is the event that says that what an intent announced is not to come.
func settling(intent object.OID, reason string) event.Event {
	return event.Event{Kind: event.Repair, By: event.By{Reason: reason, Finding: &event.Finding{Code: intentWithoutLand, Object: intent}}}
}

// settle says on the chain that an announced landing, whose lease was taken off it,
// did not come to its end: otherwise nothing there does.
func (s *sequence) settle(ctx context.Context, reason string) error {
	if n := len(s.journal.Attempts); n == 0 || !s.journal.Attempts[n-1].Apart {
		return nil
	}
	if reason != "" {
		reason = s.givenUp(reason)
	} else {
		reason = "operation " + s.journal.Operation.String() + " lost its lease before it landed"
	}
	return s.append(ctx, func(v ledger.View) (*event.Event, error) {
		fate, err := s.l.Trace(ctx, v, s.journal.attempts())
		intent := openIntent(fate.Others, s.journal.Landing)
		if err != nil || intent == nil {
			return nil, err
		}
		act := settling(intent.OID, reason)
		return &act, nil
	})
}

// openIntent is the intent of a landing whose lease was taken off it, and of which
// none of the events says what became of it.
func openIntent(events []event.Event, id ulid.ULID) *event.Event {
	has := func(e event.Event) bool { return e.State.Hold != nil && e.State.Hold.Intent == id }
	var last, open *event.Event
	for i, e := range events {
		switch {
		case e.Kind == event.Intent && e.By.Land.ID == id:
			last, open = &events[i], nil
		case i > 0 && has(events[i-1]) && !has(e) && (e.Kind == event.Break || e.Kind == event.Recover):
			open = last
		case e.By.Finding != nil && open != nil && e.By.Finding.Object == open.OID, e.By.Land != nil && e.By.Land.ID == id:
			open = nil
		}
	}
	return open
}

// append puts an event of no hold of its own on the chain, where this session holds
// the lease or it is free, and else nothing. Nor where there is no event.
func (s *sequence) append(ctx context.Context, act func(ledger.View) (*event.Event, error)) error {
	_, err := s.l.Append(ctx, s.want, func(v ledger.View, d *ledger.Draft) error {
		e, err := act(v)
		if err != nil {
			return err
		}
		switch {
		case e == nil:
			return errSettled
		case s.own(v) && e.Kind == event.Void && !v.Hold().Intent.IsZero():
			return errSettled // a void would take back what another landing announced
		case s.own(v):
			e.By.Operation = v.Hold().Operation
		case e.Kind == event.Repair && v.Tip != nil && v.Phase() == event.Free:
			e.By.Operation = s.l.NewID()
		default:
			return errSettled
		}
		_, err = d.Add(ctx, *e)
		return err
	})
	if errors.Is(err, errSettled) {
		return nil
	}
	return err
}

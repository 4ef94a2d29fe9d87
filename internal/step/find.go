package step

import (
	"context"
	"slices"

	"github.com/oklog/ulid/v2"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/lease"
	"gitland/internal/ledger"
)

// Find looks on the chain of v for a motion: by its id, or by the operation that began
// it. It returns nil where there is none.
func Find(ctx context.Context, l *ledger.Ledger, v ledger.View, id ulid.ULID) (*chain.Motion, error) {
	var events []event.Event // newest first
	var motion ulid.ULID
	err := lease.Walk(ctx, l, v, func(e event.Event) bool {
		events = append(events, e)
		began := begun(e)
		if began.IsZero() || began != id && e.By.Operation != id {
			return true
		}
		motion = began
		// It may have been taken up again since it began.
		return e.Kind != event.Land && e.Kind != event.Intent && e.By.Operation != motion
	})
	if err != nil || motion.IsZero() {
		return nil, err
	}
	slices.Reverse(events)
	for _, m := range chain.Motions(events) {
		if m.ID == motion {
			return &m, nil
		}
	}
	return nil, nil
}

// begun is the motion whose steps e announces, zero where it does not. An intent does, for
// the land, or the repair, that comes after it.
func begun(e event.Event) ulid.ULID {
	switch hold := e.State.Hold; {
	case (e.Kind == event.Land || e.Kind == event.Intent) && e.By.Land.Steps != "":
		return e.By.Land.ID
	case hold != nil && hold.TakenBy == e.ID:
		return hold.Motion
	}
	return ulid.Zero
}

package lease

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/ledger"
)

// A Waiting says for how long, and tells whom, one waits for a lease.
type Waiting struct {
	// Limit is how long to wait at most; 0 does not wait, and Forever has no end.
	Limit time.Duration
	// Tell is called with the hold that is in the way: after a moment, and
	// again whenever it is another one. May be nil.
	Tell func(event.Hold)
}

// Forever is the Limit of waiting without an end.
const Forever = time.Duration(1<<63 - 1)

// How one waits: the first looks are close together, since most holds are
// short, and the later ones spare the remote.
const (
	moment  = time.Second // before the holder is named
	maxPoll = time.Second // between two looks
)

// A Waiter is one wait. Its limit runs from NewWaiter.
type Waiter struct {
	waiting Waiting
	start   time.Time
	looks   int
	told    ulid.ULID
}

// NewWaiter begins a wait.
func NewWaiter(w Waiting) *Waiter { return &Waiter{waiting: w, start: time.Now()} }

// Again waits until it is time for another look and reports true, or false when
// the wait is over: by its limit, or because ctx is done.
func (w *Waiter) Again(ctx context.Context, h event.Hold) bool {
	waited := time.Since(w.start)
	left := w.waiting.Limit - waited
	if left <= 0 {
		return false
	}
	if w.waiting.Tell != nil && waited >= moment && w.told != h.Operation {
		w.told = h.Operation
		w.waiting.Tell(h)
	}
	pause := min(ledger.Backoff(w.looks+2, maxPoll), left)
	w.looks++
	return ledger.Pause(ctx, pause) == nil
}

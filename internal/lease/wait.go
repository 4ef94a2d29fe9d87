package lease

import (
	"context"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/ledger"
)

// A Waiting says for how long, and tells whom, one waits for a lease.
type Waiting struct {
	// Limit is how long to wait at most; 0 does not wait, and Forever has no end.
	Limit time.Duration
	// Tell is called with the hold that is in the way, and whose lease that is: after a
	// moment, and again whenever it is another one, or is stuck. May be nil.
	Tell func(l *ledger.Ledger, name string, h event.Hold)
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
	told    struct {
		operation ulid.ULID
		stuck     event.Outcome
	}
	yielded bool
}

// NewWaiter begins a wait.
func NewWaiter(w Waiting) *Waiter { return &Waiter{waiting: w, start: time.Now()} }

// Again waits for a lease until it is time for another look and reports true, or false when
// the wait is over: by its limit, or because ctx is done.
func (w *Waiter) Again(ctx context.Context, l *ledger.Ledger, name string, h event.Hold) bool {
	waited := time.Since(w.start)
	left := w.waiting.Limit - waited
	if left <= 0 {
		return false
	}
	told := w.told
	told.operation, told.stuck = h.Operation, h.Stuck
	if w.waiting.Tell != nil && waited >= moment && w.told != told {
		w.told = told
		w.waiting.Tell(l, name, h)
	}
	pause := min(ledger.Backoff(w.looks+2, maxPoll), left)
	w.looks++
	return ledger.Pause(ctx, pause) == nil
}

// errAfterYou ends a look by the finding that others are to look first.
var errAfterYou = errors.New("others are let look first")

// yields reports, once, whether somebody who comes with time to wait, and finds the lease
// of v free, is to let others look first: where it was given back a moment ago from here.
// Those who wait look now and then. Who gives the lease back and comes again at once, in
// a loop, say, would be there before them each time, and they would starve.
//
// By the clock of this machine alone, and for politeness: where it is wrong, somebody waits
// for another look.
func (w *Waiter) yields(l *ledger.Ledger, v ledger.View, actor string) bool {
	if w.yielded || w.looks > 0 || w.waiting.Limit == 0 || v.Tip == nil || v.Tip.Kind != event.Release {
		return false
	}
	ago := l.Now().Sub(v.Tip.Time) // which has no fractions of a second
	w.yielded = v.Tip.Actor == actor && v.Tip.By.Host == l.Host && ago >= 0 && ago < maxPoll+time.Second
	return w.yielded
}

// yield waits until all who wait have had a look, or their limit is over; or until ctx is
// done, which it reports.
func (w *Waiter) yield(ctx context.Context) error {
	return ledger.Pause(ctx, max(0, min(maxPoll, w.waiting.Limit-time.Since(w.start))))
}

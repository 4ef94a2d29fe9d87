package lease

import (
	"testing"
	"time"

	"gitland/internal/event"
	"gitland/internal/ledger"
)

// Who comes again right after it gave the lease back lets others look first, once, if it has
// the time.
func TestWhoYields(t *testing.T) {
	t.Parallel()
	const me, here = "Ada <ada@example.com>", "laptop"
	now := time.Unix(1_700_000_000, 0)
	l := &ledger.Ledger{Host: here, Now: func() time.Time { return now.Add(900 * time.Millisecond) }}
	view := func(kind event.Kind, actor, host string, ago time.Duration) ledger.View {
		return ledger.View{Tip: &event.Event{Kind: kind, Actor: actor, By: event.By{Host: host}, Time: now.Add(-ago)}}
	}
	for name, c := range map[string]struct {
		view  ledger.View
		limit time.Duration
		want  bool
	}{
		"just now":       {view(event.Release, me, here, 0), Forever, true},
		"a second ago":   {view(event.Release, me, here, time.Second), time.Minute, true},
		"longer ago":     {view(event.Release, me, here, 2*time.Second), Forever, false},
		"to come":        {view(event.Release, me, here, -2*time.Second), Forever, false},
		"no time":        {view(event.Release, me, here, 0), 0, false},
		"somebody else":  {view(event.Release, "Bob <bob@example.com>", here, 0), Forever, false},
		"from elsewhere": {view(event.Release, me, "desktop", 0), Forever, false},
		"a landing":      {view(event.Land, me, here, 0), Forever, false},
		"never used":     {ledger.View{}, Forever, false},
	} {
		w := NewWaiter(Waiting{Limit: c.limit})
		if got := w.yields(l, c.view, me); got != c.want {
			t.Errorf("%s: yields %v", name, got)
		}
		if w.yields(l, c.view, me) {
			t.Errorf("%s: yields twice", name)
		}
	}
	w := NewWaiter(Waiting{Limit: Forever})
	w.looks = 1
	if w.yields(l, view(event.Release, me, here, 0), me) {
		t.Error("who has waited yields")
	}
}

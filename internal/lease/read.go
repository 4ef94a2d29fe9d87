package lease

import (
	"context"
	"slices"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// A Status is what can be said of a lease.
type Status struct {
	Remote string
	Name   string
	// State is "free", "held", "frozen", "absent" (no chain yet), or
	// "ambiguous", when Problem says why.
	State   string
	Tip     *event.Event
	Frost   *Frost // who froze it; nil unless frozen
	Problem *fault.Error
}

// The states that a reader is told beside the phases of event.Phase.
const (
	Absent    = "absent"
	Ambiguous = "ambiguous"
)

// Show reads leases; it needs none and changes nothing. Without names it reads
// all of them, also those that this clone has seen and that are gone, and when there are none, the target branch's. A remote that does
// not answer is a fault of class Unreachable: it is never "free".
func Show(ctx context.Context, l *ledger.Ledger, branch object.Ref, names ...string) ([]Status, error) {
	if len(names) == 0 {
		var err error
		if names, err = l.Names(ctx); err != nil {
			return nil, err
		}
		seen, err := l.Remembered(ctx)
		if err != nil {
			return nil, err
		}
		names = append(names, seen...)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	if len(names) == 0 {
		names = []string{""}
	}
	var list []Status
	for _, name := range names {
		v, err := l.Fetch(ctx, ledger.Want{Name: name, Branch: branch})
		if err != nil {
			return nil, err
		}
		s := Status{Remote: l.Remote, Name: v.Name, State: string(v.Phase()), Tip: v.Tip, Problem: v.Problem}
		if s.Frost, err = FrostOf(ctx, l, v); err != nil {
			return nil, err
		}
		switch {
		case v.Problem != nil:
			s.State = Ambiguous
		case v.Tip == nil:
			s.State = Absent
		}
		list = append(list, s)
	}
	return list, nil
}

// Log reads a chain, newest event first, and calls yield for each until it
// returns false. It goes on as far as events can be read: the error then is the
// fault that says why the chain cannot be trusted.
func Log(ctx context.Context, l *ledger.Ledger, w ledger.Want, yield func(event.Event) bool) error {
	v, err := l.Fetch(ctx, w)
	if err != nil {
		return err
	}
	return Walk(ctx, l, v, yield)
}

// Walk is Log on what was fetched before.
func Walk(ctx context.Context, l *ledger.Ledger, v ledger.View, yield func(event.Event) bool) error {
	at := v.TipOID()
	if v.Tip == nil && !v.Deleted {
		at = v.BadTip
	}
	for unread := 0; at != "" && unread < lookBack; {
		e, err := l.Event(ctx, at, v.Name)
		if err != nil {
			if v.Problem == nil {
				return err
			}
			// What cannot be read may stand on events that can.
			c, err := l.Repo.Commit(ctx, at)
			if err != nil || len(c.Parents) == 0 {
				break
			}
			at = c.Parents[0]
			unread++
			continue
		}
		if !yield(e) || e.First() || len(e.Parents) == 0 {
			break
		}
		at = e.Parents[0]
	}
	if v.Problem != nil {
		return v.Problem
	}
	return nil
}

package lease

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

// A Freezing keeps everybody from taking a lease, and from landing under it.
type Freezing struct {
	Want   ledger.Want
	Reason string       // required
	Root   session.Root // of the session, to word a refusal; may be zero
}

// Freeze freezes a free lease, on the record; the target branch's is begun with it
// where it has no chain. It returns a fault of class Usage without a reason, and for
// another name without a chain, which may be a slip, and of class Held when somebody holds the lease or it is frozen already: nothing has been
// changed then. It does not wait.
func Freeze(ctx context.Context, l *ledger.Ledger, f Freezing) (event.Event, error) {
	reason, err := Reason(f.Reason, "a lease is frozen", "why nothing may land")
	if err != nil {
		return event.Event{}, err
	}
	given := f.Want.Name
	e, err := l.Append(ctx, f.Want, func(v ledger.View, d *ledger.Draft) error {
		f.Want.Name, f.Want.Branch = v.Name, v.Branch
		if named(v, given) {
			return noLease(ctx, l, v)
		}
		switch v.Phase() {
		case event.Held:
			again := l.Command("git", "lease", "freeze", v.Name, "--reason", reason)
			if own := Owns(f.Root, v.Tip); own && v.Hold().Steps != "" {
				held := Held(l, v, own)
				return held.WithHint("%s; when it is given back: %s", held.Hint, again)
			} else if own {
				return Held(l, v, own).WithHint("%s && %s", l.Command("git", "lease", "release", v.Name), again)
			}
			return Held(l, v, false).WithHint("when it is given back: %s   (or, if that operation is dead: %s)", again, FreeCommand(l, v))
		case event.Frozen:
			return InFrost(ctx, l, v)
		}
		if err := adopt(ctx, d, v); err != nil {
			return err
		}
		_, err := d.Add(ctx, event.Event{Kind: event.Freeze, By: event.By{Operation: l.NewID(), Reason: reason}})
		return err
	})
	if e == nil {
		return event.Event{}, err
	}
	return *e, nil // also when ctx ended just after it was frozen
}

// A Thawing ends a freeze.
type Thawing struct {
	Want   ledger.Want
	Reason string // may be empty
}

// Thaw lets a frozen lease be taken again. Whoever may write may thaw. It
// returns a fault of class Held when the lease is not frozen, and of class Usage
// where there is none of that name.
func Thaw(ctx context.Context, l *ledger.Ledger, t Thawing) (event.Event, error) {
	reason := ""
	if strings.TrimSpace(t.Reason) != "" {
		var err error
		if reason, err = Reason(t.Reason, "a lease is thawed", "why it may go on"); err != nil {
			return event.Event{}, err
		}
	}
	given := t.Want.Name
	e, err := l.Append(ctx, t.Want, func(v ledger.View, d *ledger.Draft) error {
		t.Want.Name, t.Want.Branch = v.Name, v.Branch
		if named(v, given) {
			return noLease(ctx, l, v)
		}
		switch v.Phase() {
		case event.Held:
			f := Held(l, v, false).WithHint("%s", l.Command("git", "lease", "show", v.Name))
			f.What = "it is not frozen: " + f.What
			return f
		case event.Free:
			return isFree(l, v, "thaw")
		}
		_, err := d.Add(ctx, event.Event{Kind: event.Thaw, By: event.By{Operation: l.NewID(), Reason: reason}})
		return err
	})
	if e == nil {
		return event.Event{}, err
	}
	return *e, nil
}

// A Frost says who froze a lease, when and why.
type Frost struct {
	Operation ulid.ULID
	By        string // "Name <email>"
	Host      string // its label for its machine; may be empty
	Since     time.Time
	Reason    string
	Event     event.Event
	Thaw      string // the whole command that ends it
}

// FrostOf finds the freeze of a lease, nil when it is not frozen. An adopt may
// have followed the freeze, so it need not be the tip.
func FrostOf(ctx context.Context, l *ledger.Ledger, v ledger.View) (*Frost, error) {
	if v.Phase() != event.Frozen {
		return nil, nil
	}
	for at := *v.Tip; ; {
		if at.Kind == event.Freeze {
			return &Frost{Operation: at.By.Operation, By: at.Actor, Host: at.By.Host, Since: at.Time, Reason: at.By.Reason,
				Event: at, Thaw: l.Command("git", "lease", "thaw", v.Name)}, nil
		}
		if at.First() || len(at.Parents) == 0 {
			return nil, fmt.Errorf("the lease %s is frozen, and no event of its chain says by whom", v.Name)
		}
		var err error
		if at, err = l.Event(ctx, at.Parents[0], v.Name); err != nil {
			return nil, err
		}
	}
}

// Describe says who froze a lease, in one line.
func (f Frost) Describe(now time.Time) string {
	text := f.By
	if f.Host != "" {
		text += " on " + f.Host
	}
	return fmt.Sprintf("%s %s ago, because: %s", text, Age(now.Sub(f.Since)), f.Reason)
}

// InFrost is the fault, of class Held, of a lease that is in the way because it
// is frozen; nil when it is not. It is not waited for: somebody meant it.
func InFrost(ctx context.Context, l *ledger.Ledger, v ledger.View) error {
	f, err := FrostOf(ctx, l, v)
	if err != nil || f == nil {
		return err
	}
	return fault.New(fault.Held, "the lease %s is frozen, by %s", v.Name, f.Describe(l.Now())).
		WithHint("when that is over: %s", f.Thaw).
		WithFacts(map[string]any{"lease": v.Name, "remote": l.Remote, "state": event.Frozen, "operation": f.Operation.String(),
			"frozen_by": f.By, "host": f.Host, "since": f.Since.UTC(), "age_seconds": max(0, int(l.Now().Sub(f.Since).Seconds())),
			"reason": f.Reason, "event": f.Event.OID})
}

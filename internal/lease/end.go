package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

// A Released says how a release went.
type Released struct {
	Name      string
	Operation ulid.ULID
	// Already means that the lease had been given back before: the answer to
	// an earlier release was lost, or it was asked for twice.
	Already bool
}

// Release gives a lease back. It returns a fault of class Lost, which says who,
// when and why, when the hold of this token was broken or recovered meanwhile,
// and of class Held when the lease is not and was not this token's.
func Release(ctx context.Context, l *ledger.Ledger, w ledger.Want, root session.Root) (Released, error) {
	var released Released
	done := errors.New("given back before")
	e, err := l.Append(ctx, w, func(v ledger.View, d *ledger.Draft) error {
		w.Name, w.Branch = v.Name, v.Branch
		released.Name = v.Name
		if Owns(root, v.Tip) {
			released.Operation = v.Hold().Operation
			if intent := v.Hold().Intent; !intent.IsZero() {
				return fault.New(fault.Held, "landing %s was announced under the lease %s and has not ended", intent, v.Name).
					WithHint("git land resume %[1]s   (or, to give it up: git land abort %[1]s --reason WHY; then release again)", released.Operation)
			}
			if h := *v.Hold(); h.Steps != "" {
				return fault.New(fault.Held, "the lease %s is not given back before its steps have ended, or are given up; %s", v.Name, Coming(h)).
					WithHint("%s", StepsCommands(l, h)).WithFacts(map[string]any{"lease": v.Name, "remote": l.Remote, "state": event.Held,
					"operation": h.Operation.String(), "motion": h.Motion.String(), "steps": h.Pending(), "stuck": h.Stuck})
			}
			_, err := d.Add(ctx, event.Event{Kind: event.Release, By: event.By{
				Operation: released.Operation, Secret: SecretOf(root, v.Tip)}})
			return err
		}
		end, err := Ending(ctx, l, v, root)
		if err != nil {
			return err
		}
		if end == nil {
			return notYours(ctx, l, v)
		}
		released.Operation, released.Already = end.Operation, true
		if lost := end.Lost(l); lost != nil {
			return lost
		}
		return done
	})
	if e != nil || errors.Is(err, done) { // e: ctx ended after it was given back
		err = nil
	}
	if err == nil || fault.ClassOf(err) == fault.Lost {
		tidy(l, l.Dir.Forget(released.Operation, session.LeaseAt{Remote: l.Remote, Lease: released.Name}))
	}
	return released, err
}

func notYours(ctx context.Context, l *ledger.Ledger, v ledger.View) error {
	if v.Hold() != nil {
		f := Held(l, v, false)
		f.What = "this session does not hold it: " + f.What
		return f.WithHint("release it in the shell that acquired it, or with that GIT_LEASE_SESSION   (or, %s)", f.Hint)
	}
	if err := InFrost(ctx, l, v); err != nil {
		return err
	}
	return isFree(l, v, "release").
		WithHint("%s   (it tells what happened to it)", l.Command("git", "lease", "log", v.Name))
}

// An End is how a hold of a session came to its end.
type End struct {
	Operation ulid.ULID
	Event     event.Event // that ended it
}

// lookBack bounds the search for a session's last hold, in events.
const lookBack = 10_000

// Ending finds the newest hold of root on the chain that has ended, and nil
// when there is none within reach.
func Ending(ctx context.Context, l *ledger.Ledger, v ledger.View, root session.Root) (*End, error) {
	if v.Tip == nil || root.IsZero() {
		return nil, nil
	}
	at := *v.Tip
	for range lookBack {
		if at.First() || len(at.Parents) == 0 {
			return nil, nil
		}
		prev, err := l.Event(ctx, at.Parents[0], v.Name)
		if err != nil {
			return nil, err
		}
		if Owns(root, &prev) {
			return &End{Operation: prev.State.Hold.Operation, Event: at}, nil
		}
		at = prev
	}
	return nil, nil
}

// Lost is the fault to tell the former holder, and nil when it ended the hold
// itself.
func (e End) Lost(l *ledger.Ledger) *fault.Error {
	var how string
	switch e.Event.Kind {
	case event.Break:
		how = "broken"
	case event.Recover:
		how = "recovered"
	default:
		return nil
	}
	by := e.Event.Actor
	if e.Event.By.Host != "" {
		by += " on " + e.Event.By.Host
	}
	return fault.New(fault.Lost, "operation %s lost the lease %s: %s by %s %s ago, because: %s", e.Operation, e.Event.Name,
		how, by, Age(l.Now().Sub(e.Event.Time)), e.Event.By.Reason).
		WithHint("%s", l.Command("git", "lease", "log", e.Event.Name)).
		WithFacts(map[string]any{"lease": e.Event.Name, "remote": l.Remote, "operation": e.Operation.String(), "event": e.Event.OID,
			how + "_by": e.Event.Actor, "host": e.Event.By.Host, "at": e.Event.Time.UTC(), "reason": e.Event.By.Reason})
}

// GiveBack is Release for an operation that is told to end. The signal that says so
// may go to its whole process group, and so end a git process of the release: it
// does not come again.
func GiveBack(ctx context.Context, l *ledger.Ledger, w ledger.Want, root session.Root) (Released, error) {
	done, err := Release(ctx, l, w, root)
	if git.Terminated(err) && ctx.Err() == nil {
		return Release(ctx, l, w, root)
	}
	return done, err
}

// giveBack releases what was acquired by an operation that was told to stop. With steps
// that it announced it gives these up, too; those of a motion that had begun before need
// the lease, which stays held for them.
func giveBack(ctx context.Context, l *ledger.Ledger, a Acquisition) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	end := func() error {
		_, err := GiveBack(ctx, l, a.Want, a.Root)
		return err
	}
	switch {
	case a.Motion.IsZero():
	case a.Motion == a.Operation:
		end = func() error { return abandon(ctx, l, a) }
	default:
		return nil
	}
	err := end()
	if fault.ClassOf(err) == fault.Lost {
		return err
	}
	return ledger.Unsettled(err)
}

// abandon ends a hold whose steps have not begun.
func abandon(ctx context.Context, l *ledger.Ledger, a Acquisition) error {
	compose := func(v ledger.View, d *ledger.Draft) error {
		if !Owns(a.Root, v.Tip) {
			return errNothing
		}
		_, err := d.Add(ctx, event.Event{Kind: event.Abort, By: event.By{Operation: a.Operation, Secret: SecretOf(a.Root, v.Tip), Reason: "it was told to stop before its first step"}})
		return err
	}
	_, err := l.Append(ctx, a.Want, compose)
	if git.Terminated(err) { // as in GiveBack
		_, err = l.Append(ctx, a.Want, compose)
	}
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// A Breaking takes a lease off its holder.
type Breaking struct {
	Want      ledger.Want
	Operation ulid.ULID // the holder's, in full
	Reason    string
	// Take, when not nil, takes the lease in the same push, so that nobody
	// slips in between. Its Root is required, its Waiting is not used.
	Take *Acquisition
}

// A Broken says what was broken.
type Broken struct {
	Name  string
	Hold  event.Hold // as it was
	Event event.Event
	Grant *Grant // what Take took
}

// Break takes the lease off a holder, on the record. It is refused (Usage)
// without a reason, and (Held) when the holder is another operation than the
// one named, or changed while it was being broken. With a ledger.UnsettledError Broken has
// a Grant without an event, if Take was asked for.
func Break(ctx context.Context, l *ledger.Ledger, b Breaking) (Broken, error) {
	reason, err := Reason(b.Reason, "a lease is broken", "why the holder does not come back")
	if err != nil {
		return Broken{}, err
	}
	if b.Take != nil && b.Take.Operation.IsZero() {
		b.Take.Operation = l.NewID()
	}
	var broken Broken
	given := b.Want.Name
	var seen object.OID // the tip that the user's decision rests on
	e, err := l.Append(ctx, b.Want, func(v ledger.View, d *ledger.Draft) error {
		b.Want.Name, b.Want.Branch = v.Name, v.Branch
		h := v.Hold()
		switch {
		case named(v, given):
			return noLease(ctx, l, v)
		case v.Phase() == event.Frozen && seen == "":
			return InFrost(ctx, l, v)
		case h == nil && seen == "":
			return isFree(l, v, "break")
		case h == nil || seen != "" && seen != v.TipOID():
			return fault.New(fault.Held, "the lease %s changed while it was being broken; nothing was broken", v.Name).
				WithHint("%s", l.Command("git", "lease", "show", v.Name))
		case h.Operation != b.Operation:
			f := Held(l, v, false)
			f.What = notTheHolder(ctx, l, v, b.Operation) + ": " + f.What
			return f.WithHint("if that one is meant: %s", breakCommand(l, v, reason, b.Take != nil))
		}
		seen = v.TipOID()
		broken.Name, broken.Hold = v.Name, *h
		return takeOff(ctx, d, v, event.Break, reason, b.Take)
	})
	if e == nil {
		return Broken{Grant: promised(l, b.Want, b.Take, err)}, err
	}
	broken.Event = *e
	broken.Grant = granted(l, *e, b.Take)
	tidy(l, l.Dir.Forget(broken.Hold.Operation, session.LeaseAt{Remote: l.Remote, Lease: broken.Name}))
	return broken, nil
}

// notTheHolder says that op does not hold the lease, and what it is instead.
func notTheHolder(ctx context.Context, l *ledger.Ledger, v ledger.View, op ulid.ULID) string {
	if of, what := Named(ctx, l, v, op.String()); what != "" {
		return fmt.Sprintf("%s is %s, of operation %s, and no operation", op, what, of)
	}
	return fmt.Sprintf("operation %s does not hold it", op)
}

// takeOff adds the event, a break or a recover, that ends the hold of v, and in
// the same push begins that of take, where it is not nil.
func takeOff(ctx context.Context, d *ledger.Draft, v ledger.View, kind event.Kind, reason string, take *Acquisition) error {
	act := event.Event{Kind: kind, By: event.By{Target: v.Hold().Operation, Reason: reason}}
	if take != nil {
		return taking(ctx, d, v, *take, act)
	}
	act.By.Operation = d.NewID()
	_, err := d.Add(ctx, act)
	return err
}

// promised is what take may get by a push of which it is not known whether it arrived;
// nil for any other error.
func promised(l *ledger.Ledger, w ledger.Want, take *Acquisition, err error) *Grant {
	if take == nil || !ledger.IsUnsettled(err) {
		return nil
	}
	return &Grant{Remote: l.Remote, Name: w.Name, Operation: take.Operation}
}

// granted is what take got by an event, nil where it asked for nothing.
func granted(l *ledger.Ledger, e event.Event, take *Acquisition) *Grant {
	if take == nil {
		return nil
	}
	return &Grant{Remote: l.Remote, Name: e.Name, Operation: take.Operation, Fence: e.Seq, Event: e}
}

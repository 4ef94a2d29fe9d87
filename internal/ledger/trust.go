package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/object"
)

// trust decides whether the chain with the given tip can be built upon, and
// sets Tip or Problem. What is new since the last tip that this clone saw is
// folded event by event; older events were folded then.
func (l *Ledger) trust(ctx context.Context, v *View, tip object.OID) error {
	if tip.IsZero() {
		if !v.Records.IsZero() || !v.LastGood.IsZero() {
			if v.Deleted, v.BadTip = true, v.LastGood; v.BadTip.IsZero() {
				v.BadTip = v.Records
			}
			v.Problem = l.ambiguous(ctx, v, "the lease %s has landing records or a past, but no chain at %s: it was deleted there, or lease.namespace is another one here than where it was begun", v.Name, l.Remote)
		}
		return nil
	}
	v.BadTip = tip
	e, err := l.Event(ctx, tip, v.Name)
	if err == nil && tip != v.LastGood && !v.LastGood.IsZero() {
		err = l.follows(ctx, e, v.LastGood)
	}
	switch {
	case err == nil:
	case IsNewer(err):
		v.Newer, v.Problem = true, NewerFault(*v, err)
		return nil
	case isAmbiguous(err):
		if v.Lost, _ = l.lost(ctx, *v); v.Lost {
			v.Problem = l.ambiguous(ctx, v, "the lease %s is ambiguous: its chain was put back to %s, which is older than what this clone saw before", v.Name, tip.Short())
			return ctx.Err()
		}
		v.Problem = l.ambiguous(ctx, v, "the lease %s is ambiguous: %v", v.Name, err)
		return nil
	default:
		return err
	}
	v.Tip, v.BadTip = &e, ""
	if tip != v.LastGood {
		l.remember(v.Name, v.LastGood, tip)
	}
	return nil
}

// NewerFault is the refusal to write to a chain that has an event of a newer
// format; nil when err is not about one.
func NewerFault(v View, err error) *fault.Error {
	var newer *event.NewerError
	if !errors.As(err, &newer) {
		return nil
	}
	return fault.New(fault.Ambiguous, "the lease %s has events of format %d, and this version knows format %d", v.Name, newer.Format, event.Format).
		WithHint("install a newer gitland, one that knows format %d; reading goes on", newer.Format).
		WithFacts(map[string]any{"lease": v.Name, "tip": v.BadTip, "last_good": v.LastGood, "format": newer.Format, "knows": event.Format})
}

func (l *Ledger) ambiguous(ctx context.Context, v *View, format string, args ...any) *fault.Error {
	f := fault.New(fault.Ambiguous, format, args...).
		WithFacts(map[string]any{"lease": v.Name, "tip": v.BadTip, "last_good": v.LastGood})
	over := l.Command("git", "lease", "adopt", v.Name, "--over", string(v.BadTip), "--reason", "WHY")
	back, seen := l.PutBack(ctx, *v)
	switch {
	case back != "":
		return f.WithHint("%s   (puts back %s, and can overwrite nothing; another clone may have seen more, and does better to push what it has; what nobody can put back is led over: %s)", back, seen, over)
	case v.Deleted:
		return f.WithHint("%s   (in a clone that has seen the chain: it names the push that puts it back; where there is none: %s)", l.Command("git", "lease", "show", v.Name), over)
	}
	return f.WithHint("look with `%s`, then: %s", l.Command("git", "lease", "log", v.Name), over)
}

// PutBack is the command that gives the authority back the events that it lost and
// this clone has seen, and which those are, in words. Both are empty where the chain
// was neither deleted nor put back to an older event, or was never seen here. A push
// without force only goes forward: it can drop nothing that another clone has put
// back meanwhile.
func (l *Ledger) PutBack(ctx context.Context, v View) (command, seen string) {
	if !v.Deleted && !v.Lost || v.LastGood == "" {
		return "", ""
	}
	seen = "what this clone has seen"
	if e, err := l.Event(ctx, v.LastGood, v.Name); err == nil {
		seen += fmt.Sprintf(", up to event %d", e.Seq)
	}
	return l.Push(l.mirror("seen/"+component(v.Name)) + ":" + l.spaces.leases + component(v.Name)), seen
}

// Push is the command that pushes a refspec to the authority.
func (l *Ledger) Push(refspec string) string {
	return fault.Command("git", "push", l.Remote, refspec)
}

// A brokenError says what makes a chain unusable.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

func isAmbiguous(err error) bool {
	var malformed *event.MalformedError
	var broken *brokenError
	return errors.As(err, &malformed) || errors.As(err, &broken)
}

// IsUnsound reports whether err says that an object is no event of the chain that
// it stands on, or of a newer format.
func IsUnsound(err error) bool { return isAmbiguous(err) || IsNewer(err) }

// Event reads one event of the lease called name. Apart from reading errors it
// returns a *event.MalformedError or a *event.NewerError.
func (l *Ledger) Event(ctx context.Context, oid object.OID, name string) (event.Event, error) {
	o, err := l.Repo.Object(ctx, string(oid))
	if err != nil {
		return event.Event{}, err
	}
	e, err := event.Parse(l.Repo.Format, o)
	if err != nil {
		return e, err
	}
	if e.Name != name {
		return e, &brokenError{fmt.Errorf("%s is an event of the lease %q", oid.Short(), e.Name)}
	}
	return e, nil
}

// follows checks that e descends from the trusted event by valid steps.
func (l *Ledger) follows(ctx context.Context, e event.Event, trusted object.OID) error {
	run, err := l.Since(ctx, e, trusted)
	if err != nil {
		return err
	}
	if _, err := chain.Fold(run); err != nil {
		return &brokenError{err}
	}
	return nil
}

// Sound gives run, the events that follow prev, newest first, in the order in which
// they happened. The error says which of them does not follow. prev is nil where
// run has the whole chain.
func (l *Ledger) Sound(prev *event.Event, run []event.Event) ([]event.Event, error) {
	run = slices.Clone(run)
	slices.Reverse(run)
	all := run
	if prev != nil {
		all = append([]event.Event{*prev}, run...)
	}
	if _, err := chain.Fold(all); err != nil {
		return nil, &brokenError{err}
	}
	return run, nil
}

// Since lists the events from the one named from, which comes first, up to e,
// by first parents. The sequence numbers bound the walk: each step must be one
// lower, or the chain is not one.
func (l *Ledger) Since(ctx context.Context, e event.Event, from object.OID) ([]event.Event, error) {
	base, err := l.Event(ctx, from, e.Name)
	if err != nil {
		return nil, err
	}
	run := []event.Event{e}
	for at := e; at.OID != from; {
		if len(at.Parents) == 0 || at.Seq <= base.Seq {
			return nil, &brokenError{fmt.Errorf("%s does not descend from %s, which this clone saw before: history was rewritten", e.OID.Short(), from.Short())}
		}
		next, err := l.Event(ctx, at.Parents[0], e.Name)
		if err != nil {
			return nil, err
		}
		if next.Seq >= at.Seq {
			return nil, &brokenError{fmt.Errorf("%s: the sequence does not grow", at.OID.Short())}
		}
		run = append(run, next)
		at = next
	}
	slices.Reverse(run)
	return run, nil
}

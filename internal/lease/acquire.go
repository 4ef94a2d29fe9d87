package lease

import (
	"context"
	"errors"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

// An Acquisition asks for a lease.
type Acquisition struct {
	Want    ledger.Want
	Purpose string
	Root    session.Root // of the session; required
	// Asking is the root of the session that asks for a hold of another root, so that it is
	// not told to wait for its own; may be zero.
	Asking  session.Root
	Waiting Waiting
	// Operation is the id to take it under; the zero id makes a new one.
	Operation ulid.ULID
	// Unknown is the operation of an earlier Acquire with this Root of which it was not
	// known whether it had taken the lease; mostly zero. If it has, that is the grant.
	Unknown ulid.ULID
	// Motion and Steps announce steps that are to come under the hold, as in event.Hold.
	Motion ulid.ULID
	Steps  string
	// May refuses the acquisition on what the authority shows; may be nil.
	May func(ctx context.Context, v ledger.View) error
	// Chain is the first event that the chain has to have; empty for any, and for none.
	Chain object.OID
	// Tie is the PID of a process that the hold is to last as long as, so that
	// Recover can free it after that; 0 for none.
	Tie int
}

// Acquire takes a lease with one compare-and-swap at the authority. It returns
// a fault of class Held when somebody else, or this very session, has it and
// the wait is over, and at once when it is frozen; nothing has been changed then. When ctx ends it leaves
// nothing behind. After a ledger.UnsettledError the lease may be held, or come to be:
// the grant then has all but event and fence.
func Acquire(ctx context.Context, l *ledger.Ledger, a Acquisition) (Grant, error) {
	if a.Tie == 0 {
		return acquire(ctx, l, a, nil)
	}
	r := &recorder{ledger: l, tie: a.Tie} // which is of use when nobody has the witness locked
	grant, err := acquire(ctx, l, a, r)
	return grant, errors.Join(err, r.dismiss(err))
}

// acquire is Acquire; with a recorder it leaves a record of the operation in this clone.
func acquire(ctx context.Context, l *ledger.Ledger, a Acquisition, r *recorder) (Grant, error) {
	if a.Operation.IsZero() {
		a.Operation = l.NewID()
	}
	wait := NewWaiter(a.Waiting)
	for {
		var busy *event.Hold
		var own bool
		e, err := l.Append(ctx, a.Want, func(v ledger.View, d *ledger.Draft) error {
			a.Want.Name, a.Want.Branch = v.Name, v.Branch
			if a.Chain != "" && (v.Tip == nil || v.Tip.Root() != a.Chain) {
				return begunAnew(l, v)
			}
			if busy = v.Hold(); busy != nil {
				own = Owns(a.Root, v.Tip) || Owns(a.Asking, v.Tip)
				if own && busy.Operation == a.Unknown {
					return errHeldSince
				}
				return Held(l, v, own)
			}
			if err := InFrost(ctx, l, v); err != nil {
				return err
			}
			if wait.yields(l, v, d.Actor()) {
				return errAfterYou
			}
			if a.May != nil {
				if err := a.May(ctx, v); err != nil {
					return err
				}
			}
			if r != nil { // before anything of it can be seen
				if err := r.takes(a.Operation, session.LeaseAt{Remote: l.Remote, Lease: v.Name}); err != nil {
					return err
				}
			}
			return Take(ctx, d, v, a)
		})
		if errors.Is(err, errAfterYou) {
			if err := wait.yield(ctx); err != nil {
				return Grant{}, err
			}
			continue
		}
		if errors.Is(err, errHeldSince) {
			return taken(ctx, l, a.Want, busy)
		}
		if e != nil && err != nil { // ctx ended just after it was taken
			err = errors.Join(err, giveBack(ctx, l, a))
		}
		if ledger.IsUnsettled(err) {
			return Grant{Remote: l.Remote, Name: a.Want.Name, Operation: a.Operation}, err
		}
		if e != nil && err != nil {
			return Grant{}, err
		}
		if err == nil {
			tidy(l, l.Dir.Sweep(session.LeaseAt{Remote: l.Remote, Lease: e.Name}, a.Operation))
			return Grant{Remote: l.Remote, Name: e.Name, Operation: a.Operation, Fence: e.Seq, Event: *e}, nil
		}
		if busy == nil || own || fault.ClassOf(err) != fault.Held || !wait.Again(ctx, l, a.Want.Name, *busy) {
			return Grant{}, errors.Join(err, ctx.Err())
		}
	}
}

// errHeldSince ends an acquire by the finding that an earlier one has the lease.
var errHeldSince = errors.New("an earlier acquire has taken it")

// taken is the grant of a hold, as it was given.
func taken(ctx context.Context, l *ledger.Ledger, w ledger.Want, h *event.Hold) (Grant, error) {
	g := Grant{Remote: l.Remote, Name: w.Name, Operation: h.Operation, Fence: h.Fence}
	v, err := l.Fetch(ctx, w)
	if err != nil {
		return g, err
	}
	err = Walk(ctx, l, v, func(e event.Event) bool {
		if e.ID == h.TakenBy {
			g.Event = e
		}
		return g.Event.OID == ""
	})
	return g, err
}

// NotKnown is the fault of a lease of which it is not known whether g came to be. again
// is the command line that finds out.
func NotKnown(g Grant, cause error, again string) error {
	f := fault.New(fault.Unreachable, "it is not known whether operation %s has taken the lease %s: %w", g.Operation, g.Name, cause).
		WithHint("%s", again)
	if told, ok := errors.AsType[*fault.Error](cause); ok && told.Class == fault.Ambiguous { // the chain has to be mended first
		f.Class, f.Facts = told.Class, told.Facts
		f.WithHint("%s   (then: %s)", told.Hint, again)
	}
	return f
}

// Take adds to a draft the events by which a takes the free lease of v,
// beginning its chain where there is none.
func Take(ctx context.Context, d *ledger.Draft, v ledger.View, a Acquisition) error {
	if err := adopt(ctx, d, v); err != nil {
		return err
	}
	return taking(ctx, d, v, a, event.Event{Kind: event.Acquire})
}

// adopt puts the target branch under the lease that is named after it. A lease
// of another name is for something else, and has no branch.
func adopt(ctx context.Context, d *ledger.Draft, v ledger.View) error {
	branch, tip := v.Branch, v.Base
	if v.Name != v.Branch.Branch() {
		branch, tip = "", ""
	}
	return d.Adopt(ctx, branch, tip)
}

// taking adds an event after which a's operation holds the lease.
func taking(ctx context.Context, d *ledger.Draft, v ledger.View, a Acquisition, act event.Event) error {
	act.ID = d.NewID()
	act.By.Operation = a.Operation
	act.State.Hold = &event.Hold{
		Operation: a.Operation,
		Holder:    d.Actor(),
		Host:      d.Host(),
		Purpose:   event.CleanText(a.Purpose, event.MaxText),
		Digest:    event.Digest(event.Secret(a.Root.Bytes(), act.ID, d.Tip().Root())),
		Motion:    a.Motion,
		Steps:     a.Steps,
	}
	_, err := d.Add(ctx, act)
	return err
}

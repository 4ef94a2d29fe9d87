package lease

import (
	"context"
	"errors"
	"math"
	"slices"
	"sort"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// An Adoption begins a chain, puts a branch under it, or leads a chain out of
// a state that nobody can build on.
type Adoption struct {
	Want ledger.Want
	// Over is the bad tip to go over, which must be the one that is there
	// now; empty where nothing is wrong.
	Over   object.OID
	Reason string // required with Over
}

// Adopted says what was done.
type Adopted struct {
	Name string
	// Event is the new event, nil when there was nothing to do.
	Event *event.Event
	// Accepted means that the chain already leads over what this clone had
	// seen, by somebody else's adopt, and that this clone now follows it.
	Accepted bool
	// From is the event that the chain goes on from; nil where it begins anew.
	From *event.Event
	// Left are the newest events of the chain that was led over which are not in the
	// one that goes on, newest first, at most MaxLeft; LeftOut is how many they are
	// in all, and Unread how many objects among them are no event.
	Left            []event.Event
	LeftOut, Unread int
	// Deleted means that there was no chain to compare with: what was in it after
	// From is not known here.
	Deleted bool
}

// MaxLeft bounds Adopted.Left.
const MaxLeft = 5

// Adopt is idempotent: an adopted branch is adopted. With Over it returns a
// fault of class Ambiguous when the tip, or what it stands on, is of a newer
// format, which this version must not go over, and of class Usage when Over is not the bad tip.
func Adopt(ctx context.Context, l *ledger.Ledger, a Adoption) (Adopted, error) {
	if a.Over != "" {
		return adoptOver(ctx, l, a)
	}
	var done Adopted
	e, err := l.Append(ctx, a.Want, func(v ledger.View, d *ledger.Draft) error {
		done.Name = v.Name
		if err := adopt(ctx, d, v); err != nil {
			return err
		}
		if len(d.Events) == 0 {
			return errNothing
		}
		return nil
	})
	if err == errNothing {
		return done, nil
	}
	done.Event = e
	return done, err
}

// errNothing ends an append that has nothing to add.
var errNothing = fault.New(fault.Failed, "nothing to do")

func adoptOver(ctx context.Context, l *ledger.Ledger, a Adoption) (Adopted, error) {
	reason, err := Reason(a.Reason, "going over a chain's tip is", "what happened to the chain")
	if err != nil {
		return Adopted{}, err
	}
	v, err := l.Fetch(ctx, a.Want)
	if err != nil {
		return Adopted{}, err
	}
	done := Adopted{Name: v.Name}
	seen := v.LastGood
	if v.Problem == nil && a.Over == v.TipOID() && !isSound(ctx, l, v) {
		// What this clone trusts stands on what is no chain.
		v.Problem, v.BadTip, v.LastGood = fault.New(fault.Ambiguous, "the chain of %s does not fold", v.Name), a.Over, ""
	}
	switch {
	case v.Problem == nil:
		return done, fault.New(fault.Usage, "the chain of %s is sound: there is nothing to go over", v.Name).
			WithHint("%s", l.Command("git", "lease", "show", v.Name))
	case v.Newer:
		return done, v.Problem
	case a.Over != v.BadTip:
		return done, fault.New(fault.Usage, "the tip of %s is %s, not %s", v.Name, v.BadTip, a.Over).
			WithHint("%s", l.Command("git", "lease", "show", v.Name))
	}
	if accepted, err := accept(ctx, l, v); err != nil || accepted != nil {
		done.Accepted = accepted != nil
		if accepted != nil {
			done.From = accepted
			done.leaves(ctx, l, v.Name, v.LastGood, accepted.OID)
		}
		return done, err
	}
	good, bad, err := around(ctx, l, v)
	if err != nil {
		return done, err
	}
	old := git.Was(v.BadTip)
	if v.Deleted {
		old = git.MustNotExist()
	}
	v.Problem, v.Tip = nil, good
	d, err := l.Draft(v)
	if err != nil {
		return done, err
	}
	act := event.Event{Kind: event.Adopt, By: event.By{Reason: reason, Adopt: &event.Adoption{Over: a.Over}}}
	if good == nil || !slices.Contains(good.State.Branches, v.Branch) {
		if v.Name == v.Branch.Branch() {
			act.By.Adopt.Branch, act.By.Adopt.Tip = v.Branch, v.Base
		}
	}
	if bad != nil {
		act.Seq = bad.Seq // the fence must be above both
	}
	add := d.Add
	if o, err := l.Repo.Lookup(ctx, string(a.Over)); err != nil || o.Kind != object.Commit || good != nil && good.OID == a.Over {
		add = d.AddOver
	}
	e, err := add(ctx, act)
	if err != nil {
		return done, err
	}
	done.From, done.Deleted = good, v.Deleted
	if from := object.OID(""); !v.Deleted {
		if good != nil {
			from = good.OID
		}
		done.leaves(ctx, l, v.Name, v.BadTip, from)
	}
	v.LastGood = seen
	if err := l.Overrule(ctx, v, d, old); err != nil {
		return done, err
	}
	done.Event = &e
	return done, nil
}

// leaves fills in what of the chain with the tip over is not in the one with the tip
// good. What cannot be walked is not counted.
func (a *Adopted) leaves(ctx context.Context, l *ledger.Ledger, name string, over, good object.OID) {
	ids, err := l.Repo.FirstParents(ctx, over, "", math.MaxInt32)
	if err != nil {
		a.Unread = 1 // it is no commit
		return
	}
	stays := map[object.OID]bool{}
	if good != "" { // an adopt has what it leads over for a second parent, which does not make that part of the chain
		kept, _ := l.Repo.FirstParents(ctx, good, "", math.MaxInt32)
		for _, oid := range kept {
			stays[oid] = true
		}
	}
	for _, oid := range ids {
		if stays[oid] {
			break
		}
		e, err := l.Event(ctx, oid, name)
		if err != nil {
			a.Unread++
			continue
		}
		if a.LeftOut++; len(a.Left) < MaxLeft {
			a.Left = append(a.Left, e)
		}
	}
}

// isSound reports whether the chain folds from its first event on. Nobody asks
// before it matters: a clone that sees a chain for the first time looks at its
// tip alone.
func isSound(ctx context.Context, l *ledger.Ledger, v ledger.View) bool {
	_, err := l.WholeChain(ctx, v.Name, v.TipOID(), nil)
	var broken *ledger.ChainError
	return !errors.As(err, &broken) || ledger.IsMissing(err) || ledger.IsNewer(err)
}

// around finds the last good event and, if it can be read, the bad tip.
func around(ctx context.Context, l *ledger.Ledger, v ledger.View) (good, bad *event.Event, err error) {
	if e, err := l.Event(ctx, v.BadTip, v.Name); err == nil {
		bad = &e
	}
	// Others may have gone on after what this clone saw last. Going back to
	// that would undo what they did: a lease taken, a holder broken.
	at := v.BadTip
	for range lookBack {
		e, err := l.Event(ctx, at, v.Name)
		if err == nil {
			good, err := soundBelow(ctx, l, v, e)
			if f := ledger.NewerFault(v, err); f != nil {
				return nil, nil, f
			}
			if good != nil {
				return good, bad, nil
			}
			break
		}
		if f := ledger.NewerFault(v, err); f != nil { // whoever knows it goes over what is above
			return nil, nil, f
		}
		c, err := l.Repo.Commit(ctx, at)
		if err != nil || len(c.Parents) == 0 {
			break
		}
		at = c.Parents[0]
	}
	if v.LastGood == "" {
		return nil, bad, nil
	}
	e, err := l.Event(ctx, v.LastGood, v.Name)
	return &e, bad, err
}

// soundBelow is the newest event, e or one before it, up to which the chain is
// sound, counted from what this clone trusts; nil when e does not follow that,
// with the error that says why.
func soundBelow(ctx context.Context, l *ledger.Ledger, v ledger.View, e event.Event) (*event.Event, error) {
	from := v.LastGood
	if from == "" {
		from = e.Root()
	}
	run, err := l.Since(ctx, e, from)
	if err != nil {
		return nil, err
	}
	n := sort.Search(len(run), func(i int) bool {
		_, err := chain.Fold(run[:i+1])
		return err != nil
	})
	if n == 0 {
		return nil, nil
	}
	return &run[n-1], nil
}

// accept follows a chain whose past is not the one that this clone saw, if
// somebody has led it over that past on the record: then it is the new tip.
func accept(ctx context.Context, l *ledger.Ledger, v ledger.View) (*event.Event, error) {
	if v.LastGood == "" || v.Deleted {
		return nil, nil
	}
	tip, err := l.Event(ctx, v.BadTip, v.Name)
	if err != nil {
		return nil, nil // malformed: there is nothing to accept
	}
	run, err := l.Since(ctx, tip, tip.Root())
	if err != nil {
		return nil, nil
	}
	if _, err := chain.Fold(run); err != nil {
		return nil, nil
	}
	for _, e := range run {
		if e.Kind != event.Adopt || e.By.Adopt.Over == "" {
			continue
		}
		over := e.By.Adopt.Over
		known, err := l.Repo.IsAncestor(ctx, v.LastGood, over)
		if err == nil && known {
			l.Follow(v, tip)
			return &tip, nil
		}
	}
	return nil, nil
}

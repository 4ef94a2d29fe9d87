package lease

import (
	"cmp"
	"context"
	"slices"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

// A place is a lease in the order in which several are taken, which is that of the ids of
// their chains' first events: those are the same in every clone, and never change. One
// chain at two remotes, of which one is a copy of the other, goes by their addresses.
type place struct {
	Part
	chain object.OID // its first event
	named int        // where it was named
}

// at is where the lease of a place is, once that was looked up.
func (p place) at() session.LeaseAt {
	return session.LeaseAt{Remote: p.Ledger.Remote, Lease: p.Want.Name}
}

func (p place) String() string { return p.Want.Name + " at " + p.Ledger.Remote }

// inOrder looks at the leases of all parts, and puts them in order. It begins chains that
// there are not yet, by their adopt alone, since they have no place otherwise. It refuses
// where it sees that a lease is not to be had: then nothing was taken, and begun.
func inOrder(ctx context.Context, parts []Part, w Waiting) ([]place, error) {
	var list []place
	for i, part := range parts {
		p := place{Part: part, named: i}
		if err := p.look(ctx, w); err != nil {
			return nil, inTheWay(p, err, "nothing was taken")
		}
		if same := slices.IndexFunc(list, p.same); same >= 0 {
			return nil, twice(list[same], p)
		}
		list = append(list, p)
	}
	for i := range list {
		if err := list[i].begin(ctx); err != nil {
			return nil, inTheWay(list[i], err, "nothing was taken")
		}
	}
	slices.SortFunc(list, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.chain, b.chain), cmp.Compare(a.Ledger.Address(), b.Ledger.Address()))
	})
	return list, nil
}

// look finds out which lease is meant, and refuses where there is no use in taking others
// before it.
func (p *place) look(ctx context.Context, w Waiting) error {
	v, err := p.Ledger.Fetch(ctx, p.Want)
	if err != nil {
		return err
	}
	p.Want.Name, p.Want.Branch = v.Name, v.Branch
	switch {
	case v.Problem != nil:
		return v.Problem
	case v.Hold() != nil && w.Limit == 0:
		return Held(p.Ledger, v, false)
	case v.Phase() == event.Frozen:
		return InFrost(ctx, p.Ledger, v)
	case v.Tip != nil:
		p.chain = v.Tip.Root()
	}
	return nil
}

// begin begins the chain of the lease, if that has none.
func (p *place) begin(ctx context.Context) error {
	if p.chain != "" {
		return nil
	}
	e, err := p.Ledger.Append(ctx, p.Want, func(v ledger.View, d *ledger.Draft) error {
		if v.Tip != nil { // by others meanwhile
			p.chain = v.Tip.Root()
			return errNothing
		}
		return adopt(ctx, d, v)
	})
	switch {
	case err == errNothing:
		return nil
	case err != nil:
		return err
	}
	p.chain = e.Root()
	return nil
}

// same reports whether two places are one lease, as far as can be told without taking it.
func (p place) same(other place) bool {
	return p.Want.Name == other.Want.Name && p.Ledger.Address() == other.Ledger.Address()
}

// NamedTwice is the cause of a refusal of a run whose parts are one lease in two places: it
// is the later one of them.
type NamedTwice int

func (n NamedTwice) Error() string { return "a lease is named twice" }

// twice is the fault of one lease that was named twice.
func twice(one, other place) *fault.Error {
	if one.named > other.named {
		one, other = other, one
	}
	f := fault.New(fault.Usage, "the lease %s is named twice", one)
	if one.Ledger.Remote != other.Ledger.Remote {
		f = fault.New(fault.Usage, "%s and %s are one lease, which is named twice", one, other)
	}
	f.Err = NamedTwice(other.named)
	return f
}

// begunAnew is the fault of a chain which is not the one that was looked at, so that the
// lease has another place among those that are taken with it.
func begunAnew(l *ledger.Ledger, v ledger.View) error {
	return fault.New(fault.Ambiguous, "the chain of the lease %s at %s was begun anew a moment ago", v.Name, l.Remote).
		WithHint("%s   (it tells by whom; then the same command again)", l.Command("git", "lease", "log", v.Name))
}

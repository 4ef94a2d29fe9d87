package hook

import (
	"context"
	"fmt"
	"slices"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// A growth is what is appended to one chain.
type growth struct {
	lease  string
	events []event.Event // oldest first
}

// A claim is an event that accounts for an update.
type claim struct {
	lease string
	event event.Event
}

// grow reads what is appended to a chain, and checks that it may follow.
func (f *fence) grow(ctx context.Context, name string, u event.Update) error {
	run, err := f.appended(ctx, name, u)
	if err != nil {
		return fault.New(fault.Held, "the chain of the lease %s only grows, by sound events: %w", name, err).
			WithHint("git lease log %s", name)
	}
	f.tips[name] = run[len(run)-1]
	f.grown = append(f.grown, growth{name, run})
	return nil
}

// appended are the events between the old tip and the new one, oldest first.
func (f *fence) appended(ctx context.Context, name string, u event.Update) ([]event.Event, error) {
	tip, err := f.l.Event(ctx, u.New, name)
	if err != nil {
		return nil, err
	}
	run := []event.Event{tip}
	for at := tip; ; {
		if a := at.By.Adopt; a != nil && a.Over != "" && a.Over == u.Old {
			return f.over(ctx, at, u.Old, run)
		}
		if a := at.By.Adopt; a != nil && a.Over != "" && u.Old != "" {
			return nil, fmt.Errorf("event %s leads over %s, which is not the tip", at.OID, a.Over.Short())
		}
		if at.First() {
			if u.Old != "" {
				return nil, fmt.Errorf("%s does not descend from %s", u.New.Short(), u.Old.Short())
			}
			return f.l.Sound(nil, run)
		}
		if at.Parents[0] == u.Old {
			prev, err := f.l.Event(ctx, u.Old, name)
			if err != nil {
				return nil, err
			}
			return f.l.Sound(&prev, run)
		}
		next, err := f.l.Event(ctx, at.Parents[0], name)
		if err != nil {
			return nil, err
		}
		if next.Seq >= at.Seq {
			return nil, fmt.Errorf("event %s: the sequence does not grow", at.OID)
		}
		run = append(run, next)
		at = next
	}
}

// over checks the last of run, newest first, an adopt that leads over old. Only
// what is no good tip is led over: over a good one it would take the lease off its holder
// without a word.
func (f *fence) over(ctx context.Context, adopt event.Event, old object.OID, run []event.Event) ([]event.Event, error) {
	if _, err := f.l.Event(ctx, old, adopt.Name); err == nil {
		if _, err := f.l.WholeChain(ctx, adopt.Name, old, nil); err == nil {
			return nil, fmt.Errorf("event %s leads over %s, which is sound", adopt.OID, old.Short())
		}
	}
	if adopt.First() {
		return f.l.Sound(nil, run)
	}
	prev, err := f.l.Event(ctx, adopt.Parents[0], adopt.Name)
	if err != nil {
		return nil, err
	}
	return f.l.Sound(&prev, run)
}

// claim notes which updates the events of a growth account for, and refuses what
// they say of others.
func (f *fence) claim(ctx context.Context, g growth) error {
	for _, e := range g.events {
		switch {
		case e.By.Adopt != nil && e.By.Adopt.Branch != "":
			if err := f.adopted(ctx, g.lease, e); err != nil {
				return err
			}
		case e.Kind == event.Land:
			if err := f.landed(ctx, g.lease, e); err != nil {
				return err
			}
		}
		for _, u := range e.By.Updates {
			if f.moves[u.Ref] != u && !(u.New == "" && f.gone[u.Ref]) {
				return fault.New(fault.Held, "the override %s names %s, which is not what moves with it", e.OID.Short(), describe(u)).
					WithHint("git land override --reason TEXT REFSPEC...   (it pushes event and refs together)")
			}
			f.claims[u.Ref] = append(f.claims[u.Ref], claim{g.lease, e})
		}
	}
	return nil
}

// adopted checks that a branch comes under a lease where it is, and under one alone.
func (f *fence) adopted(ctx context.Context, lease string, e event.Event) error {
	a := e.By.Adopt
	was, err := f.at(ctx, a.Branch)
	if err != nil {
		return err
	}
	if u, moves := f.moves[a.Branch]; moves {
		was = u.Old
	}
	if a.Tip != was && a.Over == "" {
		return fault.New(fault.Held, "the branch %s comes under the lease %s at %s, and is at %s",
			a.Branch.Branch(), lease, orNone(a.Tip), orNone(was)).WithHint("run the command again")
	}
	others, err := f.listing(ctx, a.Branch)
	if err != nil {
		return err
	}
	for _, other := range others {
		if other != lease {
			return fault.New(fault.Held, "the branch %s is kept under the lease %s, and cannot be under %s as well", a.Branch.Branch(), other, lease).
				WithHint("%s", fault.Command("git", "config", "lease.name", other))
		}
	}
	return nil
}

// landed checks what a land says of its branch.
func (f *fence) landed(ctx context.Context, lease string, e event.Event) error {
	land := e.By.Land
	u, moves := f.moves[land.Branch]
	if moves {
		if u.Old != land.Base || u.New != land.Commit {
			return fault.New(fault.Held, "the land %s says that %s, and the push moves %s", e.OID.Short(),
				describe(event.Update{Ref: land.Branch, Old: land.Base, New: land.Commit}), describe(u)).WithHint("git land")
		}
		f.claims[u.Ref] = append(f.claims[u.Ref], claim{lease, e})
		return nil
	}
	now, err := f.at(ctx, land.Branch)
	if err != nil {
		return err
	}
	in, err := f.isIn(ctx, land.Commit, now)
	if err == nil && !in {
		err = fault.New(fault.Held, "the land %s tells of %s on %s, which the branch does not have", e.OID.Short(), land.Commit.Short(), land.Branch.Branch()).
			WithHint("git land   (it pushes branch, record and event together)")
	}
	return err
}

// listing are the leases whose chains would list a branch, in order.
func (f *fence) listing(ctx context.Context, branch object.Ref) ([]string, error) {
	var names []string
	for _, ref := range f.chain {
		_, name := f.l.RoleOf(ref)
		if _, known := f.tips[name]; !known {
			tip, err := f.readable(ctx, f.now[ref], name)
			if err != nil {
				return nil, err
			}
			f.tips[name] = tip
		}
	}
	for name, tip := range f.tips {
		if slices.Contains(tip.State.Branches, branch) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// maxUnreadable bounds the search below a tip that cannot be read.
const maxUnreadable = 10_000

// readable is the newest event of a chain that can be read: what stands above it,
// of a newer format say, takes no branch from under the lease.
func (f *fence) readable(ctx context.Context, at object.OID, name string) (event.Event, error) {
	for range maxUnreadable {
		e, err := f.l.Event(ctx, at, name)
		if err == nil || !ledger.IsUnsound(err) {
			return e, err
		}
		c, err := f.l.Repo.Commit(ctx, at)
		if err != nil || len(c.Parents) == 0 {
			break // no commit, or nothing below
		}
		at = c.Parents[0]
	}
	return event.Event{}, nil
}

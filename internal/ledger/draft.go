package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/session"
)

// A Draft is a run of events that is built on a view and not yet published.
type Draft struct {
	// Events are what was added, oldest first.
	Events []event.Event

	ledger  *Ledger
	view    View
	ref     object.Ref
	stamp   string
	actor   string
	when    time.Time
	objects []object.Object
	further []git.Move
	along   []git.Move
}

// NewID makes the id of an event, an operation or a landing: unique by its
// random part, whatever the clock says.
func (l *Ledger) NewID() ulid.ULID {
	return session.NewID(l.Now())
}

// Draft begins to build on v. It returns v.Problem when there is one, and an
// error when git has no identity for us.
func (l *Ledger) Draft(v View) (*Draft, error) {
	if v.Problem != nil {
		return nil, v.Problem
	}
	ref, err := l.LeaseRef(v.Name)
	if err != nil {
		return nil, err
	}
	stamp, err := l.Repo.Stamp(l.Now())
	if err != nil {
		return nil, err
	}
	actor, when, err := event.ParseIdent(stamp)
	if err != nil {
		return nil, err
	}
	empty := l.Repo.Format.New(object.Tree, nil)
	return &Draft{ledger: l, view: v, ref: ref, stamp: stamp, actor: actor, when: when, objects: []object.Object{empty}}, nil
}

// Tip is the newest event, drafted or published; nil where there is none.
func (d *Draft) Tip() *event.Event {
	if n := len(d.Events); n > 0 {
		return &d.Events[n-1]
	}
	return d.view.Tip
}

// Actor is who the events are by, "Name <email>", as they will say it.
func (d *Draft) Actor() string { return d.actor }

// Time is when the events are, as they will say it.
func (d *Draft) Time() time.Time { return d.when }

// NewID makes the id of an event to be added.
func (d *Draft) NewID() ulid.ULID { return d.ledger.NewID() }

// Host labels this machine.
func (d *Draft) Host() string { return d.ledger.Host }

// Add appends what act says: its Kind, By, and for an event that takes the
// lease State.Hold. It returns an error when that may not follow, and one of class
// Failed when it is to be signed and cannot be.
func (d *Draft) Add(ctx context.Context, act event.Event) (event.Event, error) {
	return d.add(ctx, act, true)
}

// AddOver is Add for an adopt over something that cannot be a parent: it is no
// commit, or the parent already.
func (d *Draft) AddOver(ctx context.Context, act event.Event) (event.Event, error) {
	return d.add(ctx, act, false)
}

func (d *Draft) add(ctx context.Context, act event.Event, descend bool) (event.Event, error) {
	act.Name = d.view.Name
	if act.ID.IsZero() {
		act.ID = d.ledger.NewID()
	}
	act.By.Host = d.ledger.Host
	act.Actor, act.Time = d.actor, d.when
	e, err := chain.Next(d.Tip(), act)
	if err != nil {
		return e, fmt.Errorf("%s %s: %w", act.Kind, d.view.Name, err)
	}
	if !descend {
		e.Parents = e.Parents[:len(e.Parents)-1]
	}
	raw, err := e.Encode(d.ledger.Repo.Format, d.stamp)
	if err != nil {
		return e, fmt.Errorf("%s %s: %w", act.Kind, d.view.Name, err)
	}
	made, err := d.ledger.commit(ctx, "the event "+string(act.Kind), raw)
	if err != nil {
		return e, err
	}
	e.OID = made.OID
	if !made.written {
		d.objects = append(d.objects, made.Object)
	}
	d.Events = append(d.Events, e)
	return e, nil
}

// Adopt puts branch, which may be empty, under the lease if it is not yet. A
// chain begins with it. It returns a fault of class Conflict when another lease
// of the authority has the branch: under two leases at once it would be under
// none.
func (d *Draft) Adopt(ctx context.Context, branch object.Ref, tip object.OID) error {
	if t := d.Tip(); t != nil && (branch == "" || slices.Contains(t.State.Branches, branch)) {
		return nil
	}
	act := event.Event{Kind: event.Adopt}
	if branch != "" {
		if err := d.unclaimed(ctx, branch); err != nil {
			return err
		}
		act.By.Adopt = &event.Adoption{Branch: branch, Tip: tip}
	}
	_, err := d.Add(ctx, act)
	return err
}

// unclaimed makes sure that no other lease has the branch. It looks at all of
// them, which it may, since a branch is adopted once.
func (d *Draft) unclaimed(ctx context.Context, branch object.Ref) error {
	l := d.ledger
	keepers, err := l.Keepers(ctx, branch)
	if err != nil {
		return err
	}
	for _, keeper := range keepers {
		name := keeper.Name
		if name == d.view.Name {
			continue
		}
		f := fault.New(fault.Conflict, "the branch %s is kept under the lease %s at %s, and cannot be under %s as well",
			branch.Branch(), name, l.Remote, d.view.Name)
		if team := d.view.Policy; team.Says("lease.name") && team.Lease == d.view.Name {
			return f.WithHint("have lease.name in %s be %s, commit it, and: %s", policy.File, name,
				l.Command("git", "land", "override", "--reason", "WHY", "HEAD:"+branch.Branch()))
		}
		return f.WithHint("%s", fault.Command("git", "config", "lease.name", name))
	}
	return nil
}

// With has further refs move in the transaction that publishes the draft, all or
// none; for an authority that can do that (Ledger.Atomic).
func (d *Draft) With(moves ...git.Move) { d.further = append(d.further, moves...) }

// Along is With for refs of our own, of which no hook of the user's needs to hear.
func (d *Draft) Along(moves ...git.Move) { d.along = append(d.along, moves...) }

// Move is the update of the chain's ref that publishes the draft.
func (d *Draft) Move() git.Move {
	return git.Move{Ref: d.ref, New: d.Tip().OID, Old: git.Was(d.view.TipOID())}
}

// Attempt describes the publication of the draft, for Trace.
func (d *Draft) Attempt() Attempt {
	a := Attempt{Expected: d.view.TipOID()}
	for _, e := range d.Events {
		a.Events = append(a.Events, e.OID)
	}
	return a
}

// Objects are what must be written before the draft is published.
func (d *Draft) Objects() []object.Object { return d.objects }

// Write stores the draft's objects.
func (d *Draft) Write(ctx context.Context) error { return d.ledger.Repo.Write(ctx, d.objects...) }

package hook

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// A Stage is when the server asks.
type Stage int

const (
	// Received is pre-receive: nothing is locked yet, but whoever pushes is shown
	// what is said, and every ref of the push is there, atomic or not.
	Received Stage = iota
	// Prepared is reference-transaction with the refs locked: what passes happens.
	Prepared
)

// Fence says why the updates may not happen in the repository that l is open on,
// which is the authority itself (ledger.Local), or nil. The rules:
//
//   - a chain only grows, by events that may follow;
//   - a branch that a chain lists, or that is protected, moves only with exactly
//     one appended land or override that names its old and its new commit, and
//     comes under a lease only where it is;
//   - a land without a move tells of a commit that the branch has;
//   - an override names nothing but what moves with it;
//   - notes of ours only grow, and nothing of all that is deleted.
//
// A refusal is a fault of class Held; a configuration that cannot be read one of class Usage.
func Fence(ctx context.Context, l *ledger.Ledger, stage Stage, updates []event.Update) error {
	f := &fence{l: l, stage: stage, moves: map[object.Ref]event.Update{}, gone: map[object.Ref]bool{}, tips: map[string]event.Event{}, claims: map[object.Ref][]claim{}}
	if err := f.look(ctx, updates); err != nil || len(f.moves) == 0 {
		return err
	}
	for _, u := range f.sorted() {
		if role, name := l.RoleOf(u.Ref); role == ledger.Chain && u.New != "" {
			if err := f.grow(ctx, name, u); err != nil {
				return err
			}
		}
	}
	for _, g := range f.grown {
		if err := f.claim(ctx, g); err != nil {
			return err
		}
	}
	for _, u := range f.sorted() {
		if err := f.judge(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// A fence is one transaction that is being judged.
type fence struct {
	l     *ledger.Ledger
	stage Stage
	keep  protection
	// target is where landings go that are told no other branch; may be empty.
	target object.Ref
	moves  map[object.Ref]event.Update // what changes, by ref
	gone   map[object.Ref]bool         // what a prepared transaction deletes, or only packs
	now    map[object.Ref]object.OID   // refs as they are; see at
	chain  []object.Ref                // refs of chains that are
	alias  map[object.Ref]object.Ref   // symbolic refs, and what they stand for
	tips   map[string]event.Event      // of the chains, as they would be
	grown  []growth
	// claims are the appended events that name an update.
	claims map[object.Ref][]claim
}

func (f *fence) sorted() []event.Update {
	var list []event.Update
	for _, ref := range slices.Sorted(maps.Keys(f.moves)) {
		list = append(list, f.moves[ref])
	}
	return list
}

// judge decides on one update, all claims being known.
func (f *fence) judge(ctx context.Context, u event.Update) error {
	claims := f.claims[u.Ref]
	role, lease := f.l.RoleOf(u.Ref)
	switch {
	case role == ledger.Probe, role == ledger.Stray && u.New == "":
		return nil
	case role == ledger.Stray:
		return fault.New(fault.Held, "%s is no lease's ref", u.Ref).WithHint("git lease acquire NAME")
	case role == ledger.Chain && u.New == "":
		if overridden(claims, "") {
			return nil // by the log of another one
		}
		return fault.New(fault.Held, "%s is the log of a lease, and is never deleted", u.Ref).WithHint("git lease show")
	case role == ledger.Chain:
		return nil // grow has looked at it
	case role == ledger.Notes:
		if overridden(claims, lease) {
			return nil
		}
		return f.judgeNotes(ctx, lease, u)
	case !strings.HasPrefix(string(u.Ref), "refs/heads/"):
		return nil
	}
	return f.judgeBranch(ctx, u, claims)
}

// overridden reports whether one override alone accounts for an update, on the chain
// of the lease, where that is not "".
func overridden(claims []claim, lease string) bool {
	return len(claims) == 1 && claims[0].event.Kind == event.Override && (lease == "" || claims[0].lease == lease)
}

func (f *fence) judgeNotes(ctx context.Context, lease string, u event.Update) error {
	if o, err := f.l.Repo.Lookup(ctx, string(u.New)); u.New != "" && (err != nil || o.Kind != object.Commit) {
		return fault.New(fault.Held, "%s takes commits, and %s is none", u.Ref, u.New.Short()).WithHint("git land verify -h")
	}
	if lease != "" && u.New != "" && !f.hasChain(lease) {
		return fault.New(fault.Held, "%s has the records of a lease that there is not", u.Ref).WithHint("git land")
	}
	if u.New == "" {
		return fault.New(fault.Held, "%s has what was recorded, and is never deleted", u.Ref).WithHint("git land reconcile")
	}
	in, err := f.isIn(ctx, u.Old, u.New)
	if err == nil && !in {
		err = fault.New(fault.Held, "%s only grows, and %s does not descend from %s", u.Ref, u.New.Short(), u.Old.Short()).WithHint("git land reconcile")
	}
	return err
}

// hasChain reports whether there is such a lease, or will be.
func (f *fence) hasChain(lease string) bool {
	if _, known := f.tips[lease]; known {
		return true
	}
	return slices.ContainsFunc(f.chain, func(ref object.Ref) bool {
		_, name := f.l.RoleOf(ref)
		return name == lease
	})
}

func (f *fence) judgeBranch(ctx context.Context, u event.Update, claims []claim) error {
	listing, err := f.listing(ctx, u.Ref)
	if err != nil {
		return err
	}
	switch {
	case len(listing) == 0 && (!f.keep.covers(u.Ref) || overridden(claims, "")):
		return nil
	case len(listing) > 1:
		return fault.New(fault.Held, "%s is under the leases %s, and so under none", u.Ref.Branch(), strings.Join(listing, " and ")).
			WithHint("ask whoever runs this repository")
	case len(listing) == 1 && overridden(claims, listing[0]):
		return nil
	}
	if len(claims) > 1 {
		return fault.New(fault.Held, "%d events say why %s moves, and it moves once", len(claims), u.Ref.Branch()).WithHint("git land")
	}
	if len(claims) == 0 {
		under := "a lease"
		if len(listing) > 0 {
			under = "the lease " + listing[0]
		}
		if atomic, err := f.l.Repo.Config.Bool("receive.advertiseAtomic", true); err == nil && !atomic {
			return fault.New(fault.Held, "%s is kept under %s and moves only in one push with its event, which this repository does not take: receive.advertiseAtomic is false",
				u.Ref.Branch(), under).WithHint("git config receive.advertiseAtomic true   (in this repository, by whoever runs it; then land again)")
		}
		hint, err := wayOn(ctx, f.l.Repo, u, f.target, fault.Command)
		if err != nil {
			return err
		}
		return fault.New(fault.Held, "%s is kept under %s, and this push has no event of it that names %s", u.Ref.Branch(), under, describe(u)).
			WithHint("%s", hint)
	}
	land := claims[0].event.By.Land
	if !slices.Contains(listing, claims[0].lease) || land == nil {
		return fault.New(fault.Held, "%s is not under the lease %s", u.Ref.Branch(), claims[0].lease).WithHint("git lease show")
	}
	in, err := f.isIn(ctx, land.Base, land.Commit)
	if err == nil && !in {
		err = fault.New(fault.Held, "the land of %s on %s would drop commits: it does not descend from %s",
			land.Commit.Short(), u.Ref.Branch(), land.Base.Short()).WithHint("git land")
	}
	return err
}

// isIn reports whether a commit, which may be none, is part of what tip is.
func (f *fence) isIn(ctx context.Context, commit, tip object.OID) (bool, error) {
	switch {
	case commit == "":
		return true, nil
	case tip == "":
		return false, nil
	}
	in, err := f.l.Repo.IsAncestor(ctx, commit, tip)
	if errors.Is(err, git.ErrNotFound) {
		return false, nil
	}
	return in, err
}

func orNone(oid object.OID) string {
	if oid == "" {
		return "nothing"
	}
	return oid.Short()
}

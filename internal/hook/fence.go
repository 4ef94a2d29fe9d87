package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// ReadUpdates reads what git tells these hooks, "<old> <new> <ref>" a line
// (githooks(5)). Lines about refs outside refs/, such as HEAD, which git also
// hands over, are left out. An old or new value that is a symbolic ref (git 2.46)
// is an error for a branch, a lease or notes; git remote set-head writes others.
func ReadUpdates(in io.Reader) ([]event.Update, error) {
	var updates []event.Update
	err := lines(in, func(line string) error {
		old, rest, _ := strings.Cut(line, " ")
		new, name, _ := strings.Cut(rest, " ")
		if !strings.HasPrefix(name, "refs/") {
			return nil
		}
		kept := strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/lease/") || strings.HasPrefix(name, "refs/notes/")
		if !kept && (strings.HasPrefix(old, "ref:") || strings.HasPrefix(new, "ref:")) {
			return nil
		}
		u := event.Update{Ref: object.Ref(name)} // git has checked it; a name that is odd to us is no ref of ours
		var err error
		if u.Old, err = objectID(old); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if u.New, err = objectID(new); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		updates = append(updates, u)
		return nil
	})
	return updates, err
}

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
	moves map[object.Ref]event.Update // what changes, by ref
	gone  map[object.Ref]bool         // what a prepared transaction deletes, or only packs
	now   map[object.Ref]object.OID   // refs as they are; see at
	chain []object.Ref                // refs of chains that are
	alias map[object.Ref]object.Ref   // symbolic refs, and what they stand for
	tips  map[string]event.Event      // of the chains, as they would be
	grown []growth
	// claims are the appended events that name an update.
	claims map[object.Ref][]claim
}

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

func (f *fence) sorted() []event.Update {
	var list []event.Update
	for _, ref := range slices.Sorted(maps.Keys(f.moves)) {
		list = append(list, f.moves[ref])
	}
	return list
}

// look takes what would change from what git lists, and reads the refs.
func (f *fence) look(ctx context.Context, updates []event.Update) error {
	head, err := f.l.Repo.HeadBranch(ctx)
	if err != nil {
		return err
	}
	if f.keep, err = patterns(f.l.Repo.Config, head); err != nil {
		return err
	}
	if err := f.read(ctx, updates); err != nil {
		return err
	}
	for _, u := range updates {
		if target, aliased := f.alias[u.Ref]; aliased && f.stage == Received {
			u.Ref = target // which is what a server moves, or deletes
		}
		if _, twice := f.moves[u.Ref]; twice {
			return fault.New(fault.Held, "%s is named twice in one push", u.Ref).WithHint("git push --force-with-lease ...   (once for each ref)")
		}
		was := f.now[u.Ref]
		switch {
		case f.stage == Prepared && u.New == "":
			// Packing refs deletes loose ones; deletions that are pushed come by
			// pre-receive.
			f.gone[u.Ref] = true
			continue
		case u.New == was && u.New != "": // a deletion is judged by the name: by then it may be there
			continue
		case f.stage == Prepared && u.Old == "":
			u.Old = was // whatever it is
		case f.stage == Prepared && u.Old != was:
			// It will be refused on its own: git 2.51 and newer list it none the less.
			continue
		}
		f.moves[u.Ref] = u
	}
	return nil
}

// maxNames bounds how many refs are asked for by name: all names stand in one
// command line.
const maxNames = 500

// read reads the chains' refs, and those that the updates name.
func (f *fence) read(ctx context.Context, updates []event.Update) error {
	names := []string{f.l.Leases()}
	for _, u := range updates {
		names = append(names, string(u.Ref))
	}
	if len(names) > maxNames {
		names = nil // all of them
	}
	refs, err := f.l.Repo.Refs(ctx, names...)
	if err != nil {
		return err
	}
	f.now = refs
	if f.stage == Received {
		if f.alias, err = f.l.Repo.SymbolicRefs(ctx); err != nil {
			return err
		}
		for _, target := range f.alias {
			if _, err := f.at(ctx, target); err != nil {
				return err
			}
		}
	}
	for ref := range refs {
		if role, _ := f.l.RoleOf(ref); role == ledger.Chain && refs[ref] != "" {
			f.chain = append(f.chain, ref)
		}
	}
	for _, u := range updates {
		if _, known := refs[u.Ref]; !known {
			refs[u.Ref] = "" // it is not there
		}
	}
	return nil
}

// at is where a ref is now.
func (f *fence) at(ctx context.Context, ref object.Ref) (object.OID, error) {
	if oid, known := f.now[ref]; known {
		return oid, nil
	}
	refs, err := f.l.Repo.Refs(ctx, string(ref))
	if err == nil {
		f.now[ref] = refs[ref]
	}
	return refs[ref], err
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
		return fault.New(fault.Held, "%s is kept under %s, and this push has no event of it that names %s", u.Ref.Branch(), under, describe(u)).
			WithHint("git land   (or, past the lease and on the record: git land override --reason TEXT REFSPEC...)")
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

package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
	"gitland/internal/session"
)

// A Want says what to read from the authority.
type Want struct {
	// Name is the lease; "" is the lease of the branch.
	Name string
	// Branch is the target; "" is the authority's HEAD.
	Branch object.Ref
}

// A View is the state of the authority as one fetch saw it. It is no snapshot:
// a listing taken while another push is running can show half of it. It is
// good enough to plan from, since the plan names what it expects.
type View struct {
	Name   string
	Branch object.Ref
	Base   object.OID // of Branch; empty when there is no such branch yet
	// Tip is the newest event, nil when there is no chain. When the chain
	// cannot be trusted Tip is nil too, and Problem says why.
	Tip     *event.Event
	Problem *fault.Error
	// BadTip is the object that Problem is about: what stands where the tip
	// should; for a chain that was Deleted, what is left of it.
	BadTip  object.OID
	Deleted bool
	Newer   bool // Problem is that the format is newer than ours
	// LastGood is the last tip that this clone has seen and checked.
	LastGood object.OID

	Records       object.OID // tip of the lease's landing records; may be empty
	Verifications object.OID // tip of the verifications; may be empty
}

// TipOID is the id of the newest event, empty when there is no chain.
func (v View) TipOID() object.OID {
	if v.Tip == nil {
		return ""
	}
	return v.Tip.OID
}

// Phase is the phase of the lease; a lease without a chain is free.
func (v View) Phase() event.Phase {
	if v.Tip == nil {
		return event.Free
	}
	return v.Tip.State.Phase
}

// Hold is who holds the lease, nil when nobody does.
func (v View) Hold() *event.Hold {
	if v.Tip == nil {
		return nil
	}
	return v.Tip.State.Hold
}

// Fetch reads the authority. It returns a fault of class Unreachable when the
// remote did not answer, and of class Usage when there is no target branch to
// be found. A chain that cannot be trusted is no error here, so that reading
// goes on: it is View.Problem.
func (l *Ledger) Fetch(ctx context.Context, w Want) (View, error) {
	r, w, err := l.read(ctx, w)
	if err != nil {
		return View{}, err
	}
	return l.view(ctx, w, r)
}

func (l *Ledger) view(ctx context.Context, w Want, r reading) (View, error) {
	v := View{Name: w.Name, Branch: w.Branch, Base: r.base,
		Records: r.records, Verifications: r.verifications, LastGood: r.seen}
	if err := l.trust(ctx, &v, r.lease); err != nil {
		return View{}, err
	}
	return v, nil
}

// A reading is the ids of the refs that make a View.
type reading struct{ base, lease, records, verifications, seen object.OID }

func (l *Ledger) read(ctx context.Context, w Want) (reading, Want, error) {
	if l.IsLocal() {
		return l.readLocal(ctx, w)
	}
	return l.readRemote(ctx, w)
}

func (l *Ledger) readLocal(ctx context.Context, w Want) (reading, Want, error) {
	var err error
	if w.Branch == "" {
		if w.Branch, err = l.Repo.HeadBranch(ctx); err != nil {
			return reading{}, w, err
		}
		if w.Branch == "" {
			return reading{}, w, noTarget("HEAD is detached")
		}
	}
	if w.Name == "" {
		w.Name = w.Branch.Branch()
	}
	lease, err := l.LeaseRef(w.Name)
	if err != nil {
		return reading{}, w, err
	}
	records, err := l.RecordsRef(w.Name)
	if err != nil {
		return reading{}, w, err
	}
	seen := object.Ref(l.mirror("seen/" + component(w.Name)))
	refs, err := l.Repo.Refs(ctx, string(w.Branch), string(lease), string(records), string(l.VerificationsRef()), string(seen))
	if err != nil {
		return reading{}, w, err
	}
	return reading{base: refs[w.Branch], lease: refs[lease], records: refs[records],
		verifications: refs[l.VerificationsRef()], seen: refs[seen]}, w, nil
}

// component encodes a name that LeaseRef has accepted, or a branch, for the
// mirror. Branches are encoded too: "a" and "a/b" may follow one another at
// the authority, and would collide as files here.
func component(name string) string {
	encoded, err := event.EncodeName(name)
	if err != nil {
		return "%00"
	}
	return encoded
}

func (l *Ledger) readRemote(ctx context.Context, w Want) (reading, Want, error) {
	known, err := l.knowledge()
	if err != nil {
		return reading{}, w, err
	}
	fromHead := w.Branch == ""
	if fromHead && known.Head == "" {
		if err := l.learnHead(ctx, &known); err != nil {
			return reading{}, w, err
		}
	}
	for attempt := 0; ; attempt++ {
		if fromHead {
			w.Branch = known.Head
		}
		r, name, stale, err := l.fetchMirror(ctx, w, fromHead)
		if err != nil {
			return reading{}, w, err
		}
		if !stale || attempt == 2 {
			w.Name = name
			return r, w, nil
		}
		// The authority's HEAD is no longer where it was when we asked.
		if err := l.learnHead(ctx, &known); err != nil {
			return reading{}, w, err
		}
	}
}

// fetchMirror fetches into the mirror and reads it. stale means that the
// authority's HEAD, fetched in the same connection, is not at the commit of
// the branch that we took for it.
func (l *Ledger) fetchMirror(ctx context.Context, w Want, fromHead bool) (r reading, name string, stale bool, err error) {
	if name = w.Name; name == "" {
		name = w.Branch.Branch()
	}
	if _, err = l.LeaseRef(name); err != nil {
		return r, name, false, err
	}
	// Two fetches of one clone would fail on each other's ref updates.
	lock, err := session.Lock(ctx, l.lockPath())
	if err != nil {
		return r, name, false, err
	}
	defer lock.Close()

	enc := component(name)
	branch := git.Refspec{From: string(w.Branch), To: l.mirror("heads/" + component(w.Branch.Branch()))}
	head := git.Refspec{From: "HEAD", To: l.mirror("HEAD")}
	// Patterns, because a fetch of a ref that is not there fails as a whole.
	ours := []git.Refspec{
		{From: l.spaces.leases + enc + "*", To: l.mirror("lease/" + enc + "*")},
		{From: l.spaces.records + enc + "*", To: l.mirror("records/" + enc + "*")},
		{From: string(l.spaces.verifications) + "*", To: l.mirror("verification*")},
	}
	specs := append(slices.Clone(ours), branch)
	if fromHead {
		specs = append(specs, head)
	}
	if err = l.Repo.Fetch(ctx, l.remote, specs...); err != nil {
		stale, err = l.fetchPresent(ctx, err, ours, branch, fromHead)
		if err != nil || stale {
			return r, name, stale, err
		}
	}
	l.touch()
	r, headOID, err := l.readMirror(ctx, name, w.Branch)
	return r, name, err == nil && fromHead && headOID != r.base, err
}

// readMirror reads what the mirror has of a lease and a branch, and of the
// authority's HEAD.
func (l *Ledger) readMirror(ctx context.Context, name string, branch object.Ref) (r reading, head object.OID, err error) {
	enc := component(name)
	into := map[object.Ref]*object.OID{
		object.Ref(l.mirror("lease/" + enc)):                        &r.lease,
		object.Ref(l.mirror("records/" + enc)):                      &r.records,
		object.Ref(l.mirror("verification")):                        &r.verifications,
		object.Ref(l.mirror("seen/" + enc)):                         &r.seen,
		object.Ref(l.mirror("heads/" + component(branch.Branch()))): &r.base,
		object.Ref(l.mirror("HEAD")):                                &head,
	}
	refs, err := l.Repo.Resolve(ctx, slices.Collect(maps.Keys(into))...)
	for ref, oid := range refs {
		*into[ref] = oid
	}
	return r, head, err
}

// lockPath is the file that is locked while the mirror is written, and whose
// time says when that was.
func (l *Ledger) lockPath() string { return l.Dir.Path("mirror", component(l.Remote)+".lock") }

// touch notes when the mirror was written. It is worth no failure: without it
// the next landing only fetches first.
func (l *Ledger) touch() {
	now := time.Now()
	os.Chtimes(l.lockPath(), now, now)
}

// freshFor is how old a mirror may be to be planned from.
const freshFor = time.Minute

// Mirror is what a fetch of a moment ago saw, by this session's verification or
// landing, say. It may lead to a push, whose expectations decide whether it was
// still true; nothing may be refused or concluded from it. It reports false
// where there is no such mirror.
func (l *Ledger) Mirror(ctx context.Context, w Want) (View, bool) {
	if l.IsLocal() {
		return View{}, false
	}
	info, err := os.Stat(l.lockPath())
	if err != nil || time.Since(info.ModTime()).Abs() > freshFor {
		return View{}, false
	}
	known, err := l.knowledge()
	if err != nil {
		return View{}, false
	}
	if w.Branch == "" {
		w.Branch = known.Head
	}
	if w.Name == "" {
		w.Name = w.Branch.Branch()
	}
	r, _, err := l.readMirror(ctx, w.Name, w.Branch)
	if err != nil || r.base == "" {
		return View{}, false
	}
	v, err := l.view(ctx, w, r)
	return v, err == nil && v.Problem == nil
}

// fetchPresent follows a fetch that failed with cause: it lists the remote, to
// tell an unreachable one from one that lacks the branch, and fetches what is
// there.
func (l *Ledger) fetchPresent(ctx context.Context, cause error, ours []git.Refspec, branch git.Refspec, fromHead bool) (stale bool, err error) {
	list, err := l.list(ctx)
	if err != nil {
		return false, err
	}
	if fromHead && string(list.Head) != branch.From && list.Head != "" {
		return true, nil
	}
	if _, present := list.Refs[object.Ref(branch.From)]; present {
		return false, l.unreachable(cause)
	}
	if err := l.Repo.Fetch(ctx, l.remote, ours...); err != nil {
		return false, l.unreachable(err)
	}
	// The mirror must not show a branch that the authority has no more.
	var gone []git.Move
	refs, err := l.Repo.Refs(ctx, branch.To, l.mirror("HEAD"))
	for ref, oid := range refs {
		gone = append(gone, git.Move{Ref: ref, Old: git.MustBe(oid)})
	}
	if err != nil {
		return false, err
	}
	return false, l.Repo.MoveRefs(ctx, "land: fetch", gone...)
}

func (l *Ledger) list(ctx context.Context) (git.Listing, error) {
	list, err := l.Repo.List(ctx, l.remote)
	if err != nil {
		return list, l.unreachable(err)
	}
	return list, nil
}

// learnHead asks the remote which branch its HEAD is on.
func (l *Ledger) learnHead(ctx context.Context, known *knowledge) error {
	list, err := l.list(ctx)
	if err != nil {
		return err
	}
	if list.Head != "" {
		known.Head = list.Head
		return l.saveKnowledge(*known)
	}
	// Git does not tell where an unborn HEAD points. The first landing in an
	// empty remote goes where this clone is; that is not kept.
	if len(list.Refs) == 0 {
		known.Head, err = l.Repo.HeadBranch(ctx)
	}
	if err == nil && known.Head == "" {
		err = noTarget("%s has no branch that its HEAD is on", l.Remote)
	}
	return err
}

// noTarget is the fault of a target that was not chosen and cannot be found.
func noTarget(format string, args ...any) *fault.Error {
	return fault.New(fault.Usage, format+", so no branch is the target", args...).WithHint("git config land.onto BRANCH")
}

func (l *Ledger) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fault.New(fault.Unreachable, "%s cannot be reached: %w", l.Remote, err).
		WithHint("git ls-remote %s", l.Remote)
}

// trust decides whether the chain with the given tip can be built upon, and
// sets Tip or Problem. What is new since the last tip that this clone saw is
// folded event by event; older events were folded then.
func (l *Ledger) trust(ctx context.Context, v *View, tip object.OID) error {
	if tip.IsZero() {
		if !v.Records.IsZero() || !v.LastGood.IsZero() {
			if v.Deleted, v.BadTip = true, v.LastGood; v.BadTip.IsZero() {
				v.BadTip = v.Records
			}
			v.Problem = l.ambiguous(v, "the lease %s has landing records or a past, but no chain: it was deleted", v.Name)
		}
		return nil
	}
	v.BadTip = tip
	e, err := l.Event(ctx, tip, v.Name)
	if err == nil && tip != v.LastGood && !v.LastGood.IsZero() {
		err = l.follows(ctx, e, v.LastGood)
	}
	var newer *event.NewerError
	switch {
	case err == nil:
	case errors.As(err, &newer):
		v.Newer = true
		v.Problem = fault.New(fault.Ambiguous, "the lease %s has events of format %d, and this version knows format %d", v.Name, newer.Format, event.Format).
			WithHint("install a version of git-land that knows format %d", newer.Format)
		return nil
	case isAmbiguous(err):
		v.Problem = l.ambiguous(v, "the lease %s is ambiguous: %v", v.Name, err)
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

// remember plans to write down that tip was seen.
func (l *Ledger) remember(name string, old, tip object.OID) {
	l.note("seen/"+component(name), old, tip)
}

// note plans to move a ref of the mirror.
func (l *Ledger) note(rest string, old, tip object.OID) {
	ref := object.Ref(l.mirror(rest))
	l.mu.Lock()
	defer l.mu.Unlock()
	if m, planned := l.pending[ref]; planned {
		old = m.Old.OID()
	}
	if old != tip {
		l.pending[ref] = git.Move{Ref: ref, New: tip, Old: git.Was(old)}
	}
}

// Moved tells the mirror what a publication on v has moved, so that "git log"
// shows a new record without another fetch. Flush writes it down.
func (l *Ledger) Moved(v View, moves []git.Move) {
	for _, m := range moves {
		switch m.Ref {
		case object.Ref(l.spaces.leases + component(v.Name)):
			l.remember(v.Name, v.LastGood, m.New)
			l.mirrored("lease/"+component(v.Name), m)
		case object.Ref(l.spaces.records + component(v.Name)):
			l.mirrored("records/"+component(v.Name), m)
		case v.Branch:
			l.mirrored("heads/"+component(v.Branch.Branch()), m)
		}
	}
}

func (l *Ledger) mirrored(rest string, m git.Move) {
	if !l.IsLocal() {
		l.note(rest, m.Old.OID(), m.New)
	}
}

func (l *Ledger) ambiguous(v *View, format string, args ...any) *fault.Error {
	return fault.New(fault.Ambiguous, format, args...).
		WithFacts(map[string]any{"lease": v.Name, "tip": v.BadTip, "last_good": v.LastGood}).
		WithHint("look with `%s`, then: %s", l.Command("git", "lease", "log", v.Name),
			l.Command("git", "lease", "adopt", v.Name, "--over", string(v.BadTip), "--reason", "WHY"))
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

// Names lists the leases of the authority, as one fetch sees them.
func (l *Ledger) Names(ctx context.Context) ([]string, error) {
	refs, err := l.all(ctx, l.spaces.leases)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, ref := range refs {
		if name, err := event.DecodeName(strings.TrimPrefix(string(ref), l.spaces.leases)); err == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

// Branches lists the branches of the authority.
func (l *Ledger) Branches(ctx context.Context) ([]object.Ref, error) {
	refs, err := l.all(ctx, "refs/heads/")
	if err != nil {
		return nil, err
	}
	own := func(ref object.Ref) bool { // a namespace of ours may lie below refs/heads
		return strings.HasPrefix(string(ref), l.spaces.leases) || strings.HasPrefix(string(ref), l.spaces.probes[2])
	}
	return slices.DeleteFunc(refs, own), nil
}

// all lists the refs of the authority below prefix, in order.
func (l *Ledger) all(ctx context.Context, prefix string) ([]object.Ref, error) {
	var refs map[object.Ref]object.OID
	if l.IsLocal() {
		var err error
		if refs, err = l.Repo.Refs(ctx, strings.TrimSuffix(prefix, "/")); err != nil {
			return nil, err
		}
	} else {
		list, err := l.list(ctx)
		if err != nil {
			return nil, err
		}
		refs = list.Refs
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(refs)), func(ref object.Ref) bool {
		return !strings.HasPrefix(string(ref), prefix)
	}), nil
}

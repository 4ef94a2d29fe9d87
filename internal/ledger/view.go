package ledger

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
	"gitland/internal/policy"
)

// A Want says what to read from the authority.
type Want struct {
	// Name is the lease; "" is lease.name of the policy on the branch, else the
	// branch's own.
	Name string
	// Branch is the target; "" is land.onto of the policy at the authority's HEAD, else
	// that HEAD's branch.
	Branch object.Ref
}

// A View is the state of the authority as one fetch saw it. It is no snapshot:
// a listing taken while another push is running can show half of it. It is
// good enough to plan from, since the plan names what it expects.
type View struct {
	Name   string
	Branch object.Ref
	Base   object.OID    // of Branch; empty when there is no such branch yet
	Policy policy.Policy // at Base, with the user's own where that says nothing
	// Tip is the newest event, nil when there is no chain. When the chain
	// cannot be trusted Tip is nil too, and Problem says why.
	Tip     *event.Event
	Problem *fault.Error
	// BadTip is the object that Problem is about: what stands where the tip
	// should; for a chain that was Deleted, what is left of it.
	BadTip  object.OID
	Deleted bool
	Lost    bool // Problem is that the chain was put back to an event before LastGood
	Newer   bool // Problem is that the format is newer than ours
	// LastGood is the last tip that this clone has seen and checked.
	LastGood object.OID

	Records       object.OID // tip of the lease's landing records; may be empty
	Verifications object.OID // tip of the verifications; may be empty
	// LostRecords and LostVerifications are the last tips of these that this clone
	// saw, where the authority has none any more or one that is older; else empty.
	LostRecords, LostVerifications object.OID
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
	r, chosen, err := l.read(ctx, w)
	if err != nil {
		return View{}, err
	}
	v, err := l.view(ctx, chosen, r)
	// What was seen is looked at after the authority has answered: another session of this
	// clone may have pushed in between, and seen that. Asked again it is there, or gone.
	for try := 0; err == nil && v.misses() && try < maxChoices; try++ {
		was := r
		if r, chosen, err = l.read(ctx, w); err != nil {
			return View{}, err
		}
		if r == was {
			break
		}
		v, err = l.view(ctx, chosen, r)
	}
	if err == nil {
		err = l.tellProblem(ctx, w, v)
	}
	return v, err
}

// misses reports whether this clone has seen more than the authority has.
func (v View) misses() bool {
	return v.Deleted || v.Lost || v.LostRecords != "" || v.LostVerifications != ""
}

// FetchKeeper is Fetch for the lease that keeps the branch: the one named, if that
// lists it or no other does. It asks for the others only where it does not.
func (l *Ledger) FetchKeeper(ctx context.Context, w Want) (View, error) {
	v, err := l.Fetch(ctx, w)
	if err != nil || v.Keeps(v.Branch) {
		return v, err
	}
	keepers, err := l.Keepers(ctx, v.Branch)
	if err != nil {
		return v, err
	}
	for _, keeper := range keepers {
		other, err := l.Fetch(ctx, Want{Name: keeper.Name, Branch: v.Branch})
		if err != nil || other.Keeps(v.Branch) {
			return other, err
		}
	}
	return v, nil
}

// Keeps reports whether a branch is under the lease.
func (v View) Keeps(branch object.Ref) bool {
	return v.Tip != nil && slices.Contains(v.Tip.State.Branches, branch)
}

func (l *Ledger) view(ctx context.Context, w Want, r reading) (View, error) {
	v := View{Name: w.Name, Branch: w.Branch, Base: r.base,
		Records: r.records, Verifications: r.verifications, LastGood: r.seen}
	if err := l.trust(ctx, &v, r.lease); err != nil {
		return View{}, err
	}
	var err error
	if v.Policy, err = l.policies.At(ctx, string(v.Base)); err != nil {
		return View{}, err
	}
	if v.LostRecords, err = l.keep(ctx, seenRecords+component(w.Name), r.seenRecords, r.records); err == nil {
		v.LostVerifications, err = l.keep(ctx, seenVerifications, r.seenVerifications, r.verifications)
	}
	if err != nil {
		return View{}, err
	}
	return v, nil
}

// A reading is the ids of the refs that make a View.
type reading struct {
	base, lease, records, verifications  object.OID
	seen, seenRecords, seenVerifications object.OID // the memory of this clone
}

func (l *Ledger) read(ctx context.Context, w Want) (reading, Want, error) {
	if l.IsLocal() {
		return l.readLocal(ctx, w)
	}
	return l.readRemote(ctx, w)
}

func (l *Ledger) readLocal(ctx context.Context, w Want) (reading, Want, error) {
	w, err := l.choose(ctx, w, "HEAD", l.Repo.HeadBranch)
	if err != nil {
		return reading{}, w, err
	}
	if w.Branch == "" {
		return reading{}, w, noTarget("HEAD is detached")
	}
	lease, err := l.LeaseRef(w.Name)
	if err != nil {
		return reading{}, w, err
	}
	records, err := l.RecordsRef(w.Name)
	if err != nil {
		return reading{}, w, err
	}
	seen, seenNotes := object.Ref(l.mirror("seen/"+component(w.Name))), object.Ref(l.mirror(seenRecords+component(w.Name)))
	seenChecks := object.Ref(l.mirror(seenVerifications))
	refs, err := l.Repo.Refs(ctx, string(w.Branch), string(lease), string(records), string(l.VerificationsRef()), string(seen), string(seenNotes), string(seenChecks))
	if err != nil {
		return reading{}, w, err
	}
	return reading{base: refs[w.Branch], lease: refs[lease], records: refs[records],
		verifications: refs[l.VerificationsRef()], seen: refs[seen], seenRecords: refs[seenNotes], seenVerifications: refs[seenChecks]}, w, nil
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
	// Git does not tell where an unborn HEAD points. The first landing in a
	// remote without branches goes where this clone is, if that is no topic; that
	// is not kept.
	if known.Head = ""; !l.hasBranches(list) {
		known.Head, err = l.firstBranch(ctx)
	}
	if err == nil && known.Head == "" {
		err = noTarget("%s has no branch that its HEAD is on", l.Remote)
	}
	return err
}

// firstBranch is the branch with which a remote that has none begins, where this clone
// says so: the current one, if it was made to follow the remote's, as git clone does, or
// has the name of a first branch. Any other has to be asked for.
func (l *Ledger) firstBranch(ctx context.Context) (object.Ref, error) {
	branch, err := l.Repo.HeadBranch(ctx)
	if err != nil || branch == "" {
		return "", err
	}
	config, name := l.Repo.Config, branch.Branch()
	switch {
	case config.Get("branch."+name+".remote") == l.Remote:
		return object.ParseRef(config.Get("branch." + name + ".merge"))
	case slices.Contains([]string{"main", "master", config.Get("init.defaultbranch")}, name):
		return branch, nil
	}
	return "", fault.New(fault.Usage, "%s has no branch yet, and it was not said that it begins with %s, which is checked out here", l.Remote, name).
		WithHint("git config land.onto %s   (or which it is to be; or --onto)", fault.Command(name))
}

// KnownTarget is the branch where one lands that is told none, as far as this clone
// has heard; empty where it has not.
func (l *Ledger) KnownTarget(ctx context.Context) (object.Ref, error) {
	w, err := l.choose(ctx, Want{Name: "-"}, l.headAt(), l.knownHead)
	return w.Branch, err
}

// headAt is where the commit of the authority's HEAD is found in this clone.
func (l *Ledger) headAt() string {
	if l.IsLocal() {
		return "HEAD"
	}
	return l.mirror("HEAD")
}

// knownHead is the branch that the authority's HEAD was on when this clone last
// heard of it, from us or from git clone; empty where it never has.
func (l *Ledger) knownHead(ctx context.Context) (object.Ref, error) {
	if l.IsLocal() {
		return l.Repo.HeadBranch(ctx)
	}
	k, err := l.knowledge()
	if err != nil || k.Head != "" {
		return k.Head, err
	}
	return l.trackedHead(ctx)
}

// trackedHead is the branch on which git has the remote's HEAD; empty where it has none.
func (l *Ledger) trackedHead(ctx context.Context) (object.Ref, error) {
	tracked, err := l.Repo.SymbolicRef(ctx, object.Ref("refs/remotes/"+l.Remote+"/HEAD"))
	branch, found := strings.CutPrefix(string(tracked), "refs/remotes/"+l.Remote+"/")
	if err != nil || !found {
		return "", err
	}
	return object.BranchRef(branch)
}

// KnownTargets are the branches that the authority's HEAD can be on, as far as this
// clone has heard: from us, and from git, which may know of another one.
func (l *Ledger) KnownTargets(ctx context.Context) ([]object.Ref, error) {
	first, err := l.KnownTarget(ctx)
	if err != nil || l.IsLocal() {
		return []object.Ref{first}, err
	}
	second, err := l.trackedHead(ctx)
	list := []object.Ref{first, second}
	return slices.DeleteFunc(slices.Compact(list), func(ref object.Ref) bool { return ref == "" }), err
}

// KnownKept are the branches that were under a lease of the authority when this clone
// last looked at that.
func (l *Ledger) KnownKept(ctx context.Context) ([]object.Ref, error) {
	tips, err := l.tipsBelow(ctx, l.mirror("seen/"))
	var kept []object.Ref
	for _, e := range tips {
		kept = append(kept, e.State.Branches...)
	}
	slices.Sort(kept)
	return slices.Compact(kept), err
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

// Names lists the leases of the authority, as one look at it sees them. A lease
// whose chain was deleted is named by the records that it left.
func (l *Ledger) Names(ctx context.Context) ([]string, error) {
	refs, err := l.all(ctx, l.spaces.leases, l.spaces.records)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, ref := range refs {
		if name, err := event.DecodeName(strings.TrimPrefix(string(ref), git.Namespace(ref))); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Remembered lists the leases whose chain this clone has seen at the authority.
func (l *Ledger) Remembered(ctx context.Context) ([]string, error) {
	seen := l.mirror("seen/")
	refs, err := l.Repo.Refs(ctx, strings.TrimSuffix(seen, "/"))
	if err != nil {
		return nil, err
	}
	var names []string
	for ref := range refs {
		if name, err := event.DecodeName(strings.TrimPrefix(string(ref), seen)); err == nil {
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
	return slices.DeleteFunc(refs, l.isOurs), nil
}

// isOurs reports whether a ref is in a namespace of ours, which may lie below
// refs/heads.
func (l *Ledger) isOurs(ref object.Ref) bool {
	return strings.HasPrefix(string(ref), l.spaces.leases) || strings.HasPrefix(string(ref), l.spaces.probes[2])
}

// hasBranches reports whether there is any branch that is not ours. Before the
// first landing there may be a lease and verifications.
func (l *Ledger) hasBranches(list git.Listing) bool {
	for ref := range list.Refs {
		if strings.HasPrefix(string(ref), "refs/heads/") && !l.isOurs(ref) {
			return true
		}
	}
	return false
}

// Refs are all refs that the authority shows.
func (l *Ledger) Refs(ctx context.Context) (map[object.Ref]object.OID, error) {
	if l.IsLocal() {
		return l.Repo.Refs(ctx)
	}
	list, err := l.list(ctx)
	return list.Refs, err
}

// all lists the refs of the authority below one of the prefixes, in order.
func (l *Ledger) all(ctx context.Context, prefixes ...string) ([]object.Ref, error) {
	refs, err := l.Refs(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(refs)), func(ref object.Ref) bool {
		return !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(ref), p) })
	}), nil
}

package ledger

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"gitland/internal/git"
	"gitland/internal/object"
	"gitland/internal/session"
)

// maxChoices is how often a choice of target and lease is made anew because the
// fetch that it led to brought another HEAD or policy.
const maxChoices = 4

func (l *Ledger) readRemote(ctx context.Context, w Want) (reading, Want, error) {
	known, err := l.knowledge()
	if err != nil {
		return reading{}, w, err
	}
	head := func(ctx context.Context) (object.Ref, error) {
		if known.Head == "" {
			err := l.learnHead(ctx, &known)
			return known.Head, err
		}
		return known.Head, nil
	}
	at, err := l.choose(ctx, w, l.mirror("HEAD"), head)
	if err != nil {
		return reading{}, w, err
	}
	for attempt := 0; attempt <= maxChoices; attempt++ {
		team, err := l.HeadPolicy(ctx)
		if err != nil {
			return reading{}, at, err
		}
		headBranch := known.Head
		if team.Target != "" {
			headBranch = "" // the target is somebody's choice, wherever HEAD is
		}
		r, headOID, stale, err := l.fetchMirror(ctx, at, w.Branch == "", headBranch)
		if err != nil {
			return reading{}, at, err
		}
		if stale { // the authority's HEAD is no longer where it was when we asked
			if err := l.learnHead(ctx, &known); err != nil {
				return reading{}, at, err
			}
		}
		next, err := l.chooseAt(ctx, w, string(headOID), head, func(branch object.Ref) string {
			if branch == at.Branch {
				return string(r.base)
			}
			return l.mirror("heads/" + component(branch.Branch()))
		})
		// A remote that cannot say where its HEAD is is taken at its word.
		if err != nil || next == at && (!stale || attempt >= 2 && r != (reading{})) {
			return r, at, err
		}
		at = next
	}
	return reading{}, at, l.unreachable(errors.New("its HEAD, or the policy there, changes all the time"))
}

// fetchMirror fetches into the mirror and reads it. With head the authority's HEAD is
// fetched in the same connection; stale means then that it is not at the commit of
// headBranch, if that is the branch that was asked for.
func (l *Ledger) fetchMirror(ctx context.Context, w Want, head bool, headBranch object.Ref) (r reading, headOID object.OID, stale bool, err error) {
	name, fromHead := w.Name, head && w.Branch == headBranch
	if _, err = l.LeaseRef(name); err != nil {
		return r, "", false, err
	}
	// Two fetches of one clone would fail on each other's ref updates.
	lock, err := session.Lock(ctx, l.lockPath())
	if err != nil {
		return r, "", false, err
	}
	defer lock.Close()

	enc := component(name)
	branch := git.Refspec{From: string(w.Branch), To: l.mirror("heads/" + component(w.Branch.Branch()))}
	// Patterns, because a fetch of a ref that is not there fails as a whole.
	ours := []git.Refspec{
		{From: l.spaces.leases + enc + "*", To: l.mirror("lease/" + enc + "*")},
		{From: l.spaces.records + enc + "*", To: l.mirror("records/" + enc + "*")},
		{From: string(l.spaces.verifications) + "*", To: l.mirror("verification*")},
	}
	specs := append(slices.Clone(ours), branch)
	if head {
		specs = append(specs, git.Refspec{From: "HEAD", To: l.mirror("HEAD")})
	}
	if err = l.Repo.Fetch(ctx, l.remote, specs...); err != nil {
		stale, err = l.fetchPresent(ctx, err, specs, ours, branch, head, fromHead)
		if err != nil || stale {
			return r, "", stale, err
		}
	}
	l.fetched()
	l.touch(head)
	r, headOID, err = l.readMirror(ctx, name, w.Branch)
	return r, headOID, err == nil && fromHead && headOID != r.base, err
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
		object.Ref(l.mirror(seenRecords + enc)):                     &r.seenRecords,
		object.Ref(l.mirror(seenVerifications)):                     &r.seenVerifications,
		object.Ref(l.mirror("heads/" + component(branch.Branch()))): &r.base,
		object.Ref(l.mirror("HEAD")):                                &head,
	}
	refs, err := l.Repo.Resolve(ctx, slices.Collect(maps.Keys(into))...)
	for ref, oid := range refs {
		*into[ref] = oid
	}
	l.mu.Lock()
	l.head = head
	l.mu.Unlock()
	return r, head, err
}

// lockPath is the file that is locked while the mirror is written, and whose
// time says when that was.
func (l *Ledger) lockPath() string { return l.Dir.Path("mirror", component(l.Remote)+".lock") }

// headPath is the file whose time says when the mirror's HEAD was written: not each fetch
// asks for that.
func (l *Ledger) headPath() string { return l.Dir.Path("mirror", component(l.Remote)+".head") }

// touch notes when the mirror was written, and its HEAD. It is worth no failure: without
// it the next landing only fetches first.
func (l *Ledger) touch(head bool) {
	now := time.Now()
	os.Chtimes(l.lockPath(), now, now)
	if head && os.Chtimes(l.headPath(), now, now) != nil {
		os.WriteFile(l.headPath(), nil, 0o600)
	}
}

// freshFor is how old a mirror may be to be planned from.
const freshFor = time.Minute

func fresh(path string) bool {
	info, err := os.Stat(path)
	return err == nil && time.Since(info.ModTime()).Abs() <= freshFor
}

// Mirror is what a fetch of a moment ago saw, by this session's verification or
// landing, say. It may lead to a push, whose expectations decide whether it was
// still true; nothing may be refused or concluded from it. It reports false
// where there is no such mirror.
func (l *Ledger) Mirror(ctx context.Context, w Want) (View, bool) {
	if l.IsLocal() {
		return View{}, false
	}
	if !fresh(l.lockPath()) || w.Branch == "" && !fresh(l.headPath()) { // no push would find out that HEAD's was old
		return View{}, false
	}
	known, err := l.knowledge()
	if err != nil {
		return View{}, false
	}
	w, err = l.choose(ctx, w, l.mirror("HEAD"), func(context.Context) (object.Ref, error) { return known.Head, nil })
	if err != nil || w.Branch == "" {
		return View{}, false
	}
	r, _, err := l.readMirror(ctx, w.Name, w.Branch)
	if err != nil || r.base == "" {
		return View{}, false
	}
	v, err := l.view(ctx, w, r)
	return v, err == nil && v.Problem == nil
}

// fetchPresent follows a fetch that failed with cause: it lists the remote, to
// tell an unreachable one from one that lacks the branch, or its HEAD's, and fetches
// what is there.
func (l *Ledger) fetchPresent(ctx context.Context, cause error, all, ours []git.Refspec, branch git.Refspec, head, fromHead bool) (stale bool, err error) {
	list, err := l.list(ctx)
	if err != nil {
		return false, err
	}
	if fromHead && string(list.Head) != branch.From && l.hasBranches(list) {
		return true, nil
	}
	if _, present := list.Refs[object.Ref(branch.From)]; present {
		if head && list.Head == "" { // it is on a branch that there is not
			all = append(slices.Clone(ours), branch)
		}
		// It answers. Another session of this clone may have told the mirror
		// what it moved, in the middle of our fetch; git does not like that.
		if l.Repo.Fetch(ctx, l.remote, all...) == nil {
			return false, nil
		}
		return false, l.unreachable(cause)
	}
	// The mirror must not show a branch that the authority has no more. Its HEAD, which is
	// on another one then, says what is wanted.
	specs, shown := ours, []string{branch.To}
	switch {
	case list.Head == "":
		shown = append(shown, l.mirror("HEAD"))
	case head:
		specs = append(slices.Clone(ours), git.Refspec{From: "HEAD", To: l.mirror("HEAD")})
	}
	if err := l.Repo.Fetch(ctx, l.remote, specs...); err != nil {
		return false, l.unreachable(err)
	}
	var gone []git.Move
	refs, err := l.Repo.Refs(ctx, shown...)
	for ref, oid := range refs {
		gone = append(gone, git.Move{Ref: ref, Old: git.MustBe(oid)})
	}
	if err != nil {
		return false, err
	}
	return false, l.Repo.MoveRefs(ctx, "land: fetch", gone...)
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

// fetched drops what was planned for the mirror and is older than a fetch into
// it: what no longer stands there would fail the whole of Flush. The memory of
// the last tips is not fetched, and stays.
func (l *Ledger) fetched() {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.pending, func(ref object.Ref, _ git.Move) bool { return !l.isMemory(ref) })
}

// The memory of the last notes that were seen, in the mirror. A fetch deletes what
// the authority has no more, and with it the only copy that a clone has of it.
const (
	seenRecords       = "seen-records/" // + the encoded lease name
	seenVerifications = "seen-verification"
)

// isMemory reports whether a ref of the mirror is a last tip that was seen.
func (l *Ledger) isMemory(ref object.Ref) bool {
	rest := strings.TrimPrefix(string(ref), l.mirror(""))
	return strings.HasPrefix(rest, "seen/") || strings.HasPrefix(rest, "lost/") || strings.HasPrefix(rest, seenRecords) || rest == seenVerifications
}

// keep plans to write down that notes were seen at tip, after seen. It returns seen
// where the authority has lost that: it has no such notes any more, or older ones.
// Those that were begun anew, or rewritten, are the new memory, and the old ones are kept below
// "lost/": this may be the only clone that has them.
func (l *Ledger) keep(ctx context.Context, rest string, seen, tip object.OID) (lost object.OID, err error) {
	switch {
	case tip.IsZero():
		return seen, nil
	case tip == seen:
		return "", nil
	}
	if _, err := l.Repo.Commit(ctx, tip); err != nil {
		return "", ctx.Err() // somebody overwrote them with what is no commit
	}
	if seen != "" {
		if grown, err := l.Grown(ctx, tip, seen); err != nil || !grown {
			if older, err := l.Grown(ctx, seen, tip); err == nil && older {
				return seen, nil
			}
			l.replace(rest, seen)
		}
	}
	l.note(rest, seen, tip)
	return "", ctx.Err()
}

// replace keeps what the memory had before it goes over to other notes.
func (l *Ledger) replace(rest string, seen object.OID) {
	if seen != "" {
		l.note("lost/"+rest+"/"+string(seen), "", seen)
	}
}

// nearBy is how many commits are looked at before git is asked for all of them.
const nearBy = 64

// Grown reports whether the notes at tip have grown from those at old. It costs a
// process only where they are far apart, or not the same notes.
func (l *Ledger) Grown(ctx context.Context, tip, old object.OID) (bool, error) {
	at := tip
	for range nearBy {
		if at == old {
			return true, nil
		}
		c, err := l.Repo.Commit(ctx, at)
		if err != nil {
			return false, err
		}
		if len(c.Parents) == 0 {
			return false, nil
		}
		if at = c.Parents[0]; len(c.Parents) > 1 {
			break // somebody merged notes
		}
	}
	return l.Repo.IsAncestor(ctx, old, tip)
}

// PutBackRecords is the command that gives the authority back the records that v says
// were lost.
func (l *Ledger) PutBackRecords(v View) string {
	return l.Push(l.mirror(seenRecords+component(v.Name)) + ":" + l.spaces.records + component(v.Name))
}

// PutBackVerifications is the same of verifications: of a commit of this clone, or,
// where that is empty, of the last that were seen.
func (l *Ledger) PutBackVerifications(from object.OID) string {
	return l.Push(cmp.Or(string(from), l.mirror(seenVerifications)) + ":" + string(l.spaces.verifications))
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
			l.replace(seenRecords+component(v.Name), v.LostRecords)
			l.note(seenRecords+component(v.Name), cmp.Or(v.LostRecords, m.Old.OID()), m.New)
		case v.Branch:
			l.mirrored("heads/"+component(v.Branch.Branch()), m)
			if l.isHead(v.Branch, m.Old.OID()) { // whose policy chooses the next target
				l.mirrored("HEAD", m)
			}
		}
	}
}

// isHead reports whether the authority's HEAD is on the branch, at that commit, as far as
// the mirror has it.
func (l *Ledger) isHead(branch object.Ref, at object.OID) bool {
	l.mu.Lock()
	head := l.head
	l.mu.Unlock()
	known, err := l.knowledge()
	return err == nil && known.Head == branch && head != "" && head == at
}

func (l *Ledger) mirrored(rest string, m git.Move) {
	if !l.IsLocal() {
		l.note(rest, m.Old.OID(), m.New)
	}
}

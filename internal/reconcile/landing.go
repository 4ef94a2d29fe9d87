package reconcile

import (
	"cmp"
	"slices"

	"gitland/internal/event"
	"gitland/internal/note"
	"gitland/internal/object"
)

// compareLanding compares what is said of one landing, and reports whether its
// event has no record.
func (s *state) compareLanding(n *landing) (unrecorded bool) {
	if n.open {
		in := n.intent
		s.cover(in.By.Land.Base, in.By.Land.Commit)
		s.notice(noticeOf("under-way", in, in.By.Land.Commit, "a landing was announced, and its operation still holds the lease"))
		return false
	}
	if n.broken && s.compareBroken(n) {
		return false
	}
	var said object.OID
	n.claimed(func(oid object.OID) { said = cmp.Or(said, oid) })
	if s.where(said) == before {
		return false
	}
	s.report.Landings++
	own, misplaced := n.sorted()
	for _, p := range misplaced {
		s.find(Finding{Code: RecordMisplaced, Object: p.on, Others: []object.OID{p.value.Commit}, Landing: n.id.String()},
			"the note on %s has the record of %s: a reader would conclude that %s is what landed", p.on.Short(), p.value.Commit.Short(), p.on.Short())
	}
	for _, p := range own {
		s.cover(p.value.Base, p.value.Commit)
	}
	if len(n.events) == 0 {
		s.compareUnheard(n, own)
		return false
	}
	return s.compareHeard(n, own)
}

// sorted tells the records that stand on the commit that they are of from those
// that do not: git copies notes where it is told to, to an amended commit say.
func (n *landing) sorted() (own, misplaced []placed) {
	for _, p := range n.records {
		if p.on == p.value.Commit {
			own = append(own, p)
		} else {
			misplaced = append(misplaced, p)
		}
	}
	return own, misplaced
}

// compareBroken tells of a landing that was announced and whose lease was taken
// off before it ended. It reports false for one that is settled: then what is
// left of it is like anything else.
func (s *state) compareBroken(n *landing) bool {
	in := n.intent
	land := in.By.Land
	if s.settled[pair{IntentWithoutLand, in.OID}] {
		return false
	}
	for _, other := range s.byID { // the same change landed anew within one second is the same commit
		if other != n && len(other.events) > 0 && other.events[0].By.Land.Commit == land.Commit {
			return false
		}
	}
	what := "did not come to it"
	if s.where(land.Commit) == onBranch {
		what = "is on it"
	}
	s.cover(land.Base, land.Commit)
	s.find(Finding{Code: IntentWithoutLand, Object: in.OID, Commit: land.Commit, Others: []object.OID{land.Commit}, Landing: n.id.String(),
		Operation: in.By.Operation.String(), subject: n},
		"operation %s announced that %s lands on %s, %s, and the chain never says how it ended: a reader would conclude either way",
		in.By.Operation, land.Commit.Short(), s.branch(), what)
	return true
}

// compareUnheard is for a landing of which the chain knows nothing.
func (s *state) compareUnheard(n *landing, own []placed) {
	i := slices.IndexFunc(own, func(p placed) bool { return p.value.Branch == s.view.Branch })
	if i < 0 {
		return
	}
	p := own[i]
	f := Finding{Object: p.value.Commit, Landing: n.id.String(), subject: n}
	switch s.where(p.value.Commit) {
	case gone:
		if s.removed(p.value.Commit) {
			return
		}
		f.Code, f.landed = RecordCommitGone, &landed{p.value.Actor, unitOf(p.value)}
		for _, again := range own {
			f.likewise = append(f.likewise, pair{RecordCommitGone, again.value.Commit})
		}
		s.find(f, "there is a record that landing %s put %s on %s, which does not have it: a reader of the notes would conclude that its change is on the branch",
			n.id, p.value.Commit.Short(), s.branch())
		return
	case onBranch:
		f.Code = RecordWithoutEvent
		s.find(f, "%s has the record of landing %s, and the chain has no event of it: a reader of the lease's log would conclude that it never landed",
			p.value.Commit.Short(), n.id)
		s.compareVerified(n, p, nil)
	}
	s.compareDoubles(n, own)
}

func (s *state) compareDoubles(n *landing, own []placed) {
	for i, p := range own {
		if i > 0 && p.on == own[0].on {
			s.find(Finding{Code: RecordDoubled, Object: p.on, Landing: n.id.String()},
				"the note on %s has several records of landing %s: a reader would count it more than once", p.on.Short(), n.id)
			return
		}
	}
}

// compareHeard is for a landing of which the chain has an event.
func (s *state) compareHeard(n *landing, own []placed) (unrecorded bool) {
	e := n.events[0]
	land := e.By.Land
	s.cover(land.Base, land.Commit)
	for _, again := range n.events[1:] {
		s.find(Finding{Code: EventDoubled, Object: again.OID, Commit: land.Commit, Others: []object.OID{e.OID}, Landing: n.id.String()},
			"the chain says twice that landing %s landed, in %s and %s: a reader would count it twice", n.id, e.OID.Short(), again.OID.Short())
	}
	here := slices.DeleteFunc(slices.Clone(own), func(p placed) bool { return p.on != land.Commit })
	at := s.where(land.Commit)
	if at == gone {
		s.goneCommit(n, len(here) > 0)
	}
	for _, p := range own {
		if p.value.Commit != land.Commit {
			s.differs(CommitDiffers, n, "commit", string(land.Commit), string(p.value.Commit), p.value.Commit)
		}
	}
	if len(here) == 0 {
		return at == onBranch && len(own) == 0 && !s.unreadable[land.Commit]
	}
	s.compareDoubles(n, here)
	s.compareFields(n, here[0])
	for _, p := range n.ends {
		if p.on == land.Commit {
			s.compareFields(n, p)
		}
	}
	s.compareSteps(n, here)
	if at != gone {
		s.compareVerified(n, here[0], e)
	}
	return false
}

func (s *state) goneCommit(n *landing, recorded bool) {
	e := n.events[0]
	commit := e.By.Land.Commit
	if s.removed(commit) {
		return
	}
	// The record may have been lost since somebody acknowledged it, or come back.
	likewise := []pair{{RecordCommitGone, commit}}
	for _, e := range n.events {
		likewise = append(likewise, pair{EventCommitGone, e.OID})
	}
	who := &landed{e.Actor, e.By.Land.Unit}
	if recorded {
		s.find(Finding{Code: RecordCommitGone, Object: commit, Others: []object.OID{e.OID}, Landing: n.id.String(), subject: n, landed: who, likewise: likewise},
			"record and chain say that landing %s put %s on %s, which does not have it: a reader of either would conclude that its change is on the branch",
			n.id, commit.Short(), s.branch())
		return
	}
	s.find(Finding{Code: EventCommitGone, Object: e.OID, Commit: commit, Others: []object.OID{commit}, Landing: n.id.String(), subject: n, landed: who, likewise: likewise},
		"the chain says that landing %s put %s on %s, which does not have it: a reader of the lease's log would conclude that its change is on the branch",
		n.id, commit.Short(), s.branch())
}

// wayBack names, for commits that the branch has lost, the override that puts back as many
// of them as possible: it goes forward, and so loses nothing.
func (s *state) wayBack() {
	lost := map[object.OID]*Finding{}
	var commits []object.OID
	for i := range s.report.Findings {
		f := &s.report.Findings[i]
		switch f.Code {
		case RecordCommitGone, EventCommitGone:
			at := cmp.Or(f.Commit, f.Object)
			lost[at], commits = f, append(commits, at)
		case AdoptedTipGone:
			return // it was rewritten from before the lease on
		}
	}
	// The graph has children before their parents.
	slices.SortStableFunc(commits, func(a, b object.OID) int { return cmp.Compare(s.history.place(a), s.history.place(b)) })
	for tries, tip := range commits {
		if s.history.find(tip) == nil || tries == maxWaysBack {
			return // not in this clone
		}
		if lost[tip].Otherwise != nil {
			continue // by a tip above it
		}
		forward := s.view.Base == ""
		if !forward {
			in, err := s.l.Repo.IsAncestor(s.ctx, s.view.Base, tip)
			forward = err == nil && in
		}
		if !forward {
			continue
		}
		to := string(tip) + ":" + s.view.Branch.Branch()
		s.history.between("", tip, func(n *node) {
			f := lost[n.oid]
			if f == nil || f.Otherwise != nil {
				return
			}
			f.Otherwise = []Way{{f.Command, "acknowledges that it is gone"}}
			f.Command = s.l.Command("git", "land", "override", "--reason", "WHY", to)
		})
	}
}

// maxWaysBack bounds how many lost commits are looked at for a way back.
const maxWaysBack = 100

func (s *state) compareFields(n *landing, p placed) {
	land, r := n.events[0].By.Land, p.value
	if unit := unitOf(r); unit != land.Unit {
		s.differs(UnitDiffers, n, "unit", land.Unit, unit, p.on)
	}
	if r.Branch != land.Branch {
		s.differs(BranchDiffers, n, "branch", land.Branch.Branch(), r.Branch.Branch(), p.on)
	}
	if r.Base != land.Base {
		s.differs(BaseDiffers, n, "base", string(land.Base), string(r.Base), p.on)
	}
	if (r.Override != nil) != (land.Unverified != "") {
		s.differs(OverrideDiffers, n, "override", land.Reason, reasonOf(r), p.on)
	}
	commit := s.history.find(land.Commit)
	switch {
	case r.Tree != land.Tree:
		s.differs(TreeDiffers, n, "tree", string(land.Tree), string(r.Tree), p.on)
	case commit != nil && commit.tree != land.Tree:
		s.find(Finding{Code: TreeDiffers, Object: n.events[0].OID, Commit: land.Commit, Others: []object.OID{land.Commit, land.Tree, commit.tree}, Landing: n.id.String()},
			"event and record of landing %s say that %s has the tree %s, and it has %s: a reader would conclude that another tree landed than did",
			n.id, land.Commit.Short(), land.Tree.Short(), commit.tree.Short())
	}
}

func reasonOf(r *note.Record) string {
	if r.Override == nil {
		return ""
	}
	return r.Override.Reason
}

// differs tells that event and record of one landing disagree.
func (s *state) differs(code Code, n *landing, what, inEvent, inRecord string, on object.OID) {
	e := n.events[0]
	if slices.ContainsFunc(s.report.Findings, func(f Finding) bool { return f.Code == code && f.Object == e.OID }) {
		return // another line of its note does so, too
	}
	none := func(text string) string {
		if text == "" {
			return "none"
		}
		return "“" + event.CleanText(text, 120) + "”"
	}
	s.find(Finding{Code: code, Object: e.OID, Commit: e.By.Land.Commit, Others: []object.OID{on}, Landing: n.id.String()},
		"of landing %s the event says the %s %s, and the record %s: a reader of one of the two would conclude the wrong one",
		n.id, what, none(inEvent), none(inRecord))
}

// compareVerified looks at what let a landing through. e is its event, nil where
// there is none.
func (s *state) compareVerified(n *landing, p placed, e *event.Event) {
	r := p.value
	if r.Override != nil && e == nil {
		s.notice(Notice{Kind: "unverified-landing", Object: r.Commit, Actor: r.Override.Actor, Time: r.Time, Text: r.Override.Reason})
	}
	verified := passing(r)
	for _, v := range r.Verifications {
		if v.Tree != r.Tree && !r.MergedUnverified {
			s.find(Finding{Code: OtherTreeVerified, Object: r.Commit, Others: []object.OID{r.Tree, v.Tree}, Landing: n.id.String()},
				"the record of %s has a verification of the tree %s, and what landed is the tree %s: a reader would conclude that what landed was verified",
				r.Commit.Short(), v.Tree.Short(), r.Tree.Short())
			return
		}
	}
	overridden := r.Override != nil || e != nil && e.By.Land.Unverified != ""
	if len(verified) == 0 && !overridden {
		s.find(Finding{Code: WithoutVerification, Object: r.Commit, Others: []object.OID{r.Tree}, Landing: n.id.String()},
			"%s landed without a passing verification, and nobody said why: a reader would conclude that the gate had let it through", r.Commit.Short())
	}
}

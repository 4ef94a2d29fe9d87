package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gitland/internal/event"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

// compare fills in the report.
func (s *state) compare() {
	v := s.view
	s.report = Report{Remote: s.l.Remote, Lease: v.Name, Branch: v.Branch, Base: v.Base, Event: v.TipOID(),
		Events: len(s.events), Findings: []Finding{}, Settled: []Finding{}, Acknowledged: []Finding{}, Notices: []Notice{}}
	if s.history != nil {
		s.report.Commits = s.history.scope
		for i := range s.history.nodes {
			s.history.nodes[i].covered, s.history.nodes[i].removed = false, false
		}
	}
	s.unreadable = map[object.OID]bool{}
	s.compareOperations()
	s.compareChecks()
	if !s.compareChain() {
		s.lostRecords(nil)
	} else if s.adopted != nil {
		s.compareKeepers()
		s.compareHold()
		s.compareMotions()
		s.compareNotes()
		s.excuse()
		var unrecorded []*landing
		for _, n := range s.landings {
			if s.compareLanding(n) {
				unrecorded = append(unrecorded, n)
			}
		}
		s.wayBack()
		s.compareUnrecorded(unrecorded)
		s.compareCommits()
	}
	s.noticeEvents()
	s.sortNotices()
	s.sort(s.report.Findings)
	s.report.Findings = slices.DeleteFunc(s.report.Findings, func(f Finding) bool {
		done := f.Code.lasts() && (s.settled[pair{f.Code, f.Object}] || slices.ContainsFunc(f.likewise, func(p pair) bool { return s.settled[p] }))
		if done {
			s.report.Acknowledged = append(s.report.Acknowledged, f)
		}
		return done
	})
}

// find adds a finding. What --fix settles names that as its command.
func (s *state) find(f Finding, format string, args ...any) {
	f.Text = fmt.Sprintf(format, args...)
	if fixable, reason := f.Fixable(); fixable && f.Command == "" {
		words := []string{"git", "land", "reconcile", "--fix"}
		if reason {
			words = append(words, "--reason", "WHY")
		}
		f.Command = s.command(words...)
	}
	s.report.Findings = append(s.report.Findings, f)
}

// command is a command line that means this lease and branch, as they were chosen.
func (s *state) command(words ...string) string {
	if s.r.Want.Branch != "" && words[1] == "land" && words[2] == "reconcile" {
		words = append(words, "--onto", s.view.Branch.Branch())
	}
	return s.l.Command(words...)
}

func (s *state) branch() string { return s.view.Branch.Branch() }

// A place says where a commit is that is said to have landed.
type place int

const (
	onBranch place = iota
	gone
	before  // the branch came under the lease, or --since: nobody's business
	unknown // this clone is shallow, and has it not
)

func (s *state) where(oid object.OID) place {
	switch n := s.history.find(oid); {
	case n != nil && n.branch:
		return onBranch
	case n != nil:
		return gone
	case !s.absent[oid]:
		return before
	case s.shallow:
		return unknown
	}
	return gone
}

func (s *state) compareOperations() {
	for _, o := range s.operations {
		if o.alive {
			s.notice(Notice{Kind: "under-way", Operation: o.id.String(), Text: "an operation of this clone is under way"})
			continue
		}
		if m := s.motionOfOperation(o); m != nil && s.adopted != nil && s.broughtByNobody(m) {
			continue // which is told of the motion
		} else if m != nil {
			s.find(Finding{Code: OperationOpen, Operation: o.id.String(), Command: s.l.Command("git", "land", "resume", o.id.String())},
				"operation %s of this clone died before its last step, with these to come: %s: a reader would conclude that somebody is at work on them", o.id, joined(m.Open()))
			continue
		}
		s.find(Finding{Code: OperationOpen, Operation: o.id.String(), Command: s.l.Command("git", "land", "resume", o.id.String())},
			"operation %s of this clone died before it ended: a reader would conclude that it landed, or that it did not, and either may be false", o.id)
	}
}

// compareChain reports whether the chain can be compared with anything.
func (s *state) compareChain() bool {
	v := s.view
	var broken *ledger.ChainError
	at, what := cmp.Or(v.BadTip, v.TipOID()), ""
	if errors.As(s.chainErr, &broken) {
		what = broken.Error()
	}
	over := s.l.Command("git", "lease", "adopt", v.Name, "--over", string(at), "--reason", "WHY")
	f := Finding{Object: at, Command: over}
	if v.LastGood != "" && v.LastGood != at {
		f.Others = append(f.Others, v.LastGood)
	}
	switch {
	case v.Problem == nil && s.chainErr == nil:
		return true
	case v.Newer, ledger.IsNewer(s.chainErr):
		f.Code, f.Command = ChainNewer, "install the version of git-land that the rest of the team uses"
		s.find(f, "the chain of the lease %s has events of a newer format, which this version cannot read: a reader would conclude from what it can read, which is not all", v.Name)
	case v.Deleted:
		f.Code = ChainDeleted
		f.Command, f.Otherwise = s.putBack(over)
		s.find(f, "the lease %s has landing records or a past, but no chain at %s: a reader would conclude that nobody holds it and that nothing ever happened", v.Name, s.l.Remote)
	case v.Lost:
		f.Code = ChainLostEvents
		f.Command, f.Otherwise = s.putBack(over)
		s.find(f, "the chain of the lease %s was put back to %s and has lost events that this clone has seen: a reader would conclude that what they say never happened", v.Name, at.Short())
	case broken != nil && ledger.IsMissing(s.chainErr):
		f.Code, f.Command = ChainUnreadable, s.l.Command("git", "lease", "log", v.Name)
		s.find(f, "the event %s of the lease %s is not in this clone, so the chain could not be read: a reader would take what was not fetched for missing", broken.OID.Short(), v.Name)
	case broken != nil:
		f.Code = ChainMalformed
		if broken.OID != at {
			f.Others = append([]object.OID{broken.OID}, f.Others...)
		}
		s.find(f, "the chain of the lease %s does not fold (%s): a reader of its tip would believe a state that does not follow from what happened", v.Name, what)
	default:
		f.Code = ChainRewritten
		s.find(f, "the chain of the lease %s does not descend from %s, which this clone has seen: a reader would conclude that what was there before never happened", v.Name, v.LastGood.Short())
	}
	return false
}

// putBack are the ways out of a chain that has lost events: over is the last.
func (s *state) putBack(over string) (first string, otherwise []Way) {
	back, seen := s.l.PutBack(s.ctx, s.view)
	if back == "" {
		return s.l.Command("git", "lease", "show", s.view.Name),
			[]Way{{over, "when no clone has seen the chain; in one that has, the first names the push that puts it back"}}
	}
	return back, []Way{{over, "when nobody can put it back; the push gives back " + seen + ", and another clone may have seen more"}}
}

// compareKeepers tells of other leases that list the branch.
func (s *state) compareKeepers() {
	if len(s.keepers) < 2 {
		return
	}
	first := s.keepers[0]
	for _, other := range s.keepers[1:] {
		s.find(Finding{Code: TwoLeases, Object: s.adopted.OID, Others: []object.OID{first.OID, other.OID}, Command: s.l.LeaveOne(s.view.Branch, first, other)},
			"%s is under the leases %s, which has %s, and %s, which has %s, so neither keeps anybody off it: a reader of one would conclude that nobody else lands there",
			s.branch(), first.Name, counted(int(first.Seq), "event"), other.Name, counted(int(other.Seq), "event"))
	}
}

// compareHold looks for a lease that an operation holds which had ended before.
func (s *state) compareHold() {
	done := map[string]bool{}
	var held *event.Hold
	for i := range s.events {
		e := &s.events[i]
		if h := e.State.Hold; h != nil && h.TakenBy == e.ID && done[h.Operation.String()] && h.Motion.IsZero() && s.view.Hold() != nil && s.view.Hold().TakenBy == e.ID {
			s.find(Finding{Code: HeldByDone, Object: e.OID, Operation: h.Operation.String(),
				Command: s.l.Command("git", "lease", "break", s.view.Name, "--operation", h.Operation.String(), "--reason", "WHY")},
				"the lease %s is held by operation %s, which had ended before it took it: a reader would conclude that somebody is at work", s.view.Name, h.Operation)
		}
		switch e.Kind {
		case event.Release, event.Abort:
			done[e.By.Operation.String()] = true
		case event.Step:
			if e.By.Secret != "" {
				done[e.By.Operation.String()] = true
			}
		case event.Break, event.Recover:
			done[e.By.Target.String()] = true
		case event.Land:
			if held == nil || e.By.Secret != "" {
				done[e.By.Operation.String()] = true
			}
		}
		held = e.State.Hold
	}
}

// compareNotes reports what cannot be read of the notes.
func (s *state) compareNotes() {
	if s.notesErr != nil {
		s.find(Finding{Code: RecordsUnreadable, Object: s.view.Records, Command: s.lsRemote()},
			"the landing records of %s could not be read (%s): a reader would take what was not read for missing", s.view.Name, oneLine(s.notesErr))
	}
	if s.cut {
		s.find(Finding{Code: HistoryNotFetched, Object: s.view.Base, Command: "git fetch --unshallow " + s.l.Remote},
			"this clone is shallow, so older commits of %s were not fetched: a reader would take what landed there for gone", s.branch())
	}
	if s.tipGone {
		tip := s.adopted.By.Adopt.Tip
		s.find(Finding{Code: AdoptedTipGone, Object: tip, Others: []object.OID{s.adopted.OID}},
			"%s does not have %s, at which it came under the lease: a reader would conclude that its history goes back to there", s.branch(), tip.Short())
	}
	for _, n := range s.notes {
		for _, line := range n.Lines {
			if line.Value.End == nil { // else it is of a landing that has its record
				s.report.Records++
			}
		}
		if n.Err != nil && s.concerns(n.On) {
			s.unread(n.On)
			s.find(Finding{Code: RecordsUnreadable, Object: n.On, Command: s.lsRemote()},
				"the note on %s could not be read (%s): a reader would take its record for missing", n.On.Short(), oneLine(n.Err))
		}
		s.compareLines(n)
	}
}

func (s *state) compareLines(n ledger.RecordNote) {
	for i, line := range n.Lines {
		switch {
		case line.Err == nil && !line.Newer, !s.concerns(n.On):
		case line.Newer:
			s.unread(n.On)
			s.find(Finding{Code: RecordNewer, Object: n.On, Command: "install the version of git-land that the rest of the team uses"},
				"line %d of the note on %s is of a newer format, which this version cannot read: a reader would take its record for missing", i+1, n.On.Short())
		default:
			s.unread(n.On)
			s.find(Finding{Code: RecordMalformed, Object: n.On},
				"line %d of the note on %s is no record (%s): a reader would pass over what it was to say", i+1, n.On.Short(), oneLine(line.Err))
		}
	}
}

// concerns reports whether what stands in the note of an object can be about
// the part of the branch that is looked at.
func (s *state) concerns(on object.OID) bool {
	if s.history.find(on) != nil {
		return true
	}
	here, err := s.has(on)
	return err == nil && !here
}

func (s *state) lsRemote() string {
	ref, _ := s.l.RecordsRef(s.view.Name) // it was read under that name
	if s.l.IsLocal() {
		return "git ls-tree -r " + string(ref)
	}
	return "git ls-remote " + s.l.Remote + " '" + string(ref) + "'"
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// cover marks what a landing says it brought: base..commit. A base that nobody
// has covers nothing but the commit, since it could claim any history.
func (s *state) cover(base, commit object.OID) {
	n := s.history.find(commit)
	if n == nil {
		return
	}
	if base != "" && s.history.find(base) == nil && !s.shallow && s.missing(base) {
		n.covered = true
		return
	}
	s.history.between(base, commit, func(n *node) { n.covered = true })
}

// unread notes that nothing can be said of a commit's record.
func (s *state) unread(commit object.OID) {
	s.unreadable[commit] = true
	if n := s.history.find(commit); n != nil {
		n.covered = true
	}
}

// missing reports whether this clone has not an object.
func (s *state) missing(oid object.OID) bool {
	here, err := s.has(oid)
	return err == nil && !here
}

// compareUnrecorded tells of landings whose events have no record. Where there
// is no ref with records at all it is not known whether they have; but of the
// first landing of all it can be that a server died before it made the ref.
func (s *state) compareUnrecorded(list []*landing) {
	if s.notesErr != nil || len(list) == 0 {
		return
	}
	if s.view.Records.IsZero() && (len(s.landings) > 1 || s.view.LostRecords != "") {
		s.lostRecords(list)
		return
	}
	for _, n := range list {
		e := n.events[0]
		f := Finding{Code: EventWithoutRecord, Object: e.OID, Commit: e.By.Land.Commit, Others: []object.OID{e.By.Land.Commit}, Landing: n.id.String(), subject: n}
		if s.view.LostRecords != "" { // they were put back to older ones
			f.Command = s.l.PutBackRecords(s.view)
			f.Otherwise = []Way{{s.command("git", "land", "reconcile", "--fix"), anew}}
		}
		s.find(f,
			"the chain says that landing %s put %s on %s, and %s shows no record of it: a reader of the notes would conclude that it was pushed around the tool, with nothing to vouch for it",
			n.id, e.By.Land.Commit.Short(), s.branch(), s.l.Remote)
	}
}

// anew says what it costs to write records from the log.
const anew = "writes the records anew from the log, which has no verifications: those are lost"

// lostRecords tells that there is no ref with records. list are the landings that
// have none for it; it is empty where the chain cannot be read, and then it is only
// known where this clone saw records before.
func (s *state) lostRecords(list []*landing) {
	f := Finding{Code: RecordsNotFetched, subject: list}
	ref, _ := s.l.RecordsRef(s.view.Name)
	of := "the records"
	if len(list) > 0 {
		last := list[len(list)-1].events[0]
		f.Object, f.Commit = last.OID, last.By.Land.Commit
		of += " of " + counted(len(list), "landing")
	} else if f.Object = s.view.LostRecords; f.Object == "" || !s.view.Records.IsZero() {
		return
	}
	if s.view.LostRecords != "" {
		f.Command = s.l.PutBackRecords(s.view)
		if len(list) > 0 {
			f.Otherwise = []Way{{s.command("git", "land", "reconcile", "--fix", "--reason", "WHY"),
				"where no clone can put back what it saw: " + anew}}
		}
	}
	s.find(f, "%s shows no %s: it is hidden from us, was deleted or never written, so nothing was fetched of %s: a reader would conclude that they have none",
		s.l.Remote, ref, of)
}

// compareChecks looks for verifications that are gone: that this clone saw before, or
// that the newest record which names some was judged by.
func (s *state) compareChecks() {
	v := s.view
	if v.Tip == nil && v.Problem == nil {
		return // nothing has landed
	}
	var judgedBy object.OID
	for _, n := range s.landings {
		for _, p := range n.records {
			judgedBy = cmp.Or(p.value.VerificationRef, judgedBy)
		}
	}
	if judgedBy != "" && v.Verifications != "" {
		if grown, err := s.l.Grown(s.ctx, v.Verifications, judgedBy); err != nil || grown || s.shallow {
			judgedBy = ""
		}
	}
	var saw object.OID // that others took the place of
	if n := len(s.lostChecks); n > 0 {
		saw = s.lostChecks[n-1]
	}
	if judgedBy == "" && v.LostVerifications == "" && saw == "" {
		return
	}
	f := Finding{Code: ChecksNotFetched, Object: cmp.Or(judgedBy, v.LostVerifications, saw)}
	acknowledge := s.command("git", "land", "reconcile", "--fix", "--reason", "WHY")
	switch {
	case saw != "":
		f.Command = s.command("git", "land", "reconcile", "--fix")
	case v.LostVerifications != "":
		f.Command = s.l.PutBackVerifications("")
	case v.Verifications == "" && !s.missing(judgedBy):
		f.Command = s.l.PutBackVerifications(judgedBy)
	}
	if f.Command != "" && v.Problem == nil {
		f.Otherwise = []Way{{acknowledge, "where no clone can put back what it saw: acknowledges that they are lost"}}
	}
	what := "shows no " + string(s.l.VerificationsRef()) + ": it is hidden from us, or was deleted"
	if v.Verifications != "" {
		what = "has lost a part of " + string(s.l.VerificationsRef()) + ": it was put back or rewritten"
	}
	s.find(f, "%s %s, and with it what was verified, up to %s: a reader would conclude that it never was",
		s.l.Remote, what, f.Object.Short())
}

// A run is a piece of the branch that no landing says it brought.
type run struct {
	tip, base, tree object.OID
	commits         int
}

// compareCommits looks for what nobody landed, and tells of each run of commits
// once.
func (s *state) compareCommits() {
	if s.notesErr != nil {
		return // it is not known what has a record
	}
	for i := range s.history.nodes {
		n := &s.history.nodes[i]
		if !n.branch || n.covered {
			continue
		}
		r := run{tip: n.oid, tree: n.tree, base: n.first}
		for at := s.history.find(n.first); at != nil && !at.covered; at = s.history.find(at.first) {
			r.base = at.first
		}
		s.history.between(r.base, r.tip, func(n *node) {
			if !n.covered {
				r.commits++
				n.covered = true
			}
		})
		var others []object.OID
		if r.base != "" {
			others = []object.OID{r.base}
		}
		s.find(Finding{Code: CommitWithoutRecord, Object: r.tip, Others: others, subject: r},
			"%s has %s that no landing brought, %s: a reader of the log would conclude that %s never came to the branch, and of the branch that somebody vouched for it",
			s.branch(), counted(r.commits, "commit"), since(r), r.tip.Short())
	}
}

func since(r run) string {
	if r.base == "" {
		return "up to " + r.tip.Short()
	}
	return r.base.Short() + ".." + r.tip.Short()
}

func counted(n int, what string) string {
	if n == 1 {
		return "a " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// passing are the verifications of a record that let it through.
func passing(r *note.Record) (list []note.Verification) {
	for _, v := range r.Verifications {
		if v.Verdict == note.Pass {
			list = append(list, v)
		}
	}
	return list
}

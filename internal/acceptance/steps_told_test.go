package acceptance

import (
	"slices"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/gittest"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/session"
)

// A turn is what becomes of a motion next.
type turn int

const (
	byLanding turn = iota // it begins, after a landing
	byItself              // it begins, and lands nothing
	done
	fails
	unknown
	breaks     // the lease is taken off it
	takesOver  // and taken by somebody who goes on
	takesAgain // the free lease is taken for what is left of it
	releases
	aborts
	recordsEnd // the record says that all steps are done
)

// A telling motion is one of the steps upload and announce, on main's chain.
type tellingMotion struct {
	a          author
	root       session.Root
	op, motion ulid.ULID // the holder's, and its own
	began      ulid.ULID // the operation that began it
	land       *event.Landing
}

// steps tells the turns of a motion, each in a push of its own.
func (a author) steps(turns ...turn) *tellingMotion {
	a.t.Helper()
	m := &tellingMotion{a: a, root: session.NewRoot(), op: a.l.NewID()}
	m.began = m.op
	for _, s := range turns {
		m.next(s)
	}
	return m
}

// takes is an event by which the motion's operation takes the lease.
func (m *tellingMotion) takes(k event.Kind, by event.By) event.Event {
	e := m.a.takes(m.op)
	e.Kind, by.Operation = k, m.op
	e.By = by
	e.State.Hold.Digest = event.Digest(event.Secret(m.root.Bytes(), e.ID, m.a.view().Tip.Root()))
	return e
}

func (m *tellingMotion) next(s turn) {
	m.a.t.Helper()
	by := event.By{Operation: m.op}
	hold := m.a.view().Hold()
	secret := func() string { return event.Secret(m.root.Bytes(), hold.TakenBy, m.a.view().Tip.Root()) }
	step := func(o event.Outcome) {
		by.Step = &event.StepResult{Motion: m.motion, Name: hold.Pending()[0], Outcome: o, Took: 1500}
		m.a.tell(telling{acts: []event.Event{{Kind: event.Step, By: by}}})
	}
	switch s {
	case byLanding:
		m.a.tell(telling{acts: []event.Event{m.takes(event.Acquire, event.By{})}})
		m.land = m.a.landsWithSteps(m.op)
		m.motion = m.land.ID
	case byItself:
		m.motion = m.op
		e := m.takes(event.Acquire, event.By{})
		e.State.Hold.Motion, e.State.Hold.Steps = m.motion, "upload announce"
		m.a.tell(telling{acts: []event.Event{e}})
	case done:
		step(event.Done)
	case fails:
		step(event.Failed)
	case unknown:
		step(event.Unknown)
	case breaks:
		m.a.tell(telling{acts: []event.Event{{Kind: event.Break, By: event.By{Operation: m.a.l.NewID(), Target: m.op, Reason: "laptop in the river"}}}})
	case takesOver:
		by = event.By{Target: m.op, Reason: "laptop in the river"}
		m.op, m.root = m.a.l.NewID(), session.NewRoot()
		m.a.tell(telling{acts: []event.Event{m.takes(event.Break, by)}})
	case takesAgain:
		m.op, m.root = m.a.l.NewID(), session.NewRoot()
		e := m.takes(event.Acquire, event.By{})
		e.State.Hold.Motion, e.State.Hold.Steps = m.motion, "announce"
		m.a.tell(telling{acts: []event.Event{e}})
	case releases, aborts:
		by.Secret = secret()
		kind := event.Release
		if s == aborts {
			kind, by.Reason = event.Abort, "not wanted"
		}
		m.a.tell(telling{acts: []event.Event{{Kind: kind, By: by}}})
	case recordsEnd:
		r := m.a.record(m.land)
		r.Steps = []note.Step{{Name: "upload", Outcome: event.Done, DurationMS: 1500}, {Name: "announce", Outcome: event.Done}}
		r.End = &note.End{Actor: gittest.Identity, Time: r.Time}
		m.a.tell(telling{lines: []ledger.NoteLine{m.a.line(r)}})
	}
}

// landsWithSteps is lands of a landing that two steps follow, by an operation.
func (a author) landsWithSteps(op ulid.ULID) *event.Landing {
	a.t.Helper()
	land := a.commit(a.view().Base)
	land.Steps = "upload announce"
	r := a.record(land)
	r.Operation, r.Steps = op, []note.Step{{Name: "upload"}, {Name: "announce"}}
	a.tell(telling{acts: []event.Event{{Kind: event.Land, By: event.By{Operation: op, Land: land}}}, lines: []ledger.NoteLine{a.line(r)}, branch: land.Commit})
	return land
}

// What reconcile says of steps, at every stage that a motion can stop at, and of what is
// under way or over that it says nothing.
func TestReconcileOfSteps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		turns []turn
		codes string
		text  string // of the finding, or of the notice
		ways  string // commands of the finding, after the first
	}{
		{"begun", []turn{byLanding}, "", "steps are to come (upload, announce)", ""},
		{"half done", []turn{byItself, done}, "", "steps are to come (announce)", ""},
		{"taken over", []turn{byItself, done, takesOver}, "", "steps are to come (announce)", ""},
		{"taken up again", []turn{byLanding, done, breaks, takesAgain}, "", "steps are to come (announce)", ""},
		{"done, and the record says so", []turn{byLanding, done, done, recordsEnd, releases}, "", "", ""},
		{"the record says so first", []turn{byLanding, done, recordsEnd}, "", "steps are to come (announce)", ""},
		{"alone, and done", []turn{byItself, done, done, releases}, "", "", ""},
		{"alone, and given up", []turn{byItself, fails, aborts}, "", "", ""},
		{"a step failed", []turn{byLanding, fails}, "steps-unfinished", "the step upload failed, and operation", "abort break"},
		{"a step is not known", []turn{byItself, done, unknown}, "steps-unfinished", "the step announce may be done or not", "abort break"},
		{"a step failed, and it was taken over", []turn{byLanding, done, fails, takesOver}, "steps-unfinished", "the step announce failed", "abort break"},
		{"broken off", []turn{byLanding, done, breaks}, "steps-unfinished", "these steps are not done: announce; nobody holds", "abort reconcile"},
		{"alone, and broken off", []turn{byItself, breaks}, "steps-unfinished", "these steps are not done: upload, announce", "abort reconcile"},
		{"broken off, and the record says that they ended", []turn{byLanding, done, recordsEnd, breaks}, "steps-unfinished", "its record says that they ended", "abort reconcile"},
		{"done, and the record does not say so", []turn{byLanding, done, done, releases}, "steps-without-record", "are done, and its record does not: a reader of the notes would conclude that they are to come", ""},
		{"given up, and the record says done", []turn{byLanding, done, recordsEnd, aborts}, "steps-without-record", "were given up, with these not done: announce", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAuthor(t, gittest.Remote(t))
			a.lands()
			m := a.steps(tt.turns...)
			s := clone(t, a.remote)
			code := 7
			if tt.codes == "" {
				code = 0
			}
			r := s.reconciles(code)
			if r.codes() != tt.codes {
				t.Fatalf("found %+v", r.Report.Findings)
			}
			landings := 1
			if slices.Contains(tt.turns, byLanding) {
				landings++
			}
			if r.Report.Records != landings {
				t.Errorf("%d records of %d landings", r.Report.Records, landings)
			}
			var texts []string
			for _, f := range r.Report.Findings {
				texts = append(texts, f.Text)
				if tt.codes == "steps-unfinished" && f.Command != "git land resume "+m.began.String() {
					t.Errorf("command %q", f.Command)
				}
			}
			for _, n := range r.Report.Notices {
				texts = append(texts, n.Text)
			}
			if text := strings.Join(texts, "\n"); !strings.Contains(text, tt.text) {
				t.Errorf("says %q", text)
			}
			if tt.ways == "" {
				return
			}
			out := s.exits(code, "git-land", "reconcile").Stdout
			for _, way := range strings.Fields(tt.ways) {
				if !strings.Contains(out, map[string]string{"abort": "or: git land abort " + m.began.String() + " --reason WHY",
					"break": "or: eval \"$(git lease break main --operation " + m.op.String(), "reconcile": "or: git land reconcile --fix --reason WHY"}[way]) {
					t.Errorf("no way to %s in\n%s", way, out)
				}
			}
		})
	}
}

// --fix settles what nobody holds the lease for, on the record and in the landing's; and
// leaves alone what somebody holds it for.
func TestFixOfSteps(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	a.lands()
	m := a.steps(byLanding, done, breaks)
	s := clone(t, a.remote)
	s.reconciles(7, "--fix") // it needs a reason
	s.reconciles(0, "--fix", "--reason", "the site has moved")
	note := gittest.Git(t, a.remote, "notes", "--ref=landing/main", "show", string(m.land.Commit))
	lines := strings.Split(note, "\n")
	want := `"steps":[{"name":"upload","outcome":"done","duration_ms":1500},{"name":"announce","outcome":"unknown"}],"end":{"reason":"the site has moved",`
	if len(lines) != 2 || !strings.Contains(lines[1], want) {
		t.Errorf("the note is\n%s", note)
	}
	sameRefs(t, "settled", gittest.Refs(t, a.remote), func() map[string]string {
		s.reconciles(0, "--fix", "--reason", "again")
		return gittest.Refs(t, a.remote)
	}())

	stuck := a.steps(byLanding, fails)
	before := gittest.Refs(t, a.remote)
	if got := s.reconciles(7, "--fix", "--reason", "not mine"); got.codes() != "steps-unfinished" || got.Report.Findings[0].Landing != stuck.land.ID.String() {
		t.Errorf("found %+v", got.Report.Findings)
	}
	sameRefs(t, "left alone", before, gittest.Refs(t, a.remote))
}

// Under a hold that has steps of its own nothing is given up, since that would take those
// off it.
func TestFixLeavesTheStepsOfItsOwnHold(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	a.lands()
	a.steps(byLanding, breaks)
	m := a.steps(byItself)
	s := clone(t, a.remote).with("GIT_LEASE_TOKEN=" + m.root.Hex())
	if got := s.reconciles(7, "--fix", "--reason", "old"); got.codes() != "steps-unfinished" {
		t.Errorf("found %+v", got.Report.Findings)
	}
	if hold := a.view().Hold(); hold == nil || hold.Steps != "upload announce" {
		t.Errorf("the hold is %+v", hold)
	}
}

// A landing that was announced with steps, broken, and came all the same is completed
// by --fix; that its steps never began is told then, and settled with a reason.
func TestFixOfAnAnnouncedLandingWithSteps(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	a.lands()
	land, op := a.commit(a.view().Base), a.l.NewID()
	land.Steps = "upload announce"
	r := a.record(land)
	r.Operation, r.Steps = op, []note.Step{{Name: "upload"}, {Name: "announce"}}
	a.tell(telling{acts: []event.Event{a.takes(op),
		{Kind: event.Intent, By: event.By{Operation: op, Land: land, Record: a.line(r).Text}},
		{Kind: event.Break, By: event.By{Operation: a.l.NewID(), Target: op, Reason: "laptop in the river"}}}, branch: land.Commit})
	s := clone(t, a.remote)
	if got := s.reconciles(7).codes(); got != "intent-without-land" {
		t.Errorf("found %q", got)
	}
	if got := s.reconciles(7, "--fix").codes(); got != "steps-unfinished" {
		t.Errorf("left %q", got)
	}
	s.reconciles(0, "--fix", "--reason", "uploaded by hand")
	s.reconciles(0)
}

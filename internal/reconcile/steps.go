package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

// split tells the records of a landing from the lines that say how its steps ended: those
// are the same record once more, and no landing of their own. Where one of them is all
// that an object has of it, it is the record.
func (n *landing) split() {
	var records []placed
	for _, p := range n.records {
		if p.value.End == nil {
			records = append(records, p)
		}
	}
	for _, p := range n.records {
		switch {
		case p.value.End == nil:
		case slices.ContainsFunc(records, func(r placed) bool { return r.on == p.on }):
			n.ends = append(n.ends, p)
		default:
			records = append(records, p)
		}
	}
	n.records = records
}

// standing is what the note on the landed commit says of the steps: the newest line that
// tells their end, else the record.
func (n *landing) standing(here []placed) *note.Record {
	for _, p := range slices.Backward(n.ends) {
		if p.on == here[0].on {
			return p.value
		}
	}
	return here[0].value
}

// readMotions reads what runs of steps began on the chain.
func (s *state) readMotions() { s.motions = chain.Motions(s.events) }

// motionOf is the motion that a landing began, nil where it began none.
func (s *state) motionOf(n *landing) *chain.Motion {
	i := slices.IndexFunc(s.motions, func(m chain.Motion) bool { return m.ID == n.id })
	if i < 0 {
		return nil
	}
	return &s.motions[i]
}

// compareMotions tells of steps that are to come and that nobody brings: the lease is
// held at one that did not succeed, or is not held for them at all.
func (s *state) compareMotions() {
	for i := range s.motions {
		m := &s.motions[i]
		switch h := s.view.Hold(); {
		case s.broughtByNobody(m):
			s.findMotion(m)
		case m.Ended == nil && m.HeldBy(h):
			s.notice(noticeOf("under-way", &m.Begun, m.Begun.OID,
				fmt.Sprintf("steps are to come (%s), and operation %s holds the lease for them", joined(m.Open()), h.Operation)))
		}
	}
}

// broughtByNobody reports whether steps of a motion are to come, and whoever looks at the
// branch has to know that.
func (s *state) broughtByNobody(m *chain.Motion) bool {
	land, h := m.Begun.By.Land, s.view.Hold()
	switch {
	case m.Ended != nil, land != nil && land.Branch != s.view.Branch:
		return false
	case m.HeldBy(h):
		return h.Stuck != ""
	}
	return m.Begun.Seq > s.passedOver()
}

// motionOfOperation is the motion of an operation of this clone that died, where steps
// of it are to come.
func (s *state) motionOfOperation(o operation) *chain.Motion {
	i := slices.IndexFunc(s.motions, func(m chain.Motion) bool { return m.Ended == nil && slices.Contains(o.motions, m.ID) })
	if i < 0 {
		return nil
	}
	return &s.motions[i]
}

func (s *state) findMotion(m *chain.Motion) {
	h, op := s.view.Hold(), m.Operation.String()
	f := Finding{Code: StepsUnfinished, Object: m.Begun.OID, Operation: op, subject: m, Command: s.l.Command("git", "land", "resume", op),
		Otherwise: []Way{{s.l.Command("git", "land", "abort", op, "--reason", "WHY"), "gives up what is not done, on the record"}}}
	what, concludes := "operation "+op, "a reader of the log would conclude that all of it is done"
	if land := m.Begun.By.Land; land != nil {
		f.Commit, f.Landing, f.Others = land.Commit, m.ID.String(), append(f.Others, land.Commit)
		what, concludes = "landing "+m.ID.String(), "a reader of the branch would conclude that what follows it is done, too"
		if n := s.byID[m.ID]; n != nil && len(n.ends) > 0 {
			concludes = "and its record says that they ended: a reader of the notes would conclude that they did"
		}
	}
	if f.held = m.HeldBy(h); f.held {
		if h.Operation != m.Operation {
			f.Others = append(f.Others, s.view.TipOID())
		}
		f.Otherwise = append(f.Otherwise, Way{lease.TakeCommand(s.l, s.view), "where the clone of operation " + h.Operation.String() + " is gone; then the first"})
		s.find(f, "of %s the step %s %s, and operation %s holds the lease %s since, with these to come: %s; %s",
			what, h.Pending()[0], wentHow(h.Stuck), h.Operation, s.view.Name, joined(h.Pending()), concludes)
		return
	}
	effect := "acknowledges that they do not come"
	if h != nil && !h.Motion.IsZero() { // see fixable
		effect += ", once the lease is not held for the steps of operation " + h.Operation.String()
	}
	f.Otherwise = append(f.Otherwise, Way{s.command("git", "land", "reconcile", "--fix", "--reason", "WHY"), effect})
	s.find(f, "of %s these steps are not done: %s; nobody holds the lease %s for them any more: %s", what, joined(m.Open()), s.view.Name, concludes)
}

// wentHow says how a step went that did not succeed.
func wentHow(o event.Outcome) string {
	if o == event.Failed {
		return "failed"
	}
	return "may be done or not"
}

func joined(names []string) string { return strings.Join(names, ", ") }

// compareSteps compares what chain and record say of the steps after a landing that the
// chain has.
func (s *state) compareSteps(n *landing, here []placed) {
	e, r, m := n.events[0], n.standing(here), s.motionOf(n)
	f := Finding{Commit: e.By.Land.Commit, Others: []object.OID{here[0].on}, Landing: n.id.String(), subject: n}
	switch {
	case m == nil && len(r.Steps) > 0 && r.End == nil:
		f.Code, f.Object, f.Operation = StepsUnfinished, e.OID, e.By.Operation.String()
		s.find(f, "the record of landing %s names steps (%s), and the chain knows of none: a reader of the notes would conclude that they came, or come",
			n.id, joined(strings.Fields(r.StepNames())))
	case m != nil && m.Ended != nil && !agree(m, r):
		f.Code, f.Object = StepsWithoutRecord, m.Ended.OID
		f.Others = append(f.Others, m.Begun.OID)
		s.find(f, "the chain says that the steps of landing %s %s, and its record does not: a reader of the notes would conclude that %s",
			n.id, endedHow(m), map[bool]string{true: "they are to come", false: "it was otherwise"}[r.End == nil])
	}
}

func endedHow(m *chain.Motion) string {
	if m.GivenUp {
		return "were given up, with these not done: " + joined(m.Open())
	}
	return "are done"
}

// agree reports whether a record says of a motion that has ended what the chain says.
func agree(m *chain.Motion, r *note.Record) bool {
	if r.End == nil || r.StepNames() != strings.Join(m.Steps, " ") {
		return false
	}
	return !slices.ContainsFunc(r.Steps, func(s note.Step) bool {
		last := m.Last(s.Name)
		return s.Outcome.Ends() != (last != nil && last.Outcome.Ends())
	})
}

// endLine is the record of a landing once more, with how its steps ended: as the chain
// has them, which is nothing where it has none.
func (s *state) endLine(n *landing, here []placed, m *chain.Motion, end note.End) (ledger.NoteLine, error) {
	r := *n.standing(here)
	steps := make([]note.Step, len(r.Steps))
	for i, step := range r.Steps {
		steps[i].Name = step.Name
	}
	if m != nil {
		steps = nil
		for _, name := range m.Steps {
			step := note.Step{Name: name}
			if last := m.Last(name); last != nil {
				step.Outcome, step.DurationMS = last.Outcome, last.Took
			} else if open := m.Open(); len(open) > 0 && open[0] == name {
				step.Outcome = event.Unknown // whether it was begun only its clone knows
			}
			steps = append(steps, step)
		}
		if len(m.Open()) == 0 {
			end.Reason = ""
		}
	}
	r.Steps, r.End = steps, &end
	line, err := note.EncodeLine(r)
	return ledger.NoteLine{On: here[0].on, Text: line}, err
}

// concludeSteps adds to a repair the line that the record of a landing lacks.
func (s *state) concludeSteps(f Finding, n *landing, reason, actor string, p *repair) error {
	own, _ := n.sorted()
	here := slices.DeleteFunc(own, func(p placed) bool { return len(n.events) == 0 || p.on != n.events[0].By.Land.Commit })
	m := s.motionOf(n)
	if len(here) == 0 || m != nil && agree(m, n.standing(here)) {
		return nil
	}
	end := note.End{Reason: reason, Actor: actor, Time: s.l.Now()}
	if m != nil && m.Ended != nil {
		end.Actor, end.Time = m.Ended.Actor, m.Ended.Time
		if m.Ended.By.Reason != "" {
			end.Reason = m.Ended.By.Reason
		}
	}
	line, err := s.endLine(n, here, m, end)
	p.lines = append(p.lines, line)
	return err
}

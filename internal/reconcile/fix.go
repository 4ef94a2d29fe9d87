package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/session"
)

// Limits of --fix. Losing to others is progress of theirs, and what a repair
// itself brings to light takes a round more; a push that is not overtaken and
// does not arrive is refused.
const (
	maxRounds   = 100
	maxRefusals = 3
)

// fix settles what can be settled, and compares once more. It may be killed at
// any point and run again: what it pushes names what it was planned on, and what
// has arrived is no longer found.
func fix(ctx context.Context, l *ledger.Ledger, r Request) (Report, error) {
	r.Reason = event.CleanText(r.Reason, event.MaxText)
	s, err := look(ctx, l, r)
	if err != nil {
		return Report{}, err
	}
	published, err := publishWaiting(ctx, l, r.Want)
	if err != nil {
		return s.report, err
	}
	operation := l.NewID()
	planned := map[string]Finding{}
	if s, err = s.restore(ctx, operation, planned); err != nil {
		return s.report, err
	}
	told := map[string]bool{}
	for _, f := range s.report.Findings {
		told[f.id()] = true
	}
	refusals := 0
	for round := 0; ; round++ {
		// Nobody has given a reason for steps which came to light by another repair.
		work := slices.DeleteFunc(s.fixable(), func(f Finding) bool { return f.Code == StepsUnfinished && !told[f.id()] })
		if len(work) == 0 {
			break
		}
		said, err := s.settle(ctx, work, operation)
		if err != nil {
			return s.report, err
		}
		for _, f := range work {
			planned[f.id()] = f
		}
		if said != nil {
			if err := ledger.Pause(ctx, ledger.Backoff(round, 2*time.Second)); err != nil {
				return s.report, err
			}
		}
		was := s.view
		if s, err = look(ctx, l, r); err != nil {
			return Report{}, err
		}
		moved := was.TipOID() != s.view.TipOID() && (s.view.Tip == nil || s.view.Tip.By.Operation != operation)
		if refusals++; said == nil || moved || was.Records != s.view.Records {
			refusals = 0
		}
		if refusals == maxRefusals || round == maxRounds && said != nil {
			return s.report, fault.New(fault.Unreachable, "%s refused the repairs: %w", l.Remote, said)
		}
	}
	for _, f := range s.report.Findings {
		delete(planned, f.id())
	}
	for _, f := range planned {
		s.report.Settled = append(s.report.Settled, f)
	}
	s.sort(s.report.Settled)
	s.report.Published = published
	return s.report, nil
}

// publishWaiting publishes the verifications that wait in this clone, since the
// authority could not be reached when they were found. It needs no lease.
func publishWaiting(ctx context.Context, l *ledger.Ledger, w ledger.Want) (int, error) {
	waiting, err := l.Dir.Outbox().List()
	if err != nil || len(waiting) == 0 {
		return 0, err
	}
	return len(waiting), l.PublishVerifications(ctx, w)
}

// restore merges notes that this clone saw and that others took the place of, and looks
// again. What it may have settled is put into planned.
func (s *state) restore(ctx context.Context, operation ulid.ULID, planned map[string]Finding) (*state, error) {
	for try := 0; s.view.Problem == nil && s.chainErr == nil; try++ {
		lost, err := s.l.HasLost(ctx, s.view)
		if err != nil || !lost {
			return s, err
		}
		if _, err := s.allowed(operation); err != nil {
			return s, err
		}
		said, err := s.l.Restore(ctx, s.view)
		if err != nil {
			return s, err
		}
		if said != nil && try >= maxRefusals || try == maxRounds {
			return s, fault.New(fault.Unreachable, "%s did not take the notes that were lost: %v", s.l.Remote, said).
				WithHint("%s", s.command("git", "land", "reconcile", "--fix"))
		}
		for _, f := range s.report.Findings {
			if f.Code == EventWithoutRecord || f.Code == ChecksNotFetched {
				planned[f.id()] = f
			}
		}
		if s, err = look(ctx, s.l, s.r); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (f Finding) id() string {
	return fmt.Sprint(f.Code, " ", f.Object, " ", f.Landing, " ", f.Operation)
}

// fixable are the findings that can be settled now. What needs a reason waits
// for one.
func (s *state) fixable() []Finding {
	if s.view.Problem != nil || s.chainErr != nil {
		return nil // nothing can be appended
	}
	return slices.DeleteFunc(slices.Clone(s.report.Findings), func(f Finding) bool {
		can, reason := f.Fixable()
		if h := s.view.Hold(); f.Code == StepsUnfinished && h != nil && !h.Motion.IsZero() {
			return true // a repair of that code would take off the hold the steps that it has
		}
		return !can || reason && s.r.Reason == ""
	})
}

// A repair is one event, and the lines that go with it.
type repair struct {
	event event.By
	lines []ledger.NoteLine
}

// settle publishes the repairs of the findings: the records and the events in
// one transaction where the authority has it. Where it has not the records go
// first; what is left when it stops there is a record without an event, which
// the next run settles. said is not nil when it is not known to have arrived.
func (s *state) settle(ctx context.Context, work []Finding, operation ulid.ULID) (said, err error) {
	if operation, err = s.allowed(operation); err != nil {
		return nil, err
	}
	if err := s.l.Ready(ctx); err != nil {
		return nil, err
	}
	d, err := s.l.Draft(s.view)
	if err != nil {
		return nil, err
	}
	var lines []ledger.NoteLine
	for _, f := range work {
		p, err := s.repair(ctx, f, operation, d.Actor())
		if err != nil {
			return nil, fmt.Errorf("settle %s %s: %w", f.Code, f.Object, err)
		}
		p.event.Operation = operation
		p.event.Finding = &event.Finding{Code: string(f.Code), Object: f.Object}
		if _, err := d.Add(ctx, event.Event{Kind: event.Repair, By: p.event}); err != nil {
			return nil, fmt.Errorf("settle %s %s: %w", f.Code, f.Object, err)
		}
		lines = append(lines, p.lines...)
	}
	objects := d.Objects()
	groups := [][]git.Move{{d.Move()}}
	if len(lines) > 0 {
		notes, err := s.l.AppendNotes(ctx, s.view.Records, "land: records that reconcile completed", lines)
		if err != nil {
			return nil, err
		}
		ref, err := s.l.RecordsRef(s.view.Name)
		if err != nil {
			return nil, err
		}
		objects = append(objects, notes.Objects...)
		move := git.Move{Ref: ref, New: notes.Tip, Old: git.Was(s.view.Records)}
		atomic, err := s.l.Atomic()
		if err != nil {
			return nil, err
		}
		// A ref that is not there may be hidden, and git's server takes the rest of
		// an atomic push without it: then there would be repairs that mend nothing.
		if atomic && !s.view.Records.IsZero() {
			groups[0] = append([]git.Move{move}, groups[0]...)
		} else {
			groups = append([][]git.Move{{move}}, groups...)
		}
	}
	if err := s.l.Repo.Write(ctx, objects...); err != nil {
		return nil, err
	}
	return s.publish(ctx, groups)
}

func (s *state) publish(ctx context.Context, groups [][]git.Move) (said, err error) {
	for _, moves := range groups {
		out, err := s.l.Publish(ctx, ledger.Publication{Moves: moves, Message: "land: reconcile"})
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !out.Done {
			return out.Said, nil
		}
		s.l.Moved(s.view, moves)
	}
	return nil, nil
}

// allowed says under which operation the repairs may be made: a new one where
// the lease is free, this session's where it holds it.
func (s *state) allowed(operation ulid.ULID) (ulid.ULID, error) {
	v := s.view
	if v.Phase() == event.Frozen {
		return operation, fault.New(fault.Held, "the lease %s is frozen: nothing is repaired until it is thawed", v.Name).
			WithHint("%s", s.l.Command("git", "lease", "thaw", v.Name))
	}
	h := v.Hold()
	if h == nil {
		return operation, nil
	}
	held, err := s.r.Session.Load()
	if err != nil && !errors.Is(err, session.ErrNoToken) {
		return operation, err
	}
	if err == nil && lease.Owns(held.Root, v.Tip) {
		return h.Operation, nil
	}
	return operation, lease.Held(s.l, v, false)
}

// repair says what settles a finding.
func (s *state) repair(ctx context.Context, f Finding, operation ulid.ULID, actor string) (repair, error) {
	p := repair{event: event.By{Reason: s.r.Reason}}
	if p.event.Reason == "" {
		p.event.Reason = defaultReasons[f.Code]
	}
	var err error
	switch subject := f.subject.(type) {
	case run:
		var line ledger.NoteLine
		p.event.Land, line, err = s.vouch(subject, p.event.Reason, operation, actor)
		p.lines = append(p.lines, line)
	case []*landing: // that have no record, since there is no ref for them
		for _, n := range subject {
			line, err := s.recordOf(ctx, n.events[0])
			if err != nil {
				return p, err
			}
			p.lines = append(p.lines, line)
		}
	case *chain.Motion: // the steps of no landing have no record
		if n := s.byID[subject.ID]; n != nil {
			err = s.concludeSteps(f, n, p.event.Reason, actor, &p)
		}
	case *landing:
		if f.Code == StepsWithoutRecord || f.Code == StepsUnfinished {
			err = s.concludeSteps(f, subject, p.event.Reason, actor, &p)
			break
		}
		err = s.complete(ctx, f, subject, &p)
	}
	return p, err
}

// defaultReasons stand in repairs that mend, where the user gave none.
var defaultReasons = map[Code]string{
	CommitWithoutRecord: "found by reconcile: it came to the branch without a landing",
	EventWithoutRecord:  "found by reconcile: the record is written from the event",
	RecordWithoutEvent:  "found by reconcile: the event is made from the record",
	StepsWithoutRecord:  "found by reconcile: the end of the steps is written from the log",
	IntentWithoutLand:   "found by reconcile: the lease was taken off before the landing ended",
}

// complete brings a landing of which a part is missing to its end.
func (s *state) complete(ctx context.Context, f Finding, n *landing, p *repair) error {
	switch f.Code {
	case EventWithoutRecord:
		line, err := s.recordOf(ctx, n.events[0])
		p.lines = append(p.lines, line)
		return err
	case RecordWithoutEvent:
		own, _ := n.sorted()
		i := slices.IndexFunc(own, func(p placed) bool { return p.value.Commit == f.Object })
		p.event.Land = landOf(own[i].value)
		return nil
	case IntentWithoutLand:
		land := n.intent.By.Land
		if s.where(land.Commit) != onBranch {
			return nil // it is withdrawn
		}
		arrived := *land
		arrived.Steps = "" // which nobody has begun
		p.event.Land = &arrived
		_, sound := note.Announced(*n.intent) // anybody may have pushed it
		if sound && !slices.ContainsFunc(n.records, func(r placed) bool { return r.on == land.Commit }) {
			p.lines = append(p.lines, ledger.NoteLine{On: land.Commit, Text: n.intent.By.Record})
		}
	}
	return nil
}

// vouch makes landing and record for commits that came to the branch in another
// way. Nobody verified them, and the reason says why that is so.
func (s *state) vouch(r run, reason string, operation ulid.ULID, actor string) (*event.Landing, ledger.NoteLine, error) {
	id := s.l.NewID()
	land := &event.Landing{ID: id, Unit: id.String(), Branch: s.view.Branch, Base: r.base, Commit: r.tip, Tree: r.tree,
		Unverified: note.Any, Reason: reason}
	line, err := note.EncodeLine(note.Record{ID: id, Unit: land.Unit, Operation: operation, Lease: s.view.Name, Branch: land.Branch,
		Base: r.base, Commit: r.tip, Tree: r.tree, Commits: r.commits, Note: "recorded by git land reconcile",
		Override: &note.Override{Reason: reason, Actor: actor, Missing: []string{note.Any}},
		Actor:    actor, Host: s.l.Host, Time: s.l.Now()})
	return land, ledger.NoteLine{On: r.tip, Text: line}, err
}

// recordOf makes the record that an event lacks: the line of its announcement,
// or else what the event says, with the verifications that its tree has.
func (s *state) recordOf(ctx context.Context, e *event.Event) (ledger.NoteLine, error) {
	land := e.By.Land
	if n := s.byID[land.ID]; n.intent != nil && n.intent.By.Land.Commit == land.Commit {
		if _, sound := note.Announced(*n.intent); !sound {
			return ledger.NoteLine{}, fmt.Errorf("the intent %s carries no record of its landing", n.intent.OID)
		}
		return ledger.NoteLine{On: land.Commit, Text: n.intent.By.Record}, nil
	}
	count := 0
	s.history.between(land.Base, land.Commit, func(*node) { count++ })
	r := note.Record{ID: land.ID, Unit: land.Unit, Operation: e.By.Operation, Lease: s.view.Name, Branch: land.Branch, Base: land.Base,
		Commit: land.Commit, Tree: land.Tree, Commits: max(count, 1), Note: "recorded by git land reconcile",
		Actor: e.Actor, Host: e.By.Host, Time: e.Time}
	for _, name := range strings.Fields(land.Steps) {
		r.Steps = append(r.Steps, note.Step{Name: name})
	}
	if land.Unverified != "" {
		r.Override = &note.Override{Reason: land.Reason, Actor: e.Actor, Missing: strings.Fields(land.Unverified)}
	} else {
		verified, err := s.l.Verified(ctx, s.view, land.Tree)
		if err != nil {
			return ledger.NoteLine{}, err
		}
		judged := note.Judge(verified, land.Tree)
		r.Verifications, r.Flaky, r.VerificationRef = judged.Passing, judged.Flaky(), s.view.Verifications
	}
	line, err := note.EncodeLine(r)
	return ledger.NoteLine{On: land.Commit, Text: line}, err
}

// landOf makes of a record the landing that an event lacks.
func landOf(r *note.Record) *event.Landing {
	land := &event.Landing{ID: r.ID, Unit: unitOf(r), Branch: r.Branch, Base: r.Base, Commit: r.Commit, Tree: r.Tree}
	if r.Override != nil {
		land.Unverified = nonEmpty(event.CleanText(strings.Join(r.Override.Missing, " "), event.MaxText), note.Any)
		land.Reason = nonEmpty(event.CleanText(r.Override.Reason, event.MaxText), "its record gives no reason that can be read")
	}
	return land
}

// unitOf is the unit of a record as an event would have it: clean text.
func unitOf(r *note.Record) string {
	return nonEmpty(event.CleanText(r.Unit, event.MaxText), r.ID.String())
}

func nonEmpty(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

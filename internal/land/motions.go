package land

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/policy"
	"gitland/internal/session"
	"gitland/internal/step"
)

// endSteps ends what is left of a motion that another process began: it goes on with the
// steps, or gives them up where e has a reason. done is told which of them are done.
func (s *sequence) endSteps(ctx context.Context, c *step.Course, e Ending, w *session.Witness, done *Conclusion) error {
	for {
		if err := s.tryToEnd(ctx, c, e, w, done); !errors.Is(err, errWentOn) {
			return err
		}
	}
}

// tryToEnd is endSteps as the authority is now; the error is errWentOn where it is not any
// more.
func (s *sequence) tryToEnd(ctx context.Context, c *step.Course, e Ending, w *session.Witness, done *Conclusion) error {
	v, err := s.l.Fetch(ctx, s.want)
	if err != nil {
		return err
	}
	if v.Problem != nil {
		return v.Problem
	}
	done.Steps = c.Steps
	m, err := step.Find(ctx, s.l, v, c.Motion)
	if err != nil || m == nil || m.Ended != nil {
		if m != nil {
			done.Steps, done.GivenUp = sofar(m, c.Steps), m.GivenUp
		}
		return err
	}
	if err := s.mayEnd(ctx, v, m, c.Operation); err != nil {
		return err
	}
	if err := retype(c.Steps, m.Open(), e.Steps); err != nil {
		return err
	}
	hold := v.Hold()
	switch left := sofar(m, c.Steps); {
	case e.Reason != "" && slices.ContainsFunc(left, func(s step.Step) bool { return !s.Outcome.Ends() }):
		done.GivenUp, done.Steps = true, left
		return s.giveStepsUp(ctx, m.ID, left, e.Reason)
	}
	if err := s.catchUp(c.Steps, m); err != nil {
		return err
	}
	switch {
	case hold == nil:
		if err := s.takeAnew(ctx, m); err != nil {
			return err
		}
		c.Hold, c.Root, c.Own = s.journal.Hold, s.root, true
	case lease.Owns(s.root, v.Tip):
		c.Hold, c.Root, c.Own = hold.Operation, s.root, true
	default:
		c.Hold = hold.Operation
		if lease.Owns(s.brought, v.Tip) {
			c.Root = s.brought
		}
	}
	c.Resumed, c.Word, c.Setting, c.Witness = true, e.Word, e.Setting, w
	return c.Run(ctx)
}

// catchUp learns from the chain how the steps stand. Who has taken them on last, and is not
// this journal's, may have begun one that this has not.
func (s *sequence) catchUp(steps []step.Step, m *chain.Motion) error {
	others := m.Under != s.journal.Operation && m.Under != s.journal.Hold
	step.CatchUp(steps, m, others)
	if !others {
		return nil
	}
	s.journal.Hold = m.Under
	if err := s.save(); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// retype has steps that are to come run by the commands that were typed for them. A
// script types all of the motion: what is typed for a step that is done does not run. The
// check that a step had stays its check, unless another is typed.
func retype(steps []step.Step, open []string, typed []policy.Step) error {
	for _, t := range typed {
		i := slices.IndexFunc(steps, func(s step.Step) bool { return s.Name == t.Name })
		if i < 0 {
			return fault.New(fault.Usage, "the motion has no step %s; to come are: %s", t.Name, strings.Join(open, ", "))
		}
		if slices.Contains(open, t.Name) {
			steps[i].Run, steps[i].Check = t.Run.Text, cmp.Or(t.Check.Text, steps[i].Check)
		}
	}
	return nil
}

// mayEnd refuses to end the motion of an operation while another one has the lease that its
// steps need, or nobody can have it.
func (s *sequence) mayEnd(ctx context.Context, v ledger.View, m *chain.Motion, op ulid.ULID) error {
	hold := v.Hold()
	switch {
	case v.Phase() == event.Frozen:
		return lease.InFrost(ctx, s.l, v)
	case hold == nil || hold.Motion == m.ID && s.own(v):
		return nil
	}
	f := lease.Held(s.l, v, false)
	f.What = fmt.Sprintf("the steps of operation %s that are to come (%s) need the lease: %s", op, strings.Join(m.Open(), ", "), f.What)
	if hold.Motion == m.ID {
		return f.WithHint("if that is dead: %s && git land resume %s", lease.TakeCommand(s.l, v), op)
	}
	return f
}

// takeAnew takes the free lease for the steps of a motion that lost it, unless others have
// gone on with them meanwhile.
func (s *sequence) takeAnew(ctx context.Context, m *chain.Motion) error {
	s.root = session.NewRoot()
	s.journal.Token, s.journal.Hold = s.root.Hex(), s.l.NewID() // the operation before has ended
	if err := s.save(); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	_, err := lease.Acquire(ctx, s.l, lease.Acquisition{Want: s.want, Root: s.root, Operation: s.journal.Hold,
		Purpose: "steps of " + s.journal.Unit, Motion: m.ID, Steps: strings.Join(m.Open(), " "),
		May: func(ctx context.Context, v ledger.View) error {
			now, err := step.Find(ctx, s.l, v, m.ID)
			switch {
			case err != nil:
				return err
			case now == nil || now.Under != m.Under || (now.Ended == nil) != (m.Ended == nil):
				return errWentOn
			}
			return nil
		}})
	return err
}

// errWentOn is that others have taken a motion on since it was looked at.
var errWentOn = errors.New("others have gone on with the steps meanwhile")

// giveStepsUp says on the record, and on the chain, that the steps of a motion which are
// not done are not to come. A lease that the motion took is given back by that; that of a
// session is the session's.
func (s *sequence) giveStepsUp(ctx context.Context, motion ulid.ULID, steps []step.Step, reason string) error {
	why := event.CleanText(fmt.Sprintf("steps given up: %s; %s", reason, tellSteps(steps)), event.MaxText)
	_, err := s.l.Append(ctx, s.want, func(v ledger.View, d *ledger.Draft) error {
		m, err := step.Find(ctx, s.l, v, motion)
		switch {
		case err != nil:
			return err
		case m == nil || m.Ended != nil:
			return errSettled
		}
		if record := s.recordOf(); record != "" {
			if err := endRecord(ctx, s.l, v, d, record, step.Results(steps), reason); err != nil {
				return err
			}
		}
		act := event.Event{Kind: event.Repair, By: event.By{Reason: why, Finding: &event.Finding{Code: chain.StepsUnfinished, Object: m.Begun.OID}}}
		switch hold := v.Hold(); {
		case hold == nil:
			act.By.Operation = s.l.NewID()
		case lease.Owns(s.root, v.Tip):
			act = event.Event{Kind: event.Abort, By: event.By{Operation: hold.Operation, Reason: why, Secret: lease.SecretOf(s.root, v.Tip)}}
		case hold.Motion == motion && s.own(v):
			act.By.Operation = hold.Operation
		default:
			return lease.Held(s.l, v, false)
		}
		_, err = d.Add(ctx, act)
		return err
	})
	if errors.Is(err, errSettled) {
		return nil
	}
	return err
}

// recordOf is the record of the landing that the steps follow; "" where there is none.
func (s *sequence) recordOf() string {
	if n := len(s.journal.Attempts); n > 0 {
		return s.journal.Attempts[n-1].Record
	}
	return s.journal.Record
}

// sofar are the steps of a motion with how they went by the chain, and by what is known
// here.
func sofar(m *chain.Motion, known []step.Step) []step.Step {
	var steps []step.Step
	for _, name := range m.Steps {
		s := step.Step{Name: name}
		if i := slices.IndexFunc(known, func(k step.Step) bool { return k.Name == name }); i >= 0 {
			s = known[i]
		}
		if last := m.Last(name); last != nil && !s.Outcome.Ends() {
			s.Outcome, s.TookMS = last.Outcome, last.Took
		}
		steps = append(steps, s)
	}
	return steps
}

// tellSteps says which steps are done, and which are not.
func tellSteps(steps []step.Step) string {
	var done, open []string
	for _, s := range steps {
		switch {
		case s.Outcome.Ends():
			done = append(done, s.Name)
		case s.Outcome != "":
			open = append(open, fmt.Sprintf("%s (%s)", s.Name, s.Outcome))
		default:
			open = append(open, s.Name)
		}
	}
	text := "done: " + nonEmpty(strings.Join(done, ", "), "none")
	if len(open) > 0 {
		text += "; not done: " + strings.Join(open, ", ")
	}
	return text
}

// concludeMotion ends a motion without a landing of its own here, by its journal.
func concludeMotion(ctx context.Context, l *ledger.Ledger, j journal, e Ending, w *session.Witness) (Conclusion, error) {
	c := Conclusion{Operation: j.Operation, Remote: j.Remote, Lease: j.Lease, Branch: j.Branch, Unit: j.Unit, Motion: true, Steps: j.Steps}
	if j.Land != nil {
		c.Motion, c.Commit = false, j.Land.Commit
	}
	s, err := newSequence(l, &j, e.Session)
	if err != nil {
		return c, err
	}
	v, err := l.Fetch(ctx, s.want)
	if err != nil {
		return c, err
	}
	m, err := step.Find(ctx, l, v, j.Motion)
	if err == nil && m == nil { // its acquire may still be on its way
		_, _, err = s.outrun(ctx, e.Reason)
		c.GivenUp = e.Reason != ""
		return c, err
	}
	if err != nil {
		return c, err
	}
	course := &step.Course{Ledger: l, Want: s.want, Motion: j.Motion, Operation: j.Operation, Steps: j.Steps, Save: s.save}
	if j.Land != nil {
		course.Facts = step.Facts(*j.Land, j.Record)
		course.End = func(ctx context.Context, v ledger.View, d *ledger.Draft) error {
			return endRecord(ctx, l, v, d, j.Record, step.Results(j.Steps), "")
		}
	}
	c.Landed = true
	return c, s.endSteps(ctx, course, e, w, &c)
}

// endMotion ends a motion of which this clone has no journal.
func (s *sequence) endMotion(ctx context.Context, v ledger.View, m *chain.Motion, e Ending) (*Conclusion, error) {
	if m.Ended != nil {
		return &Conclusion{Operation: e.Operation, Remote: s.l.Remote, Lease: v.Name, Branch: v.Branch, Motion: true, Landed: true, Already: true,
			Steps: sofar(m, nil), GivenUp: m.GivenUp}, nil
	}
	switch here, err := takenBefore(s.l.Dir, m.ID); {
	case err != nil:
		return nil, err
	case !here.IsZero():
		e.Operation = here
		return concludeOne(ctx, s.l, e)
	}
	if err := s.mayEnd(ctx, v, m, e.Operation); err != nil {
		return nil, err
	}
	return takeOver(ctx, s.l, v, m, e)
}

// takenBefore is the operation by which this clone has begun a motion, or taken it over, and
// has not ended it; zero where it has not.
func takenBefore(dir session.Dir, motion ulid.ULID) (ulid.ULID, error) {
	ids, err := dir.Journal().List()
	if err != nil {
		return ulid.Zero, err
	}
	for _, id := range ids {
		if j, err := loadJournal(dir, id); err == nil && (j.Motion == motion || j.Landing == motion) {
			return id, nil
		}
	}
	return ulid.Zero, nil
}

// takeOver goes on, in this clone, with the steps of a motion that was begun in another
// one: it makes a journal of them here, unless there is one, and concludes that.
func takeOver(ctx context.Context, l *ledger.Ledger, v ledger.View, m *chain.Motion, e Ending) (*Conclusion, error) {
	lock, err := l.Dir.Witness(m.ID) // of two who take it over here, one makes the journal
	if errors.Is(err, session.ErrAlive) {
		return nil, fault.New(fault.Held, "somebody else is at work on the steps of operation %s in this clone", e.Operation).
			WithHint("wait for it, then run git land resume again")
	}
	if err != nil {
		return nil, err
	}
	e.Operation, err = takenBefore(l.Dir, m.ID)
	if err == nil && e.Operation.IsZero() {
		e.Operation, err = beginOver(ctx, l, v, m, e)
	}
	if e.Operation == m.ID { // whose witness it is
		err = errors.Join(err, lock.Close())
	} else {
		err = errors.Join(err, lock.Remove())
	}
	if err != nil {
		return nil, err
	}
	return concludeOne(ctx, l, e)
}

// beginOver makes the journal of a motion that was begun in another clone, and returns its
// operation.
func beginOver(ctx context.Context, l *ledger.Ledger, v ledger.View, m *chain.Motion, e Ending) (ulid.ULID, error) {
	steps, err := takenOver(ctx, l, m, e)
	if err != nil {
		return ulid.Zero, err
	}
	j, w, err := step.Begin(l, v, steps)
	if err != nil {
		return ulid.Zero, err
	}
	j.Motion, j.Hold, j.Unit, j.Land = m.ID, m.Under, m.ID.String(), m.Begun.By.Land
	if j.Land != nil {
		j.Unit, j.Branch = j.Land.Unit, j.Land.Branch
		if j.Record, err = recordLine(ctx, l, v, *j.Land); err != nil {
			return ulid.Zero, errors.Join(err, w.Remove())
		}
	}
	err = l.Dir.Journal().Write(j.Operation, j)
	return j.Operation, errors.Join(err, w.Close())
}

// takenOver are the steps of a motion, with the commands that this clone has for those
// which are to come: those that are typed, else those of the policy that the landing was
// judged by.
func takenOver(ctx context.Context, l *ledger.Ledger, m *chain.Motion, e Ending) ([]step.Step, error) {
	var team policy.Policy
	if land := m.Begun.By.Land; land != nil {
		tree := l.Repo.Format.EmptyTree()
		if land.Base != "" {
			base, err := l.Repo.Commit(ctx, land.Base)
			if err != nil {
				return nil, err
			}
			tree = base.Tree
		}
		var err error
		if team, err = l.PolicyIn(ctx, tree); err != nil {
			return nil, err
		}
	}
	steps := sofar(m, nil)
	if e.Reason == "" {
		step.CatchUp(steps, m, true) // for all that is known here
	}
	used := policy.Policy{}
	for i := range steps {
		s := &steps[i]
		if s.Outcome.Ends() {
			continue
		}
		typed := slices.ContainsFunc(e.Steps, func(t policy.Step) bool { return t.Name == s.Name }) // see retype
		if own := team.FindStep(s.Name); own != nil && !typed {
			s.Run, s.Check = own.Run.Text, own.Check.Text
			used.Steps = append(used.Steps, *own)
		}
	}
	if e.Reason != "" {
		return steps, nil
	}
	return steps, acceptedSteps(l, used)
}

// recordLine is the line of a landing's record; "" where there is none.
func recordLine(ctx context.Context, l *ledger.Ledger, v ledger.View, land event.Landing) (string, error) {
	blob, err := l.Note(ctx, v.Records, land.Commit)
	if err != nil {
		return "", fmt.Errorf("read the record: %w", err)
	}
	for _, line := range note.ParseRecords(blob) {
		if line.Err == nil && !line.Newer && line.Value.ID == land.ID {
			return line.Raw, nil
		}
	}
	return "", fault.New(fault.Ambiguous, "%s has landed, and there is no record of it", land.Commit.Short()).
		WithHint("%s", reconcileCommand(l, land.Branch)+" --fix")
}

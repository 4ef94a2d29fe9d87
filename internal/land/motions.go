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
func (s *sequence) endSteps(ctx context.Context, c *step.Course, e Ending, done *Conclusion) error {
	for {
		if err := s.tryToEnd(ctx, c, e, done); !errors.Is(err, errWentOn) {
			return err
		}
	}
}

// tryToEnd is endSteps as the authority is now; the error is errWentOn where it is not any
// more.
func (s *sequence) tryToEnd(ctx context.Context, c *step.Course, e Ending, done *Conclusion) error {
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
	if err := s.mayEnd(ctx, v, m, c.Operation, e.Reason); err != nil {
		return err
	}
	if err := c.UnderWay(); err != nil {
		return err
	}
	if err := retype(c.Steps, m.Open(), e.Steps); err != nil {
		return err
	}
	hold := v.Hold()
	left := sofar(m, c.Steps)
	if e.Reason != "" && slices.ContainsFunc(left, func(s step.Step) bool { return !s.Outcome.Ends() }) {
		done.GivenUp, done.Steps = true, left
		return s.giveStepsUp(ctx, m.ID, left, e.Reason)
	}
	if err := s.catchUp(c.Steps, m); err != nil {
		return err
	}
	s.l.Notice("going on with operation %s; steps to come: %s", c.Operation, strings.Join(m.Open(), ", "))
	switch {
	case hold == nil:
		if end, err := lease.Ending(ctx, s.l, v, s.root); err == nil && end != nil {
			if lost := end.Lost(s.l); lost != nil {
				s.l.Notice("%s; it is taken anew for these steps", lost.What)
			}
		}
		if err := s.takeAnew(ctx, m); err != nil {
			return err
		}
		c.Hold, c.Root, c.Own = s.journal.Hold, s.root, true
	case lease.Owns(s.root, v.Tip):
		c.Hold, c.Root, c.Own = hold.Operation, s.root, true
	case lease.Owns(s.brought, v.Tip):
		c.Hold, c.Root = hold.Operation, s.brought
	default:
		if c.Hold, c.Own, err = s.takeFromDead(ctx, v); err != nil {
			return err
		}
		c.Root = s.root
	}
	c.Resumed, c.Word, c.Setting = true, e.Word, e.Setting
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
func (s *sequence) mayEnd(ctx context.Context, v ledger.View, m *chain.Motion, op ulid.ULID, reason string) error {
	hold := v.Hold()
	switch {
	case v.Phase() == event.Frozen:
		return lease.InFrost(ctx, s.l, v)
	case hold == nil || hold.Motion == m.ID && s.own(v):
		return nil
	}
	own := lease.Owns(s.brought, v.Tip)
	f := lease.Held(s.l, v, own)
	f.What = fmt.Sprintf("the steps of operation %s that are to come (%s) need the lease: %s", op, strings.Join(m.Open(), ", "), f.What)
	then := fault.Command("git", "land", "resume", op.String())
	if reason != "" {
		then = fault.Command("git", "land", "abort", op.String(), "--reason", reason)
	}
	switch {
	case hold.Motion == m.ID:
		return f.WithHint("if that is dead: %s && %s", lease.TakeCommand(s.l, v), then)
	case own && hold.Steps == "":
		return f.WithHint("%s && %s", f.Hint, then)
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

// takeFromDead takes the lease for the steps of a motion off the hold that they run under, a
// git lease run that has ended, say, if this clone can prove that it is gone: whoever goes on
// has no token of it, which their commands may demand. It returns the hold that they run
// under then, and whether that was taken. A recover frees no lease whose steps are to come;
// a break hands them on.
func (s *sequence) takeFromDead(ctx context.Context, v ledger.View) (under ulid.ULID, taken bool, err error) {
	hold := v.Hold()
	found, err := s.l.Dir.Evidence(hold.Operation)
	if err != nil {
		return hold.Operation, false, err
	}
	j := found.Judge()
	if j.Verdict != session.Gone {
		s.l.Notice("the commands of the steps have no token: operation %s, whose session has it, is not known to be gone", hold.Operation)
		return hold.Operation, false, nil
	}
	s.root = session.NewRoot()
	s.journal.Token, s.journal.Hold = s.root.Hex(), s.l.NewID()
	if err := s.save(); err != nil {
		return hold.Operation, false, fmt.Errorf("write the journal: %w", err)
	}
	_, err = lease.Break(ctx, s.l, lease.Breaking{Want: s.want, Operation: hold.Operation, Reason: "it is gone, and its steps go on: " + j.Why,
		Take: &lease.Acquisition{Want: s.want, Root: s.root, Operation: s.journal.Hold, Purpose: hold.Purpose}})
	if err == nil {
		s.l.Notice("the lease %s is taken off operation %s, which is gone: %s", v.Name, hold.Operation, j.Why)
	}
	return s.journal.Hold, true, err
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
	done, open := note.Sorted(step.Results(steps))
	text := "done: " + nonEmpty(strings.Join(done, ", "), "none")
	if len(open) > 0 {
		text += "; not done: " + strings.Join(open, ", ")
	}
	return text
}

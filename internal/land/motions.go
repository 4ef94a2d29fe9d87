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
	switch {
	case err != nil:
		return err
	case m == nil && e.Reason == "" && slices.ContainsFunc(c.Steps, func(s step.Step) bool { return !s.Outcome.Ends() }):
		return fault.New(fault.Ambiguous, "the log does not say that steps follow this landing (%s), so that none was run", strings.Join(strings.Fields(step.Names(c.Steps)), ", ")).
			WithHint("%s   (or, to give them up: %s)", reconcileCommand(s.l, s.want.Branch), s.l.Command("git", "land", "abort", c.Operation.String(), "--reason", "WHY"))
	case m == nil:
		return nil
	}
	s.tellOthers(ctx, v)
	if m.Ended != nil {
		done.Steps, done.GivenUp = sofar(m, c.Steps), m.GivenUp
		s.tellUnsaid(m, c.Steps)
		return nil
	}
	if err := s.mayEnd(ctx, v, m, c.Operation, e.Reason); err != nil {
		return err
	}
	if !e.Dead {
		if err := c.UnderWay(); err != nil {
			return err
		}
	}
	if err := retype(c.Steps, m.Open(), e.Steps); err != nil {
		return err
	}
	if e.Reason != "" {
		return s.giveUpSteps(ctx, v, m, c, e.Reason, done)
	}
	if err := s.timely(ctx, v, m, c, e); err != nil {
		return err
	}
	if err := s.catchUp(v, c.Steps, m); err != nil {
		return err
	}
	s.l.Notice("going on with operation %s; steps to come: %s", c.Operation, strings.Join(m.Open(), ", "))
	s.tellStale(ctx, m)
	if open := m.Open(); len(open) > 0 && e.Word.Done != open[0] {
		if err := c.Commanded(open[0]); err != nil { // before the lease is taken in vain
			return err
		}
	}
	if hold := v.Hold(); hold == nil {
		if err := s.takeAnew(ctx, m, c, e); err != nil {
			return err
		}
		s.l.Notice("the lease %s is taken anew for them", v.Name)
		c.Hold, c.Root, c.Own = s.journal.Hold, s.root, true
	} else if !s.under(v, c) {
		if c.Hold, c.Own, err = s.takeFromDead(ctx, v); err != nil {
			return err
		}
		if c.Own {
			c.Root = s.root
		}
	}
	c.Resumed, c.Word, c.Setting = true, e.Word, e.Setting
	err = c.Run(ctx)
	if err == nil {
		s.tellHeld(v.Name, c)
	}
	return err
}

// under has the steps of c go on under the hold of v, and reports whether its token is known.
func (s *sequence) under(v ledger.View, c *step.Course) bool {
	c.Hold = v.Hold().Operation
	switch {
	case lease.Owns(s.root, v.Tip):
		c.Root, c.Own = s.root, true
	case lease.Owns(s.brought, v.Tip):
		c.Root = s.brought
	default:
		return false
	}
	return true
}

// catchUp learns from the chain how the steps stand. Who has taken them on last, and is not
// this journal's, may have begun one that this has not.
func (s *sequence) catchUp(v ledger.View, steps []step.Step, m *chain.Motion) error {
	others := s.others(v, m)
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

// others reports whether an operation which is not this journal's has taken a motion on last.
func (s *sequence) others(v ledger.View, m *chain.Motion) bool {
	return m.Under != s.journal.Operation && m.Under != s.journal.Hold && !lease.Owns(s.root, v.Tip)
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
	case hold == nil || m.HeldBy(hold) && s.own(v):
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
	case m.HeldBy(hold):
		return f.WithHint("if that is dead: %s && %s", lease.TakeCommand(s.l, v), then)
	case own && hold.Steps == "":
		return f.WithHint("%s && %s", f.Hint, then)
	}
	return f
}

// takeAnew takes the free lease for the steps of a motion that lost it, unless others have
// gone on with them meanwhile.
func (s *sequence) takeAnew(ctx context.Context, m *chain.Motion, c *step.Course, e Ending) error {
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
			return s.timely(ctx, v, now, c, e)
		}})
	return err
}

// takeFromDead takes the lease for the steps of a motion off the hold that they run under, a
// git lease run that has ended, say, if this clone can prove that it is gone: whoever goes on
// has no token of it, which their commands may demand. It returns the hold that they run
// under then, and whether that was taken. A recover frees no lease whose steps are to come;
// a break hands them on.
func (s *sequence) takeFromDead(ctx context.Context, v ledger.View) (operation ulid.ULID, taken bool, err error) {
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
	token := s.journal.Token
	s.root, operation = session.NewRoot(), s.l.NewID()
	s.journal.Token = s.root.Hex()
	if err := s.save(); err != nil {
		return hold.Operation, false, fmt.Errorf("write the journal: %w", err)
	}
	_, err = lease.Break(ctx, s.l, lease.Breaking{Want: s.want, Operation: hold.Operation, Reason: "it is gone, and its steps go on: " + j.Why,
		Take: &lease.Acquisition{Want: s.want, Root: s.root, Operation: operation, Purpose: hold.Purpose}})
	switch {
	case err == nil:
		s.journal.Hold = operation
		err = s.save()
		s.l.Notice("the lease %s is taken off operation %s, which is gone: %s", v.Name, hold.Operation, j.Why)
	case !ledger.IsUnsettled(err): // it was not taken
		s.journal.Token = token
		err = errors.Join(err, s.save())
	}
	return operation, true, err
}

// errWentOn is that others have taken a motion on since it was looked at.
var errWentOn = errors.New("others have gone on with the steps meanwhile")

package land

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/step"
)

// giveUpSteps ends the motion of c for a reason. What is known here of the steps is said on
// the chain first, as long as that can be: record and chain tell one story.
func (s *sequence) giveUpSteps(ctx context.Context, v ledger.View, m *chain.Motion, c *step.Course, reason string, done *Conclusion) error {
	step.CatchUp(c.Steps, m, s.others(v, m))
	if v.Hold() != nil {
		s.under(v, c)
		if err := c.Say(ctx); err != nil {
			return err
		}
		var err error
		if v, err = s.l.Fetch(ctx, s.want); err != nil {
			return err
		}
		if m, err = step.Find(ctx, s.l, v, c.Motion); err != nil {
			return err
		}
		if m.Ended != nil { // all of it was done
			done.Steps, done.GivenUp = sofar(m, c.Steps), m.GivenUp
			return nil
		}
	}
	if names := unsaid(m, c.Steps); len(names) > 0 {
		reason += " (done, and never said: " + strings.Join(names, ", ") + ")"
	}
	done.GivenUp, done.Steps = true, onRecord(m, c.Steps)
	err := s.giveStepsUp(ctx, m, done.Steps, reason)
	if err == nil && v.Hold() != nil {
		s.tellHeld(v.Name, c)
	}
	return err
}

// onRecord are the steps of a motion as a record has them: by the chain, and unknown where
// one was begun and nobody has said how it went.
func onRecord(m *chain.Motion, known []step.Step) []step.Step {
	steps := sofar(m, known)
	for i := range steps {
		if last := m.Last(steps[i].Name); last == nil && steps[i].Begun {
			steps[i].Outcome, steps[i].TookMS = event.Unknown, 0
		} else if last != nil {
			steps[i].Outcome, steps[i].TookMS = last.Outcome, last.Took
		}
	}
	return steps
}

// giveStepsUp says on the record, and on the chain, that the steps of a motion which are
// not done are not to come. A lease that the motion took is given back by that; that of a
// session is the session's. The error is errWentOn where it is not as it was any more.
func (s *sequence) giveStepsUp(ctx context.Context, was *chain.Motion, steps []step.Step, reason string) error {
	why := event.CleanText(fmt.Sprintf("steps given up: %s; %s", reason, tellSteps(steps)), event.MaxText)
	_, err := s.l.Append(ctx, s.want, func(v ledger.View, d *ledger.Draft) error {
		m, err := step.Find(ctx, s.l, v, was.ID)
		switch {
		case err != nil:
			return err
		case m == nil || m.Ended != nil || m.Under != was.Under || len(m.Results) != len(was.Results):
			return errWentOn
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
		case hold.Motion == was.ID && s.own(v):
			act.By.Operation = hold.Operation
		default:
			return lease.Held(s.l, v, false)
		}
		_, err = d.Add(ctx, act)
		return err
	})
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

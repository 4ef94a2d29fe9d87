package land

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/session"
	"gitland/internal/step"
)

// concludeMotion ends a motion without a landing of its own here, by its journal.
func concludeMotion(ctx context.Context, l *ledger.Ledger, j journal, e Ending) (Conclusion, error) {
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
	c.Operation = m.Operation // by which everybody knows it, and not that of the journal here
	course := &step.Course{Ledger: l, Want: s.want, Motion: j.Motion, Operation: m.Operation, Steps: j.Steps, Save: s.save}
	if j.Land != nil {
		course.Facts = step.Facts(*j.Land, j.Record)
		course.End = func(ctx context.Context, v ledger.View, d *ledger.Draft) error {
			return endRecord(ctx, l, v, d, j.Record, step.Results(j.Steps), "")
		}
	}
	c.Landed = true
	return c, s.endSteps(ctx, course, e, &c)
}

// endMotion ends a motion of which this clone has no journal.
func (s *sequence) endMotion(ctx context.Context, v ledger.View, m *chain.Motion, e Ending) (*Conclusion, error) {
	if m.Ended != nil {
		c := &Conclusion{Operation: m.Operation, Remote: s.l.Remote, Lease: v.Name, Branch: v.Branch, Motion: true, Landed: true, Already: true,
			Steps: sofar(m, nil), GivenUp: m.GivenUp}
		if land := m.Begun.By.Land; land != nil {
			c.Motion, c.Branch, c.Unit, c.Commit = false, land.Branch, land.Unit, land.Commit
		}
		return c, nil
	}
	switch here, err := takenBefore(s.l.Dir, m.ID); {
	case err != nil:
		return nil, err
	case !here.IsZero():
		e.Operation = here
		return concludeOne(ctx, s.l, e)
	}
	if err := s.mayEnd(ctx, v, m, e.Operation, e.Reason); err != nil {
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
	here, err := takenBefore(l.Dir, m.ID)
	if err == nil && here.IsZero() {
		here, err = beginOver(ctx, l, v, m, e)
	}
	if e.Operation = here; here == m.ID { // whose witness it is
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
	steps, err := takenOver(ctx, l, v, m, e)
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
func takenOver(ctx context.Context, l *ledger.Ledger, v ledger.View, m *chain.Motion, e Ending) ([]step.Step, error) {
	var team policy.Policy
	if land := m.Begun.By.Land; land != nil && e.Reason == "" {
		var err error
		if team, err = policyAt(ctx, l, land.Base); err != nil {
			return nil, err
		}
	}
	steps := sofar(m, nil)
	step.CatchUp(steps, m, true) // for all that is known here
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
	err := acceptedSteps(l, used)
	if f, ok := errors.AsType[*fault.Error](err); ok && slices.ContainsFunc(used.Steps, func(s policy.Step) bool {
		now := v.Policy.FindStep(s.Name)
		return now == nil || now.Run.Text != s.Run.Text || now.Check.Text != s.Check.Text
	}) {
		again := append([]string{"git", "land", "resume", e.Operation.String()}, stepWords(used.Steps)...)
		f.WithHint("%s   (the policy has changed since; a command that is typed runs)", l.Command(again...))
	}
	return steps, err
}

// policyAt is the policy that a commit has, which "" has not, nor one that a shallow clone
// lacks.
func policyAt(ctx context.Context, l *ledger.Ledger, commit object.OID) (policy.Policy, error) {
	tree := l.Repo.Format.EmptyTree()
	if commit != "" {
		switch base, err := l.Repo.Commit(ctx, commit); {
		case err == nil:
			tree = base.Tree
		case !errors.Is(err, git.ErrNotFound):
			return policy.Policy{}, err
		}
	}
	return l.PolicyIn(ctx, tree)
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

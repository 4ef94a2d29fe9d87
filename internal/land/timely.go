package land

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/step"
)

// timely refuses to bring steps of a landing after what has come to its branch since, or
// after the landing has gone from it, unless that is meant: what they write elsewhere would
// take the place of something newer. Nobody else lands while the lease is held for them.
func (s *sequence) timely(ctx context.Context, v ledger.View, m *chain.Motion, c *step.Course, e Ending) error {
	land := m.Begun.By.Land
	if e.Word.Anyway {
		return nil
	}
	refuse := func(format string, args ...any) error {
		op := c.Operation.String()
		again := append([]string{"git", "land", "resume", op, "--anyway"}, append(e.Word.Words(), stepWords(e.Steps)...)...)
		return fault.New(fault.Conflict, format, args...).
			WithHint("%s   (if they are to come all the same; or, to give them up: %s)", s.l.Command(again...),
				s.l.Command("git", "land", "abort", op, "--reason", "WHY")).
			WithFacts(map[string]any{"operation": op, "lease": v.Name, "step": m.Open()[0]})
	}
	open := strings.Join(m.Open(), ", ")
	if land != nil {
		on, err := isIn(ctx, s.l, land.Commit, v.Base)
		if err != nil {
			return err
		}
		if !on && !s.l.Repo.IsShallow() { // which may only not reach as far back
			return refuse("steps of landing %s are to come (%s), and %s does not have its commit %s any more", m.ID, open, land.Branch.Branch(), land.Commit.Short())
		}
	}
	if v.Hold() != nil {
		return nil
	}
	later := 0
	err := lease.Walk(ctx, s.l, v, func(e event.Event) bool {
		hold := e.State.Hold
		switch {
		case m.HeldBy(hold): // nobody came before them then, but what they have landed themselves
			return false
		case land == nil && hold != nil && hold.TakenBy == e.ID && hold.Motion != m.ID:
			later++
		case land != nil && e.Kind == event.Override && slices.ContainsFunc(e.By.Updates, func(u event.Update) bool { return u.Ref == land.Branch }):
			later++
		case land != nil && e.By.Land != nil && e.Kind != event.Intent && e.By.Land.Branch == land.Branch && e.By.Land.ID != m.ID:
			later++
		}
		// It was on the branch when it was announced: the land, or the repair that vouches for
		// it, may have come late.
		return !(e.Kind == event.Intent && e.By.Land.ID == m.ID)
	})
	switch {
	case err != nil || later == 0:
		return err
	case land == nil:
		return refuse("steps of operation %s are to come (%s), and others have had the lease since, %s: they would follow what those did", m.Operation, open, times(later))
	}
	return refuse("steps of landing %s are to come (%s), and %s has moved on since, %s: they would follow that", m.ID, open, land.Branch.Branch(), times(later))
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// tellOthers says who took the lease off the steps of this journal, and went on with them.
func (s *sequence) tellOthers(ctx context.Context, v ledger.View) {
	if s.root.IsZero() || lease.Owns(s.root, v.Tip) {
		return
	}
	end, err := lease.Ending(ctx, s.l, v, s.root)
	if err != nil || end == nil { // it is worth no failure
		return
	}
	if lost := end.Lost(s.l); lost != nil {
		s.l.Notice("%s", lost.What)
	}
}

// tellUnsaid says which steps are done, as only this clone knows.
func (s *sequence) tellUnsaid(m *chain.Motion, known []step.Step) {
	if names := unsaid(m, known); len(names) > 0 {
		s.l.Notice("done, and the log does not say so: %s", strings.Join(names, ", "))
	}
}

// unsaid are the steps that are done by what is known here, and not by the chain.
func unsaid(m *chain.Motion, known []step.Step) (names []string) {
	for _, s := range known {
		if slices.Contains(m.Open(), s.Name) && s.Outcome.Ends() {
			names = append(names, s.Name)
		}
	}
	return names
}

// tellStale says that the commands of the steps run in files that are older than what landed.
func (s *sequence) tellStale(ctx context.Context, m *chain.Motion) {
	land := m.Begun.By.Land
	if land == nil || s.l.Repo.Top == "" {
		return
	}
	s.l.Repo.Reread() // HEAD may just have followed
	head, err := s.l.Repo.Start(ctx)
	if err != nil {
		return
	}
	if in, err := isIn(ctx, s.l, land.Commit, head.Commit); err == nil && !in && !s.l.Repo.IsShallow() {
		s.l.Notice("the files here lack what has landed, %s: the commands of its steps run in them as they are", land.Commit.Short())
	}
}

// tellHeld says that the lease under which steps have ended is still that of a session which
// is not this one.
func (s *sequence) tellHeld(name string, c *step.Course) {
	if c.Root.IsZero() && !c.Hold.IsZero() {
		s.l.Notice("the lease %s is still held by operation %s, whose session has it: %s", name, c.Hold, s.l.Command("git", "lease", "show", name))
	}
}

package land

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/step"
)

// endForeign ends an operation whose clone is gone, or is another one, by what
// stands on the chain. What never left that clone cannot be finished here.
func endForeign(ctx context.Context, l *ledger.Ledger, e Ending) (*Conclusion, error) {
	op, reason := e.Operation, e.Reason
	v, err := l.Fetch(ctx, e.Want)
	if err != nil {
		return nil, err
	}
	if v.Problem != nil {
		return nil, v.Problem
	}
	j := journal{Operation: op, Remote: l.Remote, Lease: v.Name, Branch: v.Branch, Brought: true}
	s, err := newSequence(l, &j, e.Session)
	if err != nil {
		return nil, err
	}
	if m, err := step.Find(ctx, l, v, op); err != nil || m != nil && (m.Ended == nil || m.Begun.By.Land == nil) {
		if err != nil {
			return nil, err
		}
		return s.endMotion(ctx, v, m, e)
	}
	if e.Want.Name == "" { // a motion that lands nothing may be under any lease
		if e.Want.Name, err = motionsLease(ctx, l, v.Name, op); err != nil || e.Want.Name != "" {
			if err != nil {
				return nil, err
			}
			return endForeign(ctx, l, e)
		}
	}
	s.save = func() error { return nil } // there is no journal: the chain has what is needed
	trace, err := traceOf(ctx, l, v, op)
	if err != nil {
		return nil, err
	}
	if err := s.answerable(ctx, v, trace, reason); err != nil {
		return nil, err
	}
	if trace.intent == nil {
		return s.endWithoutIntent(ctx, v, trace, reason)
	}
	if err := j.announce(s.l, *trace.intent); err != nil {
		return nil, err
	}
	s.want.Branch = j.Branch
	if err := s.isNews(ctx, v, *trace.intent); err != nil {
		return nil, err
	}
	c, _, _, err := s.conclude(ctx, reason)
	if err == nil && !c.Landed {
		c.Withdrawn = trace.withdrawal()
		if reason != "" && !trace.settled && trace.withdrawn == nil {
			err = s.giveUp(ctx, reason)
		}
	}
	if err != nil {
		return nil, err // nothing is known yet
	}
	if !c.Landed || trace.intent.By.Land.Steps == "" {
		return &c, nil
	}
	return s.stepsOf(ctx, trace.intent.By.Land.ID, c, e)
}

// stepsOf goes on with the steps of a landing that is finished now, of which c tells.
func (s *sequence) stepsOf(ctx context.Context, landing ulid.ULID, c Conclusion, e Ending) (*Conclusion, error) {
	v, err := s.l.Fetch(ctx, s.want)
	if err != nil {
		return &c, err
	}
	m, err := step.Find(ctx, s.l, v, landing)
	if err != nil || m == nil { // a repair stands for it, which has none
		return &c, err
	}
	done, err := s.endMotion(ctx, v, m, e)
	if done == nil {
		return &c, err
	}
	return done, err
}

// motionsLease is the lease of the authority, besides but, under which an operation has begun
// a motion, or holds one that it took over; "" where there is none.
func motionsLease(ctx context.Context, l *ledger.Ledger, but string, op ulid.ULID) (string, error) {
	names, err := l.Names(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if name == but {
			continue
		}
		v, err := l.Fetch(ctx, ledger.Want{Name: name})
		if err != nil {
			return "", err
		}
		if v.Problem != nil {
			continue // nothing of it is to be believed
		}
		if m, err := step.Find(ctx, l, v, op); err != nil || m != nil {
			return name, err
		}
	}
	return "", nil
}

// answerable refuses an operation that needs no end, or not here.
func (s *sequence) answerable(ctx context.Context, v ledger.View, trace footprint, reason string) error {
	l, op, h := s.l, s.journal.Operation, v.Hold()
	holds := h != nil && h.Operation == op
	switch {
	case holds && !s.own(v):
		f := lease.Held(l, v, false)
		f.Hint = "if it is dead: " + lease.TakeCommand(l, v) + "   (then this again)"
		return f
	case holds && h.Intent.IsZero():
		return fault.New(fault.Held, "operation %s holds the lease %s for this session, and has announced no landing", op, v.Name).
			WithHint("%s", l.Command("git", "lease", "release", v.Name))
	case trace.intent != nil || trace.landed != nil || trace.takenOff || trace.withdrawn != nil:
		return nil
	case trace.ended != nil:
		return fault.New(fault.Usage, "operation %s has ended by itself: %s", op, trace.ended.Kind).
			WithHint("%s", l.Command("git", "lease", "log", v.Name))
	}
	if err := OperationOf(ctx, l, v, op.String(), reason); err != nil {
		return err
	}
	return fault.New(fault.Usage, "operation %s has no journal in this clone, and is no landing on the chain %s at %s", op, v.Name, l.Remote).
		WithHint("%s", l.Command("git", "lease", "log", v.Name))
}

// endWithoutIntent ends an operation that landed in one push, or whose lease was
// taken off it before it had landed anything: by that the chain moved past
// whatever it had sent.
func (s *sequence) endWithoutIntent(ctx context.Context, v ledger.View, trace footprint, reason string) (*Conclusion, error) {
	c := Conclusion{Operation: s.journal.Operation, Remote: s.l.Remote, Lease: v.Name, Branch: v.Branch}
	if trace.landed != nil {
		land := trace.landed.By.Land
		c.Landed, c.Already, c.Branch, c.Unit, c.Commit = true, true, land.Branch, land.Unit, land.Commit
		v, err := s.l.Fetch(ctx, ledger.Want{Name: v.Name, Branch: land.Branch})
		if err != nil {
			return nil, err
		}
		in, err := isIn(ctx, s.l, land.Commit, v.Base)
		c.Gone = !in
		return &c, err
	}
	if c.Withdrawn = trace.withdrawal(); c.Withdrawn != nil || reason == "" {
		return &c, nil
	}
	return &c, s.giveUp(ctx, reason)
}

// isNews refuses an announced landing of which the branch had the commit before
// it was announced: nobody has landed that.
func (s *sequence) isNews(ctx context.Context, v ledger.View, intent event.Event) error {
	land := intent.By.Land
	for at := intent; !at.First() && len(at.Parents) > 0; {
		prev, err := s.l.Event(ctx, at.Parents[0], v.Name)
		if err != nil {
			return err
		}
		at = prev
		if a := at.By.Adopt; a != nil && a.Branch == land.Branch && a.Tip != "" {
			if err := s.notBefore(ctx, intent, a.Tip); err != nil {
				return err
			}
		}
		if at.By.Land == nil || at.By.Land.Branch != land.Branch || at.Kind != event.Land && at.Kind != event.Repair {
			continue
		}
		if err := s.notBefore(ctx, intent, at.By.Land.Commit); err != nil {
			return err
		}
	}
	return nil
}

// notBefore refuses an intent whose commit is part of what the branch was.
func (s *sequence) notBefore(ctx context.Context, intent event.Event, was object.OID) error {
	land := intent.By.Land
	before, err := isIn(ctx, s.l, land.Commit, was)
	if errors.Is(err, git.ErrNotFound) {
		return nil // the branch was rewritten since
	}
	if err == nil && before {
		err = fault.New(fault.Ambiguous, "the intent %s announces %s, which was on %s before", intent.OID, land.Commit.Short(), land.Branch.Branch()).
			WithHint("%s", reconcileCommand(s.l, land.Branch))
	}
	return err
}

// announce fills a journal from the intent of a landing. Anybody may have pushed
// that: its record is taken only if it is one, and of that landing.
func (j *journal) announce(l *ledger.Ledger, intent event.Event) error {
	land := intent.By.Land
	if _, ok := note.Announced(intent); !ok {
		return fault.New(fault.Ambiguous, "the intent %s of operation %s carries no record of its landing", intent.OID, j.Operation).
			WithHint("%s", reconcileCommand(l, land.Branch))
	}
	j.Landing, j.Unit, j.Branch = land.ID, land.Unit, land.Branch
	j.Attempts = []attempt{{
		Attempt: ledger.Attempt{Expected: intent.Parents[0], Events: []object.OID{intent.OID}},
		Commit:  land.Commit, Tree: land.Tree, Record: intent.By.Record, Land: *land, Apart: true, Announced: intent.OID,
		Moves: []savedMove{{Ref: land.Branch, New: land.Commit, Old: land.Base}},
	}}
	return nil
}

// A footprint is what a chain has of an operation.
type footprint struct {
	intent   *event.Event // of its newest landing that was announced, first of those that have not ended
	settled  bool         // a repair says that the announced one is not to come
	landed   *event.Event // its newest landing
	ended    *event.Event // by which it gave its lease back
	takenOff bool         // its lease was taken off it
	// withdrawn is the newest event, after the intent, that made an end of it.
	withdrawn *event.Event
}

// withdraws reports whether e makes an end of a landing of op that has not arrived.
// A void under a lease that the landing took only takes an announcement back.
func withdraws(e event.Event, op ulid.ULID) bool {
	switch e.Kind {
	case event.Abort:
		return e.By.Operation == op
	case event.Void: // under a session's lease it names the landing in its reason alone
		return e.By.Operation == op && e.State.Hold == nil || strings.Contains(e.By.Reason, "operation "+op.String()+" ")
	}
	return false
}

func (f footprint) withdrawal() *Withdrawal {
	e := f.withdrawn
	if e == nil {
		return nil
	}
	return &Withdrawal{By: e.Actor, Host: e.By.Host, At: e.Time, Reason: e.By.Reason, Event: e.OID}
}

func traceOf(ctx context.Context, l *ledger.Ledger, v ledger.View, op ulid.ULID) (footprint, error) {
	var f footprint
	var past *event.Event // an intent that has ended
	ended := map[ulid.ULID]bool{}
	settled := map[object.OID]bool{}
	err := lease.Walk(ctx, l, v, func(e event.Event) bool {
		f.takenOff = f.takenOff || e.By.Target == op
		if f.withdrawn == nil && f.landed == nil && past == nil && withdraws(e, op) {
			f.withdrawn = &e
		}
		if e.By.Finding != nil {
			settled[e.By.Finding.Object] = true
		}
		switch {
		case e.By.Land == nil:
			if (e.Kind == event.Release || e.Kind == event.Abort) && e.By.Operation == op {
				f.ended = &e
			}
		case e.Kind != event.Intent:
			ended[e.By.Land.ID] = true
			if f.landed == nil && e.By.Operation == op && e.Kind == event.Land {
				f.landed = &e
			}
		case e.By.Operation != op:
		case !ended[e.By.Land.ID] && !settled[e.OID]:
			f.intent = &e
		case past == nil:
			past = &e
		}
		taken := e.Kind == event.Acquire && e.By.Operation == op // nothing of it is before that
		return f.intent == nil && !taken
	})
	f.intent = cmp.Or(f.intent, past)
	f.settled = f.intent != nil && settled[f.intent.OID]
	return f, err
}

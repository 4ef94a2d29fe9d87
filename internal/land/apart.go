package land

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

// A sequence is the rest of a landing at a remote that cannot move several refs
// together, once its intent stands on the chain: branch, record and land event
// follow one after the other, each with its expected old value. The lease stays
// held until the last, so that every stop in between is a held lease with an
// announced landing, which anybody can see.
//
// Nothing fences the branch there but its own old value. That is why a landing
// whose branch push may have been sent is finished, and never given up, as long
// as the branch is where that push expects it.
type sequence struct {
	l       *ledger.Ledger
	want    ledger.Want
	journal *journal
	root    session.Root // of a lease that the landing acquired
	brought session.Root // of the session that asks
	save    func() error // puts the journal on disk
	fresh   bool         // no push of the branch was ever sent
}

// errOvertaken ends a sequence whose branch has gone elsewhere.
var errOvertaken = errors.New("the branch has moved")

// errGone ends a sequence whose lease is no longer its own.
var errGone = errors.New("the lease is gone")

// An unsentError is a push of the branch that was never sent, since a hook of this
// clone refused it, or that the remote refused: it cannot arrive.
type unsentError struct {
	by   string // who refused it
	said error
}

func (e *unsentError) Error() string { return e.said.Error() }

// announced reports whether the landing of j is announced in v, under a hold
// that the sequence may act for.
func (s *sequence) announced(v ledger.View) bool {
	h := v.Hold()
	return h != nil && h.Intent == s.journal.Landing && s.own(v)
}

func (s *sequence) own(v ledger.View) bool {
	return lease.Owns(s.root, v.Tip) || s.lent(v)
}

// lent reports whether a session holds the lease that the landing may act for.
func (s *sequence) lent(v ledger.View) bool {
	if lease.Owns(s.brought, v.Tip) {
		return true
	}
	h := v.Hold()
	return h != nil && s.journal.Lent != "" && event.Digest(s.journal.Lent) == h.Digest
}

// finish brings the last attempt of the journal, whose intent has arrived, to
// its end, and returns the land event. The error is errOvertaken or errGone when
// that cannot be, an *unsentError, or of class Unreachable.
func (s *sequence) finish(ctx context.Context) (event.Event, error) {
	a := &s.journal.Attempts[len(s.journal.Attempts)-1]
	var said error
	for repeat := range maxRepeats {
		if repeat > 0 {
			if err := ledger.Pause(ctx, ledger.Backoff(repeat+1, time.Second)); err != nil {
				return event.Event{}, err
			}
		}
		v, err := s.l.Fetch(ctx, s.want)
		if err != nil {
			return event.Event{}, err
		}
		fate, err := s.l.Trace(ctx, v, s.journal.attempts())
		if err != nil {
			return event.Event{}, err
		}
		if a, e := s.journal.ended(fate); a != nil {
			_, err := completeRecord(ctx, s.l, s.want, v, *a)
			return e, err
		}
		if !s.announced(v) {
			return event.Event{}, errGone
		}
		var e event.Event
		if e, said, err = s.advance(ctx, v, a); err != nil || said == nil {
			return e, err
		}
	}
	return event.Event{}, fault.New(fault.Unreachable, "%s does not take the rest of the landing: %w", s.l.Remote, said)
}

// advance makes the moves that are still to come, as long as each is known to
// have been made. said is what the remote said of the one that was not.
func (s *sequence) advance(ctx context.Context, v ledger.View, a *attempt) (e event.Event, said error, err error) {
	in, err := isIn(ctx, s.l, a.Commit, v.Base)
	if err != nil {
		return e, nil, err
	}
	if !in {
		if v.Base != a.base(v.Branch) {
			return e, nil, errOvertaken
		}
		if _, err := s.l.Repo.Lookup(ctx, string(a.Commit)); errors.Is(err, git.ErrNotFound) {
			return e, nil, fault.New(fault.Failed, "%s, which operation %s has announced, is not in this clone", a.Commit.Short(), s.journal.Operation).
				WithHint("%s", s.l.Command("git", "land", "abort", s.journal.Operation.String(), "--reason", "WHY"))
		}
		if said, err = s.moveBranch(ctx, v, a); said != nil || err != nil {
			return e, said, err
		}
		v.Base = a.Commit
	}
	if v, err = completeRecord(ctx, s.l, s.want, v, *a); err != nil {
		return e, nil, err
	}
	if !s.announced(v) { // it had to look again
		return e, nil, errGone
	}
	return s.moveChain(ctx, v, a)
}

// moveBranch runs the user's pre-push hook, as every landing does.
func (s *sequence) moveBranch(ctx context.Context, v ledger.View, a *attempt) (said, err error) {
	moves := []git.Move{{Ref: v.Branch, New: a.Commit, Old: git.Was(v.Base)}}
	out, err := s.l.Publish(ctx, ledger.Publication{Moves: moves, Hooks: true, Message: "land: " + s.journal.Unit,
		Environ: ledger.HookEnviron(v.Hold().Operation, a.Announced)})
	switch {
	case err != nil:
		return nil, err
	case out.Unsent && s.fresh:
		return nil, &unsentError{"a hook of this clone", out.Said}
	case out.Refused && out.Declined && s.fresh:
		again, err := s.l.Fetch(ctx, s.want) // what a server answers need not be what it did
		if err == nil && again.Base == v.Base {
			err = &unsentError{s.l.Remote, out.Said}
		}
		s.fresh = false
		return out.Said, err
	case out.Unsent: // an earlier one was, and may still arrive
		return nil, fault.New(fault.Unreachable, "a hook of this clone refused the push of operation %s, of which an earlier one may have been sent: %w",
			s.journal.Operation, out.Said).
			WithHint("mend what it objects to, then: git land resume   (or, to give it up: git land abort %s --reason WHY)", s.journal.Operation)
	case out.Done:
		s.l.Moved(v, moves)
	}
	s.fresh = false
	return out.Said, nil
}

// moveChain appends the land event, which also gives back a lease that the
// landing acquired.
func (s *sequence) moveChain(ctx context.Context, v ledger.View, a *attempt) (e event.Event, said error, err error) {
	act := relanding(*s.journal, *a)
	act.By.Operation = v.Hold().Operation
	if lease.Owns(s.root, v.Tip) && a.Land.Steps == "" {
		act.By.Secret = lease.SecretOf(s.root, v.Tip)
	}
	d, err := s.l.Draft(v)
	if err != nil {
		return e, nil, err
	}
	if e, err = d.Add(ctx, act); err != nil {
		return e, nil, err
	}
	if err := d.Write(ctx); err != nil {
		return e, nil, err
	}
	a.Events = append(a.Events, e.OID)
	if err := s.save(); err != nil {
		return e, nil, err
	}
	out, err := s.l.Publish(ctx, ledger.Publication{Moves: []git.Move{d.Move()}, Message: "lease: land"})
	if err == nil && out.Done {
		s.l.Moved(v, []git.Move{d.Move()})
	}
	return e, out.Said, err
}

// retract takes the announcement back, and keeps the lease. The landing itself says
// so, which has nothing on its way.
func (s *sequence) retract(ctx context.Context, why string) error {
	_, err := s.l.Append(ctx, s.want, func(v ledger.View, d *ledger.Draft) error {
		if !s.announced(v) {
			return errSettled
		}
		_, err := d.Add(ctx, event.Event{Kind: event.Void, By: event.By{Operation: v.Hold().Operation,
			TakenBack: s.journal.Landing, Reason: event.CleanText(why, event.MaxText)}})
		return err
	})
	if errors.Is(err, errSettled) {
		return nil
	}
	return err
}

// newSequence is for a landing whose journal another process has left.
func newSequence(l *ledger.Ledger, j *journal, from session.Source) (*sequence, error) {
	root, err := j.root()
	if err != nil {
		return nil, err
	}
	brought, err := from.Load()
	if err != nil && !errors.Is(err, session.ErrNoToken) {
		return nil, err
	}
	return &sequence{l: l, want: ledger.Want{Name: j.Lease, Branch: j.Branch}, journal: j, root: root, brought: brought.Root,
		save: func() error { return l.Dir.Journal().Write(j.Operation, *j) }}, nil
}

func (m *motion) sequence() *sequence {
	return &sequence{l: m.l, want: m.want, journal: &m.journal, root: m.root, brought: m.brought.Root, save: m.write, fresh: true}
}

// carry brings a landing whose intent stands on the chain to its end. It reports
// false when all has to be planned anew.
func (m *motion) carry(ctx context.Context, b *built) (done bool, err error) {
	s := m.sequence()
	if ctx.Err() != nil { // nothing but the intent was sent yet
		return false, m.takeBack(ctx, s, context.Cause(ctx), "interrupted")
	}
	e, err := s.finish(ctx)
	if err != nil && ctx.Err() != nil {
		// The branch's push may be on its way, and nothing could keep it from
		// arriving: only the landing's own end is sure.
		settled, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		e, err = s.finish(settled)
	}
	var unsent *unsentError
	switch {
	case err == nil:
		b.event = e
		m.pushed()
		return true, nil
	case errors.Is(err, errOvertaken): // by somebody who did not hold the lease
		return false, m.takeBack(ctx, s, nil, "the branch has moved")
	case errors.As(err, &unsent):
		m.doubt = unsent.by == m.l.Remote // as a fence does where refs cannot move together; by now they may
		return false, m.takeBack(ctx, s, fault.New(fault.Unreachable, "%s refused the push, and nothing landed: %w", unsent.by, unsent.said).
			WithHint("mend what it objects to, and run git land again"), "its push was refused")
	case errors.Is(err, errGone):
		return false, m.taken(ctx, s, b)
	}
	return false, m.open(err)
}

// takeBack retracts the announcement, and returns cause, if that worked.
func (m *motion) takeBack(ctx context.Context, s *sequence, cause error, why string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := s.retract(ctx, why); err != nil {
		return m.open(err)
	}
	return cause
}

// taken tells the end of a landing whose lease was taken off it. The journal stays
// where the branch has moved, and where a push that was sent may move it yet.
func (m *motion) taken(ctx context.Context, s *sequence, b *built) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	v, err := m.l.Fetch(ctx, m.want)
	if err != nil {
		return m.open(err)
	}
	in, err := isIn(ctx, m.l, b.commit, v.Base)
	if err != nil {
		return m.open(err)
	}
	lost, ok := errors.AsType[*fault.Error](m.lost(ctx, v))
	if !ok {
		return m.open(fmt.Errorf("operation %s no longer holds the lease %s, and what became of it cannot be read", m.journal.Operation, v.Name))
	}
	resume := m.l.Command("git", "land", "resume", m.journal.Operation.String())
	switch {
	case in:
		lost.What = fmt.Sprintf("%s has %s, but the lease was lost before record and event could be written: %s", v.Branch.Branch(), b.commit.Short(), lost.What)
		lost.Hint = resume
	case !s.fresh && v.Base == b.attempt.base(v.Branch):
		lost.What += fmt.Sprintf("; its push of %s was sent, and may still arrive as long as %s is at %s",
			b.commit.Short(), v.Branch.Branch(), nonEmpty(v.Base.Short(), "(unborn)"))
		lost.Hint = fmt.Sprintf("%s   (it asks what became of that; or, to land it anew, which keeps it out: %s)", resume, nonEmpty(m.journal.again(ctx, m.l), withSelection(m.l, m.r.landing(), m.r.Selection)))
	default:
		return lost
	}
	return &openError{lost}
}

// unannounced is the fault of a record that an intent cannot carry.
func unannounced(line string) error {
	if line == event.CleanText(line, event.MaxRecord) {
		return nil
	}
	if len(line) <= event.MaxRecord {
		return fault.New(fault.Conflict, "the record of this landing has characters that an intent, which a remote without --atomic needs, cannot carry").
			WithHint("take control characters out of -m, and out of the commands of its checks")
	}
	return fault.New(fault.Conflict, "the record of this landing has %d bytes, and an intent, which a remote without --atomic needs, carries %d",
		len(line), event.MaxRecord).WithHint("land it in smaller parts, or use fewer checks")
}

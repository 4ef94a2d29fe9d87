package land

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

// holds reports whether this landing may push under the lease as v shows it.
func (m *motion) holds(v ledger.View) bool {
	return lease.Owns(m.root, v.Tip) || lease.Owns(m.brought.Root, v.Tip)
}

// enter makes sure that nobody else holds the lease, and on the held way that
// this landing does. again means that the state has to be fetched anew.
func (m *motion) enter(ctx context.Context, v ledger.View) (again bool, err error) {
	hold := v.Hold()
	switch {
	case hold != nil && m.holds(v):
		if !hold.Intent.IsZero() && hold.Intent != m.journal.Landing {
			return false, fault.New(fault.Held, "landing %s was announced under the lease %s and has not ended", hold.Intent, v.Name).
				WithHint("%s   (then run git land again)", m.l.Command("git", "land", "resume", hold.Operation.String()))
		}
		return false, nil
	case !m.root.IsZero():
		return false, m.lost(ctx, v)
	case v.Phase() == event.Frozen:
		return false, lease.InFrost(ctx, m.l, v)
	case hold != nil:
		if m.wait.Again(ctx, m.l, v.Name, *hold) {
			return true, nil
		}
		return false, errors.Join(lease.Held(m.l, v, false), ctx.Err())
	case !m.heldWay:
		return false, nil
	}
	root := session.NewRoot()
	m.journal.Token = root.Hex()
	if err := m.write(); err != nil {
		return false, err
	}
	grant, err := lease.Acquire(ctx, m.l, lease.Acquisition{Want: m.want, Root: root, Operation: m.journal.Operation,
		Purpose: "git land " + m.journal.Unit,
		Waiting: lease.Waiting{Limit: m.r.Waiting.Limit - time.Since(m.start), Tell: m.r.Waiting.Tell}})
	if ledger.IsUnsettled(err) {
		return false, m.openHold(ctx, err)
	}
	if err != nil {
		return false, err
	}
	m.root = root
	m.tell("leased", fmt.Sprintf("%s at %s, operation %s", grant.Name, grant.Remote, grant.Operation))
	return true, nil
}

// openHold is the fault of a landing of which it is not known whether it has the
// lease, or will come to it.
func (m *motion) openHold(ctx context.Context, cause error) error {
	f := fault.New(fault.Unreachable, "it is not known whether operation %s has taken the lease %s: %w", m.journal.Operation, m.want.Name, cause)
	resume := m.l.Command("git", "land", "resume", m.journal.Operation.String())
	f.WithHint("%s   (it asks, and gives the lease back)", resume)
	if told, ok := errors.AsType[*fault.Error](cause); ok && told.Class == fault.Ambiguous { // the chain has to be mended first
		f.Class, f.Facts = told.Class, told.Facts
		f.WithHint("%s   (then: %s)", told.Hint, resume)
	}
	return errors.Join(ctx.Err(), &openError{f})
}

// brokenBefore refuses a session that believes to hold the lease, and does not
// any more: one that was taken off must not land as if nothing had happened, though
// the lease may be free by now. It is told until it has said that it knows.
func (m *motion) brokenBefore(ctx context.Context, v ledger.View) error {
	if !m.root.IsZero() {
		return nil
	}
	f, err := takenOff(ctx, m.l, v, m.r.Session, m.brought)
	if f != nil {
		return f
	}
	return err
}

// lost tells the end of a hold that this landing had.
func (m *motion) lost(ctx context.Context, v ledger.View) error {
	root := m.root
	if root.IsZero() {
		root = m.brought.Root
	}
	end, err := lease.Ending(ctx, m.l, v, root)
	if err != nil {
		return err
	}
	if end != nil {
		if f := end.Lost(m.l); f != nil {
			return f
		}
	}
	return fault.New(fault.Lost, "operation %s no longer holds the lease %s", m.journal.Operation, v.Name).
		WithHint("%s", m.l.Command("git", "lease", "log", v.Name))
}

// settleTime is how long we go on after Ctrl-C to leave nothing behind.
const settleTime = 30 * time.Second

// giveUp ends an operation that did not land: it gives back a lease that the
// landing acquired. The journal stays where the end is not known.
func (m *motion) giveUp(ctx context.Context, cause error) error {
	if _, open := errors.AsType[*openError](cause); open {
		return nil
	}
	if m.loose && m.root.IsZero() { // else the release moves the chain past it
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		arrived, byOthers, err := m.sequence().outrun(ctx, "")
		if err == nil && (arrived != nil || byOthers) {
			err = errors.New("it came when it was not expected any more")
		}
		if err != nil {
			return m.open(err)
		}
	}
	if !m.root.IsZero() && fault.ClassOf(cause) != fault.Lost {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		if _, err := lease.GiveBack(ctx, m.l, m.want, m.root); err != nil {
			if fault.ClassOf(err) != fault.Lost { // it may be held still
				return fault.New(cmp.Or(fault.ClassOf(err), fault.Unreachable), "the lease %s could not be given back: %w", m.want.Name, err).
					WithHint("%s", m.l.Command("git", "land", "resume", m.journal.Operation.String()))
			}
			return errors.Join(fmt.Errorf("give the lease back: %w", err), m.forget())
		}
	}
	return m.forget()
}

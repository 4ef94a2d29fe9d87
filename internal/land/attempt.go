package land

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gitland/internal/event"
	"gitland/internal/lease"
	"gitland/internal/ledger"
)

// guess tries to land from the mirror, and reports whether that ended the
// motion. Whatever keeps it from pushing may be the mirror's age, so it only
// means that the authority has to be waited for.
func (m *motion) guess(ctx context.Context, v ledger.View) (done bool, err error) {
	if atomic, err := m.l.Atomic(); err != nil || !atomic {
		return false, nil
	}
	if m.brokenBefore(ctx, v) != nil || v.Phase() != event.Free && !m.holds(v) {
		return false, nil
	}
	p, err := makePlan(ctx, m.l, v, m.change)
	if err != nil || p.already != "" || p.guard(ctx, m.l) != nil {
		return false, nil
	}
	wants, err := demanded(v.Policy, m.r.Check, m.r.Command)
	if err != nil || v.Policy.Problem != nil || len(v.Policy.Steps)+len(m.r.Steps) > 0 || soundPolicy(ctx, m.l, m.r.Selection, p) != nil {
		return false, nil
	}
	gate, err := judge(ctx, m.l, p, wants)
	if err != nil || !gate.judgement.Pass { // what is missing, an override has to name truly
		return false, nil
	}
	if m.runHooks(ctx, p) != nil { // they are not asked again
		return false, nil
	}
	m.describe(p)
	m.tellGate(p, gate)
	m.planned = &v
	done, err = m.push(ctx, p, gate)
	m.heldWay = false // the mirror was old, which is no lost race
	if !m.sent {
		return false, nil // it came to no push, and what kept it from one may be the mirror's age
	}
	return done, err
}

// run plans on what was fetched and acts, again after each lost race, until the
// change has landed or cannot.
func (m *motion) run(ctx context.Context, v ledger.View, guess bool) error {
	if guess {
		if done, err := m.guess(ctx, v); done || err != nil {
			return err
		}
		if !m.sent { // the authority may choose another target or lease than the mirror did
			var err error
			if v, err = m.l.Fetch(ctx, m.r.Want); err != nil {
				return err
			}
			if err := m.aim(ctx, v); err != nil {
				return err
			}
			guess = false
		}
	}
	for first := !guess; ; first = false {
		if !first {
			var err error
			if v, err = m.fetch(ctx); err != nil {
				return err
			}
			m.tellAgain(v)
		}
		seen := v
		m.planned = &seen
		done, err := m.attempt(ctx, v)
		if done || err != nil {
			return err
		}
	}
}

// tellAgain says why what was told before is done anew: the push lost its race, or the
// branch moved under the check.
func (m *motion) tellAgain(v ledger.View) {
	was, pushed := m.planned, len(m.tried) > m.again
	m.again = len(m.tried)
	switch {
	case was == nil || !pushed && !m.checked:
	case was.Base != v.Base:
		m.tell("again", fmt.Sprintf("%s has moved to %s", v.Branch.Branch(), nonEmpty(v.Base.Short(), "(unborn)")))
	case pushed && was.TipOID() != v.TipOID():
		m.tell("again", fmt.Sprintf("the lease %s has changed", v.Name))
	case pushed && was.Records != v.Records:
		m.tell("again", "the records have changed")
	}
}

// attempt does on one fetched state what can be done on it. It reports false
// when the state has to be fetched anew.
func (m *motion) attempt(ctx context.Context, v ledger.View) (done bool, err error) {
	if v.Problem != nil {
		return false, v.Problem
	}
	if done, err := m.halfway(ctx, v); done || err != nil {
		return done, err
	}
	if err := m.brokenBefore(ctx, v); err != nil {
		return false, err
	}
	if err := m.noteRewind(ctx, v); err != nil {
		return false, err
	}
	// Only now: what has landed half-way is what was read before.
	if m.r.Paths == nil && !slices.Equal(v.Policy.Paths, m.landPaths) {
		m.tell("again", "the policy has other land.paths now")
		if err := m.aim(ctx, v); err != nil {
			return false, err
		}
	}
	p, err := makePlan(ctx, m.l, v, m.change)
	if err != nil {
		return false, err
	}
	m.describe(p)
	if p.already != "" {
		m.result.Status, m.result.Commit = Already, p.already
		if len(m.r.Steps) > 0 {
			m.warn("no step was run: they follow a landing, and this one was made before")
		}
		err := m.catchUp(ctx, p)
		return true, errors.Join(err, m.notYet(ctx, v, p.already))
	}
	if m.r.DryRun {
		return true, m.foretell(ctx, p)
	}
	if err := p.guard(ctx, m.l); err != nil {
		return false, err
	}
	if v.Phase() == event.Frozen { // before a check is run in vain
		_, err := m.enter(ctx, v)
		return false, err
	}
	if err := m.planSteps(v); err != nil {
		return false, err
	}
	gate, again, err := m.gate(ctx, p)
	if err != nil || again {
		return false, err
	}
	if err := m.runHooks(ctx, p); err != nil {
		return false, err
	}
	if err := m.choose(ctx); err != nil {
		return false, err
	}
	if again, err = m.enter(ctx, v); err != nil || again {
		return false, err
	}
	return m.push(ctx, p, gate)
}

// choose takes the held way where the remote cannot move refs together, and where
// steps follow.
func (m *motion) choose(ctx context.Context) error {
	if err := m.l.Ready(ctx); err != nil {
		return err
	}
	atomic, err := m.l.Atomic()
	m.apart = !atomic
	m.heldWay = m.heldWay || m.apart || len(m.journal.Steps) > 0
	return err
}

// noteRewind warns, before anything is pushed, that the target no longer has the
// newest landing. It is no reason not to land on what the target is now, but somebody
// has to know.
func (m *motion) noteRewind(ctx context.Context, v ledger.View) error {
	if m.rewound {
		return nil
	}
	what, err := rewound(ctx, m.l, v, m.r.Want)
	if m.rewound = what != ""; m.rewound {
		m.warn("%s", what)
	}
	return err
}

// foretell ends a dry run: the plan stands, whatever would refuse it, and who is found in
// the way is told.
func (m *motion) foretell(ctx context.Context, p plan) error {
	m.result.Status = Planned
	stepsErr := m.planSteps(p.view)
	m.result.Steps = m.journal.Steps
	err := cmp.Or(p.guard(ctx, m.l), stepsErr)
	if err == nil {
		_, _, err = m.gate(ctx, p)
	}
	return errors.Join(err, m.foretellLease(ctx, p.view))
}

func (m *motion) foretellLease(ctx context.Context, v ledger.View) error {
	if h := v.Hold(); h != nil && !m.holds(v) {
		m.tell("leased", "not yet: held by "+lease.Describe(*h, m.l.Now()))
	}
	f, err := lease.FrostOf(ctx, m.l, v)
	if f != nil {
		m.tell("leased", "not yet: frozen by "+f.Describe(m.l.Now())+"; when that is over: "+f.Thaw)
	}
	return err
}

// catchUp brings the local side along after a change that the target has: where
// an earlier landing of it could not, because files were in the way.
func (m *motion) catchUp(ctx context.Context, p plan) error {
	differs := len(m.change.diff) > 0 || m.change.kind == fromCommits && p.elsewhere && !m.change.apart
	if m.r.DryRun || !differs || m.l.IsLocal() {
		return nil
	}
	b := built{plan: p, commit: p.view.Base}
	b.plan.tree = p.baseTree
	m.bringAlong(ctx, b)
	return nil
}

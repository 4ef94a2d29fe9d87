package land

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/verify"
)

// verifyCommand is the whole command that would verify what p would land.
func verifyCommand(l *ledger.Ledger, s Selection, team policy.Policy) string {
	words := []string{"git", "land", "verify"}
	if !slices.ContainsFunc(team.Checks, func(c policy.Check) bool { return c.Text != "" }) {
		words = append(words, "-x", "COMMAND")
	}
	return withSelection(l, words, s)
}

// recordCommand is the whole command that records what another system found.
func recordCommand(l *ledger.Ledger, check string, tree object.OID) string {
	return l.Command("git", "land", "verify", "--record", "pass", "--check", check, "--tree", string(tree))
}

// withSelection ends a command line with what the user chose to land, and where.
func withSelection(l *ledger.Ledger, words []string, s Selection) string {
	if s.Unit != "" {
		words = append(words, "--unit", s.Unit)
	}
	if s.Want.Branch != "" {
		words = append(words, "--onto", s.Want.Branch.Branch())
	}
	if s.Mode != "" {
		words = append(words, "--"+string(s.Mode))
	}
	for _, o := range []struct{ name, value string }{{"--head", s.Head}, {"--expect-base", s.ExpectBase}, {"--expect-head", s.ExpectHead}} {
		if o.value != "" {
			words = append(words, o.name, o.value)
		}
	}
	for _, g := range s.Allow {
		words = append(words, "--allow", string(g))
	}
	text := l.Command(words...)
	if s.Paths != nil {
		text += " " + fault.Command(append([]string{"--"}, s.Paths...)...)
	}
	return text
}

// A verdict is what the gate found.
type verdict struct {
	judgement note.Judgement
	merged    bool // unit: the merged tree itself is not verified
}

// judge asks whether p may land.
func judge(ctx context.Context, l *ledger.Ledger, p plan, wants []note.Want) (verdict, error) {
	of := func(tree object.OID) (note.Judgement, error) {
		lines, err := l.Verified(ctx, p.view, tree)
		return note.Judge(lines, tree, wants...), err
	}
	var v verdict
	var err error
	if v.judgement, err = of(p.tree); err != nil || v.judgement.Pass {
		return v, err
	}
	if !p.view.Policy.Unit || p.change.tree == p.tree || len(v.judgement.Failing) > 0 {
		return v, nil
	}
	own, err := of(p.change.tree)
	if own.Pass {
		v.judgement, v.merged = own, true
	}
	return v, err
}

// unverified is the fault of a plan that the gate refuses.
func unverified(ctx context.Context, l *ledger.Ledger, s Selection, p plan, v verdict, wants []note.Want) error {
	facts := map[string]any{"tree": p.tree, "base": p.view.Base, "branch": p.view.Branch, "missing": v.judgement.Missing}
	hint := verifyCommand(l, s, p.view.Policy)
	external := slices.IndexFunc(wants, func(w note.Want) bool { return w.Command == "" && !v.judgement.Passed(w) })
	failing := slices.DeleteFunc(slices.Clone(v.judgement.Failing), func(f note.Verification) bool { // what is wanted is run once more
		return slices.Contains(wants, note.Want{Check: f.Check, Command: f.Command}) && f.Command != ""
	})
	if n := len(failing); n > 0 {
		last := failing[n-1]
		facts["failed"] = map[string]any{"check": last.Check, "command": last.Command, "exit": last.Exit, "actor": last.Actor}
		f := fault.New(fault.Unverified, "the tree %s that would land failed its check %s (%s, exit %d, by %s)",
			p.tree, last.Check, nonEmpty(last.Command, "recorded from elsewhere"), last.Exit, last.Actor).WithFacts(facts)
		if out := verify.OutputOf(l.Dir, last.ID); out != nil {
			facts["output"] = out
			f.WithDetails(Told(out)...)
		}
		if last.Command == "" {
			return f.WithHint("mend the change; or, where that verdict was wrong: %s", l.Command("git", "land", "verify", "--record", "pass", "--check", last.Check, "--tree", string(p.tree)))
		}
		passed, err := passedSince(ctx, l, p, last)
		if err != nil {
			return err
		}
		command := "COMMAND"
		if passed != nil {
			how := "was recorded without a command"
			if passed.Command != "" {
				how, command = "is of the command "+passed.Command, passed.Command
			}
			f.What += fmt.Sprintf("; a newer pass of %s %s, and a check is a name and a command, so it does not take that verdict back", last.Check, how)
		}
		return f.WithHint("mend the change; or, where the command was wrong, land with the right one, which then counts instead: %s", landWith(l, s, last.Check, command))
	}
	if external >= 0 {
		check := wants[external].Check
		hint = recordCommand(l, check, p.tree)
		return fault.New(fault.Unverified, "the tree %s that would land has no pass of the check %s, which another system records", p.tree, check).
			WithHint("%s   (when it has passed there)", hint).WithFacts(facts)
	}
	moved, err := baseMoved(ctx, l, p, wants)
	if err != nil {
		return err
	}
	if moved {
		facts["base_moved"] = true
		return fault.New(fault.Unverified, "the change was verified, but %s has moved since: the tree %s that would land now has no passing verification",
			p.view.Branch.Branch(), p.tree).
			WithHint("%s", hint).WithFacts(facts)
	}
	return fault.New(fault.Unverified, "the tree %s that would land has no passing verification", p.tree).
		WithHint("%s", hint).WithFacts(facts)
}

// passedSince is the newest pass of the failed check by another command, or by none,
// that was recorded after it; nil where there is none.
func passedSince(ctx context.Context, l *ledger.Ledger, p plan, failed note.Verification) (*note.Verification, error) {
	lines, err := l.Verified(ctx, p.view, p.tree)
	if err != nil {
		return nil, err
	}
	for _, v := range slices.Backward(lines) {
		switch {
		case v.ID == failed.ID:
			return nil, nil
		case v.Check == failed.Check && v.Verdict == note.Pass && v.Tree == failed.Tree:
			return &v, nil
		}
	}
	return nil, nil
}

// landWith is the command line that lands with a check of its own.
func landWith(l *ledger.Ledger, s Selection, check, command string) string {
	s.check, s.command = check, command
	return withSelection(l, s.landing(), s)
}

func nonEmpty(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// olderBases is how far back one looks for a verification on an older base.
const olderBases = 8

// baseMoved reports whether the same change was verified on an older state of
// the target. It is asked only to word a refusal, so it may take its time.
func baseMoved(ctx context.Context, l *ledger.Ledger, p plan, wants []note.Want) (bool, error) {
	passed := func(tree object.OID) (bool, error) {
		lines, err := l.Verified(ctx, p.view, tree)
		return err == nil && note.Judge(lines, tree, wants...).Pass, err
	}
	if ok, err := passed(p.change.tree); ok || err != nil || p.view.Base == "" {
		return ok && p.change.tree != p.tree, err
	}
	older, err := l.Repo.FirstParents(ctx, p.view.Base, p.change.head, olderBases)
	if err != nil {
		return false, err
	}
	for _, oid := range older {
		if oid == p.view.Base {
			continue
		}
		v := p.view
		v.Base = oid
		before, err := makePlan(ctx, l, v, p.change)
		if err != nil || before.already != "" {
			continue
		}
		if ok, err := passed(before.tree); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// gate decides whether p may land. again means that checks have run, or that
// the lease was taken for them, and that the plan has to be made anew.
func (m *motion) gate(ctx context.Context, p plan) (verdict, bool, error) {
	team := p.view.Policy
	if team.Problem != nil && !m.r.Force {
		return verdict{}, false, notUnderstood(team, "what a landing needs is not known")
	}
	if err := soundPolicy(ctx, m.l, m.r.Selection, p); err != nil {
		return verdict{}, false, err
	}
	wants, err := demanded(team, m.r.Check, m.r.Command)
	if err != nil {
		return verdict{}, false, err
	}
	v, err := judge(ctx, m.l, p, wants)
	if err != nil {
		return v, false, err
	}
	if team.Problem != nil { // Force goes past what nobody understood, too
		v.judgement.Pass = false
		v.judgement.Missing = append(v.judgement.Missing, policy.File)
	}
	if v.judgement.Pass || m.r.Force {
		m.tellGate(p, v)
		return v, false, nil
	}
	run, blocked := lacking(v.judgement, wants)
	if blocked || len(run) == 0 {
		return v, false, unverified(ctx, m.l, m.r.Selection, p, v, wants)
	}
	if m.r.DryRun {
		for _, w := range run {
			m.tell("verified", fmt.Sprintf("not yet: %s would be run on tree %s", w.Command, p.tree.Short()))
		}
		return v, false, nil
	}
	// A check must not be everybody's stop: it runs without the lease
	// first, and under it only if the base moved meanwhile.
	if m.checked && !m.holds(p.view) {
		m.heldWay = true
		again, err := m.enter(ctx, p.view)
		return v, again, err
	}
	if err := m.runHooks(ctx, p); err != nil { // before a check is run in vain
		return v, false, err
	}
	m.checked = true
	if !m.written { // so that a landing that dies in its check is known to have been one
		if err := m.write(); err != nil {
			return v, false, err
		}
	}
	return v, true, m.check(ctx, p, run)
}

func (m *motion) tellGate(p plan, v verdict) {
	if !v.judgement.Pass {
		m.tell("verified", "NOT: "+m.r.Reason)
		return
	}
	var names []string
	flaky := v.judgement.Flaky()
	for _, pass := range v.judgement.Passing {
		name := pass.Check
		if slices.Contains(flaky, name) {
			name += " (flaky: it had failed before)"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	text := fmt.Sprintf("tree %s by %s", v.judgement.Passing[0].Tree.Short(), shortList(names))
	if v.merged {
		text += fmt.Sprintf("; merged onto the target it is %s, which is not verified", p.tree.Short())
	}
	m.tell("verified", text)
}

// check runs checks on the tree that would land, and records what they found.
func (m *motion) check(ctx context.Context, p plan, wants []note.Want) error {
	defer func() { m.wait, m.start = lease.NewWaiter(m.r.Waiting), time.Now() }() // a check is no wait for a lease
	found, published, err := runChecks(ctx, m.l, p, checkRequest{wants: wants, typed: m.r.Command, again: acceptCommand(m.l, m.r.Selection), unit: m.journal.Unit,
		tell: m.tell, output: m.r.Stderr, environ: m.r.Environ, id: m.journal.Operation})
	if published != nil {
		m.warn("the verification is kept here and will be published later: %v", published)
	}
	return firstError(m.l, p.view.Policy, found, err)
}

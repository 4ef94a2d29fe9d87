package land

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

// verifyCommand is the whole command that would verify what p would land.
func verifyCommand(l *ledger.Ledger, s Selection, check string) string {
	words := []string{"git", "land", "verify"}
	if check != "" && check != DefaultCheck {
		words = append(words, "--check", check)
	}
	return withSelection(l, append(words, "-x", "COMMAND"), s)
}

// withSelection ends a command line with what the user chose to land, and where.
func withSelection(l *ledger.Ledger, words []string, s Selection) string {
	if s.Unit != "" {
		words = append(words, "--unit", s.Unit)
	}
	if s.Want.Branch != "" {
		words = append(words, "--onto", s.Want.Branch.Branch())
	}
	text := l.Command(words...)
	if s.Paths != nil {
		text += " " + fault.Command(append([]string{"--"}, s.Paths...)...)
	}
	return text
}

// DefaultCheck is the name of a check that was given none.
const DefaultCheck = "default"

// required is land.require: whether the very tree that lands must be verified,
// or the change's own.
func required(c git.Config) (unit bool, err error) {
	switch v := c.Get("land.require"); v {
	case "", "result":
		return false, nil
	case "unit":
		return true, nil
	default:
		return false, fault.New(fault.Usage, "config land.require: %q is neither result nor unit", v).
			WithHint("git config land.require result")
	}
}

// A verdict is what the gate found.
type verdict struct {
	judgement note.Judgement
	merged    bool // unit: the merged tree itself is not verified
}

// judge asks whether p may land.
func judge(ctx context.Context, l *ledger.Ledger, p plan, want *note.Want) (verdict, error) {
	of := func(tree object.OID) (note.Judgement, error) {
		lines, err := l.Verified(ctx, p.view, tree)
		return note.Judge(lines, tree, want), err
	}
	var v verdict
	var err error
	if v.judgement, err = of(p.tree); err != nil || v.judgement.Pass {
		return v, err
	}
	unit, err := required(l.Repo.Config)
	if err != nil || !unit || p.change.tree == p.tree || len(v.judgement.Failing) > 0 {
		return v, err
	}
	own, err := of(p.change.tree)
	if own.Pass {
		v.judgement, v.merged = own, true
	}
	return v, err
}

// unverified is the fault of a plan that the gate refuses.
func unverified(ctx context.Context, l *ledger.Ledger, s Selection, p plan, v verdict, want *note.Want) error {
	facts := map[string]any{"tree": p.tree, "base": p.view.Base, "branch": p.view.Branch, "missing": v.judgement.Missing}
	check := ""
	if want != nil {
		check = want.Check
	}
	hint := verifyCommand(l, s, check)
	if n := len(v.judgement.Failing); n > 0 {
		last := v.judgement.Failing[n-1]
		facts["failed"] = map[string]any{"check": last.Check, "command": last.Command, "exit": last.Exit, "actor": last.Actor}
		f := fault.New(fault.Unverified, "the tree %s that would land failed its check %s (%s, exit %d, by %s)",
			p.tree, last.Check, nonEmpty(last.Command, "recorded from elsewhere"), last.Exit, last.Actor).WithFacts(facts)
		if last.Command == "" {
			return f.WithHint("mend the change; or, where that verdict was wrong: git land verify --record pass --check %s --tree %s", fault.Command(last.Check), p.tree)
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
	moved, err := baseMoved(ctx, l, p, want)
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
	words := []string{"git", "land", "-x", command}
	if check != DefaultCheck {
		words = append(words, "--check", check)
	}
	for _, m := range s.Messages {
		words = append(words, "-m", m)
	}
	return withSelection(l, words, s)
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
func baseMoved(ctx context.Context, l *ledger.Ledger, p plan, want *note.Want) (bool, error) {
	passed := func(tree object.OID) (bool, error) {
		lines, err := l.Verified(ctx, p.view, tree)
		return err == nil && note.Judge(lines, tree, want).Pass, err
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

// gate decides whether p may land. again means that a check has run, or that
// the lease was taken for one, and that the plan has to be made anew.
func (m *motion) gate(ctx context.Context, p plan) (verdict, bool, error) {
	want := m.wanted()
	v, err := judge(ctx, m.l, p, want)
	switch {
	case err != nil:
		return v, false, err
	case v.judgement.Pass:
		m.tellGate(p, v)
		return v, false, nil
	case want != nil && m.r.DryRun && !m.r.Force && !failsElsewhere(v.judgement, *want):
		m.step("verified", fmt.Sprintf("not yet: %s would be run on tree %s", want.Command, p.tree.Short()))
		return v, false, nil
	case want != nil && !m.r.Force && !failsElsewhere(v.judgement, *want):
		// A check must not be everybody's stop: it runs without the lease
		// first, and under it only if the base moved meanwhile.
		if m.checked && !m.holds(p.view) {
			m.heldWay = true
			again, err := m.enter(ctx, p.view)
			return v, again, err
		}
		m.checked = true
		if !m.written { // so that a landing that dies in its check is known to have been one
			if err := m.write(); err != nil {
				return v, false, err
			}
		}
		return v, true, m.check(ctx, p, *want)
	case m.r.Force:
		m.tellGate(p, v)
		return v, false, nil
	}
	return v, false, unverified(ctx, m.l, m.r.Selection, p, v, want)
}

// failsElsewhere reports whether another check than the wanted one has failed:
// then running that one would not help.
func failsElsewhere(j note.Judgement, want note.Want) bool {
	return slices.ContainsFunc(j.Failing, func(v note.Verification) bool { return v.Check != want.Check })
}

// wanted is the check that -x named, nil when none was.
func (m *motion) wanted() *note.Want {
	if m.r.Command == "" {
		return nil
	}
	return &note.Want{Check: nonEmpty(m.r.Check, DefaultCheck), Command: m.r.Command}
}

func (m *motion) tellGate(p plan, v verdict) {
	if !v.judgement.Pass {
		m.step("verified", "NOT: "+m.r.Reason)
		return
	}
	last := v.judgement.Passing[len(v.judgement.Passing)-1]
	text := fmt.Sprintf("tree %s by %s", last.Tree.Short(), last.Check)
	if v.merged {
		text += fmt.Sprintf("; merged onto the target it is %s, which is not verified", p.tree.Short())
	}
	m.step("verified", text)
}

// check runs -x on the tree that would land, and records what it found.
func (m *motion) check(ctx context.Context, p plan, want note.Want) error {
	defer func() { m.wait, m.start = lease.NewWaiter(m.r.Waiting), time.Now() }() // a check is no wait for a lease
	found, published, err := runCheck(ctx, m.l, p, checkRequest{want: want, unit: m.journal.Unit, output: m.r.Stderr, environ: m.r.Environ, id: m.journal.Operation})
	if err != nil {
		return err
	}
	if published != nil {
		m.warn("the verification is kept here and will be published later: %v", published)
	}
	if found.Verdict == note.Fail {
		return failed(found)
	}
	return nil
}

// failed is the fault of a check that was just run.
func failed(v note.Verification) error {
	return fault.New(fault.Unverified, "the check %s failed on tree %s: %s exited with %d", v.Check, v.Tree, v.Command, v.Exit).
		WithFacts(map[string]any{"tree": v.Tree, "check": v.Check, "command": v.Command, "exit": v.Exit}).
		WithHint("mend it and run git land again")
}

package land

import (
	"context"

	"gitland/internal/fault"
	"gitland/internal/git"
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
	if s.Want.Branch != "" {
		words = append(words, "--onto", s.Want.Branch.Branch())
	}
	text := l.Command(append(words, "-x", "COMMAND")...)
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
		return fault.New(fault.Unverified, "the tree %s that would land failed its check %s (%s, exit %d, by %s)",
			p.tree, last.Check, nonEmpty(last.Command, "recorded from elsewhere"), last.Exit, last.Actor).
			WithHint("mend it, then: %s", hint).WithFacts(facts)
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

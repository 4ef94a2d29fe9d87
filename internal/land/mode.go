package land

import (
	"cmp"
	"context"
	"slices"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/policy"
)

// chooseMode settles how commits land: as asked for, else as the policy has it. What a
// team has agreed on is not left by an option alone; to land as they are, where that
// goes without rebasing, is what rebasing comes to.
func (p *plan) chooseMode(l *ledger.Ledger) error {
	asked, team := p.change.asked.Mode, p.view.Policy
	p.mode = cmp.Or(asked, team.Mode, policy.Rebase)
	within := asked == "" || asked == team.Mode || asked == policy.FFOnly && team.Mode == policy.Rebase
	if within || !team.Says("land.mode") {
		return nil
	}
	if slices.Contains(p.change.asked.Allow, GuardMode) {
		p.allow(GuardMode)
		return nil
	}
	s := p.change.asked
	s.Mode = ""
	return fault.New(fault.Conflict, "%s on %s has land.mode %s, and --%s was asked for", policy.File, p.view.Branch.Branch(), team.Mode, asked).
		WithHint("%s   (or, as an exception: %s)", withSelection(l, s.landing(), s), p.allowing(l, GuardMode)).
		WithFacts(map[string]any{"mode": asked, "team_mode": team.Mode})
}

// planCommits works out the tree that landing the stack leads to. Building the commits
// is left for when they may land.
func (p *plan) planCommits(ctx context.Context, l *ledger.Ledger) error {
	if len(p.stack) == 0 || len(p.change.outside) > 0 {
		return p.nothingChosen(ctx, l)
	}
	if err := p.noneTakenOff(ctx, l); err != nil {
		return err
	}
	switch p.mode {
	case policy.Squash, policy.Merge:
		return p.planMerged(ctx, l)
	case policy.FFOnly:
		p.forward, p.tree = true, p.change.headTree
		return p.onlyForward(ctx, l)
	}
	// Only a child of the base can lead up to HEAD. It need not be the first
	// commit: a branch that is merged here may have forked earlier.
	if p.view.Base == "" || slices.ContainsFunc(p.stack, p.isOnBase) {
		contains, err := p.onBase(ctx, l)
		if err != nil {
			return err
		}
		if p.forward = contains; contains {
			p.tree = p.change.headTree
			return nil
		}
	}
	return p.planRebased(ctx, l)
}

func (p *plan) isOnBase(c git.RevListEntry) bool { return slices.Contains(c.Parents, p.view.Base) }

// nothingChosen is for a HEAD without commits that the target lacks: it has landed,
// unless there is something else here that may be meant; and for one with such
// commits, and with something staged that was not chosen.
func (p *plan) nothingChosen(ctx context.Context, l *ledger.Ledger) error {
	c := p.change
	switch {
	case len(c.outside) > 0 && len(p.stack) > 0:
		return p.ambiguous(l, len(p.stack), c.outside)
	case len(c.outside) > 0:
		return fault.New(fault.Conflict, "nothing is chosen to land: what is staged (%s) is outside of land.paths", shortList(c.outside)).
			WithHint("%s", c.landPaths(l, c.outside))
	case len(c.modified) > 0 && c.asked.Mode == "": // which says that commits are meant
		return fault.New(fault.Conflict, "nothing is chosen to land: nothing is staged, %s has all commits of HEAD, and files are modified (%s)",
			p.view.Branch.Branch(), shortList(c.modified)).
			WithHint("%s", c.landPaths(l, c.modified))
	case c.head == "":
		return fault.New(fault.Conflict, "nothing is chosen to land: there is no commit here, and nothing is staged").
			WithHint("%s", c.landPaths(l, nil))
	}
	return p.allLanded(ctx, l)
}

// onBase reports whether what lands descends from the base.
func (p *plan) onBase(ctx context.Context, l *ledger.Ledger) (bool, error) {
	if p.view.Base == "" || p.change.head == "" {
		return p.view.Base == "", nil
	}
	return l.Repo.IsAncestor(ctx, p.view.Base, p.change.head)
}

// onlyForward refuses, in mode ff-only, what stands on an older state of the target.
func (p *plan) onlyForward(ctx context.Context, l *ledger.Ledger) error {
	if p.mode != policy.FFOnly {
		return nil
	}
	contains, err := p.onBase(ctx, l)
	if err != nil || contains {
		return err
	}
	return fault.New(fault.Conflict, "%s does not descend from %s at %s, and only that lands (ff-only)",
		p.change.name(), p.view.Branch.Branch(), p.view.Base.Short()).
		WithFacts(map[string]any{"base": p.view.Base, "head": p.change.head}).
		WithHint("%s   (then run git land again)", p.change.rebase(l, p.view.Branch))
}

// A pick is what rebasing makes of one commit.
type pick struct {
	commit object.OID
	tree   object.OID
}

// planRebased applies the stack to the base, one by one. As git rebase has it, what has
// become empty by that is left out, and what was made empty stays.
func (p *plan) planRebased(ctx context.Context, l *ledger.Ledger) error {
	if i := slices.IndexFunc(p.stack, func(c git.RevListEntry) bool { return len(c.Parents) > 1 }); i >= 0 {
		return p.isMerge(l, p.stack[i].OID)
	}
	p.tree = p.baseTree
	for _, c := range p.stack {
		empty, err := l.Repo.ChangesNothing(ctx, c)
		if err != nil {
			return err
		}
		next, err := p.replay(ctx, l, c, p.tree)
		if err != nil {
			return err
		}
		if empty || next != p.tree {
			p.picks = append(p.picks, pick{c.OID, next})
		}
		p.tree = next
	}
	if len(p.picks) == 0 {
		p.already = p.view.Base
	}
	return nil
}

// isMerge refuses to rebase a merge: its resolution would be lost.
func (p *plan) isMerge(l *ledger.Ledger, commit object.OID) error {
	f := fault.New(fault.Conflict, "%s is a merge, which cannot be rebased as it is onto %s", commit.Short(), p.view.Branch.Branch())
	by := func(m policy.Mode) string {
		s := p.change.asked
		s.Mode = m
		return withSelection(l, s.landing(), s)
	}
	if p.view.Policy.Says("land.mode") {
		return f.WithHint("%s   (it makes a line of them; then run git land again)", p.change.rebase(l, p.view.Branch))
	}
	return f.WithHint("%s   (or, as one commit: %s)", by(policy.Merge), by(policy.Squash))
}

// replay is the tree of applying one commit to another tree.
func (p *plan) replay(ctx context.Context, l *ledger.Ledger, c git.RevListEntry, onto object.OID) (object.OID, error) {
	commit, err := l.Repo.Commit(ctx, c.OID)
	if err != nil {
		return "", err
	}
	before := l.Repo.Format.EmptyTree()
	if len(c.Parents) == 1 {
		parent, err := l.Repo.Commit(ctx, c.Parents[0])
		if err != nil {
			return "", err
		}
		before = parent.Tree
	}
	tree, err := l.Repo.MergeTrees(ctx, before, onto, commit.Tree)
	if err != nil {
		return "", p.conflict(ctx, l, err, c.OID)
	}
	return tree, nil
}

// planMerged merges the stack as a whole into the base.
func (p *plan) planMerged(ctx context.Context, l *ledger.Ledger) (err error) {
	p.tree = p.change.headTree
	if p.view.Base == "" { // nothing to merge into; to git merge, too
		p.forward = p.mode == policy.Merge || len(p.stack) == 1 && len(p.change.asked.Messages) == 0
		return nil
	}
	fork, err := p.fork(ctx, l)
	if err != nil {
		return err
	}
	if fork == "" && l.Repo.IsShallow() {
		return fault.New(fault.Conflict, "this clone is shallow, and has no commit that %s and %s have in common", p.change.name(), p.view.Branch.Branch()).
			WithHint("%s   (then run git land again)", fault.Command("git", "fetch", "--unshallow", l.Remote))
	}
	if fork == "" {
		return fault.New(fault.Conflict, "%s and %s have no commit in common, and cannot be merged", p.change.name(), p.view.Branch.Branch()).
			WithHint("%s   (then run git land again)", p.change.rebase(l, p.view.Branch))
	}
	if fork != p.view.Base {
		if p.tree, err = p.mergeHead(ctx, l, fork); err != nil {
			return p.conflict(ctx, l, err, "")
		}
	}
	if p.mode == policy.Merge {
		p.stack, err = l.Repo.Between(ctx, p.view.Base, p.change.head)
	} else if len(p.stack) == 1 && p.isOnBase(p.stack[0]) && len(p.stack[0].Parents) == 1 {
		p.forward = len(p.change.asked.Messages) == 0 // it is that one commit
	}
	if err != nil || p.tree != p.baseTree {
		return err
	}
	before, err := l.Repo.Commit(ctx, fork)
	if err == nil && before.Tree != p.change.headTree { // else they change nothing, here or there
		p.already = p.view.Base
	}
	return err
}

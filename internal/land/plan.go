package land

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// A plan is what landing a change on one fetched state would do, up to the
// tree. It is a function of both, made again after each lost race.
type plan struct {
	view     ledger.View
	change   change
	baseTree object.OID
	tree     object.OID         // that would land
	stack    []git.RevListEntry // fromCommits: the commits to land, oldest first
	forward  bool               // fromCommits: they stand on the base already
	already  object.OID         // the target has the change, in this commit
}

// makePlan merges the change onto the target as the authority has it. It
// returns a fault of class Conflict when the two disagree, or when it is
// unclear what is meant.
func makePlan(ctx context.Context, l *ledger.Ledger, v ledger.View, c change) (plan, error) {
	p := plan{view: v, change: c, baseTree: l.Repo.Format.EmptyTree()}
	if v.Base != "" {
		base, err := l.Repo.Commit(ctx, v.Base)
		if err != nil {
			return p, err
		}
		p.baseTree = base.Tree
	} else if err := firstOnly(ctx, l, v, c.asked); err != nil {
		return p, err
	}
	unlanded, err := p.unlanded(ctx, l)
	if err != nil {
		return p, err
	}
	if c.kind == fromCommits {
		p.stack = unlanded
		return p, p.planCommits(ctx, l)
	}
	if err := p.checkChoice(ctx, l, unlanded); err != nil {
		return p, err
	}
	p.tree, err = l.Repo.MergeTrees(ctx, c.headTree, p.baseTree, c.tree)
	if err != nil {
		return p, p.conflict(ctx, l, err, "")
	}
	if p.tree == p.baseTree {
		p.already, err = p.landedBefore(ctx, l)
	}
	return p, err
}

// firstOnly lets a branch be made by landing only where there is none at all:
// a misspelt target must not become a branch.
func firstOnly(ctx context.Context, l *ledger.Ledger, v ledger.View, s Selection) error {
	return l.NoBranch(ctx, v, func(there object.Ref) string {
		s.Want.Branch = there
		return withSelection(l, s.landing(), s)
	})
}

// landing begins the command line that lands with the check, the reason, the messages
// and --no-verify, where they were given.
func (s Selection) landing() []string {
	words := []string{"git", "land"}
	if s.command != "" {
		words = append(words, "-x", s.command)
	}
	if s.command != "" && s.check != "" && s.check != DefaultCheck {
		words = append(words, "--check", s.check)
	}
	if s.reason != "" {
		words = append(words, "--force-unverified", "--reason", s.reason)
	}
	if s.NoVerify {
		words = append(words, "--no-verify")
	}
	for _, m := range s.Messages {
		words = append(words, "-m", m)
	}
	return words
}

// landAll is the command line that lands HEAD's commits where the change was to land.
func (c change) landAll(l *ledger.Ledger) string {
	s := c.asked
	s.Paths, s.Messages = nil, nil // they have their own
	return withSelection(l, s.landing(), s)
}

func shortList(names []string) string {
	if len(names) > 8 {
		return strings.Join(names[:8], ", ") + fmt.Sprintf(" and %d more", len(names)-8)
	}
	return strings.Join(names, ", ")
}

func (p *plan) unlanded(ctx context.Context, l *ledger.Ledger) ([]git.RevListEntry, error) {
	if p.change.head == "" {
		return nil, nil
	}
	return l.Repo.Unlanded(ctx, p.view.Base, p.change.head)
}

// checkChoice refuses to guess between commits that have not landed and a
// change on top of them.
func (p *plan) checkChoice(ctx context.Context, l *ledger.Ledger, unlanded []git.RevListEntry) error {
	if len(unlanded) == 0 {
		return nil
	}
	if p.change.kind == fromStaged {
		return p.ambiguous(l, len(unlanded), p.change.paths())
	}
	from := l.Repo.Format.EmptyTree()
	if p.view.Base != "" {
		fork, err := l.Repo.MergeBase(ctx, p.view.Base, p.change.head)
		if err != nil {
			return err
		}
		if fork != "" {
			commit, err := l.Repo.Commit(ctx, fork)
			if err != nil {
				return err
			}
			from = commit.Tree
		}
	}
	diff, err := l.Repo.DiffTrees(ctx, from, p.change.headTree)
	if err != nil {
		return err
	}
	if len(p.change.diff) == 0 {
		// The chosen paths are as HEAD has them: is it HEAD's commits that are meant?
		if diff, err = l.Repo.DiffTreesWithin(ctx, from, p.change.headTree, p.change.chosen); err != nil || len(diff) == 0 {
			return err
		}
		return fault.New(fault.Conflict, "%s is as HEAD has it, and %s that %s lacks: it lands with them, or not at all",
			shortList(change{diff: diff}.paths()), headHas(len(unlanded)), p.view.Branch.Branch()).
			WithHint("%s", p.change.landAll(l))
	}
	both := overlap(p.change.paths(), change{diff: diff}.paths())
	if len(both) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "%s that %s lacks, and they change %s, which is also chosen: it cannot land without them",
		headHas(len(unlanded)), p.view.Branch.Branch(), shortList(both)).
		WithHint("%s   (the commits first, then the paths)", p.change.landAll(l))
}

func headHas(commits int) string {
	if commits == 1 {
		return "HEAD has 1 commit"
	}
	return fmt.Sprintf("HEAD has %d commits", commits)
}

// ambiguous is the fault of staged paths beside commits that have not landed.
func (p *plan) ambiguous(l *ledger.Ledger, commits int, staged []string) error {
	all := p.change.landAll(l)
	return fault.New(fault.Conflict, "%s that %s lacks, and there are staged changes: which of them is to land?",
		headHas(commits), p.view.Branch.Branch()).
		WithHint("%s   (the staged paths, as they are in the working tree), or `git stash && %s` (the commits alone), or `git commit && %s` (both)",
			p.change.landPaths(l, staged), all, all)
}

// landPaths is a command line that lands the given paths, which are relative
// to the top, where the change was to land.
func (c change) landPaths(l *ledger.Ledger, paths []string) string {
	s := c.asked
	if len(s.Messages) == 0 {
		s.Messages = []string{"MESSAGE"}
	}
	s.Paths = nil
	for _, path := range paths {
		if l.Repo.Prefix != "" || strings.ContainsAny(path, "*?[\\") || strings.HasPrefix(path, ":") {
			path = ":(top,literal)" + path
		}
		s.Paths = append(s.Paths, path)
	}
	if len(paths) == 0 || len(paths) > 8 {
		s.Paths = []string{"PATH..."}
	}
	return withSelection(l, s.landing(), s)
}

// planCommits works out the tree of rebasing the stack onto the base one by
// one. Building the commits is left for when they may land.
func (p *plan) planCommits(ctx context.Context, l *ledger.Ledger) error {
	if len(p.change.outside) > 0 {
		if len(p.stack) > 0 {
			return p.ambiguous(l, len(p.stack), p.change.outside)
		}
		return fault.New(fault.Conflict, "nothing is chosen to land: what is staged (%s) is outside of land.paths", shortList(p.change.outside)).
			WithHint("%s", p.change.landPaths(l, p.change.outside))
	}
	if len(p.stack) == 0 {
		if len(p.change.modified) > 0 {
			return fault.New(fault.Conflict, "nothing is chosen to land: nothing is staged, %s has all commits of HEAD, and files are modified (%s)",
				p.view.Branch.Branch(), shortList(p.change.modified)).
				WithHint("%s", p.change.landPaths(l, p.change.modified))
		}
		if p.change.head == "" {
			return fault.New(fault.Conflict, "nothing is chosen to land: there is no commit here, and nothing is staged").
				WithHint("%s", p.change.landPaths(l, nil))
		}
		p.tree, p.already = p.baseTree, p.change.head
		return nil
	}
	// Only a child of the base can lead up to HEAD. It need not be the first
	// commit: a branch that is merged here may have forked earlier.
	onBase := func(c git.RevListEntry) bool { return slices.Contains(c.Parents, p.view.Base) }
	if p.view.Base == "" || slices.ContainsFunc(p.stack, onBase) {
		contains, err := p.onBase(ctx, l)
		if err != nil {
			return err
		}
		if p.forward = contains; contains {
			p.tree = p.change.headTree
			return nil
		}
	}
	tree := p.baseTree
	for _, c := range p.stack {
		next, err := p.replay(ctx, l, c, tree)
		if err != nil {
			return err
		}
		tree = next
	}
	if p.tree = tree; tree == p.baseTree {
		p.already = p.view.Base
	}
	return nil
}

// onBase reports whether HEAD descends from the base.
func (p *plan) onBase(ctx context.Context, l *ledger.Ledger) (bool, error) {
	if p.view.Base == "" {
		return true, nil
	}
	return l.Repo.IsAncestor(ctx, p.view.Base, p.change.head)
}

// landedBefore finds the commit of the target that has the change.
func (p *plan) landedBefore(ctx context.Context, l *ledger.Ledger) (object.OID, error) {
	if p.view.Base == "" {
		return "", nil
	}
	scope := p.change.chosen // as HEAD has them, where nothing differs
	if len(p.change.diff) > 0 {
		scope = git.Scope{Paths: p.change.paths(), FromTop: true, Literal: true}
	}
	oid, err := l.Repo.LastTouched(ctx, p.view.Base, scope)
	if err == nil && oid == "" {
		oid = p.view.Base
	}
	return oid, err
}

package land

import (
	"context"
	"slices"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/policy"
)

// A Guard refuses something that hardly anybody means to land, or could use when it had
// landed. What can be wanted all the same is allowed by its guard's name.
type Guard string

// The guards that can be told to let something pass.
const (
	GuardEmpty     Guard = "empty"     // commits that change nothing
	GuardFiles     Guard = "files"     // more files than land.maxFiles
	GuardLFS       Guard = "lfs"       // a pointer of git-lfs without its object
	GuardMode      Guard = "mode"      // another way to land commits than the team's
	GuardPaths     Guard = "paths"     // a chosen path outside of land.paths
	GuardRename    Guard = "rename"    // one half of a renaming
	GuardSignature Guard = "signature" // a signature that a rebase would drop
	GuardSubmodule Guard = "submodule" // a submodule that nobody else could check out
)

// Guards are all of them.
func Guards() []Guard {
	return []Guard{GuardEmpty, GuardFiles, GuardLFS, GuardMode, GuardPaths, GuardRename, GuardSignature, GuardSubmodule}
}

// guard asks all guards about a plan that would land something. What they refuse is a
// fault of class Conflict.
func (p *plan) guard(ctx context.Context, l *ledger.Ledger) error {
	diffs, err := p.diffs(ctx, l)
	if err != nil {
		return err
	}
	for _, g := range []struct {
		name Guard
		ask  func(context.Context, *ledger.Ledger, [][]git.Change) error
	}{
		{GuardEmpty, p.guardEmpty},
		{GuardSignature, p.guardSignatures},
		{GuardFiles, p.guardFiles},
		{GuardPaths, p.guardPaths},
		{GuardRename, p.guardRenames},
		{GuardLFS, p.guardPointers},
		{GuardSubmodule, p.guardSubmodules},
	} {
		err := g.ask(ctx, l, diffs)
		if slices.Contains(p.change.asked.Allow, g.name) {
			if fault.ClassOf(err) == fault.Conflict {
				p.allow(g.name)
			}
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// allow notes a guard that would have refused the plan, and was told not to: that goes on
// the record.
func (p *plan) allow(g Guard) {
	if !slices.Contains(p.allowed, string(g)) {
		p.allowed = append(p.allowed, string(g))
	}
}

// allowing is the command that lands the change though the guard would refuse it.
func (p *plan) allowing(l *ledger.Ledger, g Guard) string {
	s := p.change.asked
	s.Allow = append(slices.Clone(s.Allow), g)
	return withSelection(l, s.landing(), s)
}

// diffs are what each commit that lands changes, oldest first.
func (p *plan) diffs(ctx context.Context, l *ledger.Ledger) ([][]git.Change, error) {
	if p.change.kind != fromCommits {
		return [][]git.Change{p.change.diff}, nil
	}
	if p.mode == policy.Squash && !p.forward {
		diff, err := l.Repo.DiffTrees(ctx, p.baseTree, p.tree)
		return [][]git.Change{diff}, err
	}
	var diffs [][]git.Change
	for _, c := range p.stack {
		commit, err := l.Repo.Commit(ctx, c.OID)
		if err != nil {
			return nil, err
		}
		before := l.Repo.Format.EmptyTree()
		if len(c.Parents) > 0 {
			parent, err := l.Repo.Commit(ctx, c.Parents[0])
			if err != nil {
				return nil, err
			}
			before = parent.Tree
		}
		diff, err := l.Repo.DiffTrees(ctx, before, commit.Tree)
		if err != nil {
			return nil, err
		}
		diffs = append(diffs, diff)
	}
	return diffs, nil
}

// guardFiles refuses more files than are allowed to land at once: mostly, something was
// generated, or the whole tree was formatted.
func (p *plan) guardFiles(_ context.Context, l *ledger.Ledger, diffs [][]git.Change) error {
	max := p.view.Policy.MaxFiles
	files := map[string]bool{}
	for _, diff := range diffs {
		for _, d := range diff {
			files[d.Path] = true
		}
	}
	if max == 0 || len(files) <= max {
		return nil
	}
	return fault.New(fault.Conflict, "%d files would land, and land.maxFiles is %d", len(files), max).
		WithFacts(map[string]any{"files": len(files), "max_files": max}).
		WithHint("%s", p.allowing(l, GuardFiles))
}

// guardPaths refuses chosen paths that are outside of land.paths. Commits land as they are.
func (p *plan) guardPaths(ctx context.Context, l *ledger.Ledger, _ [][]git.Change) error {
	within := p.view.Policy.Paths
	if p.change.asked.Paths == nil || p.change.kind != fromPaths || len(within) == 0 {
		return nil
	}
	inside, err := l.Repo.DiffTreesWithin(ctx, p.change.headTree, p.change.tree, git.Scope{Paths: within, FromTop: true})
	if err != nil {
		return err
	}
	var outside []string
	for _, d := range p.change.diff {
		if !slices.ContainsFunc(inside, func(in git.Change) bool { return in.Path == d.Path }) {
			outside = append(outside, d.Path)
		}
	}
	if len(outside) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "%s is outside of land.paths (%s)", shortList(outside), shortList(within)).
		WithFacts(map[string]any{"paths": outside}).
		WithHint("%s", p.allowing(l, GuardPaths))
}

package land

import (
	"context"
	"slices"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/policy"
)

// A Guard refuses something that hardly anybody means to land, or could use when it had
// landed. What can be wanted all the same is allowed by its guard's name.
type Guard string

// The guards that can be told to let something pass.
const (
	GuardEmpty     Guard = "empty"     // commits that change nothing
	GuardMode      Guard = "mode"      // another way to land commits than the team's
	GuardSignature Guard = "signature" // a signature that a rebase would drop
	GuardSubmodule Guard = "submodule" // a commit of a submodule that its remote lacks
)

// Guards are all of them.
func Guards() []Guard { return []Guard{GuardEmpty, GuardMode, GuardSignature, GuardSubmodule} }

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
		{GuardSubmodule, p.guardSubmodules},
	} {
		if slices.Contains(p.change.asked.Allow, g.name) {
			continue
		}
		if err := g.ask(ctx, l, diffs); err != nil {
			return err
		}
	}
	return nil
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

// guardSubmodules refuses a commit of a submodule that its remote lacks: whoever gets
// the landing could not check it out.
func (p *plan) guardSubmodules(ctx context.Context, l *ledger.Ledger, diffs [][]git.Change) error {
	var paths []string
	commits := map[string][]object.OID{}
	for _, diff := range diffs {
		for _, d := range diff {
			if !d.IsSubmodule() {
				continue
			}
			if commits[d.Path] == nil {
				paths = append(paths, d.Path)
			}
			commits[d.Path] = append(commits[d.Path], d.New)
		}
	}
	for _, path := range paths {
		missing, err := l.Repo.Unpushed(ctx, path, commits[path]...)
		if err != nil {
			return err
		}
		if missing != "" {
			return fault.New(fault.Conflict, "the submodule %s is at %s, which its remote does not have, so that nobody else could check it out", path, missing.Short()).
				WithHint("%s   (or, where others get it some other way: %s)", fault.Command("git", "-C", path, "push"), p.allowing(l, GuardSubmodule))
		}
	}
	return nil
}

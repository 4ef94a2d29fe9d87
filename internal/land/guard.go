package land

import (
	"context"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// guard refuses what nobody means to land, or could use when it had landed: the faults
// are of class Conflict, and name the way on.
func (p *plan) guard(ctx context.Context, l *ledger.Ledger) error {
	diffs, err := p.diffs(ctx, l)
	if err != nil {
		return err
	}
	return p.guardSubmodules(ctx, l, diffs)
}

// diffs are what each commit that lands changes, oldest first.
func (p *plan) diffs(ctx context.Context, l *ledger.Ledger) ([][]git.Change, error) {
	if p.change.kind != fromCommits {
		return [][]git.Change{p.change.diff}, nil
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
				WithHint("%s", fault.Command("git", "-C", path, "push"))
		}
	}
	return nil
}

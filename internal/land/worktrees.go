package land

import (
	"context"
	"fmt"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
)

// around looks, where this repository is the authority, at the worktrees that
// have the target checked out: the transaction will move their HEAD, so their
// files must be able to follow. Otherwise the landing is refused before it.
func (m *motion) around(ctx context.Context, b built) ([]*git.Repo, error) {
	if !m.l.IsLocal() {
		return nil, nil
	}
	refuse := func(where string, err error) error {
		f := fault.New(fault.Conflict, "the worktree %s has %s checked out, and files there are in the way of what would land: %w",
			where, b.plan.view.Branch.Branch(), err)
		if move := moveAway(m.l.Repo, where, err); move != "" {
			return f.WithHint("%s%s", move, withSelection(m.l, m.r.Selection.landing(), m.r.Selection))
		}
		return f.WithHint("%s   (commit or stash there first)", fault.Command("git", "-C", where, "status"))
	}
	if !m.change.apart && m.change.branch == b.plan.view.Branch && m.l.Repo.Top != "" {
		if _, _, err := m.follower(b).rehearse(ctx, newEntries(m.change.diff)); err != nil {
			return nil, refuse(m.l.Repo.Top, err)
		}
	}
	if err := m.keptByWork(ctx, b); err != nil {
		return nil, err
	}
	where, others, err := otherWorktrees(ctx, m.l.Repo, b.plan.view.Branch, m.change.apart)
	if err != nil {
		if where != "" {
			err = refuse(where, err)
		}
		return nil, err
	}
	for _, other := range others {
		other.Refresh(ctx)
		if err := other.MoveWorkTree(ctx, b.plan.baseTree, b.plan.tree, true); err != nil {
			return nil, refuse(other.Top, err)
		}
	}
	return others, nil
}

// keptByWork refuses to move the target of this repository while a worktree is in the
// middle of a rebase or bisection that will go back to it: the rebase would end with
// "cannot lock ref", and nobody asked who works there.
func (m *motion) keptByWork(ctx context.Context, b built) error {
	keepers, err := m.l.Repo.Keepers(ctx, b.plan.view.Branch)
	if err != nil {
		return err
	}
	for _, k := range keepers {
		end := []string{"rebase", "--continue"}
		switch k.Doing {
		case "":
			continue
		case "bisect":
			end = []string{"bisect", "reset"}
		}
		return fault.New(fault.Conflict, "%s, which is not moved under who works there", kept(b.plan.view.Branch, k)).
			WithHint("%s   (there, by whoever does that; then land again)", fault.Command(append([]string{"git", "-C", k.Path}, end...)...))
	}
	return nil
}

// otherWorktrees are those besides repo's, or all, that have the branch checked out.
// where is the one that the error is about, if it is about one.
func otherWorktrees(ctx context.Context, repo *git.Repo, branch object.Ref, all bool) (where string, others []*git.Repo, err error) {
	if !all && !repo.HasOtherWorktrees() {
		return "", nil, nil
	}
	worktrees, err := repo.Worktrees(ctx)
	if err != nil {
		return "", nil, err
	}
	for _, w := range worktrees {
		if w.Bare || w.Gone || w.Branch != branch {
			continue
		}
		other, err := repo.In(ctx, w.Path)
		if err != nil {
			return w.Path, nil, err
		}
		// Not by its path: core.worktree can put a work tree anywhere.
		if all || other.GitDir != repo.GitDir {
			others = append(others, other)
		}
	}
	return "", others, nil
}

// kept says that a branch belongs to another worktree.
func kept(branch object.Ref, k git.Keeper) string {
	switch k.Doing {
	case "":
		return fmt.Sprintf("%s is checked out in %s", branch.Branch(), k.Path)
	case "rebase":
		return fmt.Sprintf("%s is being rebased in %s", branch.Branch(), k.Path)
	}
	return fmt.Sprintf("a bisection of %s is under way in %s", branch.Branch(), k.Path)
}

// localTarget moves the local branch of the target's name when it is not the
// current one: only forward, or where it is what landed, and never under another
// worktree, of which why tells.
func (m *motion) localTarget(ctx context.Context, b built) (why string, moves []git.Move) {
	target := b.plan.view.Branch
	if m.l.IsLocal() || m.change.branch == target {
		return "", nil
	}
	refs, err := m.l.Repo.Resolve(ctx, target)
	old := refs[target]
	if err != nil || old == "" || old == b.commit {
		return "", nil
	}
	if old != m.change.head || m.change.kind != fromCommits { // else all of it has landed
		if in, err := m.l.Repo.IsAncestor(ctx, old, b.commit); err != nil || !in {
			return "", nil
		}
	}
	keepers, err := m.l.Repo.Keepers(ctx, target)
	switch {
	case err != nil:
		return err.Error(), nil
	case len(keepers) > 0:
		return fmt.Sprintf("%s, and stays at %s", kept(target, keepers[0]), old.Short()), nil
	}
	return "", []git.Move{{Ref: target, New: b.commit, Old: git.MustBe(old)}}
}

package land

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gitland/internal/git"
)

// rehearse does moveFiles, with the entries that have landed, on a copy of the index, and
// returns what else has to be put into the index first, and what that replaces.
// Git refuses to touch files that the index does not have as they are, also
// where they are as they landed: an earlier landing may have found the index
// locked, or died while it wrote them. Those are made known to the index.
func (s *follower) rehearse(ctx context.Context, entries []git.IndexEntry) (replaced, same []git.IndexEntry, err error) {
	index, err := s.l.Repo.TempIndex(ctx, s.operation.String())
	if err != nil {
		return nil, nil, err
	}
	defer index.Close()
	if err := index.SetIndex(ctx, entries); err != nil || s.tree == s.change.tree {
		return nil, nil, err
	}
	index.Refresh(ctx)
	refusal := index.MoveWorkTree(ctx, s.change.tree, s.tree, true)
	if refusal == nil {
		return nil, nil, nil
	}
	replaced, same, err = s.sameAsLanded(ctx, index)
	if err != nil || len(same) == 0 {
		return nil, nil, refusal
	}
	if err := index.SetIndex(ctx, same); err != nil {
		return nil, nil, errors.Join(refusal, err)
	}
	index.Refresh(ctx)
	return replaced, same, index.MoveWorkTree(ctx, s.change.tree, s.tree, true)
}

// sameAsLanded finds the paths between the two trees of which the work tree has
// what landed, and the index what HEAD with the change has: as the index has them, and as
// they landed.
func (s *follower) sameAsLanded(ctx context.Context, index *git.TempIndex) (replaced, same []git.IndexEntry, err error) {
	repo := s.l.Repo
	diff, err := repo.DiffTrees(ctx, s.change.tree, s.tree)
	if err != nil {
		return nil, nil, err
	}
	diff = slices.DeleteFunc(diff, func(d git.Change) bool {
		_, err := os.Lstat(filepath.Join(repo.Top, d.Path))
		return d.Deleted() && !errors.Is(err, fs.ErrNotExist)
	})
	entries, unmerged, err := index.IndexEntries(ctx, change{diff: diff}.paths())
	if err != nil || unmerged {
		return nil, nil, err
	}
	var wanted []git.IndexEntry
	for i, d := range diff { // entries are in the order of the paths
		if entries[i].OID == d.Old {
			replaced, wanted = append(replaced, entries[i]), append(wanted, newEntries(diff[i:i+1])...)
		}
	}
	landed, err := index.Copy()
	if err != nil {
		return nil, nil, err
	}
	defer landed.Close()
	if err := landed.SetIndex(ctx, wanted); err != nil {
		return nil, nil, err
	}
	differing, err := landed.Differing(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range wanted {
		if !slices.Contains(differing, e.Path) {
			same = append(same, e)
		}
	}
	replaced = slices.DeleteFunc(replaced, func(e git.IndexEntry) bool {
		return !slices.ContainsFunc(same, func(s git.IndexEntry) bool { return s.Path == e.Path })
	})
	return replaced, same, nil
}

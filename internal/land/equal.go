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

// switchTrees takes index and files from HEAD with the change to what landed.
// Git refuses to touch files that the index does not have as they are, also
// where they are as they landed: an earlier landing may have found the index
// locked, or died while it wrote them. Those are made known to the index first.
func (s *follower) switchTrees(ctx context.Context) error {
	repo := s.l.Repo
	repo.Refresh(ctx)
	refusal := repo.MoveWorkTree(ctx, s.change.tree, s.tree, false)
	if refusal == nil {
		return nil
	}
	before, same, err := s.sameAsLanded(ctx)
	if err != nil || len(same) == 0 {
		return refusal
	}
	if err := repo.SetIndex(ctx, same); err != nil {
		return errors.Join(refusal, err)
	}
	repo.Refresh(ctx)
	if err := repo.MoveWorkTree(ctx, s.change.tree, s.tree, false); err != nil {
		return errors.Join(err, repo.SetIndex(ctx, before))
	}
	return nil
}

// sameAsLanded finds the paths between the two trees of which the work tree has
// what landed, and the index what HEAD has: as the index has them, and as they
// landed.
func (s *follower) sameAsLanded(ctx context.Context) (before, same []git.IndexEntry, err error) {
	repo := s.l.Repo
	diff, err := repo.DiffTrees(ctx, s.change.tree, s.tree)
	if err != nil {
		return nil, nil, err
	}
	diff = slices.DeleteFunc(diff, func(d git.Change) bool {
		_, err := os.Lstat(filepath.Join(repo.Top, d.Path))
		return d.Deleted() && !errors.Is(err, fs.ErrNotExist)
	})
	entries, unmerged, err := repo.IndexEntries(ctx, change{diff: diff}.paths())
	if err != nil || unmerged {
		return nil, nil, err
	}
	var wanted []git.IndexEntry
	for i, d := range diff { // entries are in the order of the paths
		if entries[i].OID == d.Old {
			before, wanted = append(before, entries[i]), append(wanted, newEntries(diff[i:i+1])...)
		}
	}
	index, err := repo.TempIndex(ctx, s.l.NewID().String())
	if err != nil {
		return nil, nil, err
	}
	defer index.Close()
	if err := index.SetIndex(ctx, wanted); err != nil {
		return nil, nil, err
	}
	differing, err := index.Differing(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range wanted {
		if !slices.Contains(differing, e.Path) {
			same = append(same, e)
		}
	}
	before = slices.DeleteFunc(before, func(e git.IndexEntry) bool {
		return !slices.ContainsFunc(same, func(s git.IndexEntry) bool { return s.Path == e.Path })
	})
	return before, same, nil
}

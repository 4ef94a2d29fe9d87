package land

import (
	"context"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// guardPointers refuses a pointer of git-lfs whose object is not here, and which the target
// does not have either: its remote cannot have got the object from here.
func (p *plan) guardPointers(ctx context.Context, l *ledger.Ledger, diffs [][]git.Change) error {
	paths := map[object.OID][]string{}
	var blobs []object.OID
	for _, diff := range diffs {
		for _, d := range diff {
			if !regular(d.NewMode) {
				continue
			}
			if paths[d.New] == nil {
				blobs = append(blobs, d.New)
			}
			paths[d.New] = append(paths[d.New], d.Path)
		}
	}
	lost, err := l.Repo.LostPointers(ctx, blobs)
	if err != nil || len(lost) == 0 {
		return err
	}
	there, err := l.Repo.TreeFiles(ctx, p.baseTree)
	if err != nil {
		return err
	}
	for _, pointer := range lost {
		filtered, err := l.Repo.FilteredBy(ctx, "lfs", paths[pointer.Blob])
		if err != nil {
			return err
		}
		known, err := l.Repo.FilteredBy(ctx, "lfs", having(there, pointer.Blob))
		if err != nil {
			return err
		}
		if len(filtered) == 0 || len(known) > 0 {
			continue
		}
		return fault.New(fault.Conflict, "%s is a pointer of git-lfs to an object that is neither here nor known to be at its remote (sha256 %.12s): whoever gets the landing could not have the file", shortList(filtered), pointer.Object).
			WithFacts(map[string]any{"paths": filtered, "object": pointer.Object}).
			WithHint("git lfs fetch   (or put the file itself there; or, where its remote has it: %s)", p.allowing(l, GuardLFS))
	}
	return nil
}

// having are the files with that content.
func having(files []git.TreeFile, blob object.OID) (paths []string) {
	for _, f := range files {
		if f.OID == blob {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

package git

import (
	"context"
	"os"
	"path/filepath"

	"gitland/internal/object"
)

// Unpushed is the first of some commits of the submodule at path, relative to the top,
// that its remote is not known to have; empty where all are there. Nothing can be said,
// and nothing is found, of a submodule that is not checked out here, has no branch of a
// remote, or lacks the commit: then somebody else made it. This is what git's own
// "push --recurse-submodules=check" asks (submodule_needs_pushing in its submodule.c),
// which looks through the whole history of each pushed ref that is no branch first.
func (r *Repo) Unpushed(ctx context.Context, path string, commits ...object.OID) (object.OID, error) {
	dir := filepath.Join(r.Top, path)
	if _, err := os.Lstat(filepath.Join(dir, ".git")); r.Top == "" || err != nil {
		return "", nil
	}
	module := *r
	module.Dir, module.environ = dir, WithoutRepoEnv(r.environ)
	remotes, err := module.run(ctx, command{reading: true, args: []string{"for-each-ref", "--count=1", "refs/remotes/"}})
	if err != nil || remotes == "" {
		return "", err
	}
	for _, oid := range commits {
		list, err := module.oidList(ctx, command{args: []string{"rev-list", "--max-count=1", "--ignore-missing", string(oid), "--not", "--remotes"}})
		if err != nil {
			return "", err
		}
		if len(list) > 0 {
			return oid, nil
		}
	}
	return "", nil
}

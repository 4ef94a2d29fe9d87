package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"gitland/internal/object"
)

// Unpushed is the first of some commits of the submodule at path, relative to the top,
// that its remote is not known to have; empty where all are there. Nothing can be said,
// and nothing is found, of a submodule that is not checked out here, or lacks the commit:
// then somebody else made it. Of one that has no branch of a remote neither, unless it is
// new: then nobody can have got it from anywhere. This is what git's own
// "push --recurse-submodules=check" asks (submodule_needs_pushing in its submodule.c),
// which looks through the whole history of each pushed ref that is no branch first.
func (r *Repo) Unpushed(ctx context.Context, path string, added bool, commits ...object.OID) (object.OID, error) {
	dir := filepath.Join(r.Top, path)
	if _, err := os.Lstat(filepath.Join(dir, ".git")); r.Top == "" || err != nil {
		return "", nil
	}
	module := *r
	module.Dir, module.environ = dir, WithoutRepoEnv(r.environ)
	remotes, err := module.run(ctx, command{reading: true, args: []string{"for-each-ref", "--count=1", "refs/remotes/"}})
	if err != nil || remotes == "" && !added {
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

// Submodules are the paths that .gitmodules of a tree names. The error is git's, of a file
// that it cannot read.
func (r *Repo) Submodules(ctx context.Context, tree object.OID) ([]string, error) {
	o, err := r.Lookup(ctx, string(tree)+":.gitmodules")
	if err != nil || o.Kind != object.Blob {
		return nil, nil // there is none
	}
	settings, err := r.Settings(ctx, o.OID)
	return modulePaths(settings), err
}

// SubmodulesHere are those that the file in the work tree names, as far as it can be read.
func (r *Repo) SubmodulesHere(ctx context.Context) []string {
	out, err := r.run(ctx, command{reading: true, dir: r.Top, args: []string{"config", "--file", ".gitmodules", "--no-includes", "--list", "-z"}})
	if err != nil {
		return nil
	}
	return modulePaths(parseSettings(out))
}

func modulePaths(settings []Setting) []string {
	var paths []string
	for _, s := range settings {
		if strings.HasPrefix(s.Key, "submodule.") && strings.HasSuffix(s.Key, ".path") {
			paths = append(paths, strings.TrimSuffix(s.Value, "/"))
		}
	}
	return paths
}

package git_test

import (
	"path/filepath"
	"testing"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

// initRepo makes an empty repository with a work tree.
func initRepo(t *testing.T, args ...string) string {
	t.Helper()
	dir := tempDir(t)
	gittest.Git(t, dir, append(append([]string{"init", "--quiet", "--initial-branch=main"}, args...), ".")...)
	return dir
}

// tempDir is a temporary directory under the name by which git knows it: on some
// systems the usual one is a symbolic link.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// open opens the repository in dir, with vars added to a clean environment.
func open(t *testing.T, dir string, vars ...string) *git.Repo {
	t.Helper()
	env, _ := gittest.Env(t)
	r, err := git.Open(t.Context(), git.Options{Dir: dir, Environ: gittest.With(env, vars...), Unattended: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// must returns v, and ends the test when there is an error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// revParse resolves a revision with git itself.
func revParse(t *testing.T, dir, rev string) object.OID {
	t.Helper()
	return object.OID(gittest.Git(t, dir, "rev-parse", "--verify", rev))
}

// noTrace fails the test when a temporary index was left behind.
func noTrace(t *testing.T, r *git.Repo) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(r.GitDir, "lease-index-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

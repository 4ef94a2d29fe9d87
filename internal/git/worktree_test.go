package git_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

func TestWorktrees(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "begin", nil)
	side, loose := filepath.Join(tempDir(t), "si de\nx"), filepath.Join(tempDir(t), "loose")
	gittest.Git(t, dir, "worktree", "add", "--quiet", "-b", "side", side)
	gittest.Git(t, dir, "worktree", "add", "--quiet", "--detach", loose)
	want := []git.Worktree{{Path: dir, Branch: "refs/heads/main"}, {Path: side, Branch: "refs/heads/side"}, {Path: loose}}
	for _, from := range []string{dir, loose} {
		got := must(open(t, from).Worktrees(t.Context()))(t)
		if len(got) == 3 && !slices.Equal(got, want) { // after the first, git's order is that of a directory
			got[1], got[2] = got[2], got[1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	bare := gittest.Bare(t)
	if got := must(open(t, bare).Worktrees(t.Context()))(t); len(got) != 1 || got[0].Path != bare || !got[0].Bare {
		t.Errorf("got %+v", got)
	}
}

func TestAddWorktree(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	first := object.OID(gittest.Commit(t, dir, "first", map[string]string{"file": "one\n", ".gitignore": "*.tmp\n", "sub/file": "x\n"}))
	second := object.OID(gittest.Commit(t, dir, "second", map[string]string{"file": "two\n", "new": "new\n"}))
	gittest.Git(t, dir, "sparse-checkout", "set", "--no-cone", "/file")
	for _, hook := range []string{"post-checkout", "reference-transaction"} {
		gittest.Script(t, filepath.Join(dir, ".git", "hooks", hook), "#!/bin/sh\nexit 1\n")
	}
	index := filepath.Join(t.TempDir(), "index")
	r := open(t, dir, "GIT_INDEX_FILE="+index)
	path := filepath.Join(t.TempDir(), "work tree")
	files, staged, refs := gittest.Files(t, dir), gittest.Index(t, dir), gittest.Refs(t, dir)
	state := func(want string, wantFiles ...string) {
		t.Helper()
		if got := revParse(t, path, "HEAD"); string(got) != want {
			t.Errorf("HEAD is %s, want %s", got, want)
		}
		if got := gittest.Git(t, path, "status", "--porcelain"); got != "" {
			t.Errorf("status: %s", got)
		}
		if got := slices.Sorted(maps.Keys(gittest.Files(t, path))); !slices.Equal(got, append([]string{".git"}, wantFiles...)) {
			t.Errorf("files: %q", got)
		}
		if !maps.Equal(files, gittest.Files(t, dir)) || !maps.Equal(staged, gittest.Index(t, dir)) || !maps.Equal(refs, gittest.Refs(t, dir)) {
			t.Error("the user's files, index or refs were changed")
		}
		if _, err := os.Lstat(index); err == nil {
			t.Error("the index of the environment was written")
		}
	}
	if err := r.AddWorktree(t.Context(), path, first); err != nil {
		t.Fatal(err)
	}
	if got := gittest.Files(t, path); len(got) != 1 {
		t.Errorf("files: %q", got)
	}
	if err := r.AddWorktree(t.Context(), path, first); err == nil {
		t.Error("made over another one")
	}
	fill := func(below string, commit object.OID) *git.Repo {
		t.Helper()
		w := must(r.In(t.Context(), filepath.Join(path, below)))(t)
		if err := w.CheckoutClean(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
		return w
	}
	fill("", first)
	state(string(first), ".gitignore", "file", "sub/file")
	gittest.Write(t, path, map[string]string{"file": "changed\n", "untracked/x": "x\n", "x.tmp": "kept\n", "sub/x": "x\n"})
	gittest.Git(t, path, "init", "--quiet", "nested")
	gittest.Git(t, path, "rm", "--quiet", "--cached", "sub/file")
	w := fill("sub", second)
	state(string(second), ".gitignore", "file", "new", "sub/file", "x.tmp")
	if err := w.Park(t.Context(), first, second); err == nil {
		t.Error("parked what was not there")
	}
	if err := w.Park(t.Context(), second, first); err != nil {
		t.Fatal(err)
	}
	if got := revParse(t, path, "HEAD"); got != first || gittest.Read(t, path, "file") != "two\n" {
		t.Errorf("HEAD is %s", got)
	}
	// Registered and gone, even when locked, it is made anew.
	gittest.Git(t, dir, "worktree", "lock", path)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := r.AddWorktree(t.Context(), path, second); err != nil {
		t.Fatal(err)
	}
	fill("", second)
	state(string(second), ".gitignore", "file", "new", "sub/file")
	if got := must(r.Worktrees(t.Context()))(t); len(got) != 2 {
		t.Errorf("got %+v", got)
	}
}

package git_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitland/internal/gittest"
	"gitland/internal/object"
)

// A branch belongs to who has it checked out elsewhere, rebases or bisects it, also as one
// of those that a rebase takes along; not to who has it checked out here.
func TestKeepers(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "begin", map[string]string{"a": "1\n"})
	keepers := func(from string, branch object.Ref) string {
		t.Helper()
		var told []string
		for _, k := range must(open(t, from).Keepers(t.Context(), branch))(t) {
			told = append(told, strings.TrimSuffix(filepath.Base(k.Path)+" "+k.Doing, " "))
		}
		slices.Sort(told)
		return strings.Join(told, ", ")
	}
	expect := func(from string, branch object.Ref, want string) {
		t.Helper()
		if got := keepers(from, branch); got != want {
			t.Errorf("%s from %s: %q, want %q", branch, filepath.Base(from), got, want)
		}
	}
	if r := open(t, dir); r.HasOtherWorktrees() {
		t.Error("there are no other worktrees")
	}
	expect(dir, "refs/heads/main", "")

	top := tempDir(t)
	add := func(branch, name string) string {
		path := filepath.Join(top, name)
		gittest.Git(t, dir, "worktree", "add", "--quiet", "--force", path, branch)
		return path
	}
	for _, branch := range []string{"base", "stacked", "tested", "other", "rebased"} {
		gittest.Git(t, dir, "branch", branch)
	}
	rebasing, bisecting, second := add("rebased", "rebasing"), add("tested", "bisecting"), add("main", "second")
	main := filepath.Base(dir)

	expect(dir, "refs/heads/main", "second")
	expect(second, "refs/heads/main", main)
	expect(second, "refs/heads/rebased", "rebasing")
	expect(rebasing, "refs/heads/rebased", "")
	expect(dir, "refs/heads/other", "")

	gittest.Commit(t, dir, "theirs", map[string]string{"a": "2\n"})
	gittest.Commit(t, rebasing, "mine", map[string]string{"a": "3\n"})
	gittest.Git(t, rebasing, "branch", "--force", "stacked")
	gittest.Commit(t, rebasing, "more", map[string]string{"b": "3\n"})
	if r := gittest.TryGit(t, rebasing, "rebase", "--update-refs", "main"); r.Code != 1 {
		t.Fatalf("%+v", r)
	}
	gittest.Git(t, bisecting, "bisect", "start")
	gittest.Git(t, bisecting, "bisect", "bad")
	for _, from := range []string{dir, rebasing, bisecting} {
		expect(from, "refs/heads/rebased", "rebasing rebase")
		expect(from, "refs/heads/stacked", "rebasing rebase")
	}
	expect(dir, "refs/heads/tested", "bisecting, bisecting bisect")
	gittest.Git(t, bisecting, "switch", "--quiet", "--detach")
	expect(dir, "refs/heads/tested", "bisecting bisect")
	expect(bisecting, "refs/heads/tested", "bisecting bisect")
	if doing := open(t, rebasing).Doing(); doing != "rebase" {
		t.Errorf("it is doing %q", doing)
	}
	if r := open(t, bisecting); r.Doing() != "" || !r.Bisecting() {
		t.Errorf("it is doing %q", r.Doing())
	}
}

package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// What the README says takes the tools out of a clone leaves nothing of them there, and
// the remote as it was.
func TestTakenOutOfAClone(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "### Out of a clone again\n")
	_, after, _ = strings.Cut(after, "```sh\n")
	block, _, found := strings.Cut(after, "```\n")
	if !found {
		t.Fatal("the README has no such block")
	}
	remote := gittest.Remote(t)
	s := clone(t, remote)
	before := gittest.Git(t, s.dir, "config", "--local", "--list")
	hooks := func() string {
		list, _ := filepath.Glob(filepath.Join(s.dir, ".git", "hooks", "*"))
		return strings.Join(list, "\n")
	}
	hooksBefore := hooks()
	s.exits(0, "git-land", "init")
	s.write(map[string]string{"a": "a\n", "b": "b\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "a", "--", "a")
	s.write(map[string]string{"a": "another\n"})
	s.exits(0, "git-land", "verify", "-x", "true", "--", "a")
	if n := strings.Count(gittest.Git(t, s.dir, "worktree", "list"), "\n"); n != 1 {
		t.Fatalf("%d verification worktrees", n)
	}
	there := gittest.Git(t, remote, "for-each-ref")
	if r := s.try("sh", "-e", "-c", block); r.Code != 0 {
		t.Fatalf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	for what, text := range map[string]string{
		"refs":      gittest.Git(t, s.dir, "for-each-ref", "refs/lease-remote", "refs/lease", "refs/notes"),
		"worktrees": strings.TrimPrefix(gittest.Git(t, s.dir, "worktree", "list"), strings.Split(gittest.Git(t, s.dir, "worktree", "list"), "\n")[0]),
		"state":     strings.Join(glob(t, s.dir), "\n"),
	} {
		if text != "" {
			t.Errorf("%s are left:\n%s", what, text)
		}
	}
	if now := gittest.Git(t, s.dir, "config", "--local", "--list"); now != before {
		t.Errorf("the configuration is\n%s\nand was\n%s", now, before)
	}
	if now := hooks(); now != hooksBefore {
		t.Errorf("hooks are\n%s\nand were\n%s", now, hooksBefore)
	}
	if now := gittest.Git(t, remote, "for-each-ref"); now != there {
		t.Errorf("the remote has\n%s\nand had\n%s", now, there)
	}
}

func glob(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, ".git", "lease*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

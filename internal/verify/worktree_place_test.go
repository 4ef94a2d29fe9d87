package verify_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gitland/internal/fault"
	"gitland/internal/gittest"
)

// The name is readable and tells clones apart, and tools that take the name of
// their directory tell worktrees apart.
func TestWorktreePlace(t *testing.T) {
	t.Parallel()
	a, treeA := dirty(t)
	b, treeB := dirty(t)
	b.env = a.env
	b.cache = a.cache
	a.verify(treeA, "true").wantPass(t, "")
	b.verify(treeB, "true").wantPass(t, "")
	dirs := a.worktrees()
	if len(dirs) != 2 {
		t.Fatalf("got %q, want two worktrees", dirs)
	}
	for _, dir := range dirs {
		if name := filepath.Base(dir); !strings.HasPrefix(name, "project-") || !strings.HasSuffix(name, "-1") {
			t.Errorf("got %s", dir)
		}
	}
}

func TestWorktreePlaceIsConfigured(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	home, cache, other := tempDir(t), tempDir(t), tempDir(t)
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\nname = Ada\nemail = a@x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		dir, home, cache string
		want             string
	}{
		"cache":             {"", home, cache, cache + "/gitland/verify"},
		"home":              {"", home, "", home + "/.cache/gitland/verify"},
		"relative is none":  {"", home, "cache", home + "/.cache/gitland/verify"},
		"configured":        {other + "/deep/er", home, cache, other + "/deep/er"},
		"in home":           {"~/verify", home, cache, home + "/verify"},
		"without a home":    {other + "/./x/", "", "", other + "/x"},
		"only cache is set": {"", "", cache, cache + "/gitland/verify"},
	} {
		t.Run(name, func(t *testing.T) {
			n := c.in(c.dir, "HOME="+test.home, "XDG_CACHE_HOME="+test.cache, "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=a@x",
				"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=land.verify.dir", "GIT_CONFIG_VALUE_0="+test.dir)
			got := n.verify(tree, "pwd -P")
			got.wantPass(t, got.output)
			if dir := filepath.Dir(strings.TrimSpace(got.output)); dir != test.want {
				t.Errorf("got %s, want %s", dir, test.want)
			}
		})
	}
}

func TestWorktreePlaceRefused(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	for _, dir := range []string{"relative", "~", "~other/x", "./x"} {
		n := c.in(c.dir, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=land.verify.dir", "GIT_CONFIG_VALUE_0="+dir)
		n.verify(tree, "echo run").wantFault(t, fault.Usage, strconv.Quote(dir)+" is not an absolute path")
	}
	n := c.in(c.dir, "HOME", "XDG_CACHE_HOME", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=a@x")
	n.verify(tree, "echo run").wantFault(t, fault.Usage, "there is no place")
}

// Odd names of clones, and symbolic links to them, are all the same to git.
func TestWorktreeOfOddlyNamedClone(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	odd := filepath.Join(t.TempDir(), "pröject 'x' "+strings.Repeat("y", 60))
	if err := os.Rename(c.dir, odd); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(odd, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{odd, link, link + "/sub"} {
		c.in(dir).verify(tree, "cat file").wantPass(t, "one\n")
	}
	if name := filepath.Base(c.worktree()); !strings.HasPrefix(name, "pr-ject--x--yyy") || len(name) > 60 {
		t.Errorf("got %s", name)
	}
}

func TestBareRepository(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	bare := filepath.Join(t.TempDir(), "bare.git")
	c.git("clone", "--quiet", "--bare", ".", bare)
	tree := c.tree("HEAD")
	for _, dir := range []string{bare, filepath.Join(bare, "refs"), filepath.Join(c.dir, ".git")} {
		c.in(dir).verify(tree, "cat file; git status --porcelain").wantPass(t, "one\n")
	}
	dirs := c.worktrees()
	if len(dirs) != 2 || !strings.HasPrefix(filepath.Base(dirs[0]), "bare-") {
		t.Errorf("got %q", dirs)
	}
}

// A submodule is a clone as well, with an unusual configuration.
func TestWorktreeOfSubmodule(t *testing.T) {
	t.Parallel()
	c, other := initRepo(t), initRepo(t)
	c.git("submodule", "--quiet", "add", other.dir, "module")
	module := c.in(filepath.Join(c.dir, "module", "sub"))
	tree := module.tree("HEAD")
	module.verify(tree, "cat file").wantPass(t, "one\n")
	if got := c.worktrees(); len(got) != 0 {
		t.Errorf("worktrees %q were made", got)
	}
	gittest.Write(t, module.dir, map[string]string{"file": "dirty\n"})
	for range 2 {
		module.verify(tree, "cat file sub/file").wantPass(t, "one\ntwo\n")
	}
	if name := filepath.Base(c.worktree()); !strings.HasPrefix(name, "module-") {
		t.Errorf("got %s", name)
	}
}

// In the repository of a home directory, say: it must not be cleaned when git
// finds it in place of a worktree that has lost its ".git".
func TestWorktreeInsideAnotherRepository(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	outer := filepath.Dir(c.cache)
	if err := os.MkdirAll(outer, 0o700); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, outer, "init", "--quiet")
	c.verify(tree, "cat file").wantPass(t, "one\n")
	gittest.Write(t, outer, map[string]string{"precious": "precious\n"})
	w := c.worktree()
	gittest.Write(t, filepath.Dir(w), map[string]string{"precious": "precious\n"})
	if err := os.Remove(filepath.Join(w, ".git")); err != nil {
		t.Fatal(err)
	}
	c.verify(tree, "cat file").wantPass(t, "one\n")
	gittest.Read(t, outer, "precious")
	gittest.Read(t, filepath.Dir(w), "precious")
}

// A worktree that another clone left, at the same place, is none of this one.
func TestWorktreeOfAnEarlierClone(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	setup := withSetup("echo set up")
	c.verify(tree, "echo >a.tmp", setup).wantPass(t, "set up\n")
	if err := os.RemoveAll(c.dir); err != nil {
		t.Fatal(err)
	}
	again, _ := dirty(t)
	if err := os.Rename(again.dir, c.dir); err != nil {
		t.Fatal(err)
	}
	c.verify(tree, "ls", setup).wantPass(t, "set up\nfile\nsub\n")
	c.worktree()
}

package verify_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/fault"
	"gitland/internal/gittest"
	"gitland/internal/object"
	"gitland/internal/verify"
)

// dirty is a repository whose working tree is not what is verified.
func dirty(t *testing.T, initArgs ...string) (*clone, object.OID) {
	t.Helper()
	c := initRepo(t, initArgs...)
	tree := c.tree("HEAD")
	gittest.Write(t, c.dir, map[string]string{"file": "dirty\n"})
	return c, tree
}

func withSetup(command string) func(*verify.Request) {
	return func(r *verify.Request) { r.Setup = command }
}

// A worktree is kept: what git ignores stays, all else is as the tree has it,
// and the setup is run once.
func TestWorktreeIsReused(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c, tree := dirty(t, "--object-format="+format)
			setup := withSetup("echo set up; pwd -P; git rev-parse HEAD^{tree} >build.tmp; mkdir build; echo >build/x; echo lost >not-ignored; echo lost >file")
			first := c.verify(tree, "ls -A; cat file build.tmp; echo >more.tmp; echo >new; rm sub/file; echo changed >file; git add .", setup)
			w := c.worktree()
			first.wantPass(t, "set up\n"+w+"\n.git\n.gitignore\nbuild\nbuild.tmp\nfile\nsub\none\n"+string(tree)+"\n")

			next := c.makeTree(map[string]string{"file": "next\n", "sub": "now a file\n", ".gitignore": "*.tmp\n", "more.tmp": "tracked\n"})
			again := c.verify(next, "ls -A; cat file sub build.tmp more.tmp; git status --porcelain", setup)
			again.wantPass(t, ".git\n.gitignore\nbuild.tmp\nfile\nmore.tmp\nsub\nnext\nnow a file\n"+string(tree)+"\ntracked\n")
			if c.worktree() != w {
				t.Error("another worktree was made")
			}
		})
	}
}

// The user's hooks, reflog and refs have nothing to do with our worktrees, and
// neither has an index that the environment names.
func TestWorktreeLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	log := filepath.Join(t.TempDir(), "log")
	for _, hook := range []string{"post-checkout", "reference-transaction", "post-index-change"} {
		gittest.Script(t, filepath.Join(c.dir, ".git", "hooks", hook), "#!/bin/sh\necho $0 $GIT_DIR >>"+log+"\n")
	}
	index := filepath.Join(t.TempDir(), "index")
	n := c.in(c.dir, "GIT_INDEX_FILE="+index, "GIT_DIR="+c.dir+"/.git", "GIT_WORK_TREE="+c.dir)
	n.git("read-tree", "HEAD")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	content, files, refs := gittest.Read(t, index, ""), gittest.Files(t, c.dir), gittest.Refs(t, c.dir)
	for range 2 {
		n.verify(tree, "cat file", onBase(c)).wantPass(t, "one\n")
	}
	if gittest.Read(t, index, "") != content || !maps.Equal(gittest.Files(t, c.dir), files) || !maps.Equal(gittest.Refs(t, c.dir), refs) {
		t.Error("index, files or refs were changed")
	}
	if got, err := os.ReadFile(log); err == nil && strings.Contains(string(got), filepath.Join("worktrees", "project")) {
		t.Errorf("hooks were run: %s", got)
	}
	if got := c.git("log", "--all", "--reflog", "--format=%s"); got != "begin" {
		t.Errorf("log: %q", got)
	}
}

func onBase(c *clone) func(*verify.Request) {
	base := object.OID(c.git("rev-parse", "HEAD"))
	return func(r *verify.Request) { r.Base = base }
}

// A check may ask git for the history, which is that of the base.
func TestHistoryInWorktree(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	c.git("tag", "v1")
	tree2 := c.workTree()
	gittest.Write(t, c.dir, map[string]string{"new": ""})
	c.verify(tree2, "git describe --tags --long | cut -d- -f1-2; git diff --name-only main...HEAD; git status --porcelain", onBase(c)).wantPass(t, "v1-1\nfile\n")
	c.verify(tree, "git commit --quiet --allow-empty -m mine; git log --format=%s", onBase(c)).wantPass(t, "mine\nA tree that is verified\nbegin\n")
	c.verify(tree, "git log --format=%s", onBase(c)).wantPass(t, "A tree that is verified\nbegin\n")
	if got := c.git("log", "--all", "--format=%s"); got != "begin" {
		t.Errorf("log: %q", got)
	}
}

func TestSetupFails(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	flag := filepath.Join(t.TempDir(), "flag")
	setup := withSetup("echo trying; echo >half.tmp; test -e " + flag)
	for range 2 {
		got := c.verify(tree, "echo run", setup)
		got.wantFault(t, fault.Failed, "land.verify.setup failed with exit code 1 in "+c.worktree())
		if got.output != "trying\n" {
			t.Errorf("output %q", got.output)
		}
	}
	gittest.Write(t, filepath.Dir(flag), map[string]string{"flag": ""})
	c.verify(tree, "echo run", setup).wantPass(t, "trying\nrun\n")
	c.verify(tree, "echo run", setup).wantPass(t, "run\n")
	// Set up in another way, it is another worktree.
	c.verify(tree, "ls", withSetup("echo other")).wantPass(t, "other\nfile\nsub\n")
	c.verify(tree, "ls").wantPass(t, "file\nsub\n")
	c.worktree()
}

func TestSetupIsInterrupted(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	got := c.verify(tree, "echo run", withSetup("kill -TERM $$"))
	got.wantFault(t, fault.Unverified, "land.verify.setup was ended by SIGTERM")
	c.verify(tree, "echo run", withSetup("echo set up")).wantPass(t, "set up\nrun\n")
}

// The setup has the surroundings of a check.
func TestSetupSurroundings(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	c.env = gittest.With(c.env, "GIT_LEASE_TOKEN=secret", "GIT_DIR="+c.dir+"/.git", "GIT_WORK_TREE="+c.dir)
	c.verify(tree, "true", withSetup(`cat; test "$PWD" = "$(pwd -P)" && echo "$GIT_LEASE_TOKEN,$GIT_DIR,$GIT_WORK_TREE"`)).wantPass(t, ",,\n")
}

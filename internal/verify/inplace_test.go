package verify_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/fault"
	"gitland/internal/gittest"
)

// The check runs at the top, with nothing on its standard input, and sees
// neither git's variables nor the token.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	const script = `pwd -P; cat; git rev-parse --show-toplevel --git-dir
env | grep -E '^(GIT_(DIR|WORK_TREE|INDEX_FILE|PREFIX|LEASE_.*)|PWD|MARK)=' | sort; :`
	vars := []string{"GIT_LEASE_TOKEN=secret", "GIT_LEASE_SESSION=agent", "GIT_LEASE_NAME=main", "GIT_PREFIX=sub/", "MARK=1"}
	want := func(top, gitDir string) string {
		return top + "\n" + top + "\n" + gitDir + "\nGIT_LEASE_NAME=main\nMARK=1\nPWD=" + top + "\n"
	}
	t.Run("top", func(t *testing.T) {
		t.Parallel()
		c := initRepo(t)
		c.in(c.dir, vars...).verify(c.tree("HEAD"), script).wantPass(t, want(c.dir, ".git"))
	})
	t.Run("subdirectory", func(t *testing.T) {
		t.Parallel()
		c := initRepo(t)
		c.in(filepath.Join(c.dir, "sub"), vars...).verify(c.tree("HEAD"), script).wantPass(t, want(c.dir, ".git"))
	})
	t.Run("git's variables", func(t *testing.T) {
		t.Parallel()
		c := initRepo(t)
		index := filepath.Join(t.TempDir(), "index")
		n := c.in(filepath.Join(c.dir, "sub"), append(vars, "GIT_DIR="+c.dir+"/.git", "GIT_WORK_TREE="+c.dir, "GIT_INDEX_FILE="+index)...)
		n.git("read-tree", "HEAD")
		n.verify(c.tree("HEAD"), script).wantPass(t, want(c.dir, ".git"))
	})
	t.Run("linked worktree", func(t *testing.T) {
		t.Parallel()
		c := initRepo(t)
		linked := filepath.Join(filepath.Dir(c.dir), "linked")
		c.git("worktree", "add", "--quiet", "-b", "side", linked)
		gittest.Write(t, c.dir, map[string]string{"file": "dirty in the other one\n"})
		for _, dir := range []string{linked, filepath.Join(linked, "sub")} {
			c.in(dir, vars...).verify(c.tree("HEAD"), script).wantPass(t, want(linked, filepath.Join(c.dir, ".git", "worktrees", "linked")))
		}
	})
	t.Run("worktree of ours", func(t *testing.T) {
		t.Parallel()
		c := initRepo(t)
		gittest.Write(t, c.dir, map[string]string{"file": "dirty\n"})
		got := c.in(filepath.Join(c.dir, "sub"), append(vars, "GIT_DIR="+c.dir+"/.git", "GIT_WORK_TREE="+c.dir)...).verify(c.tree("HEAD"), script)
		w := c.worktree()
		got.wantPass(t, want(w, filepath.Join(c.dir, ".git", "worktrees", filepath.Base(w))))
	})
}

// Staged or not, tracked or not: what counts is the content.
func TestInPlace(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	gittest.Write(t, c.dir, map[string]string{
		"file": "staged\n", "sub/file": "changed\n", "new": "untracked\n", "deep/er/new": "untracked\n", "x.tmp": "ignored\n"})
	c.git("add", "file")
	gittest.Write(t, c.dir, map[string]string{"file": "half staged\n"})
	gittest.Script(t, filepath.Join(c.dir, "run"), "#!/bin/sh\n")
	if err := os.Symlink("file", filepath.Join(c.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(c.dir, "sub/file")); err != nil {
		t.Fatal(err)
	}
	tree := c.workTree()
	before, index := gittest.Files(t, c.dir), gittest.Index(t, c.dir)
	refs := gittest.Refs(t, c.dir)
	for _, dir := range []string{c.dir, filepath.Join(c.dir, "deep")} {
		c.in(dir).verify(tree, "cat file x.tmp; echo more >>x.tmp; : >y.tmp; rm y.tmp; echo ignored >x.tmp").wantPass(t, "half staged\nignored\n")
	}
	if got := c.worktrees(); len(got) != 0 {
		t.Errorf("worktrees %q were made", got)
	}
	if got := gittest.Files(t, c.dir); !maps.Equal(got, before) {
		t.Errorf("files: got %v, had %v", got, before)
	}
	if got := gittest.Index(t, c.dir); !maps.Equal(got, index) {
		t.Errorf("index: got %v, had %v", got, index)
	}
	if got := gittest.Refs(t, c.dir); !maps.Equal(got, refs) {
		t.Errorf("refs: got %v, had %v", got, refs)
	}
}

// An unborn branch has a working tree too.
func TestInPlaceUnborn(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	c.git("checkout", "--quiet", "--orphan", "other")
	tree := c.workTree()
	c.verify(tree, "cat file").wantPass(t, "one\n")
	c.git("rm", "--quiet", "--cached", "-r", ".")
	c.verify(tree, "cat file").wantPass(t, "one\n")
	if got := c.worktrees(); len(got) != 0 {
		t.Errorf("worktrees %q were made", got)
	}
}

// In the middle of a merge the index has no tree, but the files have.
func TestInPlaceWhileMerging(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	c.git("checkout", "--quiet", "-b", "side")
	gittest.Commit(t, c.dir, "side", map[string]string{"file": "side\n"})
	c.git("checkout", "--quiet", "main")
	gittest.Commit(t, c.dir, "main", map[string]string{"file": "main\n"})
	gittest.TryGit(t, c.dir, "merge", "side")
	gittest.Write(t, c.dir, map[string]string{"file": "both\n"})
	if gittest.Index(t, c.dir)["file"] == "" || !strings.Contains(c.git("status", "--porcelain"), "UU") {
		t.Fatal("there is no conflict")
	}
	c.verify(c.workTree(), "cat file").wantPass(t, "both\n")
	if got := c.worktrees(); len(got) != 0 {
		t.Errorf("worktrees %q were made", got)
	}
}

// A check that leaves the working tree different proves nothing, whatever it
// says.
func TestChangedInPlace(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"changed":     "echo more >>file",
		"same size":   "echo eno >file",
		"deleted":     "rm sub/file",
		"mode":        "chmod +x file",
		"new":         "mkdir -p out && : >out/made",
		"unignored":   ": >.gitignore && : >x.tmp",
		"and fails":   "echo more >>file; exit 1",
		"staged":      "echo more >>file; git add file",
		"committed":   "echo more >>file; git commit --quiet -am more",
		"own repo":    "git init --quiet nested",
		"replaced":    "rm file && ln -s sub/file file",
		"hidden away": "echo more >>file; git update-index --assume-unchanged file",
		"skipped":     "echo more >>file; git update-index --skip-worktree file",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := initRepo(t)
			got := c.verify(c.tree("HEAD"), "echo run; "+command)
			got.wantFault(t, fault.Unverified, "working tree changed while the check default ran")
			if got.output != "run\n" {
				t.Errorf("output %q", got.output)
			}
			if got := c.worktrees(); len(got) != 0 {
				t.Errorf("worktrees %q were made", got)
			}
		})
	}
}

func TestChangedPathsAreNamed(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	got := c.verify(c.tree("HEAD"), `echo >a; echo >"b	c"; echo >d; echo >e; exit 3`)
	got.wantFault(t, fault.Unverified, "(exit code 3), which so proves nothing: a, b c, d and 1 more")
}

// What is not the tree itself is not enough: the check runs on the tree, in a
// worktree.
func TestNotInPlace(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T, *clone){
		"changed": func(t *testing.T, c *clone) {
			gittest.Write(t, c.dir, map[string]string{"file": "dirty\n"})
		},
		"staged and put back": func(t *testing.T, c *clone) {
			gittest.Write(t, c.dir, map[string]string{"file": "dirty\n"})
			c.git("add", "file")
		},
		"untracked": func(t *testing.T, c *clone) {
			gittest.Write(t, c.dir, map[string]string{"sub/new": "new\n"})
		},
		"untracked and not shown": func(t *testing.T, c *clone) {
			c.git("config", "status.showUntrackedFiles", "no")
			gittest.Write(t, c.dir, map[string]string{"new": "new\n"})
		},
		"changed and assumed unchanged": func(t *testing.T, c *clone) {
			c.git("update-index", "--assume-unchanged", "file")
			gittest.Write(t, c.dir, map[string]string{"file": "dirty\n"})
		},
		"changed and skipped": func(t *testing.T, c *clone) {
			c.git("update-index", "--skip-worktree", "file")
			gittest.Write(t, c.dir, map[string]string{"file": "dirty\n"})
		},
		"sparse": func(t *testing.T, c *clone) {
			c.git("sparse-checkout", "set", "--no-cone", "/.gitignore")
		},
		"sparse cone, sparse index": func(t *testing.T, c *clone) {
			c.git("config", "extensions.worktreeConfig", "true")
			c.git("sparse-checkout", "set", "--cone", "--sparse-index", "other")
		},
		"repository in it": func(t *testing.T, c *clone) {
			gittest.Commit(t, c.dir, "x", nil)
			c.git("init", "--quiet", "nested")
		},
		"mode": func(t *testing.T, c *clone) {
			if err := os.Chmod(filepath.Join(c.dir, "file"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := initRepo(t)
			prepare(t, c)
			before, index := gittest.Files(t, c.dir), gittest.Index(t, c.dir)
			got := c.verify(c.tree("HEAD"), "cat file sub/file; ls -A; git status --porcelain; test ! -x file; echo more >>file; rm -r sub")
			got.wantPass(t, "one\ntwo\n.git\n.gitignore\nfile\nsub\n")
			if len(got.notices) != 1 || got.notices[0] != "the check default runs in "+c.worktree() {
				t.Errorf("notices %q", got.notices)
			}
			if got := gittest.Files(t, c.dir); !maps.Equal(got, before) {
				t.Errorf("files: got %v, had %v", got, before)
			}
			if got := gittest.Index(t, c.dir); !maps.Equal(got, index) {
				t.Errorf("index: got %v, had %v", got, index)
			}
		})
	}
}

// A submodule is there when it is there in place, unchanged, and never in a
// worktree of ours.
func TestSubmodule(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	other := initRepo(t)
	c.git("submodule", "--quiet", "add", other.dir, "module")
	c.git("commit", "--quiet", "-m", "module")
	tree := c.tree("HEAD")
	c.verify(tree, "cat module/file").wantPass(t, "one\n")
	c.git("config", "submodule.module.ignore", "all")
	gittest.Write(t, c.dir, map[string]string{"module/file": "dirty\n"})
	c.verify(tree, "ls module; cat file").wantPass(t, "one\n")
	gittest.Write(t, c.dir, map[string]string{"module/file": "one\n", "module/new": "new\n"})
	c.verify(tree, "git submodule --quiet update --init && cat module/file").wantPass(t, "one\n")
	// What the check made there stays, and does not stand in the way.
	gittest.Commit(t, c.dir, "no module", map[string]string{"module2": "file\n"})
	c.git("rm", "--quiet", "-f", "module")
	c.git("commit", "--quiet", "-m", "without")
	gittest.Write(t, c.dir, map[string]string{"dirty": "dirty\n"})
	c.verify(c.tree("HEAD"), "ls").wantPass(t, "file\nmodule2\nsub\n")
	c.worktree()
}

// The files are as git checks them out, which is not how the tree has them.
func TestInPlaceConverted(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	gittest.Commit(t, c.dir, "crlf", map[string]string{".gitattributes": "*.txt text eol=crlf\n", "a.txt": "line\r\n"})
	tree := c.tree("HEAD")
	c.verify(tree, "cat a.txt").wantPass(t, "line\r\n")
	if got := c.worktrees(); len(got) != 0 {
		t.Errorf("worktrees %q were made", got)
	}
	gittest.Write(t, c.dir, map[string]string{"a.txt": "other\n"})
	c.verify(tree, "cat a.txt").wantPass(t, "line\r\n")
	c.worktree()
}

// Two at once in place do not disturb each other.
func TestTwoInPlace(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	tree := c.tree("HEAD")
	a, b := fifo(t), fifo(t)
	first, second := c.both(tree, "echo >"+a+"; read -r x <"+b, "read -r x <"+a+"; echo >"+b)
	first.wantPass(t, "")
	second.wantPass(t, "")
}

package verify_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gitland/internal/gittest"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/verify"
)

// Two at once have a worktree each, and the third takes the first that is free.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	a, b := fifo(t), fifo(t)
	first, second := c.both(tree, "echo >"+a+"; read -r x <"+b+"; pwd -P", "read -r x <"+a+"; pwd -P; echo >"+b)
	dirs := c.worktrees()
	if len(dirs) != 2 {
		t.Fatalf("got %q, want two worktrees", dirs)
	}
	got := []string{strings.TrimSpace(first.output), strings.TrimSpace(second.output)}
	slices.Sort(got)
	if !slices.Equal(got, dirs) {
		t.Errorf("got %q, want %q", got, dirs)
	}
	c.verify(tree, "pwd -P").wantPass(t, dirs[0]+"\n")
}

// Git itself dies of a worktree that another process is just registering.
func TestManyBeginAtOnce(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if got := c.verify(tree, "cat file"); got.err != nil || got.output != "one\n" {
				t.Errorf("got %v, output %q", got.err, got.output)
			}
		})
	}
	wg.Wait()
}

// Whatever happened to a worktree, the next verification is sound.
func TestWorktreeHeals(t *testing.T) {
	t.Parallel()
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, breakIt := range map[string]func(t *testing.T, c *clone, w, gitDir string){
		"removed": func(t *testing.T, c *clone, w, _ string) { must(t, os.RemoveAll(w)) },
		"removed and pruned": func(t *testing.T, c *clone, w, _ string) {
			must(t, os.RemoveAll(w))
			c.git("worktree", "prune", "--expire", "now")
		},
		"removed while locked": func(t *testing.T, c *clone, w, _ string) {
			c.git("worktree", "lock", w)
			must(t, os.RemoveAll(w))
		},
		"removed by git":       func(t *testing.T, c *clone, w, _ string) { c.git("worktree", "remove", "--force", w) },
		"registration removed": func(t *testing.T, c *clone, w, gitDir string) { must(t, os.RemoveAll(gitDir)) },
		"all removed":          func(t *testing.T, c *clone, w, gitDir string) { must(t, os.RemoveAll(c.cache)) },
		"index lock": func(t *testing.T, c *clone, w, gitDir string) {
			must(t, os.WriteFile(filepath.Join(gitDir, "index.lock"), nil, 0o600))
		},
		"HEAD lock": func(t *testing.T, c *clone, w, gitDir string) {
			must(t, os.WriteFile(filepath.Join(gitDir, "HEAD.lock"), nil, 0o600))
		},
		"index cut short": func(t *testing.T, c *clone, w, gitDir string) {
			must(t, os.Truncate(filepath.Join(gitDir, "index"), 20))
		},
		"no HEAD": func(t *testing.T, c *clone, w, gitDir string) {
			must(t, os.Remove(filepath.Join(gitDir, "HEAD")))
		},
		"half made": func(t *testing.T, c *clone, w, gitDir string) {
			must(t, os.Remove(filepath.Join(gitDir, "lease-verify")))
			must(t, os.WriteFile(filepath.Join(gitDir, "locked"), []byte("initializing"), 0o600))
			must(t, os.WriteFile(filepath.Join(gitDir, "index.lock"), nil, 0o600))
		},
		"no .git":       func(t *testing.T, c *clone, w, _ string) { must(t, os.Remove(filepath.Join(w, ".git"))) },
		"an empty .git": func(t *testing.T, c *clone, w, _ string) { must(t, os.Truncate(filepath.Join(w, ".git"), 0)) },
		"a file": func(t *testing.T, c *clone, w, _ string) {
			must(t, os.RemoveAll(w))
			must(t, os.WriteFile(w, nil, 0o600))
		},
		"a repository of its own": func(t *testing.T, c *clone, w, _ string) {
			must(t, os.Remove(filepath.Join(w, ".git")))
			gittest.Git(t, w, "init", "--quiet")
		},
		"read only": func(t *testing.T, c *clone, w, gitDir string) {
			must(t, os.Remove(filepath.Join(w, ".git")))
			must(t, os.Chmod(filepath.Join(w, "sub"), 0o500))
		},
		"rubbish": func(t *testing.T, c *clone, w, gitDir string) {
			must(t, os.Remove(filepath.Join(w, "file")))
			gittest.Write(t, w, map[string]string{"sub/sub/new": "new\n", "file/x": "a directory\n"})
			gittest.Git(t, w, "init", "--quiet", "nested")
		},
		"a branch":    func(t *testing.T, c *clone, w, _ string) { gittest.Git(t, w, "checkout", "--quiet", "-b", "side") },
		"in a merge":  func(t *testing.T, c *clone, w, _ string) { inAMerge(t, w) },
		"in a rebase": func(t *testing.T, c *clone, w, _ string) { inARebase(t, w) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, tree := dirty(t)
			c.verify(tree, "true", withSetup("echo >set-up.tmp")).wantPass(t, "")
			w := c.worktree()
			breakIt(t, c, w, filepath.Join(c.dir, ".git", "worktrees", filepath.Base(w)))
			got := c.verify(tree, "pwd -P; cat file; ls; git status --porcelain", withSetup("echo >set-up.tmp"))
			got.wantPass(t, w+"\none\nfile\nset-up.tmp\nsub\n")
			if got := strings.Count(c.git("worktree", "list", "--porcelain"), "worktree "); got != 2 {
				t.Errorf("there are %d worktrees", got)
			}
		})
	}
}

func inAMerge(t *testing.T, w string) {
	t.Helper()
	base := gittest.Git(t, w, "rev-parse", "HEAD")
	gittest.Commit(t, w, "theirs", map[string]string{"file": "theirs\n"})
	theirs := gittest.Git(t, w, "rev-parse", "HEAD")
	gittest.Git(t, w, "checkout", "--quiet", "--detach", base)
	gittest.Commit(t, w, "ours", map[string]string{"file": "ours\n"})
	if r := gittest.TryGit(t, w, "merge", theirs); r.Code != 1 {
		t.Fatalf("there is no conflict: %+v", r)
	}
}

func inARebase(t *testing.T, w string) {
	t.Helper()
	base := gittest.Git(t, w, "rev-parse", "HEAD")
	gittest.Commit(t, w, "theirs", map[string]string{"file": "theirs\n"})
	theirs := gittest.Git(t, w, "rev-parse", "HEAD")
	gittest.Git(t, w, "checkout", "--quiet", "--detach", base)
	gittest.Commit(t, w, "ours", map[string]string{"file": "ours\n"})
	if r := gittest.TryGit(t, w, "rebase", theirs); r.Code != 1 {
		t.Fatalf("there is no conflict: %+v", r)
	}
}

// What git ignored can stand where the next tree has something.
func TestIgnoredInTheWay(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	c.verify(tree, "mkdir -p build/deep; echo >build/deep/x; echo >a.tmp").wantPass(t, "")
	next := c.makeTree(map[string]string{"build": "a file\n", "a.tmp/file": "in a directory\n"})
	c.verify(next, "cat build a.tmp/file").wantPass(t, "a file\nin a directory\n")
	c.verify(tree, "cat file").wantPass(t, "one\n")
	c.worktree()
}

// A check keeps its worktree when the process that verifies dies, and loses it
// when that process has seen the check's end, whatever the check left behind.
func TestKilled(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	running, end := fifo(t), fifo(t)
	text, err := json.Marshal(role{Dir: c.dir, Request: verify.Request{Tree: tree, Check: "default", ID: "killed",
		Command: "pwd -P >" + running + "; read -r x <" + end + "; pwd -P >" + running}})
	if err != nil {
		t.Fatal(err)
	}
	p := gittest.Command(t, gittest.With(c.env, roleVar+"="+string(text)), c.dir, os.Args[0])
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(running); err != nil || string(got) != c.worktree()+"\n" {
		t.Fatalf("got %q, %v", got, err)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	c.verify(tree, "pwd -P").wantPass(t, c.worktrees()[1]+"\n")
	if err := os.WriteFile(end, []byte("end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(running); err != nil || string(got) != c.worktrees()[0]+"\n" {
		t.Fatalf("got %q, %v", got, err)
	}
	if dirs := c.worktrees(); len(dirs) != 2 {
		t.Errorf("got %q", dirs)
	}
}

func TestDaemonDoesNotKeepTheWorktree(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	end := fifo(t)
	got := c.verify(tree, "cat >/dev/null 2>&1 <"+end+" & echo $!")
	pid, err := strconv.Atoi(strings.TrimSpace(got.output))
	if err != nil || got.Verdict != note.Pass {
		t.Fatalf("got %q, %v, %v", got.output, err, got.err)
	}
	c.verify(tree, "pwd -P").wantPass(t, c.worktree()+"\n")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon is gone: %v", err)
	}
}

// Killed at any moment, be it while a worktree is made, a verifying process
// leaves nothing that the next one does not deal with.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("dir%d/file", i)] = "content\n"
	}
	other := c.makeTree(files)
	trees := []object.OID{tree, other}
	for i := range 8 {
		text, err := json.Marshal(role{Dir: c.dir, Request: verify.Request{Tree: trees[i%2], Check: "default", ID: fmt.Sprint("killed-", i), Command: "true"}})
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			if err := os.RemoveAll(c.cache); err != nil {
				t.Fatal(err)
			}
		}
		p := gittest.Command(t, gittest.With(c.env, roleVar+"="+string(text)), c.dir, os.Args[0])
		p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(i)*40*time.Millisecond, func() { syscall.Kill(-p.Process.Pid, syscall.SIGKILL) })
		p.Wait()
		timer.Stop()
		removeLeft(t, c)
	}
	c.verify(other, "git status --porcelain; cat dir299/file; ls | wc -l | tr -d ' '").wantPass(t, "content\n300\n")
	c.verify(tree, "git status --porcelain; ls").wantPass(t, "file\nsub\n")
	c.worktree()
}

// removeLeft removes the temporary index of a process that was killed.
func removeLeft(t *testing.T, c *clone) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(c.dir, ".git", "lease-index-killed-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

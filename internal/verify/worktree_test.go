package verify_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gitland/internal/fault"
	"gitland/internal/gittest"
	"gitland/internal/note"
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

package acceptance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// places are the ways to stand in a repository. Each gives a seat and how a
// path at the top is named from there.
func places(t *testing.T, remote string) map[string]func(*testing.T) (seat, string) {
	sub := func(s seat) seat {
		if err := os.MkdirAll(filepath.Join(s.dir, "some/sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		return s
	}
	return map[string]func(*testing.T) (seat, string){
		"root":         func(t *testing.T) (seat, string) { return clone(t, remote), "" },
		"subdirectory": func(t *testing.T) (seat, string) { return sub(clone(t, remote)).at("some/sub"), "../../" },
		"worktree": func(t *testing.T) (seat, string) {
			s := clone(t, remote)
			w := filepath.Join(t.TempDir(), "linked")
			s.git("worktree", "add", "-q", "-b", "linked", w)
			s.dir = w
			return s, ""
		},
	}
}

func TestUnverifiedIsRefusedAndNothingMoves(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	for name, place := range places(t, remote) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, up := place(t)
			top := s.git("rev-parse", "--show-toplevel")
			gittest.Write(t, top, map[string]string{"new": "content\n"})
			s.exits(3, "git-lease", "release") // the mirror is there, and nothing else moves
			remoteBefore, localBefore := gittest.Refs(t, remote), localRefs(t, s.dir)
			index := gittest.Index(t, top)
			r := decode[refusal](t, s.exits(4, "git-land", "--json", "-m", "new", "--", up+"new"))
			if r.Error.Code != "unverified" || len(r.Error.Tree) != 40 {
				t.Errorf("refusal %+v", r)
			}
			if want := "git land verify -x COMMAND -- " + up + "new"; r.Error.Hint != want {
				t.Errorf("hint %q, want %q", r.Error.Hint, want)
			}
			text := s.exits(4, "git-land", "-m", "new", "--", up+"new")
			if !strings.Contains(text.Stderr, r.Error.Tree) || !strings.Contains(text.Stderr, "hint: ") {
				t.Errorf("stderr %q", text.Stderr)
			}
			sameRefs(t, "remote", remoteBefore, gittest.Refs(t, remote))
			sameRefs(t, "local", localBefore, localRefs(t, s.dir))
			if !maps.Equal(index, gittest.Index(t, top)) {
				t.Error("the index changed")
			}
		})
	}
}

// localRefs are a clone's refs without the mirror.
func localRefs(t *testing.T, dir string) map[string]string {
	refs := gittest.Refs(t, dir)
	maps.DeleteFunc(refs, func(ref, _ string) bool { return strings.HasPrefix(ref, "refs/lease-remote/") })
	return refs
}

func TestVerifiedLandsFromEverywhere(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	for name, place := range places(t, remote) {
		t.Run(name, func(t *testing.T) {
			s, up := place(t)
			top := s.git("rev-parse", "--show-toplevel")
			file := "file-" + name
			gittest.Write(t, top, map[string]string{file: "content\n"})
			s.verify(up + file)
			r := s.exits(0, "git-land", "-m", "add "+file, "--", up+file)
			tip := gittest.Git(t, remote, "rev-parse", "main")
			if want := "landed " + tip[:12] + " on main\n"; r.Stdout != want {
				t.Errorf("stdout %q, want %q", r.Stdout, want)
			}
			if got := gittest.Git(t, remote, "show", "main:"+file); got != "content" {
				t.Errorf("landed %q", got)
			}
			if got := s.git("status", "--porcelain"); got != "" {
				t.Errorf("status after landing: %q", got)
			}
			if got := s.git("rev-parse", "HEAD"); got != tip {
				t.Errorf("HEAD is %s, want %s", got, tip)
			}
			if log := s.git("log", "-1", "--format=%N"); !strings.Contains(log, `"commit":"`+tip) {
				t.Errorf("git log does not show the record: %q", log)
			}
		})
	}
	t.Run("git -C", func(t *testing.T) {
		s := clone(t, remote)
		s.write(map[string]string{"dash-c": "content\n"})
		away := newSeat(t, t.TempDir())
		away.exits(0, "git", "-C", s.dir, "land", "verify", "-x", "true", "--", "dash-c")
		away.exits(0, "git", "-C", s.dir, "land", "-m", "from afar", "--", "dash-c")
		if got := gittest.Git(t, remote, "show", "main:dash-c"); got != "content" {
			t.Errorf("landed %q", got)
		}
	})
}

// A holder is broken while its push is on the way: a hook of the server holds
// the push up, after the server has read it and before it takes it.
func TestBrokenHolderCannotLand(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	s.write(map[string]string{"late": "late\n"})
	s.verify("late")
	g := decode[grant](t, s.exits(0, "git-lease", "acquire", "-m", "a slow landing", "--format=json"))

	signals := t.TempDir()
	gittest.Script(t, filepath.Join(remote, "hooks", "pre-receive"), fmt.Sprintf(`#!/bin/sh
while read -r old new ref; do
	case $ref in refs/heads/main)
		: >'%[1]s/arrived'
		i=0
		while [ ! -e '%[1]s/go' ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done ;;
	esac
done
`, signals))
	landing := s.with("GIT_LEASE_TOKEN="+g.Token).cmd("git-land", "--json", "-m", "late", "--", "late")
	done := make(chan gittest.Result, 1)
	go func() { done <- gittest.Run(t, landing) }()
	waitFor(t, filepath.Join(signals, "arrived"))

	before := gittest.Refs(t, remote)
	other.exits(0, "git-lease", "break", "main", "--operation", g.Operation, "--reason", "the laptop is closed")
	broken := gittest.Refs(t, remote)
	if err := os.WriteFile(filepath.Join(signals, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := <-done
	if r.Code != 6 {
		t.Fatalf("exit %d, want 6\n%s\n%s", r.Code, r.Stdout, r.Stderr)
	}
	told := decode[refusal](t, r)
	if told.Error.Code != "lost" || !strings.Contains(told.Error.BrokenBy, "Ada") || told.Error.Reason != "the laptop is closed" {
		t.Errorf("told %+v", told.Error)
	}
	after := gittest.Refs(t, remote)
	sameRefs(t, "after the break", broken, after)
	delete(before, "refs/lease/main")
	delete(after, "refs/lease/main")
	sameRefs(t, "but for the chain", before, after)
	r = s.with("GIT_LEASE_TOKEN="+g.Token).exits(6, "git-lease", "release", "main")
	if !strings.Contains(r.Stderr, "the laptop is closed") {
		t.Errorf("release says %q", r.Stderr)
	}
}

// waitFor waits until a file is there.
func waitFor(t *testing.T, path string) {
	t.Helper()
	for range 12000 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s did not appear", path)
}

// A landing under a lease that was brought leaves it held for what follows.
func TestLandInsideRunKeepsTheLease(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"inside": "inside\n"})
	s.verify("inside")
	r := s.exits(0, "git-lease", "run", "main", "--", "sh", "-c",
		`git land -m inside -- inside >&2 || exit 1
		 git lease show main --json`)
	show := decode[struct {
		Leases []struct {
			State string `json:"state"`
		} `json:"leases"`
	}](t, r)
	if len(show.Leases) != 1 || show.Leases[0].State != "held" {
		t.Errorf("after the landing, inside the run: %s", r.Stdout)
	}
	if got := gittest.Git(t, remote, "log", "--reverse", "--format=%(trailers:key=Lease-Event,valueonly,separator=)", "refs/lease/main"); got != "adopt\nacquire\nland\nrelease" {
		t.Errorf("events: %s", got)
	}
	if got := gittest.Git(t, remote, "show", "main:inside"); got != "inside" {
		t.Errorf("landed %q", got)
	}
}

// Two paths of a dirty tree land: the commit has exactly those, and every other
// index entry and file is byte-identical.
func TestScopedCommitTouchesNothingElse(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	base := map[string]string{}
	for _, f := range []string{"landed", "gone", "staged", "half", "unstaged", "clean", "deleted"} {
		base[f] = f + "\n"
	}
	gittest.Commit(t, s.dir, "begin", base)
	s.git("push", "-q", "origin", "main")
	s.write(map[string]string{"landed": "landed 2\n", "staged": "staged 2\n", "half": "half 2\n",
		"unstaged": "unstaged 2\n", "untracked": "untracked\n", "new-staged": "new\n"})
	s.git("add", "staged", "half", "new-staged")
	s.write(map[string]string{"half": "half 3\n"})
	s.git("rm", "-q", "deleted")
	if err := os.Remove(filepath.Join(s.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	index, files := gittest.Index(t, s.dir), gittest.Files(t, s.dir)
	s.verify("landed", "gone")
	s.exits(0, "git-land", "-m", "two paths", "--", "landed", "gone")

	if got := gittest.Git(t, remote, "diff-tree", "-r", "--name-status", "--no-commit-id", "main"); got != "D\tgone\nM\tlanded" {
		t.Errorf("the commit has:\n%s", got)
	}
	after := gittest.Index(t, s.dir)
	delete(index, "landed")
	delete(index, "gone")
	if _, ok := after["gone"]; ok {
		t.Error("gone is still in the index")
	}
	delete(after, "landed")
	if !maps.Equal(index, after) {
		t.Errorf("index was\n%v\nand is\n%v", index, after)
	}
	if got := gittest.Files(t, s.dir); !maps.Equal(files, got) {
		t.Errorf("files were\n%v\nand are\n%v", files, got)
	}
	want := "D  deleted\nMM half\nA  new-staged\nM  staged\n M unstaged\n?? untracked"
	if got := s.exits(0, "git", "status", "--porcelain").Stdout; strings.TrimRight(got, "\n") != want {
		t.Errorf("status:\n%s\nwant:\n%s", got, want)
	}
}

// A clone that is fifty commits behind lands one file, and reverts nothing.
func TestStaleCloneRevertsNothing(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, busy := clone(t, remote), clone(t, remote)
	for i := range 50 {
		gittest.Commit(t, busy.dir, fmt.Sprintf("busy %d", i), map[string]string{fmt.Sprintf("busy-%d", i%10): fmt.Sprint(i), "README": fmt.Sprint(i)})
	}
	busy.git("push", "-q", "origin", "main")
	before := gittest.Git(t, remote, "rev-parse", "main")
	s.write(map[string]string{"mine": "mine\n", "dirty": "not to land\n"})
	s.verify("mine")
	s.exits(0, "git-land", "-m", "mine", "--", "mine")
	if got := gittest.Git(t, remote, "diff-tree", "-r", "--name-status", before, "main"); got != "A\tmine" {
		t.Errorf("the landing changed:\n%s", got)
	}
	if got := gittest.Git(t, remote, "rev-parse", "main^"); got != before {
		t.Errorf("it stands on %s, want %s", got, before)
	}
	if got := s.git("status", "--porcelain"); got != "?? dirty" {
		t.Errorf("status: %q", got)
	}
	if got := gittest.Read(t, s.dir, "README"); got != "49" {
		t.Errorf("a clean path that others landed has %q", got)
	}
}

// Branches that track a fork and the origin have one authority.
func TestForkAndOriginHaveOneAuthority(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	fork := gittest.Bare(t)
	s.git("remote", "add", "fork", gittest.URL(fork))
	s.git("push", "-q", "fork", "main")
	s.git("branch", "-q", "--track", "theirs", "origin/main")
	s.git("fetch", "-q", "fork")
	s.git("branch", "-q", "--track", "mine", "fork/main")

	r := s.exits(129, "git-lease", "acquire", "--format=json")
	if !strings.Contains(r.Stderr+r.Stdout, "git config lease.remote origin") {
		t.Errorf("several remotes and no choice: %s%s", r.Stdout, r.Stderr)
	}
	s.git("config", "lease.remote", "origin")
	s.git("switch", "-q", "mine")
	g := decode[grant](t, s.exits(0, "git-lease", "acquire", "--format=json"))
	s.git("switch", "-q", "theirs")
	lost := decode[refusal](t, s.exits(3, "git-lease", "acquire", "--format=json"))
	if lost.Error.Operation != g.Operation {
		t.Errorf("held by %q, want %q", lost.Error.Operation, g.Operation)
	}
	if refs := gittest.Refs(t, fork); refs["refs/lease/main"] != "" {
		t.Error("the fork has a lease of its own")
	}
}

// An old git is told by one sentence. The wrapper stands for git 2.34, which
// knows no "cat-file --batch-command".
func TestOldGitIsTold(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	s.write(map[string]string{"new": "new\n"})
	real := s.exits(0, "sh", "-c", "command -v git").Stdout
	dir := t.TempDir()
	gittest.Script(t, filepath.Join(dir, "git"), fmt.Sprintf(`#!/bin/sh
case " $* " in
*" version "*) echo "git version 2.34.1"; exit ;;
*" --batch-command "*) echo "error: unknown option" >&2; exit 129 ;;
esac
exec '%s' "$@"
`, strings.TrimSpace(real)))
	s.env = gittest.WithPath(s.env, dir)
	for _, args := range [][]string{{"git-land", "-m", "new", "--", "new"}, {"git-lease", "show"}} {
		r := s.exits(1, args[0], args[1:]...)
		if want := ": git 2.34.1 is too old: install git 2.38 or newer\n"; !strings.HasSuffix(r.Stderr, want) {
			t.Errorf("%q says %q", args, r.Stderr)
		}
	}
}

// An index that was locked when a landing came to it is brought along by the
// next one: files that are as they landed are in nobody's way.
func TestIndexLockedWhileLanding(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	lock := filepath.Join(s.dir, ".git", "index.lock")
	s.write(map[string]string{".git/index.lock": "", "new": "n\n", "README": "landed\n"})
	if r := s.force("--", "new", "README"); !strings.Contains(r.Stderr, "rm "+lock) {
		t.Errorf("stderr %q", r.Stderr)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	s.write(map[string]string{"other": "o\n", "mine": "m\n"})
	s.force("--", "other")
	if got := s.git("status", "--porcelain"); got != "?? mine" {
		t.Errorf("status %q", got)
	}
	if got, want := s.git("rev-parse", "HEAD"), gittest.Git(t, remote, "rev-parse", "main"); got != want {
		t.Errorf("HEAD is %s, the target %s", got, want)
	}
}

// Where they are not, they stay, and nothing has moved.
func TestFilesInTheWay(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	other.write(map[string]string{"same": "s\n", "new": "theirs\n", "README": "theirs\n"})
	other.force("--", "same", "new", "README")
	s.write(map[string]string{"same": "s\n", "new": "mine\n", "mine": "m\n"})
	before := s.git("ls-files", "--stage")
	if r := s.force("--", "mine"); !strings.Contains(r.Stderr, "in the way") {
		t.Errorf("stderr %q", r.Stderr)
	}
	if got := s.git("ls-files", "--stage"); got != before {
		t.Errorf("the index went from\n%s\nto\n%s", before, got)
	}
	if got := gittest.Read(t, s.dir, "new"); got != "mine\n" {
		t.Errorf("new is %q", got)
	}
}

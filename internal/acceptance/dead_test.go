package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// dies runs a landing that is killed by a hook of the authority, when the
// target's branch is among what the hook is told of. In "post-receive" the
// landing has arrived, in "pre-receive" it has not and will not.
func (s seat) dies(gitDir, hook string, args ...string) {
	s.t.Helper()
	s.diesAt(gitDir, hook, "refs/heads/main", args...)
}

// diesAt is dies for the push that moves any ref.
func (s seat) diesAt(gitDir, hook, ref string, args ...string) {
	s.t.Helper()
	s.diesWhen(gitDir, hook, "grep -q '"+ref+"'", args...)
}

// diesWhen is dies for the push on which a shell command, which reads what the
// hook does, succeeds. A reference-transaction is told of before, too: newer versions of git
// do so twice.
func (s seat) diesWhen(gitDir, hook, condition string, args ...string) {
	s.t.Helper()
	dir := s.t.TempDir()
	path := filepath.Join(gitDir, "hooks", hook)
	gittest.Script(s.t, path, fmt.Sprintf(`#!/bin/sh
%s || exit 0
case $1 in preparing | prepared) exit 0 ;; esac
kill -9 $(cat '%s/pid')
exit 1
`, condition, dir))
	r := s.exits(0, "sh", append([]string{"-c", `
		sh -c 'echo $$ >"$0/pid"; exec git-land --force-unverified --reason test -m "land unit-change" "$@"' "$@"
		[ $? = 137 ]`, "sh", dir}, args...)...)
	if err := os.Remove(path); err != nil {
		s.t.Fatal(err)
	}
	if strings.Contains(r.Stdout, "landed") {
		s.t.Fatalf("it did not die: %q", r.Stdout)
	}
}

// What was edited after the death stands on what had landed, since HEAD follows.
func TestEditedAfterALandingThatDied(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"README": "second\n"})
	s.dies(remote, "post-receive", "--", "README")
	s.write(map[string]string{"README": "third\n"})
	s.force("--", "README")
	if got := gittest.Git(t, remote, "show", "main:README"); got != "third" {
		t.Errorf("landed %q", got)
	}
	if got := gittest.Git(t, remote, "rev-list", "--count", "main"); got != "3" {
		t.Errorf("%s commits, want 3", got)
	}
}

// What was staged after the death is the user's, and not what had landed.
func TestStagedAfterALandingThatDied(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"README": "second\n"})
	s.git("add", "README")
	s.dies(remote, "post-receive")
	s.write(map[string]string{"README": "third\n"})
	s.git("add", "README")
	s.write(map[string]string{"README": "fourth\n"})
	s.force()
	if got := gittest.Git(t, remote, "show", "main:README"); got != "third" {
		t.Errorf("landed %q", got)
	}
	if got := s.git("status", "--porcelain"); got != " M README" {
		t.Errorf("status %q", got)
	}
}

// The same for chosen paths: half of one was staged when it landed, another is
// staged since.
func TestPathStagedAfterALandingThatDied(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"README": "half\n", "new": "half\n"})
	s.git("add", "README")
	s.write(map[string]string{"README": "whole\n", "new": "whole\n"})
	s.dies(remote, "post-receive", "--", "README", "new")
	s.write(map[string]string{"new": "staged since\n"})
	s.git("add", "new")
	s.write(map[string]string{"new": "and more\n"})
	s.force() // what is staged since
	if got := gittest.Git(t, remote, "show", "main:new"); got != "staged since" {
		t.Errorf("landed %q", got)
	}
	if got := s.git("status", "--porcelain"); got != " M new" {
		t.Errorf("status %q", got)
	}
}

// A branch that was set back must not keep a worktree from landing for ever.
func TestBranchSetBackAfterALandingThatDied(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"new": "n\n"})
	s.dies(remote, "post-receive", "--", "new")
	gittest.Git(t, remote, "update-ref", "refs/heads/main", "main~1")
	s.write(map[string]string{"other": "o\n"})
	r := s.force("--", "other")
	if !strings.Contains(r.Stderr, "rewritten") {
		t.Errorf("it is not told: %q", r.Stderr)
	}
}

// The chain was led over what a dead landing expected: it cannot arrive.
func TestChainLedOverAfterALandingThatDied(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	other.write(map[string]string{"z": "z\n"})
	other.force("--", "z")
	s.write(map[string]string{"new": "n\n"})
	s.dies(remote, "pre-receive", "--", "new")
	root := gittest.Git(t, remote, "rev-list", "--max-parents=0", "refs/lease/main")
	bad := gittest.Git(t, remote, "commit-tree", "-p", root, "-m", "garbage", "main^{tree}")
	gittest.Git(t, remote, "update-ref", "refs/lease/main", bad)
	clone(t, remote).exits(0, "git-lease", "adopt", "--over", bad, "--reason", "mend")
	tip := gittest.Git(t, remote, "rev-parse", "refs/lease/main")
	s.try("git-lease", "adopt", "--over", tip, "--reason", "accept")
	s.force("--", "new")
}

// Where a clone is its own authority, a landing moves the HEAD of every worktree
// on the target. One that dies before it came to their files does so later.
func TestOtherWorktreesFollowALandingThatDied(t *testing.T) {
	t.Parallel()
	main := newSeat(t, t.TempDir())
	main.git("init", "-q", "-b", "main", ".")
	gittest.Commit(t, main.dir, "begin", map[string]string{"README": "r\n"})
	side := main
	side.dir = filepath.Join(t.TempDir(), "side")
	main.git("worktree", "add", "-q", "-b", "side", side.dir)
	side.write(map[string]string{"new": "n\n"})
	side.dies(filepath.Join(main.dir, ".git"), "reference-transaction", "--onto", "main", "--", "new")
	side.exits(0, "git-land", "--onto", "main", "-m", "change", "--", "new")
	if got := main.git("status", "--porcelain"); got != "" {
		t.Errorf("status of the worktree on main: %q", got)
	}
	if got := gittest.Read(t, main.dir, "new"); got != "n\n" {
		t.Errorf("new is %q", got)
	}
}

// A landing that died concerns where it went, wherever one lands now.
func TestDeadLandingToAnotherRemote(t *testing.T) {
	t.Parallel()
	remote, second := gittest.Remote(t), gittest.Bare(t)
	s := clone(t, remote)
	s.git("push", "-q", gittest.URL(second), "main")
	s.git("remote", "add", "second", gittest.URL(second))
	s.write(map[string]string{"new": "n\n"})
	s.dies(remote, "post-receive", "--remote", "origin", "--", "new")
	s.write(map[string]string{"other": "o\n"})
	r := s.force("--remote", "second", "--", "other")
	if !strings.Contains(r.Stderr, "finished it") {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// A directory that was removed is nobody's work tree.
func TestWorktreeThatWasRemoved(t *testing.T) {
	t.Parallel()
	s := newSeat(t, t.TempDir())
	s.git("init", "-q", "-b", "main", ".")
	gittest.Commit(t, s.dir, "begin", map[string]string{"README": "r\n"})
	s.git("checkout", "-q", "-b", "other")
	gone := filepath.Join(t.TempDir(), "gone")
	s.git("worktree", "add", "-q", gone, "main")
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	s.write(map[string]string{"new": "n\n"})
	s.force("--onto", "main", "--", "new")
}

// "git --git-dir=../.git --work-tree=.." hands relative paths on.
func TestRelativeGitDir(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"sub/new": "n\n"})
	s.at("sub").exits(0, "git", "--git-dir=../.git", "--work-tree=..", "land",
		"--force-unverified", "--reason", "test", "-m", "change", "--", "new")
	if got := s.git("status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
}

// A clone that is moved takes its unfinished landings along.
func TestCloneMovedAfterALandingThatDied(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"README": "second\n"})
	s.dies(remote, "post-receive", "--", "README")
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(s.dir, moved); err != nil {
		t.Fatal(err)
	}
	s.dir = moved
	if r := s.exits(0, "git-land"); !strings.Contains(r.Stderr, "finished it") {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// diesUnwritten leaves a landing that died when its journal was on disk and its
// objects were not.
func (s seat) diesUnwritten(remote string, args ...string) {
	s.t.Helper()
	before := s.objects()
	s.dies(remote, "pre-receive", args...)
	for path := range s.objects() {
		if !before[path] {
			if err := os.Remove(path); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// objects are the files of the loose objects.
func (s seat) objects() map[string]bool {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, ".git", "objects", "??", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	set := map[string]bool{}
	for _, f := range files {
		set[f] = true
	}
	return set
}

// The push of a landing that died before its objects were written names a commit
// that nobody has, while others land on.
func TestDeadBeforeItsObjectsWereWritten(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	other.write(map[string]string{"first": "f\n"})
	other.force("--", "first")
	s.write(map[string]string{"new": "n\n"})
	s.diesUnwritten(remote, "--", "new")
	other.write(map[string]string{"z": "z\n"})
	other.force("--", "z")
	s.force("--", "new")
	if got := gittest.Git(t, remote, "rev-list", "--count", "main"); got != "4" {
		t.Errorf("%s commits, want 4", got)
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, ".git", "lease-index-*")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// The same under a lease that the session brought, and holds.
func TestDeadUnwrittenUnderABroughtLease(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.env = append(s.env, "GIT_LEASE_SESSION=one")
	s.exits(0, "git-lease", "acquire")
	s.write(map[string]string{"new": "n\n"})
	s.diesUnwritten(remote, "--", "new")
	s.force("--", "new")
	if got := gittest.Git(t, remote, "rev-list", "--count", "main"); got != "2" {
		t.Errorf("%s commits, want 2", got)
	}
}

// A landing that did not end is found under whatever name its remote has by now.
func TestReconcileAfterARemoteWasRenamed(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"README": "second\n"})
	s.dies(remote, "pre-receive", "--", "README")
	s.git("remote", "rename", "origin", "upstream")
	if r := s.exits(7, "git-land", "reconcile"); !strings.Contains(r.Stdout, "operation-unfinished") {
		t.Errorf("told %q", r.Stdout)
	}
	s.git("remote", "add", "origin", gittest.URL(gittest.Bare(t)))
	s.exits(0, "git-land", "reconcile", "--remote", "origin", "--onto", "main")
}

// A path that is no UTF-8, which was staged before it was changed further, follows when
// the landing is brought to its end by another process.
func TestDeadLandingOfAPathThatIsNoText(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	const name = "caf\xe9"
	s.write(map[string]string{name: "first\n"})
	s.git("add", name)
	s.write(map[string]string{name: "second\n"})
	s.dies(remote, "post-receive", "--", name)
	s.exits(0, "git-land", "resume")
	if got := s.git("status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
}

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// takesOver breaks the lease of a dead operation and takes it, in a session of
// its own.
func (s seat) takesOver(op string) seat {
	s.t.Helper()
	s.env = append(append([]string{}, s.env...), "GIT_LEASE_SESSION=mend")
	s.exits(0, "git-lease", "break", "main", "--operation", op, "--reason", "its laptop is gone", "--acquire")
	return s
}

// told fails the test where a command did not exit with code, or did not say
// what it should, on either stream.
func told(t *testing.T, r gittest.Result, code int, want string) {
	t.Helper()
	if r.Code != code || !strings.Contains(r.Stdout+r.Stderr, want) {
		t.Errorf("exit %d, want %d and %q:\n%s%s", r.Code, code, want, r.Stdout, r.Stderr)
	}
}

// branchMoved leaves a landing whose branch has moved, and whose record and event are
// missing, at a remote without --atomic, and gives its operation.
func branchMoved(t *testing.T) (remote string, s, other seat, op string) {
	t.Helper()
	remote, s, other = zeroLanded(t, true)
	s.write(map[string]string{"one": "1\n"})
	s.diesAt(remote, "post-receive", "refs/heads/main", "--", "one")
	return remote, s, other, holder(t, remote)
}

// The clone whose landing others have finished comes back: it is told that it
// landed, and its worktree follows.
func TestOriginalComesBackAfterATakeover(t *testing.T) {
	t.Parallel()
	remote, s, other, op := branchMoved(t)
	other = other.takesOver(op)
	told(t, other.try("git-land", "resume", op), 0, "finished it")
	told(t, other.try("git-land", "resume", op), 0, "finished it")
	other.exits(0, "git-lease", "release", "main")
	told(t, s.try("git-land", "resume"), 0, "finished it")
	if got := s.git("status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
	agree(t, s, remote, 2)
}

// The same after reconcile has finished it.
func TestOriginalComesBackAfterARepair(t *testing.T) {
	t.Parallel()
	remote, s, other, op := branchMoved(t)
	other.exits(0, "git-lease", "break", "main", "--operation", op, "--reason", "its laptop is gone")
	other.exits(0, "git-land", "reconcile", "--fix")
	told(t, other.try("git-land", "resume", op), 0, "finished it")
	told(t, s.try("git-land", "resume"), 0, "finished it")
	if got := kinds(t, remote); !strings.HasSuffix(got, "intent break repair") {
		t.Errorf("events %q", got)
	}
	other.exits(0, "git-land", "reconcile")
}

// And where a server had moved the branch alone, and reconcile vouched for that.
func TestOriginalComesBackAfterVouching(t *testing.T) {
	t.Parallel()
	remote, s, other := zeroLanded(t, false)
	s.write(map[string]string{"one": "1\n"})
	s.dies(remote, "pre-receive", "--", "one")
	s.git("push", "-q", "--no-verify", "origin", s.journaled(`"commit":"`)+":refs/heads/main")
	other.exits(0, "git-land", "reconcile", "--fix", "--reason", "somebody pushed by hand")
	told(t, s.try("git-land", "resume"), 0, "others have brought")
	if note := gittest.Git(t, remote, "notes", "--ref=refs/notes/landing/main", "show", "main"); strings.Contains(note, "\n") {
		t.Errorf("two records:\n%s", note)
	}
	other.exits(0, "git-land", "reconcile")
}

// journaled is the 40 characters after key in the one journal of the clone.
func (s seat) journaled(key string) string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, ".git/lease/journal/*.json"))
	if err != nil || len(files) != 1 {
		s.t.Fatalf("journals: %q, %v", files, err)
	}
	_, rest, found := strings.Cut(gittest.Read(s.t, filepath.Dir(files[0]), filepath.Base(files[0])), key)
	if !found {
		s.t.Fatalf("the journal has no %s", key)
	}
	return rest[:40]
}

// A takeover that stops between record and event goes on where it stopped.
func TestTakeoverStopsAtTheRecord(t *testing.T) {
	t.Parallel()
	remote, _, other, op := branchMoved(t)
	other = other.takesOver(op)
	hook := filepath.Join(remote, "hooks/pre-receive")
	gittest.Script(t, hook, "#!/bin/sh\ngrep -q refs/notes/landing && exit 1\nexit 0\n")
	if r := other.exits(9, "git-land", "resume", op); strings.Contains(r.Stdout+r.Stderr, "no longer arrive") {
		t.Errorf("told what is not known: %s%s", r.Stdout, r.Stderr)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	other.exits(0, "git-land", "resume", op)
	other.exits(0, "git-lease", "release", "main")
	agree(t, other, remote, 2)
}

// The landing was on another branch of the lease than the one asked about.
func TestTakeoverOfAnotherBranch(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	gittest.Git(t, remote, "branch", "release", "main")
	s, other := clone(t, remote), clone(t, remote)
	for _, x := range []seat{s, other} {
		x.git("config", "lease.name", "main")
		x.git("fetch", "-q")
	}
	s.write(map[string]string{"zero": "0\n", "one": "1\n"})
	s.landUnit("zero")
	s.git("checkout", "-q", "-b", "release", "origin/release")
	s.diesAt(remote, "post-receive", "refs/heads/release", "--onto", "release", "--", "one")
	op := holder(t, remote)
	told(t, other.takesOver(op).try("git-land", "resume", op), 0, "finished it")
}

// A landing that died under a session's lease can be finished without that
// session: its clone's journal has what it needs. The lease stays held.
func TestResumeWithoutTheSession(t *testing.T) {
	t.Parallel()
	for _, hook := range []string{"pre-receive", "post-receive"} {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			remote, s, _ := zeroLanded(t, true)
			s.write(map[string]string{"one": "1\n"})
			owner := s
			owner.env = append(append([]string{}, s.env...), "GIT_LEASE_SESSION=own")
			owner.exits(0, "git-lease", "acquire")
			owner.diesAt(remote, hook, "refs/heads/main", "--", "one")
			told(t, owner.try("git-lease", "release"), 3, "git land resume "+holder(t, remote))
			told(t, s.try("git-land", "resume", holder(t, remote)), 0, "finished it")
			owner.exits(0, "git-lease", "release")
			agree(t, s, remote, 2)
		})
	}
}

// Of a landing that is given up while its branch push is on its way, at a remote
// that can keep nothing from arriving, that is what is said.
func TestAbortWhileTheBranchIsOnItsWay(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s, g := clone(t, remote), newGate(t, remote)
	s.write(map[string]string{"one": "1\n"})
	cmd := s.cmd("git-land", "--force-unverified", "--reason", "x", "-m", "land unit-one", "--", "one")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.arrived()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	told(t, s.try("git-land", "abort", "--reason", "not wanted"), 0, "could move main as long as that is at")
	g.open()
	until(t, "the push arrives", func() bool { return count(t, remote, "one") == 1 })
	told(t, s.try("git-land", "reconcile"), 7, "commit-without-record")
}

// What a dead landing needs for the worktree, or for its end, was pruned.
func TestObjectsOfADeadLandingArePruned(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	other.write(map[string]string{"o": "o\n", "p": "p\n"})
	other.landUnit("o")
	s.write(map[string]string{"one": "1\n", "two": "2\n"})
	s.dies(remote, "post-receive", "--", "one")
	other.landUnit("p")
	s.git("gc", "-q", "--prune=now")
	s.landUnit("two")

	remote = notAtomic(t)
	s = clone(t, remote)
	s.write(map[string]string{"one": "1\n", "two": "2\n"})
	s.diesAt(remote, "pre-receive", "refs/heads/main", "--", "one")
	s.git("gc", "-q", "--prune=now")
	told(t, s.try("git-land", "--force-unverified", "--reason", "test", "-m", "land unit-two", "--", "two"), 1, "git land abort")
	s.exits(0, "git-land", "abort", "--reason", "its objects are gone")
	s.landUnit("two")
}

// A journal has room for everything that is staged.
func TestManyPathsStaged(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	files := map[string]string{}
	for i := range 6000 {
		files[fmt.Sprintf("vendor/example.com/some/module/path/file%05d.go", i)] = fmt.Sprint(i)
	}
	s.write(files)
	s.git("add", "-A")
	s.landUnit("vendor")
}

// A dead landing finds its remote again under another name; where there is none
// any more, it can be forgotten.
func TestRemoteOfADeadLandingIsRenamed(t *testing.T) {
	t.Parallel()
	remote, s, _ := zeroLanded(t, false)
	s.write(map[string]string{"one": "1\n"})
	s.dies(remote, "pre-receive", "--", "one")
	url := s.git("config", "remote.origin.url")
	s.git("config", "remote.origin.url", url+"/elsewhere")
	told(t, s.try("git-land", "resume"), 129, "no remote has the address that origin had")
	s.git("config", "remote.origin.url", url)
	s.git("remote", "rename", "origin", "upstream")
	s.landUnit("one")
	agree(t, s, remote, 2)
}

package acceptance

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gitland/internal/gittest"
)

// pastLease has a commit that is not landed, on what main is.
func pastLease(st *stage) {
	st.s.git("fetch", "-q", "origin")
	st.s.git("tag", "by-hand", st.s.git("commit-tree", "-p", "origin/main", "-m", "by hand", "origin/main^{tree}"))
}

var overriding = []string{"git-land", "override", "--reason", "the site is down", "by-hand:refs/heads/main"}

// overridden are the overrides of the lease main that name where main is.
func (st *stage) overridden() int {
	st.t.Helper()
	at := gittest.Git(st.t, st.remote(), "rev-parse", "main")
	said := gittest.Git(st.t, st.remote(), "log", "--format=%(trailers:key=Override-Updates,valueonly,separator=)", "refs/lease/main")
	return strings.Count(said, " "+at)
}

// endOverride: whatever stands at the remote is told, and the same command again
// makes it so, once.
func endOverride(st *stage, _ gittest.Result, _ gittest.Point) {
	st.killTwice(st.s, "git-land", "resume")
	r := st.s.try("git-land", "resume")
	moved := st.s.git("rev-parse", "by-hand") == gittest.Git(st.t, st.remote(), "rev-parse", "main")
	if r.Code != 0 && (r.Code != 1 || !strings.Contains(r.Stderr, "did not happen") || moved) {
		st.t.Errorf("resume: main moved %v, exit %d\n%s%s", moved, r.Code, r.Stdout, r.Stderr)
	}
	r = st.s.exits(0, overriding[0], overriding[1:]...)
	if strings.Contains(r.Stdout, "already") != moved {
		st.t.Errorf("again: main had moved %v\n%s%s", moved, r.Stdout, r.Stderr)
	}
	if n := st.overridden(); n != 1 || st.events()["override"] != 1 {
		st.t.Errorf("%d overrides, and %d of %v events", n, st.events()["override"], st.events())
	}
	st.over(0)
}

// An override that was killed beside its push is told, ended, and safe to run again.
func TestOverrideThatDied(t *testing.T) {
	t.Parallel()
	killer := gittest.KillGit(t)
	template := staged(t, "begun", begun)
	pastLease(template)
	dry := template.copy(t, killer, nil)
	if _, killed := dry.kill(dry.s, gittest.Point{N: maxCalls, Signal: syscall.SIGKILL}, overriding...); killed {
		t.Fatal("killed at no call")
	}
	push := 1 + slices.IndexFunc(killer.Calls(), func(args []string) bool { return slices.Contains(args, "push") })
	for _, test := range []struct {
		name   string
		after  bool   // the push
		by     string // what somebody else has done to the lease: "acquire", "freeze" or nothing
		resume int    // its code; -1 where there is none
		says   string
		again  string // what the same command says then
	}{
		{"arrived", true, "", 0, "after it had moved main past the lease", "already"},
		{"arrived under a hold", true, "acquire", -1, "", "already"},
		{"did not arrive", false, "", 1, "did not happen", "past the lease"},
		{"may arrive under a hold", false, "acquire", 3, "may still arrive", "past the lease"},
		{"may arrive under a freeze", false, "freeze", 3, "may still arrive", "past the lease"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			st := template.copy(t, gittest.KillGit(t), nil)
			theirs := st.other.with("GIT_LEASE_SESSION=theirs")
			switch test.by {
			case "acquire":
				theirs.exits(0, "git-lease", "acquire")
			case "freeze":
				theirs.exits(0, "git-lease", "freeze", "main", "--reason", "it moves")
			}
			at := gittest.Point{N: push, After: test.after, Signal: syscall.SIGKILL}
			if r, killed := st.kill(st.s, at, overriding...); !killed {
				t.Fatalf("not killed: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
			}
			if r := st.s.exits(0, "git-land", "status"); !strings.Contains(r.Stdout, "git land resume ") {
				t.Errorf("status says %s", r.Stdout)
			}
			if test.resume >= 0 {
				if r := st.s.exits(test.resume, "git-land", "resume"); !strings.Contains(r.Stdout+r.Stderr, test.says) {
					t.Errorf("resume says %s%s", r.Stdout, r.Stderr)
				}
			}
			if r := st.s.exits(0, overriding[0], overriding[1:]...); !strings.Contains(r.Stdout, test.again) {
				t.Errorf("again says %s%s", r.Stdout, r.Stderr)
			}
			if n := st.overridden(); n != 1 || st.events()["override"] != 1 {
				t.Errorf("%d overrides, and events %v", n, st.events())
			}
			switch test.by {
			case "acquire":
				theirs.exits(0, "git-lease", "release")
			case "freeze":
				theirs.exits(0, "git-lease", "thaw", "main")
			}
			st.s.exits(0, "git-land", "reconcile")
			st.clean()
		})
	}
}

// Told to end under somebody's hold it writes no event whose refs did not move: what
// became of its push is found out later.
func TestOverrideToldToEndUnderAHold(t *testing.T) {
	t.Parallel()
	st := staged(t, "begun", begun)
	pastLease(st)
	st.other.with("GIT_LEASE_SESSION=theirs").exits(0, "git-lease", "acquire")
	// Its hook ends the push, and the override with it.
	gittest.Script(t, filepath.Join(st.s.dir, ".git/hooks/pre-push"), "#!/bin/sh\nkill -s TERM -- \"-$(cat \"$STAGE/group\")\"; sleep 9\n")
	r := gittest.RunGroup(t, st.s.cmd(overriding[0], overriding[1:]...), st.path("group"))
	if r.Code != 143 || !strings.Contains(r.Stderr, "git land resume ") {
		t.Errorf("exit %d, and it says %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if n := st.events()["override"]; n != 0 {
		t.Errorf("%d overrides of what did not move", n)
	}
	st.other.with("GIT_LEASE_SESSION=theirs").exits(0, "git-lease", "release")
	st.s.exits(1, "git-land", "resume")
}

// What was announced before a push that then failed is not told as if it had come, and
// excuses nothing that happens later.
func TestAnnouncedOverrideThatFailed(t *testing.T) {
	t.Parallel()
	remote, s, _ := zeroLanded(t, false)
	s.exits(0, "git-lease", "hook", "install")
	s.write(map[string]string{"one": "1\n"})
	s.landUnit("one")
	refuse := filepath.Join(remote, "hooks/update")
	gittest.Script(t, refuse, "#!/bin/sh\n[ \"$1\" != refs/heads/main ]\n")
	over := s.with("GIT_LEASE_OVERRIDE=one was wrong")
	over.exits(0, "git", "push", "--dry-run", "--force", "origin", "HEAD~:main") // git tells a hook nothing of it
	if r := over.exits(1, "git", "push", "--force", "origin", "HEAD~:main"); !strings.Contains(r.Stderr, "announced") {
		t.Errorf("told %q", r.Stderr)
	}
	if err := os.Remove(refuse); err != nil {
		t.Fatal(err)
	}
	if r := s.exits(0, "git-land", "log"); !strings.Contains(r.Stdout, "ANNOUNCED ") || !strings.Contains(r.Stdout, "not seen on the branch") || strings.Contains(r.Stdout, "REMOVED") {
		t.Errorf("the log says %s", r.Stdout)
	}
	if r := s.exits(0, "git-lease", "log"); !strings.Contains(r.Stdout, "announced main ") {
		t.Errorf("the lease's log says %s", r.Stdout)
	}
	if r := s.exits(0, "git-land", "reconcile", "--all"); !strings.Contains(r.Stdout, "1 announced-override,") || !strings.Contains(r.Stdout, "not seen on the branch") {
		t.Errorf("reconcile says %s", r.Stdout)
	}
	// The same again, which comes: it is what was announced, once.
	c := s.git("rev-parse", "HEAD~")
	over.exits(0, "git", "push", "-q", "--force", "origin", c+":main")
	if r := s.exits(0, "git-land", "log"); !strings.Contains(r.Stdout, "REMOVED by an override") {
		t.Errorf("the log says %s", r.Stdout)
	}
	s.exits(0, "git-land", "reconcile")
}

// Where somebody has landed since on what it was to take off, it did not come.
func TestAnnouncedOverrideThatNeverCame(t *testing.T) {
	t.Parallel()
	remote, s, _ := zeroLanded(t, false)
	s.exits(0, "git-lease", "hook", "install")
	s.write(map[string]string{"one": "1\n"})
	s.landUnit("one")
	was := s.git("rev-parse", "HEAD~")
	refuse := filepath.Join(remote, "hooks/update")
	gittest.Script(t, refuse, "#!/bin/sh\n[ \"$1\" != refs/heads/main ]\n")
	s.with("GIT_LEASE_OVERRIDE=one was wrong").exits(1, "git", "push", "-q", "--force", "origin", was+":main")
	if err := os.Remove(refuse); err != nil {
		t.Fatal(err)
	}
	s.write(map[string]string{"two": "2\n"})
	s.landUnit("two")
	s.git("push", "-q", "--no-verify", "--force", "origin", was+":main")
	if codes := s.reconciles(7).codes(); codes != "record-commit-gone record-commit-gone" {
		t.Errorf("findings %q", codes)
	}
	if r := s.exits(0, "git-land", "status"); !strings.Contains(r.Stdout, "rewound") {
		t.Errorf("status says %s", r.Stdout)
	}
}

// Two leases that list one branch, as two clones can make them at one instant: the
// command that reconcile names leaves one, also past the hook and the fence.
func TestBranchUnderTwoLeases(t *testing.T) {
	t.Parallel()
	remote, s, _ := zeroLanded(t, false)
	newAuthor(t, remote).adopts("Second/1")
	s.exits(0, "git-lease", "hook", "install")
	newSeat(t, remote).exits(0, "git-lease", "hook", "install", "--server")
	for _, name := range []string{"main", "Second/1"} {
		found := s.with("GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=lease.name", "GIT_CONFIG_VALUE_0="+name).reconciles(7)
		if found.codes() != "branch-under-two-leases" {
			t.Fatalf("found %+v", found)
		}
		want := "git land override --onto main --reason WHY :refs/lease/%53econd%2f1"
		if name != "main" {
			want = "git -c lease.name=main" + strings.TrimPrefix(want, "git")
		}
		if got := found.Report.Findings[0].Command; got != want {
			t.Errorf("under %s, to settle it: %s, want %s", name, got, want)
		}
	}
	s.exits(0, "git-land", "override", "--onto", "main", "--reason", "adopted twice", ":refs/lease/%53econd%2f1")
	s.reconciles(0)
	s.write(map[string]string{"one": "1\n"})
	s.landUnit("one")
}

// A misspelt branch begins no lease.
func TestOverrideOntoNoBranch(t *testing.T) {
	t.Parallel()
	remote, s, _ := zeroLanded(t, false)
	before := gittest.Refs(t, remote)
	r := s.exits(129, "git-land", "override", "--onto", "mian", "--reason", "a typo", "main:refs/tags/one")
	if !strings.Contains(r.Stderr, "has no branch mian") || !strings.Contains(r.Stderr, "git land override --onto main --reason 'a typo'") {
		t.Errorf("stderr %q", r.Stderr)
	}
	if after := gittest.Refs(t, remote); !maps.Equal(before, after) {
		t.Errorf("refs %v, want %v", after, before)
	}
	s.exits(0, "git-land", "override", "--onto", "main", "--reason", "a tag", "main:refs/tags/one")
}

// Where refs cannot move together the event goes first, and resume brings the refs
// after it; given up, they stay where they are, and the log says that it is not seen.
func TestOverrideThatDiedWithoutAtomic(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"resume", "abort", "resume, overtaken", "abort, overtaken"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			remote, s, _ := zeroLanded(t, true)
			c := gittest.Commit(t, s.dir, "by hand", map[string]string{"hand": "1\n"})
			s = s.with("STAGE=" + t.TempDir())
			hook := filepath.Join(s.dir, ".git/hooks/pre-push")
			gittest.Script(t, hook, "#!/bin/sh\nkill -s KILL -- \"-$(cat \"$STAGE/group\")\"\n")
			group := filepath.Join(strings.TrimPrefix(s.env[len(s.env)-1], "STAGE="), "group")
			r := gittest.RunGroup(t, s.cmd("git-land", "override", "--reason", "by hand", c+":main"), group)
			if got := kinds(t, remote); r.Code != 137 || !strings.HasSuffix(got, " override") {
				t.Fatalf("exit %d, events %q\n%s%s", r.Code, got, r.Stdout, r.Stderr)
			}
			if err := os.Remove(hook); err != nil {
				t.Fatal(err)
			}
			seen := false
			if end, overtaken := strings.CutSuffix(end, ", overtaken"); overtaken {
				other := clone(t, remote)
				other.write(map[string]string{"theirs": "1\n"})
				other.force("--", "theirs")
				code, args := 1, []string{end}
				if end == "abort" {
					code, args = 0, []string{end, "--reason", "not wanted"}
				}
				if r := s.exits(code, "git-land", args...); !strings.Contains(r.Stdout, "had died before it moved main, which others have moved since; it can no longer arrive") {
					t.Errorf("%s says %s%s", end, r.Stdout, r.Stderr)
				}
			} else if end == "abort" {
				if r = s.exits(0, "git-land", "abort", "--reason", "not wanted"); !strings.Contains(r.Stdout, "is given up; a push of it that is still on its way") {
					t.Errorf("abort says %s%s", r.Stdout, r.Stderr)
				}
			} else {
				r, seen = s.exits(0, "git-land", "resume"), true
			}
			if moved := gittest.Git(t, remote, "rev-parse", "main") == c; moved != seen {
				t.Errorf("main moved %v: %s%s", moved, r.Stdout, r.Stderr)
			}
			if r := s.exits(0, "git-land", "log"); strings.Contains(r.Stdout, "not seen on the branch") == seen {
				t.Errorf("the log says %s", r.Stdout)
			}
			s.exits(0, "git-land", "reconcile")
			nothingOpen(t, s, remote)
		})
	}
}

// An override that died, and cannot be ended since its remote is gone, stops no landing
// and no other override, and what they did is not told as a failure.
func TestDeadOverrideStopsNobody(t *testing.T) {
	t.Parallel()
	remote, s, _ := zeroLanded(t, false)
	s.git("remote", "add", "away", gittest.URL(gittest.Remote(t)))
	c := gittest.Commit(t, s.dir, "by hand", map[string]string{"hand": "1\n"})
	s = s.with("STAGE=" + t.TempDir())
	hook := filepath.Join(s.dir, ".git/hooks/pre-push")
	gittest.Script(t, hook, "#!/bin/sh\nkill -s KILL -- \"-$(cat \"$STAGE/group\")\"\n")
	group := filepath.Join(strings.TrimPrefix(s.env[len(s.env)-1], "STAGE="), "group")
	if r := gittest.RunGroup(t, s.cmd("git-land", "override", "--remote", "away", "--reason", "by hand", "+"+c+":main"), group); r.Code != 137 {
		t.Fatalf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	s.git("remote", "remove", "away")
	s.git("reset", "-q", "--hard", "origin/main")
	s.write(map[string]string{"one": "1\n"})
	if r := s.force("--", "one"); !strings.Contains(r.Stderr, "is not ended yet") {
		t.Errorf("the landing says %s", r.Stderr)
	}
	c = gittest.Commit(t, s.dir, "again", map[string]string{"two": "1\n"})
	r := s.exits(0, "git-land", "override", "--reason", "by hand", c+":main")
	if !strings.Contains(r.Stdout, "past the lease main") || !strings.Contains(r.Stderr, "is not ended yet") || gittest.Git(t, remote, "rev-parse", "main") != c {
		t.Errorf("the override says %s%s", r.Stdout, r.Stderr)
	}
}

// The server died after it had moved the branch of an override alone, and others have
// seen to that before it is asked for: it is not told that it did not happen.
func TestHalfAnOverrideThatOthersWentOnFrom(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"a landing", "reconcile, past a fence"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			remote, s, other := zeroLanded(t, false)
			if by != "a landing" {
				newSeat(t, remote).exits(0, "git-lease", "hook", "install", "--server")
			}
			c := gittest.Commit(t, s.dir, "by hand", map[string]string{"hand": "1\n"})
			s.git("push", "-q", "origin", c+":refs/heads/half")
			s.git("reset", "-q", "--hard", "origin/main")
			s = s.with("STAGE=" + t.TempDir())
			hook := filepath.Join(s.dir, ".git/hooks/pre-push")
			gittest.Script(t, hook, "#!/bin/sh\nkill -s KILL -- \"-$(cat \"$STAGE/group\")\"\n")
			group := filepath.Join(strings.TrimPrefix(s.env[len(s.env)-1], "STAGE="), "group")
			if r := gittest.RunGroup(t, s.cmd("git-land", "override", "--reason", "by hand", c+":main"), group); r.Code != 137 {
				t.Fatalf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
			}
			if err := errors.Join(os.Remove(hook), os.WriteFile(filepath.Join(remote, "refs/heads/main"), []byte(c+"\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if by == "a landing" {
				other.write(map[string]string{"theirs": "1\n"})
				other.force("--", "theirs")
			} else {
				if r := s.exits(9, "git-land", "resume"); !strings.Contains(r.Stderr, "hint: git land reconcile --fix --reason WHY") {
					t.Errorf("resume says %s", r.Stderr)
				}
				other.exits(0, "git-land", "reconcile", "--fix", "--reason", "the server died")
			}
			if r := s.exits(0, "git-land", "resume"); !strings.Contains(r.Stdout, "main has what it was to bring there past the lease main, by no event of its own") {
				t.Errorf("resume says %s%s", r.Stdout, r.Stderr)
			}
			nothingOpen(t, s, remote)
		})
	}
}

package acceptance

import (
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// eventsOf are the kinds of events on the chain of a lease, oldest first.
func (h hooked) eventsOf(lease string) string {
	h.t.Helper()
	return strings.Join(strings.Fields(gittest.Git(h.t, h.remote, "log", "--reverse", "--first-parent",
		"--format=%(trailers:key=Lease-Event,valueonly,separator=)", lease)), " ")
}

// A branch that no lease keeps yet is begun on the log of the lease that it will be under:
// by git land override and by the pre-push hook alike, and behind the server's hooks.
// What lands there goes on under that lease, and reconcile has nothing to say.
func TestBranchIsBegunUnderItsLease(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.git("config", "lease.protect", "release/*")
	gittest.Git(t, h.remote, "config", "lease.protect", "release/*")
	over := h.with("GIT_LEASE_OVERRIDE=release 1")
	h.pushes(over, 0, "goes past the lease release/1", "origin", h.commit()+":refs/heads/release/1")
	newSeat(t, h.remote).exits(0, "git-lease", "hook", "install", "--server")
	r := h.exits(0, "git-land", "override", "--reason", "release 3", "origin/main:refs/heads/release/3.0")
	if !strings.Contains(r.Stdout, "past the lease release/3.0 ") {
		t.Errorf("told %s", r.Stdout)
	}
	h.write(map[string]string{"fix": "1\n"})
	for _, branch := range []string{"release/1", "release/3.0"} {
		h.force("--onto", branch, "--", "fix")
		if got := h.eventsOf("refs/lease/" + strings.ReplaceAll(branch, "/", "%2f")); got != "adopt override land" {
			t.Errorf("events of %s %q", branch, got)
		}
		if r := h.exits(0, "git-land", "reconcile", "--onto", branch); strings.Contains(r.Stdout, "release") {
			t.Errorf("reconcile of %s: %s", branch, r.Stdout)
		}
	}
	if got := h.kinds(); got != "adopt land" {
		t.Errorf("events of main %q", got)
	}
	// Several, of different leases, are on the log of the one that is named.
	both := []string{"override", "--reason", "two", "origin/main:refs/heads/release/4", "origin/main:refs/heads/release/5"}
	r = h.exits(129, "git-land", both...)
	c := h.git("rev-parse", "origin/main")
	again := "git land override --onto release/4 --reason two " + c + ":refs/heads/release/4 " + c + ":refs/heads/release/5"
	if !strings.Contains(r.Stderr, again) {
		t.Errorf("told %s", r.Stderr)
	}
	h.exits(0, "git-land", append(both, "--onto", "main")...)
	if got := h.kinds(); got != "adopt land override" {
		t.Errorf("events of main %q", got)
	}
	// What goes away begins none.
	h.exits(0, "git-land", "override", "--reason", "gone", ":refs/heads/release/5")
	if got := h.kinds(); got != "adopt land override override" {
		t.Errorf("events of main %q", got)
	}
	h.exits(0, "git-land", "reconcile")
}

// The policy that a new branch brings says which lease it will be under.
func TestBranchIsBegunUnderTheLeaseOfItsPolicy(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.git("config", "lease.protect", "release/*")
	c := gittest.Commit(t, h.dir, "a release", map[string]string{".gitland": "[lease]\n\tname = team\n"})
	h.pushes(h.seat, 1, "protected by the lease team", "origin", c+":refs/heads/release/1")
	h.exits(0, "git-land", "override", "--reason", "a release", c+":refs/heads/release/1")
	h.write(map[string]string{"fix": "1\n"})
	h.force("--onto", "release/1", "--", "fix")
	if got := h.eventsOf("refs/lease/team"); got != "adopt override adopt land" {
		t.Errorf("events %q", got)
	}
	h.exits(0, "git-land", "reconcile", "--onto", "release/1")
}

// Each refusal of a push names the whole command that is the way on, at the clone and
// behind the server's hooks: a branch that is begun, rewound or deleted has only one.
func TestRefusedPushesNameTheWayOn(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	for _, dir := range []string{h.dir, h.remote} {
		for _, pattern := range []string{"main", "release/*"} {
			gittest.Git(t, dir, "config", "--add", "lease.protect", pattern)
		}
	}
	newSeat(t, h.remote).exits(0, "git-lease", "hook", "install", "--server")
	h.exits(0, "git-land", "override", "--reason", "release 1", "HEAD:refs/heads/release/1")
	c, older := h.commit(), h.git("rev-parse", "HEAD~")
	over := "git land override --reason WHY "
	for _, push := range []struct{ spec, ways string }{
		{c + ":refs/heads/release/8.0", over + c + ":refs/heads/release/8.0 "},
		{"+" + older + ":refs/heads/release/1", over + "+" + older + ":refs/heads/release/1 "},
		{":refs/heads/release/1", over + ":refs/heads/release/1 "},
		{c + ":refs/heads/release/1", "git land --onto release/1   (or, past the lease and on the record: " + over + c + ":refs/heads/release/1)"},
		{c + ":main", "git land   (or, past the lease and on the record: " + over + c + ":refs/heads/main)"},
	} {
		h.pushes(h.seat, 1, "\nhint: "+push.ways, "origin", push.spec)
		h.pushes(h.seat, 1, "remote: hint: "+push.ways, "--no-verify", "origin", push.spec)
	}
	// What it says is how it is done; a landing that cannot begin the branch says so, too.
	h.write(map[string]string{"fix": "1\n"})
	r := h.exits(129, "git-land", "-x", "true", "--onto", "release/8.0", "--unit", "u 1", "-m", "It's a fix", "--", "fix")
	for _, way := range []string{
		"hint: git land -x true -m 'It'\\''s a fix' --unit 'u 1' --onto main -- fix   (it has: main, release/1; ",
		"to begin that branch: git land override --reason WHY origin/main:refs/heads/release/8.0",
	} {
		if !strings.Contains(r.Stderr, way) {
			t.Errorf("told %s, want %s", r.Stderr, way)
		}
	}
	h.exits(0, "git-land", "override", "--reason", "release 8", c+":refs/heads/release/8.0")
	h.force("--onto", "release/8.0", "--", "fix")
}

// An override that died is made anew on the log that it was to be on.
func TestOverrideAgainOnTheLogThatWasNamed(t *testing.T) {
	t.Parallel()
	_, s, _ := zeroLanded(t, false)
	stage := t.TempDir()
	gittest.Script(t, filepath.Join(s.dir, ".git/hooks/pre-push"), "#!/bin/sh\nkill -s KILL -- \"-$(cat \"$STAGE/group\")\"\n")
	c := s.git("rev-parse", "HEAD")
	r := gittest.RunGroup(t, s.with("STAGE="+stage).cmd("git-land", "override", "--onto", "main", "--reason", "two", c+":refs/heads/one", c+":refs/heads/two"), filepath.Join(stage, "group"))
	if r.Code != 137 {
		t.Fatalf("exit %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
	want := "git land override --onto main --reason two " + c + ":refs/heads/one " + c + ":refs/heads/two"
	if r := s.exits(1, "git-land", "resume"); !strings.Contains(r.Stdout+r.Stderr, want) {
		t.Errorf("resume says %s%s", r.Stdout, r.Stderr)
	}
}

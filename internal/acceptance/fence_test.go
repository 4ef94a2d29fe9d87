package acceptance

import (
	"maps"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// fenced is a remote with the server's hooks, on which one landing was made, and
// a clone with a commit that has not landed.
func fenced(t *testing.T) (remote string, s seat) {
	t.Helper()
	remote = gittest.Remote(t)
	newSeat(t, remote).exits(0, "git-lease", "hook", "install", "--server")
	s = clone(t, remote)
	s.write(map[string]string{"first": "landed\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "first", "--", "first")
	gittest.Commit(t, s.dir, "by hand", map[string]string{"hand": "not landed\n"})
	return remote, s
}

// Whoever pushes, and with what: what no event names does not move.
func TestFenceRefusesWhatGoesAroundIt(t *testing.T) {
	t.Parallel()
	remote, s := fenced(t)
	s.git("fetch", "-q", "origin", "refs/lease/main:refs/kept/chain", "refs/notes/landing/main:refs/kept/notes")
	before := gittest.Refs(t, remote)
	for name, args := range map[string][]string{
		"plain":                 {"HEAD:main"},
		"without hooks":         {"--no-verify", "HEAD:main"},
		"forced back":           {"--force", "HEAD~2:main"},
		"mirror":                {"--mirror"},
		"deletion":              {":main"},
		"the lease rewritten":   {"--force", "refs/kept/chain~1:refs/lease/main"},
		"the lease deleted":     {":refs/lease/main"},
		"the notes deleted":     {":refs/notes/landing/main"},
		"the notes rewritten":   {"--force", "HEAD:refs/notes/landing/main"},
		"beside others, atomic": {"--atomic", "HEAD:refs/heads/topic", "HEAD:main"},
	} {
		r := s.exits(1, "git", append([]string{"push", "origin"}, args...)...)
		if !strings.Contains(r.Stderr, "remote: git lease: ") || !strings.Contains(r.Stderr, "remote: hint: ") {
			t.Errorf("%s: whoever pushes is not told why: %s", name, r.Stderr)
		}
		sameRefs(t, name, before, gittest.Refs(t, remote))
	}
	s.git("push", "-q", "origin", "HEAD:refs/heads/topic", "HEAD:refs/tags/v1") // what nothing keeps moves
}

// The refs of a landing, pushed without --atomic: each would move alone.
func TestFenceRefusesALandingThatIsNotAtomic(t *testing.T) {
	t.Parallel()
	remote, s := fenced(t)
	s.git("reset", "-q", "--hard", "origin/main")
	s.write(map[string]string{"second": "planned\n"})
	gittest.Script(t, s.dir+"/.git/hooks/pre-push", "#!/bin/sh\ncat >>.git/planned; exit 1\n")
	s.exits(9, "git-land", "-x", "true", "-m", "second", "--", "second")
	before := gittest.Refs(t, remote)
	var specs []string
	for line := range strings.Lines(gittest.Read(t, s.dir, ".git/planned")) {
		fields := strings.Fields(line)
		specs = append(specs, fields[1]+":"+fields[2])
	}
	if len(specs) != 3 {
		t.Fatalf("a landing pushes %q", specs)
	}
	for name, specs := range map[string][]string{"each alone": specs, "branch and chain raced": specs[:2]} {
		if name == "each alone" && atLeast(t, "git", 51) {
			continue // that one makes one transaction of them, and they move together
		}
		if strings.HasSuffix(name, "raced") { // another landing comes first
			other := clone(t, remote)
			other.write(map[string]string{"other": "first\n"})
			other.exits(0, "git-land", "-x", "true", "-m", "other", "--", "other")
			before = gittest.Refs(t, remote)
			specs = append([]string{"--force"}, specs...)
		}
		// Git takes the refusal of a transaction for a server that died.
		if r := s.try("git", append([]string{"push", "--no-verify", "origin"}, specs...)...); r.Code == 0 {
			t.Errorf("%s: it was taken: %s", name, r.Stderr)
		}
		after := gittest.Refs(t, remote)
		for _, ref := range []string{"refs/heads/main", "refs/lease/main"} {
			if before[ref] != after[ref] {
				t.Errorf("%s: %s moved", name, ref)
			}
		}
		// Notes may grow by anybody's hand; reconcile names what has no event.
		before = after
	}
}

// All that the tools do goes through, and so does git's own housekeeping.
func TestFenceLetsTheToolsThrough(t *testing.T) {
	t.Parallel()
	remote, s := fenced(t)
	unit := func(s seat, name string) {
		t.Helper()
		s.write(map[string]string{name: "content\n"})
		s.exits(0, "git-land", "-x", "true", "-m", name, "--", name)
	}
	s.exits(0, "git-land", "override", "--reason", "the site is down", "HEAD:main")
	unit(s, "one")
	first, other := s.session("first"), clone(t, remote).session("other")
	first.exits(0, "git-lease", "acquire", "-m", "release")
	unit(first, "held")
	s.write(map[string]string{"waits": "content\n"})
	s.exits(3, "git-land", "--no-wait", "-x", "true", "-m", "waits", "--", "waits")
	other.exits(0, "git-land", "override", "--reason", "nobody answers", "origin/main~1:refs/heads/old", "origin/main:refs/tags/v1")
	unit(first, "after an override of somebody else")
	other.exits(0, "git-lease", "break", "--operation", holder(t, remote), "--reason", "gone", "--acquire")
	unit(other, "taken over")
	first.exits(6, "git-land", "-x", "true", "-m", "late", "--", "waits")
	other.exits(0, "git-lease", "release")
	other.exits(0, "git-lease", "freeze", "--reason", "we move")
	other.exits(0, "git-lease", "thaw")
	s.git("push", "-q", "origin", "HEAD:refs/heads/release/1.x")
	s.exits(0, "git-land", "-x", "true", "--onto", "release/1.x", "-m", "on another branch", "--", "waits")
	before := gittest.Refs(t, remote)
	gittest.Git(t, remote, "pack-refs", "--all")
	gittest.Git(t, remote, "gc", "--quiet")
	gittest.Git(t, remote, "fsck", "--strict", "--no-dangling")
	if !maps.Equal(before, gittest.Refs(t, remote)) {
		t.Error("housekeeping changed a ref")
	}
	unit(s, "after housekeeping")
	newSeat(t, remote).exits(0, "git-lease", "hook", "uninstall", "--server")
	s.git("push", "-q", "origin", "HEAD:main")
}

// A landing that died between any two of its steps is ended behind a fence, too.
func TestFenceLetsTheDeadBeEnded(t *testing.T) {
	t.Parallel()
	remote, s := fenced(t)
	s.git("reset", "-q", "--hard", "origin/main")
	s.write(map[string]string{"second": "died\n"})
	s.exits(0, "git-land", "verify", "-x", "true", "--", "second")
	s.dies(s.dir+"/.git", "pre-push", "--", "second")
	s.exits(1, "git-land", "resume")
	s.exits(0, "git-land", "-m", "second", "--", "second")
	if got := kinds(t, remote); !strings.HasSuffix(got, "void land") {
		t.Errorf("events %q", got)
	}
}

// A fence where refs cannot move together lets nothing land, and says what mends that;
// the clone, which goes by what it once found out, finds out anew.
func TestFenceWithoutAtomicPushes(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	newSeat(t, remote).exits(0, "git-lease", "hook", "install", "--server")
	const key = "receive.advertiseAtomic"
	gittest.Git(t, remote, "config", key, "false")
	s := clone(t, remote)
	s.write(map[string]string{"first": "1\n"})
	land := []string{"--force-unverified", "--reason", "test", "-m", "first", "--", "first"}
	r := s.exits(9, "git-land", land...)
	if !strings.Contains(r.Stderr, "hint: git config "+key+" true") || strings.Contains(r.Stderr, "hint: git land ") {
		t.Errorf("told %s", r.Stderr)
	}
	if r := s.exits(1, "git-lease", "doctor"); !strings.Contains(r.Stdout+r.Stderr, "git config "+key+" true") {
		t.Errorf("doctor says %s%s", r.Stdout, r.Stderr)
	}
	s.exits(9, "git-land", land...) // which doubts what doctor found
	gittest.Git(t, remote, "config", key, "true")
	s.exits(0, "git-land", land...)
}

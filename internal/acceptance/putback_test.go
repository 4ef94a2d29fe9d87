package acceptance

import (
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// A chain that was deleted, or put back to an older event, is given back by a push
// that loses nothing, and that is what every hint names first: in each clone what that
// has seen, with the number up to which it has.
func TestHintOfALostChainPutsItBack(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string][]string{
		"deleted":  {"update-ref", "-d", "refs/lease/main"},
		"put back": {"update-ref", "refs/lease/main", "refs/lease/main~2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAuthor(t, gittest.Remote(t))
			a.lands()
			a.lands()
			less := clone(t, a.remote)
			less.exits(0, "git-lease", "show")
			a.lands()
			a.view()
			a.ok(a.l.Flush(t.Context(), "test"))
			tip := gittest.Git(t, a.remote, "rev-parse", "refs/lease/main")
			a.remoteGit(lose...)
			const push, over = "git push origin refs/lease-remote/origin/seen/main:refs/lease/main", "git lease adopt main --over "
			for s, upTo := range map[*seat]string{&less: "up to event 3", &a.s: "up to event 4"} {
				for _, r := range []gittest.Result{s.exits(0, "git-lease"), s.try("git-land", "reconcile"), s.try("git-lease", "acquire"), s.exits(0, "git-land", "status")} {
					out := r.Stdout + r.Stderr
					i, j := strings.Index(out, push), strings.Index(out, over)
					if i < 0 || j < i || !strings.Contains(out, upTo) || !strings.Contains(out, "another clone may have seen more") {
						t.Errorf("told: %s", out)
					}
				}
			}
			for _, s := range []seat{less, a.s} { // one after the other, in any order
				s.exits(0, "sh", "-c", push)
			}
			less.exits(0, "sh", "-c", push+" || true") // and again, by the one that has less
			if now := gittest.Git(t, a.remote, "rev-parse", "refs/lease/main"); now != tip {
				t.Errorf("the chain is at %s, want %s", now, tip)
			}
			clone(t, a.remote).reconciles(0)
		})
	}
}

// Who leads a chain over something is told what that leaves out.
func TestAdoptOverSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	a.lands()
	s := clone(t, a.remote)
	s.exits(0, "git-lease", "show")
	a.remoteGit("update-ref", "-d", "refs/lease/main")
	a.remoteGit("update-ref", "-d", "refs/notes/landing/main")
	other := newAuthor(t, a.remote)
	other.lands()
	other.lands()
	tip := gittest.Git(t, a.remote, "rev-parse", "refs/lease/main")
	third := clone(t, a.remote)
	third.exits(0, "git-lease", "show")
	r := s.exits(0, "git-lease", "adopt", "--over", tip, "--reason", "r")
	if !strings.Contains(r.Stderr, "it goes on from event 2, ") || !strings.Contains(r.Stderr, "; 3 events that origin had are left out:\n    3  ") {
		t.Errorf("stderr %q", r.Stderr)
	}
	third.exits(0, "git-lease", "show")
	tip = gittest.Git(t, a.remote, "rev-parse", "refs/lease/main")
	r = third.exits(0, "git-lease", "adopt", "--over", tip, "--reason", "r")
	if !strings.Contains(r.Stderr, "accepted main at origin\n  this clone follows the chain as origin has it, up to event 4, and pushed nothing; 3 events that this clone had seen are left out:\n") {
		t.Errorf("stderr %q", r.Stderr)
	}
	a.remoteGit("update-ref", "-d", "refs/lease/main")
	r = third.exits(0, "git-lease", "adopt", "--over", tip, "--reason", "r")
	if !strings.Contains(r.Stderr, "it goes on from event 4, "+tip[:12]+"; what other clones have seen after that is left out\n") {
		t.Errorf("stderr %q", r.Stderr)
	}
}

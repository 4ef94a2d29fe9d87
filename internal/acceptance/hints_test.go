package acceptance

import (
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// A landing that was announced is told apart: under way here, dead here, and
// somewhere else, where nobody can tell.
func TestHintsOfAnAnnouncedLanding(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s, other, g := clone(t, remote), clone(t, remote), newGate(t, remote)
	s.write(map[string]string{"one": "1\n"})
	landing := s.sends(g, "one")
	op := holder(t, remote)
	resume, take := "git land resume "+op, "git lease break main --operation "+op+" --reason WHY --acquire"

	if r := s.exits(0, "git-lease", "show"); !strings.Contains(r.Stdout, "announced, and is under way in this clone") || strings.Contains(r.Stdout, "resume") {
		t.Errorf("of a live one: %s", r.Stdout)
	}
	if r := s.exits(3, "git-lease", "recover"); !strings.Contains(r.Stderr, "alive") || strings.Contains(r.Stderr, "resume") {
		t.Errorf("of a live one: %s", r.Stderr)
	}
	elsewhere := func(s seat) {
		t.Helper()
		for _, command := range [][]string{{"git-lease", "show"}, {"git-lease", "recover"}, {"git-lease", "acquire", "--json"}} {
			r := s.try(command[0], command[1:]...)
			i, j := strings.Index(r.Stdout+r.Stderr, take), strings.Index(r.Stdout+r.Stderr, resume)
			if i < 0 || j >= 0 && j < i {
				t.Errorf("%q elsewhere: %s%s", command, r.Stdout, r.Stderr)
			}
		}
	}
	elsewhere(other)
	if err := landing.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	landing.Wait()
	for _, command := range [][]string{{"git-lease", "show"}, {"git-lease", "recover"}, {"git-lease", "acquire"}} {
		if r := s.try(command[0], command[1:]...); !strings.Contains(r.Stdout+r.Stderr, resume) {
			t.Errorf("%q of a dead one: %s%s", command, r.Stdout, r.Stderr)
		}
	}
	elsewhere(other)
	g.open()
	until(t, "the push arrives", func() bool { return count(t, remote, "one") == 1 })
	s.exits(0, "git-land", "resume", op)
	agree(t, s, remote, 1)
}

// What was withdrawn is told as that, wherever one asks.
func TestResumeOfWhatWasWithdrawn(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	s.write(map[string]string{"zero": "0\n", "one": "1\n"})
	s.landUnit("zero")
	s.dies(remote, "pre-receive", "--", "one")
	op := s.unfinished()
	s.exits(1, "git-land", "resume")
	for _, x := range []seat{s, other} {
		told(t, x.try("git-land", "resume", op), 1, "did not land: it was withdrawn by "+gittest.Identity)
	}
	s.dies(remote, "pre-receive", "--", "one")
	op = s.unfinished()
	s.exits(0, "git-land", "abort", "--reason", "not wanted any more")
	r := other.exits(1, "git-land", "resume", op)
	if !strings.Contains(r.Stdout, "because: not wanted any more") {
		t.Errorf("told: %s%s", r.Stdout, r.Stderr)
	}
	before := gittest.Refs(t, remote)
	told(t, other.try("git-land", "abort", op, "--reason", "again"), 0, "not wanted any more")
	sameRefs(t, "abort", before, gittest.Refs(t, remote))

	remote = notAtomic(t) // under a lease of its own
	s, other = clone(t, remote), clone(t, remote)
	s.write(map[string]string{"zero": "0\n", "one": "1\n"})
	s.landUnit("zero")
	s.diesAtEvent(remote, "post-receive", "refs/lease/main", "acquire", "--", "one")
	op = s.unfinished()
	s.exits(1, "git-land", "resume")
	told(t, other.try("git-land", "resume", op), 1, "did not land: it was withdrawn by "+gittest.Identity)
	told(t, other.try("git-land", "resume", "01ARZ3NDEKTSV4RRFFQ69G5FAV"), 129, "no landing on the chain")
}

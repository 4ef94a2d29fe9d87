package acceptance

import (
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// Who mends a chain may have seen only its beginning. What others did since
// stands all the same: an operation that was broken does not hold again, and
// the fence does not fall.
func TestAdoptOverKeepsWhatOthersDid(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote).with("GIT_LEASE_SESSION=other")
	g := decode[grant](t, s.exits(0, "git-lease", "acquire", "--format=json"))
	other.exits(0, "git-lease", "break", "--operation", g.Operation, "--reason", "gone", "--acquire")
	held := other.exits(0, "git-lease", "show").Stdout
	bad := gittest.Git(t, remote, "commit-tree", "-p", "refs/lease/main", "-m", "garbage", "main^{tree}")
	gittest.Git(t, remote, "update-ref", "refs/lease/main", bad)

	s.exits(0, "git-lease", "adopt", "--over", bad, "--reason", "mend")
	if now := s.exits(0, "git-lease", "show").Stdout; operationIn(now) != operationIn(held) {
		t.Errorf("held %q, and after mending %q", held, now)
	}
	s.with("GIT_LEASE_TOKEN="+g.Token).exits(6, "git-lease", "release")
	other.exits(0, "git-lease", "release")
	if n := strings.Count(other.exits(0, "git-lease", "log").Stdout, "\n"); n != 5 {
		t.Errorf("%d events in the log, want 5", n)
	}
}

func operationIn(text string) string {
	_, op, _ := strings.Cut(strings.TrimSpace(text), "operation ")
	return op
}

// Whoever may push can make a tree of notes as deep as an id is long, in which
// every id is found.
func TestBottomlessNotes(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	gittest.Script(t, remote+"/deep", `#!/bin/sh
t=$(git mktree </dev/null)
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	t=$(for x in $(seq 0 255); do printf '040000 tree %s\t%02x\n' $t $x; done | git mktree)
done
c=$(git commit-tree -m deep $t)
git update-ref refs/notes/verification $c
git update-ref refs/notes/landing/main $c
`)
	s.with("GIT_DIR="+remote).exits(0, "sh", remote+"/deep")
	s.write(map[string]string{"new": "n\n"})
	s.verify("new")
	s.exits(8, "git-land", "-m", "new", "--", "new") // records without a chain
	gittest.Git(t, remote, "update-ref", "-d", "refs/notes/landing/main")
	s.exits(0, "git-land", "-m", "new", "--", "new")
}

// Reading goes on below what cannot be read.
func TestLogBelowAMalformedTip(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"new": "n\n"})
	s.force("--", "new")
	bad := gittest.Git(t, remote, "commit-tree", "-p", "refs/lease/main", "-m", "garbage", "main^{tree}")
	gittest.Git(t, remote, "update-ref", "refs/lease/main", bad)
	if got := s.exits(8, "git-lease", "log").Stdout; strings.Count(got, "\n") != 2 {
		t.Errorf("log %q", got)
	}
	if got := s.exits(8, "git-land", "log").Stdout; strings.Count(got, "\n") != 1 {
		t.Errorf("landings %q", got)
	}
}

// A landing that is planned from the mirror finds out only by its push that the
// chain is broken. It says so, and lands when that is mended.
func TestChainBreaksUnderAFreshMirror(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"one": "1\n", "two": "2\n"})
	s.force("--", "one")
	s.verify("two")
	bad := gittest.Git(t, remote, "commit-tree", "-p", "refs/lease/main", "-m", "garbage", "main^{tree}")
	gittest.Git(t, remote, "update-ref", "refs/lease/main", bad)
	if r := s.exits(8, "git-land", "-m", "two", "--", "two"); !strings.Contains(r.Stderr, "adopt main --over "+bad) {
		t.Errorf("stderr %q", r.Stderr)
	}
	s.exits(0, "git-lease", "adopt", "--over", bad, "--reason", "mend")
	s.exits(0, "git-land", "-m", "two", "--", "two")
}

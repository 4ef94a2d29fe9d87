package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// breaker makes a script that takes the lease main off whoever holds it, in a
// clone of its own, whatever repository it is started in.
func breaker(t *testing.T, remote string) string {
	t.Helper()
	other := clone(t, remote)
	path := filepath.Join(t.TempDir(), "break")
	gittest.Script(t, path, fmt.Sprintf(`#!/bin/sh
unset $(git rev-parse --local-env-vars)
PATH='%s':$PATH
cd '%s' && git-lease break main --reason 'it was in the way' --operation \
	"$(git --git-dir='%s' log -1 --format='%%(trailers:key=Lease-Operation,valueonly,separator=)' refs/lease/main)" >&2
`, bin, other.dir, remote))
	return path
}

// losesItsPush has the next push of main go on without its landing: the git that
// sends it is left to itself when the push has come to the gate, the lease is
// taken off the landing, and the landing is told that the connection broke.
func (s seat) losesItsPush(g gate, breaks string) seat {
	s.t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		s.t.Fatal(err)
	}
	dir := s.t.TempDir()
	gittest.Script(s.t, filepath.Join(dir, "git"), fmt.Sprintf(`#!/bin/sh
case "$*" in *push*:refs/heads/main*) mkdir '%[2]s/once' 2>/dev/null || exec '%[1]s' "$@" ;; *) exec '%[1]s' "$@" ;; esac
'%[1]s' "$@" </dev/null >/dev/null 2>&1 &
while [ ! -e '%[3]s/arrived' ]; do sleep 0.02; done
'%[4]s'
exit 128
`, git, dir, g.dir, breaks))
	s.env = gittest.WithPath(s.env, dir)
	return s
}

// The lease is taken off a landing whose push of the branch was sent, and has not
// come. Its journal is what brings it to its end, however late that is.
func TestLeaseTakenOffWhileTheBranchIsOnItsWay(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s, g := clone(t, remote), newGate(t, remote)
	s.write(map[string]string{"one": "one\n", "two": "two\n"})
	breaks := breaker(t, remote)
	lost := s.losesItsPush(g, breaks)
	r := lost.exits(6, "git-land", "--force-unverified", "--reason", "test", "-m", "land unit-one", "--", "one")
	op := s.unfinished()
	for _, want := range []string{"broken by " + gittest.Identity, "it was in the way", "may still arrive", "git land resume " + op} {
		if !strings.Contains(r.Stderr, want) {
			t.Errorf("not told %q: %s", want, r.Stderr)
		}
	}
	// As long as it may come, that is what is said, and nothing is forgotten.
	for range 2 {
		if r := s.exits(1, "git-land", "resume"); strings.Contains(r.Stdout, "no longer arrive") {
			t.Errorf("it may: %q", r.Stdout)
		}
	}
	if got := s.unfinished(); got != op {
		t.Errorf("unfinished: %q, want %s", got, op)
	}
	if got := kinds(t, remote); strings.Count(got, "void") > 0 {
		t.Errorf("events %q", got)
	}
	g.open()
	until(t, "the push arrives", func() bool { return count(t, remote, "one") == 1 })
	told(t, s.try("git-land", "resume", op), 0, "finished it")
	nothingOpen(t, s, remote)
	s.landUnit("two")
	agree(t, s, remote, 2)
	s.exits(0, "git-land", "reconcile")
}

// unfinished is the one operation that has a journal in this clone.
func (s seat) unfinished() string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, ".git/lease/journal/*.json"))
	if err != nil || len(files) != 1 {
		s.t.Fatalf("journals: %q, %v", files, err)
	}
	return strings.TrimSuffix(filepath.Base(files[0]), ".json")
}

// The same landing is run again meanwhile. Whichever of the two comes first, there
// is one of them in the end: also where both make the very same commit, as within one second.
func TestLandedAnewWhileTheBranchIsOnItsWay(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]string{"another commit": "already landed", "the same commit": "landed "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote := notAtomic(t)
			s, g := clone(t, remote), newGate(t, remote)
			first, again := s, s
			first.env = gittest.With(s.env, "GIT_AUTHOR_DATE=2026-11-30T12:00:00Z", "GIT_COMMITTER_DATE=2026-11-30T12:00:00Z")
			if name == "the same commit" {
				again = first
			}
			s.write(map[string]string{"one": "one\n", "two": "two\n"})
			first.losesItsPush(g, breaker(t, remote)).exits(6, "git-land", "--force-unverified", "--reason", "test", "-m", "land unit-one", "--", "one")
			op := s.unfinished()
			// It comes between the conclusion of the dead and the look at the branch.
			hook := filepath.Join(s.dir, ".git/hooks/pre-push")
			gittest.Script(t, hook, fmt.Sprintf("#!/bin/sh\n: >'%[1]s/open'; echo >'%[1]s/gate'\nuntil git --git-dir='%[2]s' log -1 --format=%%s main | grep -q unit-one; do sleep 0.02; done\n", g.dir, remote))
			r := again.exits(0, "git-land", "--force-unverified", "--reason", "test", "-m", "land unit-one", "--", "one")
			if !strings.HasPrefix(r.Stdout, told) || !strings.Contains(r.Stderr, op) {
				t.Errorf("told: %s%s", r.Stdout, r.Stderr)
			}
			if err := os.Remove(hook); err != nil {
				t.Fatal(err)
			}
			nothingOpen(t, s, remote)
			agree(t, s, remote, 1)
			s.exits(0, "git-land", "reconcile")
		})
	}
}

// Nothing was sent when the lease was taken off: then there is nothing to wait for.
func TestLeaseTakenOffBeforeTheBranchIsSent(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s := clone(t, remote)
	s.write(map[string]string{"zero": "0\n", "one": "one\n"})
	s.landUnit("zero")
	gittest.Script(t, filepath.Join(remote, "hooks/post-receive"), fmt.Sprintf(`#!/bin/sh
while read -r old new ref; do git log -1 --format=%%B "$new" | grep -q '^Lease-Event: intent$' && exec '%s'; done
exit 0
`, breaker(t, remote)))
	r := s.exits(6, "git-land", "--force-unverified", "--reason", "test", "-m", "land unit-one", "--", "one")
	if !strings.Contains(r.Stderr, "broken by "+gittest.Identity) || strings.Contains(r.Stderr, "may still") {
		t.Errorf("told: %s", r.Stderr)
	}
	nothingOpen(t, s, remote)
}

// The push that takes the lease was sent, its answer is lost, and what stands at the
// authority tells nothing. It may still arrive, so it is not forgotten.
func TestAcquireOfALandingIsNotKnown(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s := clone(t, remote)
	s.write(map[string]string{"zero": "0\n", "one": "one\n"})
	s.landUnit("zero")
	tip := gittest.Git(t, remote, "rev-parse", "refs/lease/main")
	bad := gittest.Git(t, remote, "commit-tree", "-p", tip, "-m", "garbage", "main^{tree}")
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gittest.Script(t, filepath.Join(dir, "git"), fmt.Sprintf(`#!/bin/sh
case "$*" in *push*:refs/lease/main*) ;; *) exec '%[1]s' "$@" ;; esac
echo "$*" >'%[2]s/push'
'%[1]s' --git-dir='%[3]s' update-ref refs/lease/main %[4]s
exit 128
`, git, dir, remote, bad))
	broken := s
	broken.env = gittest.WithPath(s.env, dir)
	r := broken.exits(8, "git-land", "--force-unverified", "--reason", "test", "-m", "land unit-one", "--", "one")
	if op := s.unfinished(); !strings.Contains(r.Stderr, "git land resume "+op) || !strings.Contains(r.Stderr, "has taken the lease main") {
		t.Errorf("told: %s", r.Stderr)
	}
	// The chain is put back, and the push comes.
	gittest.Git(t, remote, "update-ref", "refs/lease/main", tip)
	arrives := strings.Fields(gittest.Read(t, dir, "push"))
	s.git("push", "-q", "origin", arrives[len(arrives)-1])
	told(t, s.try("git-land", "resume"), 1, "no longer arrive")
	nothingOpen(t, s, remote)
	s.landUnit("one")
	agree(t, s, remote, 2)

	// The same of a command under the lease: its witness is the proof that it is gone.
	os.Remove(filepath.Join(dir, "push"))
	bad = gittest.Git(t, remote, "commit-tree", "-p", "refs/lease/main", "-m", "garbage", "main^{tree}")
	script := filepath.Join(dir, "git")
	gittest.Script(t, script, strings.Replace(read(t, script), "update-ref refs/lease/main", "update-ref refs/lease/main "+bad+" && exit 128 #", 1))
	broken.exits(8, "git-lease", "run", "--", "true")
	if left, err := filepath.Glob(filepath.Join(s.dir, ".git/lease/witness/*.json")); err != nil || len(left) != 1 {
		t.Errorf("its record: %q, %v", left, err)
	}
}

// A push was refused since the branch had been moved past the tool, and what is
// planned on that is a conflict. Were the branch put back, the push could still
// arrive; so the chain is moved past it before it is said that nothing landed.
func TestConflictAfterAPushThatTheBranchKeptOut(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"zero": "0\n"})
	s.landUnit("zero")
	work := gittest.Clone(t, gittest.URL(remote))
	by := gittest.Commit(t, work, "around", map[string]string{"README": "around\n"})
	gittest.Git(t, work, "push", "-q", "origin", by+":refs/heads/around")
	s.write(map[string]string{"README": "mine\n"})
	gittest.Script(t, filepath.Join(s.dir, ".git/hooks/pre-push"), "#!/bin/sh\ngit --git-dir='"+remote+"' update-ref refs/heads/main "+by+"\n")
	s.exits(5, "git-land", "--force-unverified", "--reason", "test", "-m", "land unit-one", "--", "README")
	if got := kinds(t, remote); !strings.HasSuffix(got, "land void") && !strings.HasSuffix(got, "acquire release") {
		t.Errorf("events %q: the chain stands where the push expects it", got)
	}
	nothingOpen(t, s, remote)
}

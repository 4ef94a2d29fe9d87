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

// alone is a command for the whole of which nothing else that is alone may run: it fails where
// something does, and notes that it ran.
func alone(dir string) []string {
	return []string{"--", "sh", "-c", `mkdir "$0/inside" && echo ran >>"$0/ran" && rmdir "$0/inside"`, dir}
}

// ran is how often commands have run alone.
func ran(t *testing.T, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "ran"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "ran\n")
}

// takes is a run that waits for several leases, and is by somebody of its own, since who
// comes back lets others go first.
func (s seat) takes(who, dir string, names ...string) *exec.Cmd {
	s.t.Helper()
	args := []string{"run", "--wait", "--timeout", "5m"} // which is the end of a standstill
	for _, n := range names {
		args = append(args, "--name", n)
	}
	return s.with("GIT_COMMITTER_NAME="+who).cmd("git-lease", append(args, alone(dir)...)...)
}

// Two runs take two leases in opposite order, let go at one instant: both run, never at
// once, and none waits for the other for ever. Every tenth time the leases are new, so that
// both begin them.
func TestTwoLeasesInOppositeOrder(t *testing.T) {
	t.Parallel()
	for place, tenths := range map[string]int{"local": 7, "file": 2, "two remotes": 1} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			remote, other := gittest.Remote(t), gittest.Remote(t)
			one, two := twoAuthorities(t, remote, other), twoAuthorities(t, remote, other)
			a, b := "origin:a", "origin:b"
			switch place {
			case "local":
				a, b, two = ".:a", ".:b", one
			case "two remotes":
				b = "other:b"
			}
			n, dir := loops(1000)*tenths/10, t.TempDir()
			for i := range n {
				a, b := fmt.Sprintf("%s%d", a, i/10), fmt.Sprintf("%s%d", b, i/10)
				results := gittest.Together(t, one.takes(fmt.Sprint("one-", i), dir, a, b), two.takes(fmt.Sprint("two-", i), dir, b, a))
				for _, r := range results {
					if r.Code != 0 {
						t.Fatalf("round %d: exit %d: %s", i, r.Code, r.Stderr)
					}
				}
			}
			if got := ran(t, dir); got != 2*n {
				t.Errorf("%d commands ran, want %d", got, 2*n)
			}
			one.exits(0, "git-lease", "show", "--exit-code")
			one.nothingRecorded()
			t.Logf("%d rounds, both served one after the other", n)
		})
	}
}

// twoAuthorities is a clone of a remote that has another one as well.
func twoAuthorities(t *testing.T, remote, other string) seat {
	t.Helper()
	s := clone(t, remote)
	s.git("config", "lease.remote", "origin")
	s.git("remote", "add", "other", gittest.URL(other))
	return s
}

// heldByThird is a clone whose session has that one of two leases, a of a remote and b of
// another, which is taken last.
func heldByThird(t *testing.T, remote, other string) (third seat, first, last [2]string) {
	t.Helper()
	third = twoAuthorities(t, remote, other).with("GIT_LEASE_SESSION=third")
	root := func(remote, name, dir string) string {
		third.exits(0, "git-lease", "adopt", "--remote", remote, name)
		return gittest.Git(t, dir, "rev-list", "--max-parents=0", "refs/lease/"+name)
	}
	first, last = [2]string{"origin", "a"}, [2]string{"other", "b"}
	if root("origin", "a", remote) > root("other", "b", other) {
		first, last = last, first
	}
	third.exits(0, "git-lease", "acquire", "--remote", last[0], last[1])
	return third, first, last
}

// held reports whether a lease of one of its remotes is held.
func (s seat) held(lease [2]string) bool {
	s.t.Helper()
	return s.try("git-lease", "show", "--exit-code", "--remote", lease[0], lease[1]).Code == 3
}

// One of the leases, of two remotes, is held by a third. A run that waits for that has the other
// one, and is killed. The other run gets both when the killed one was recovered, and the third has
// gone; nothing is left of either.
func TestOneOfSeveralRunsIsKilled(t *testing.T) {
	t.Parallel()
	remote, other := gittest.Remote(t), gittest.Remote(t)
	one, two, dir := twoAuthorities(t, remote, other), twoAuthorities(t, remote, other), t.TempDir()
	third, first, second := heldByThird(t, remote, other)
	killed := one.takes("one", dir, "origin:a", "other:b")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the first lease is held", func() bool { return third.held(first) })
	waits := two.takes("two", dir, "other:b", "origin:a")
	waits.Stderr = new(strings.Builder)
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	killed.Process.Kill()
	killed.Wait()
	one.exits(0, "git-lease", "recover", "--remote", first[0], first[1])
	one.nothingRecorded()
	if got := ran(t, dir); got != 0 {
		t.Errorf("%d commands ran without the second lease", got)
	}
	third.exits(0, "git-lease", "release", "--remote", second[0], second[1])
	if err := waits.Wait(); err != nil || ran(t, dir) != 1 {
		t.Errorf("%v, and %d commands ran: %s", err, ran(t, dir), waits.Stderr)
	}
	if two.held(first) || two.held(second) {
		t.Error("a lease is held")
	}
	two.nothingRecorded()
}

// A run that is killed with its command leaves all its leases held, each of which is
// recovered, or broken, by itself, in any order; what is left of it here goes with the last.
func TestEachOfSeveralIsRecovered(t *testing.T) {
	t.Parallel()
	remote, other := gittest.Remote(t), gittest.Remote(t)
	s := twoAuthorities(t, remote, other)
	w := s.dead("--name", "main", "--name", "docs", "--name", "other:docs")
	if got := s.exits(3, "git-lease", "show", "--exit-code").Stdout; strings.Count(got, w.op) != 2 {
		t.Errorf("held: %s", got)
	}
	got := s.exits(0, "git-lease", "recover", "docs", "--json")
	for _, want := range []string{"hint: git lease recover main   (the same operation may hold it, too)\n", "hint: git lease recover docs --remote other   (the same"} {
		if !strings.Contains(got.Stderr, want) {
			t.Errorf("%q does not tell %q", got.Stderr, want)
		}
	}
	for _, want := range []string{`"left":[`, `{"remote":"origin","lease":"main"}`, `{"remote":"other","lease":"docs"}`} {
		if !strings.Contains(got.Stdout, want) {
			t.Errorf("%s does not tell %s", got.Stdout, want)
		}
	}
	s.exits(0, "git-lease", "show", "--exit-code", "docs")
	s.exits(0, "git-lease", "break", "--remote", "other", "docs", "--operation", w.op, "--reason", "test")
	if got := s.exits(0, "git-lease", "recover", "main"); strings.Contains(got.Stderr, "hint") {
		t.Errorf("the last of them tells of more: %s", got.Stderr)
	}
	s.nothingRecorded()

	// One that was broken and taken again in the meantime is another's.
	w = s.dead("--name", "main", "--name", "docs")
	clone(t, remote).exits(0, "git-lease", "break", "docs", "--operation", w.op, "--reason", "test")
	s.exits(0, "git-lease", "run", "docs", "--", "true")
	s.exits(0, "git-lease", "recover", "main")
	s.nothingRecorded()
}

// Ctrl-C while one of several is waited for gives back the others.
func TestSeveralInterrupted(t *testing.T) {
	t.Parallel()
	remote, other := gittest.Remote(t), gittest.Remote(t)
	s, dir := twoAuthorities(t, remote, other), t.TempDir()
	third, first, second := heldByThird(t, remote, other)
	run := s.takes("one", dir, "origin:a", "other:b")
	stderr := new(strings.Builder)
	run.Stderr = stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the first lease is held", func() bool { return third.held(first) })
	run.Process.Signal(os.Interrupt)
	run.Wait()
	if code := gittest.ExitCode(run); code != 130 || ran(t, dir) != 0 {
		t.Errorf("exit %d, and %d commands ran: %s", code, ran(t, dir), stderr)
	}
	if s.held(first) {
		t.Error("the first lease is held")
	}
	if want := fmt.Sprintf("%s at %s was in the way; given back: %s at %s", second[1], second[0], first[1], first[0]); !strings.Contains(stderr.String(), want) {
		t.Errorf("stderr %q, want %q in it", stderr, want)
	}
	s.nothingRecorded()
}

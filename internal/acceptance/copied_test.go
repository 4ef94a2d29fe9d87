package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// copied is a seat in a copy of the clone, made file by file.
func (s seat) copied() seat {
	s.t.Helper()
	dir := filepath.Join(filepath.Dir(s.dir), "copy") // beside it, as the remote's path may want it
	s.exits(0, "cp", "-Rp", s.dir, dir)
	s.dir = dir
	return s
}

// sends starts a landing of a file whose push the gate holds up.
func (s seat) sends(g gate, file string, args ...string) *exec.Cmd {
	s.t.Helper()
	args = append([]string{"--force-unverified", "--reason", "test", "-m", "land unit-" + file}, args...)
	cmd := s.cmd("git-land", append(args, "--", file)...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	g.arrived()
	return cmd
}

// A clone is copied while a landing is under way in it. The copy has its journal,
// and must not conclude what lives; it says what it has, and has a way on.
func TestCopyOfACloneThatIsLanding(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s, g := clone(t, remote), newGate(t, remote)
	s.write(map[string]string{"one": "1\n", "two": "2\n"})
	landing := s.sends(g, "one")
	c := s.copied()
	op := c.unfinished()
	before := gittest.Refs(t, remote)
	forget := "rm " + filepath.Join(c.dir, ".git/lease/journal", op+".json")
	for _, args := range [][]string{
		{"git-land", "--force-unverified", "--reason", "test", "-m", "land unit-two", "--", "two"},
		{"git-land", "resume"}, {"git-land", "resume", op}, {"git-land", "abort", op, "--reason", "test"},
	} {
		r := c.exits(3, args[0], args[1:]...)
		for _, want := range []string{"of which this one is a copy", "hint: " + forget, "git land resume " + op + " --dead"} {
			if !strings.Contains(r.Stderr, want) {
				t.Errorf("%q does not tell %q: %s", args, want, r.Stderr)
			}
		}
	}
	for _, show := range [][]string{{"git-land", "status"}, {"git-lease", "show"}} {
		if r := c.exits(0, show[0], show[1:]...); !strings.Contains(r.Stdout, "may be under way elsewhere") || !strings.Contains(r.Stdout, forget) {
			t.Errorf("%q: %s", show, r.Stdout)
		}
	}
	sameRefs(t, "the copy", before, gittest.Refs(t, remote))
	c.exits(0, "sh", "-c", forget)
	g.open()
	if err := landing.Wait(); err != nil {
		t.Fatal(err)
	}
	c.landUnit("two")
	nothingOpen(t, c, remote)
	nothingOpen(t, s, remote)
	agree(t, s, remote, 2)
}

// A clone that was moved to another disk, or restored, looks like a copy. Who knows
// that it is none says so.
func TestRestoredCloneOfALandingThatDied(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"one": "1\n"})
	s.dies(remote, "post-receive", "--", "one")
	restored := s.copied()
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	op := restored.unfinished()
	restored.exits(3, "git-land", "resume")
	told(t, restored.try("git-land", "resume", "--dead"), 129, "none is named")
	told(t, restored.try("git-land", "resume", op, "--dead"), 0, "finished it")
	nothingOpen(t, restored, remote)
	agree(t, restored, remote, 1)
}

// Two landings in one worktree, by somebody who did not wait for the first: the
// second waits for it, and finds what it has done.
func TestSecondLandingOfAWorktreeWaits(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, g := clone(t, remote), newGate(t, remote)
	s.write(map[string]string{"one": "1\n"})
	first := s.sends(g, "one")
	args := []string{"--force-unverified", "--reason", "test", "-m", "land unit-one"}
	told(t, s.try("git-land", append(args, "--no-wait", "--", "one")...), 3, "under way")
	told(t, s.try("git-land", append(args, "--timeout", "100ms", "--", "one")...), 3, "--timeout 10m")
	second := s.cmd("git-land", append(args, "--", "one")...)
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	second.Stdout, second.Stderr = said, said
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "it says for what it waits", func() bool { return strings.Contains(read(t, said.Name()), "waiting for operation") })
	g.open()
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil || !strings.Contains(read(t, said.Name()), "already landed") {
		t.Errorf("%v: %s", err, read(t, said.Name()))
	}
	agree(t, s, remote, 1)
}

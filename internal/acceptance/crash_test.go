package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// A gate is a directory for the hook of a server that holds a push up. The hook
// tells by a file that it has arrived.
type gate struct {
	t    *testing.T
	dir  string
	fifo *os.File
}

// atGate waits in the directory of a gate until that is open, or the test at an
// end. To look again and again would take a process each time.
const atGate = `[ -e open ] || read -r _ <gate || :`

func gateFor(t *testing.T) gate {
	t.Helper()
	g := gate{t: t, dir: t.TempDir()}
	fifo := filepath.Join(g.dir, "gate")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.fifo, err = os.OpenFile(fifo, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.fifo.Close() })
	return g
}

// newGate holds every push to main up.
func newGate(t *testing.T, remote string) gate {
	t.Helper()
	g := gateFor(t)
	gittest.Script(t, filepath.Join(remote, "hooks", "pre-receive"), fmt.Sprintf(`#!/bin/sh
cd '%s' || exit 1
while read -r old new ref; do
	case $ref in refs/heads/main)
		[ -e open ] && continue
		: >arrived
		%s
		late=yes ;;
	esac
done
exec >/dev/null
[ -z "$late" ] || { trap '' PIPE; : >passed; }
exit 0
`, g.dir, atGate))
	return g
}

func (g gate) arrived() { waitFor(g.t, filepath.Join(g.dir, "arrived")) }

func (g gate) open() {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "open"), nil, 0o600); err != nil {
		g.t.Fatal(err)
	}
	if _, err := g.fifo.WriteString(strings.Repeat("\n", 100)); err != nil { // for all who wait
		g.t.Fatal(err)
	}
}

// killed starts a landing of a file whose push the gate holds up, and kills it.
// The push itself is left alone: a dead process is not a dead push.
func killed(t *testing.T, s seat, g gate, file string) {
	t.Helper()
	cmd := s.cmd("git-land", "-m", "land unit-"+file, "--", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.arrived()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
}

func count(t *testing.T, remote, file string) int {
	t.Helper()
	return len(strings.Fields(gittest.Git(t, remote, "rev-list", "main", "--grep=^land unit-"+file)))
}

// The push of a landing that was killed arrives before it is run again: the
// second run finishes it, and lands nothing twice.
func TestKilledLandingThatArrived(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, g := clone(t, remote), newGate(t, remote)
	s.write(map[string]string{"one": "one\n"})
	s.verify("one")
	killed(t, s, g, "one")
	g.open()
	until(t, "the push arrives", func() bool { return count(t, remote, "one") == 1 })
	r := s.exits(0, "git-land", "-m", "land unit-one", "--", "one")
	if !strings.Contains(r.Stdout, "already landed as ") || !strings.Contains(r.Stderr, "finished it") {
		t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
	}
	if got := s.git("status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
	agree(t, s, remote, 1)
}

// It is run again while the push of the dead one is still on its way: that one
// can then no longer arrive.
func TestKilledLandingThatIsStillOnItsWay(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, g := clone(t, remote), newGate(t, remote)
	s.write(map[string]string{"one": "one\n"})
	s.verify("one")
	killed(t, s, g, "one")
	// The gate holds up every push to main, so the second run is let through
	// once it has moved the chain past the first one's push.
	before := gittest.Refs(t, remote)["refs/lease/main"]
	second := s.cmd("git-land", "-m", "land unit-one", "--", "one")
	done := make(chan gittest.Result, 1)
	go func() { done <- gittest.Run(t, second) }()
	until(t, "the chain moves", func() bool { return gittest.Refs(t, remote)["refs/lease/main"] != before })
	g.open()
	if r := <-done; r.Code != 0 || !strings.Contains(r.Stderr, "can no longer arrive") {
		t.Errorf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	waitFor(t, filepath.Join(g.dir, "passed"))
	agree(t, s, remote, 1)
	if n := strings.Count(gittest.Git(t, remote, "log", "--format=%(trailers:key=Lease-Event,valueonly,separator=)", "refs/lease/main"), "void"); n != 1 {
		t.Errorf("%d voids, want 1", n)
	}
}

// Ctrl-C while a landing waits for somebody else's lease, and while one acquires
// with --wait, leaves nothing behind.
func TestCtrlCWhileWaiting(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, holder := clone(t, remote), clone(t, remote)
	s.write(map[string]string{"one": "one\n"})
	s.verify("one")
	holder.exits(0, "git-lease", "acquire", "--format=json", "-m", "holding on")
	before := gittest.Refs(t, remote)
	for _, args := range [][]string{
		{"git-land", "-m", "one", "--timeout", "5m", "--", "one"},
		{"git-lease", "acquire", "--wait", "--timeout", "5m"},
		{"git-lease", "run", "--wait", "--", "false"},
	} {
		said := filepath.Join(t.TempDir(), "said")
		out, err := os.Create(said)
		if err != nil {
			t.Fatal(err)
		}
		cmd := s.cmd(args[0], args[1:]...)
		cmd.Stderr = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, "it names the holder", func() bool { return strings.Contains(read(t, said), "holding on") })
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		out.Close()
		if code := gittest.ExitCode(cmd); code != 130 {
			t.Errorf("%q: exit %d, want 130: %s", args, code, read(t, said))
		}
		sameRefs(t, args[0], before, gittest.Refs(t, remote))
		if left := s.git("status", "--porcelain"); left != "?? one" {
			t.Errorf("%q left %q", args, left)
		}
	}
	journals, err := filepath.Glob(filepath.Join(s.dir, ".git/lease/journal/*"))
	if err != nil || len(journals) > 0 {
		t.Errorf("journals left: %q, %v", journals, err)
	}
}

// The kernel tells a process group one process after the other: where git dies of
// a signal before the tool hears of it, that is still how the tool was ended.
func TestGitHearsOfTheEndFirst(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	s.write(map[string]string{"one": "one\n"})
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gittest.Script(t, filepath.Join(dir, "git"), fmt.Sprintf(`#!/bin/sh
case "$*" in *write-tree*) ;; *) exec '%s' "$@" ;; esac
(sleep 0.2; kill -s TERM $PPID) >/dev/null 2>&1 &
kill -s TERM $$
`, git))
	s.env = gittest.WithPath(s.env, dir)
	if r := s.exits(143, "git-land", "-x", "true", "-m", "one", "--", "one"); !strings.Contains(r.Stderr, "ended by SIGTERM") {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("it does not happen that %s", what)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

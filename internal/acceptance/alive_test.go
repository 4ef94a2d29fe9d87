package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gitland/internal/gittest"
)

// Whoever asks from within the command asks about itself.
func TestRecoverOfLiveCommand(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	w := s.runs(waits)
	v := s.refuses("alive", "its witness is locked by process "+strconv.Itoa(w.wrapper.Process.Pid)+" (git-lease run)")
	// Git's processes, one of which reads objects all the time, have no part in it.
	if by := v.Error.By; len(by) != 2 || by[0].Command != "git-lease run" || by[1].PID != w.pid || by[1].Command != "cat" {
		t.Errorf("witness held by %+v", by)
	}
	r := s.exits(3, "git-lease", "acquire") // recovers nothing by itself, and says how
	if !strings.Contains(r.Stderr, "git lease recover main") {
		t.Errorf("stderr %q", r.Stderr)
	}
	w.stdin.Close()
	if err := w.wrapper.Wait(); err != nil {
		t.Error(err)
	}
	s.nothingRecorded()
	r = s.exits(3, "git-lease", "run", "--", "git-lease", "recover")
	if !strings.Contains(r.Stderr, "(git-lease run)") {
		t.Errorf("stderr %q", r.Stderr)
	}
	s.nothingRecorded()
}

// The command gets the witness, and so does a git of its own. No process of ours
// does: not the pushes that are made while it is locked, either.
func TestWitnessIsForTheCommand(t *testing.T) {
	t.Parallel()
	if _, err := os.Readlink("/proc/self/fd/0"); err != nil {
		t.Skip("descriptors cannot be listed here")
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	s, dir := clone(t, gittest.Remote(t)), t.TempDir()
	gittest.Script(t, filepath.Join(dir, "git"), `#!/bin/sh
has=no; readlink /proc/$$/fd/* | grep -q /lease/witness/0 && has=yes
printf '%s %s\n' "$has" "$*" >>'`+dir+`/log'
exec '`+git+`' "$@"
`)
	s.env = gittest.WithPath(s.env, dir)
	check := func(want int, args ...string) {
		t.Helper()
		os.Remove(filepath.Join(dir, "log"))
		s.exits(0, args[0], args[1:]...)
		pushes, has := 0, []string{}
		for line := range strings.Lines(read(t, filepath.Join(dir, "log"))) {
			if strings.Contains(line, " push ") {
				pushes++
			}
			if strings.HasPrefix(line, "yes") {
				has = append(has, line)
			}
		}
		if len(has) != want || pushes == 0 {
			t.Errorf("%q: %d git processes have the witness, want %d: %q; of %d pushes", args, len(has), want, has, pushes)
		}
	}
	check(1, "git-lease", "run", "--", "git", "--version")
	check(0, "git-lease", "run", "--close", "--", "git", "--version")
	s.write(map[string]string{"new": "n\n"})
	check(0, "git-land", "--force-unverified", "--reason", "test", "-m", "change", "--", "new")
}

// A command whose git-lease was killed works on, and so does its lease; with
// --close it does not.
func TestRecoverOfOrphanedChild(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	w := s.runs(waits)
	w.killed()
	s.refuses("alive", "its witness is locked by process "+strconv.Itoa(w.pid)+" (cat)")
	w.ended()
	s.recovers("has ended; same machine, boot, PID namespace and clone")

	w = s.runs(waits, "--close")
	w.killed()
	s.recovers("its witness is free")
	if err := syscall.Kill(w.pid, 0); err != nil {
		t.Errorf("the command has ended: %v", err)
	}
}

// Some programs close what they inherited. The command itself counts all the same.
func TestRecoverOfCommandThatClosedItsWitness(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	// Descriptors above 9 are not every shell's to close.
	const closing = `i=0; while [ $i -lt 64 ]; do i=$((i+1)); [ $i -lt 3 ] || eval "exec $i>&-" 2>/dev/null; done; `
	if r := s.try("bash", "-c", closing+"true"); r.Code != 0 {
		t.Skipf("this shell closes no descriptors: %s", r.Stderr)
	}
	w := s.starts(s.cmd("git-lease", "run", "--", "bash", "-c", closing+waits))
	until(t, "the command is recorded", func() bool { return strings.Contains(read(t, s.witness(w.op)+".json"), `"command":`) })
	w.killed()
	s.refuses("alive", "its command, process "+strconv.Itoa(w.pid)+", is running")
	w.stdin.Close()
	until(t, "the command has ended", func() bool { return syscall.Kill(w.pid, 0) != nil })
	s.recovers("its witness is free")
}

// A process that is stopped can go on at any time.
func TestRecoverOfSuspendedProcess(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	w := s.runs(waits)
	pid := w.wrapper.Process.Pid
	for _, p := range []int{w.pid, pid} {
		if err := syscall.Kill(p, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	s.refuses("alive", "(git-lease run) and process ")
	for _, p := range []int{w.pid, pid} {
		if err := syscall.Kill(p, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	w.stdin.Close()
	if err := w.wrapper.Wait(); err != nil {
		t.Errorf("run: %v", err)
	}

	shell := startShell(t, s)
	s.with("GIT_LEASE_SESSION=one").exits(0, "git-lease", "acquire", "--watch-pid", strconv.Itoa(shell.Process.Pid))
	if err := shell.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.refuses("alive", "to which it is tied, is running")
}

// The first process of a container has the PID 1, and so has somebody outside.
func TestRecoverOfContainer(t *testing.T) {
	t.Parallel()
	const enter = "--pid --fork --mount-proc --kill-child"
	s := clone(t, gittest.Remote(t))
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("unshare(1) is not here")
	}
	if r := s.try("unshare", append(strings.Fields(enter), "true")...); r.Code != 0 {
		t.Skipf("no PID namespace may be made here: %s", r.Stderr)
	}
	inside := func(args ...string) *exec.Cmd { return s.cmd("unshare", append(strings.Fields(enter), args...)...) }
	w := s.starts(inside("git-lease", "run", "--", "sh", "-c", waits))
	s.refuses("alive", "its witness is locked by process ")
	w.killed()
	w.ended()
	s.refuses("unknown", "it ran in another PID namespace, such as a container's")
	s.exits(0, "git-lease", "break", "--operation", w.op, "--reason", "the container is gone")

	s.dead()
	r := gittest.Run(t, inside("git-lease", "recover", "--json"))
	if v := decode[verdict](t, r); r.Code != 3 || v.Error.Verdict != "unknown" || !strings.Contains(v.Error.Comparison, "another PID namespace") {
		t.Errorf("from within a container: exit %d, %+v", r.Code, v.Error)
	}
	s.recovers("has ended")
	s.nothingRecorded()
}

// A daemon that git started for the command has its descriptors. It counts, and
// whoever wants to end it is told which it is.
func TestRecoverOfCredentialDaemon(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	dir, err := os.MkdirTemp("", "s") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cache := func(action string) []string {
		return []string{"credential-cache", "--socket", filepath.Join(dir, "c"), action}
	}
	if r := s.try("git", cache("exit")...); r.Code != 0 {
		t.Skipf("this git has no credential-cache: %s", r.Stderr)
	}
	t.Cleanup(func() { s.try("git", cache("exit")...) })
	w := s.runs(`printf 'protocol=https\nhost=example.com\nusername=ada\npassword=x\n\n' | git ` + strings.Join(cache("store"), " ") + `; ` + waits)
	w.killed()
	w.stdin.Close()
	until(t, "the daemon alone has the witness", func() bool {
		v := decode[verdict](t, s.exits(3, "git-lease", "recover", "--json"))
		return len(v.Error.By) == 1
	})
	s.refuses("alive", "(git credential-cache--daemon)")
	s.exits(0, "git", cache("exit")...)
	w.ended()
	s.recovers("has ended")
}

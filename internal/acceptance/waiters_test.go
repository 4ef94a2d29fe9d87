package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gitland/internal/gittest"
)

// watched is a clone that notes, in the file looks, which tip of the lease main each of its
// fetches saw, and when it pushes.
func watched(t *testing.T, remote, looks, who string) seat {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	s, dir := clone(t, remote), t.TempDir()
	gittest.Script(t, filepath.Join(dir, "git"), fmt.Sprintf(`#!/bin/sh
case "$*" in
*" fetch "*)
	'%[1]s' "$@"
	code=$?
	echo "%[3]s $('%[1]s' rev-parse -q --verify refs/lease-remote/origin/lease/main)" >>'%[2]s'
	exit $code ;;
*" push "*) echo "%[3]s pushes" >>'%[2]s' ;;
esac
exec '%[1]s' "$@"
`, git, looks, who))
	s.env = gittest.WithPath(s.env, dir)
	return s
}

// A waiter is a process that waits for the lease main.
type waiter struct {
	seat
	name   string
	cmd    *exec.Cmd
	stderr *strings.Builder
}

// startWaiter starts one that runs a command, or else one that acquires, in a session of
// its own. With a directory died that is not there yet the command kills git-lease, once.
func startWaiter(t *testing.T, s seat, name, dir string, runs bool) waiter {
	t.Helper()
	const work = `mkdir "$0/inside" && echo ran >>"$0/ran" && rmdir "$0/inside"`
	args := []string{"sh", "-c", "git-lease acquire --wait --json && " + work + " && git-lease release", dir}
	if runs {
		args = []string{"git-lease", "run", "--wait", "--", "sh", "-c",
			`mkdir "$0/died" 2>/dev/null && { kill -9 $PPID; echo "$1" >"$0/died/who"; exit; }; ` + work, dir, name}
	}
	w := waiter{s.with("GIT_LEASE_SESSION=" + name), name, nil, new(strings.Builder)}
	w.cmd = w.seat.cmd(args[0], args[1:]...)
	w.cmd.Stderr, w.cmd.SysProcAttr = w.stderr, &syscall.SysProcAttr{Setpgid: true}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.kill)
	return w
}

// kill kills the waiter and its git.
func (w waiter) kill() {
	if w.cmd.ProcessState == nil {
		syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL)
		w.cmd.Wait()
	}
}

// Twenty wait for one lease, to run a command or to acquire. Some are killed while they wait,
// and one while it holds the lease, which recover then frees: all others are served. None looks
// more than twice at a free lease before it tries to take it, or somebody else has it:
// looks are at most a poll interval apart, so nobody waits for longer than two while it is free.
func TestTwentyWaiters(t *testing.T) {
	t.Parallel()
	const n, killed = 20, 4
	remote, dir := gittest.Remote(t), t.TempDir()
	looks := filepath.Join(dir, "looks")
	holder := clone(t, remote).runs(waits)
	var list []waiter
	for i := range n {
		name := fmt.Sprintf("w%02d", i)
		list = append(list, startWaiter(t, watched(t, remote, looks, name), name, dir, i%4 != 3))
	}
	until(t, "all have looked", func() bool {
		text := content(t, looks)
		for _, w := range list {
			if !strings.Contains(text, w.name) {
				return false
			}
		}
		return true
	})
	for _, w := range list[n-killed:] {
		w.kill()
	}
	list = list[:n-killed]
	holder.ended()
	var died string
	until(t, "one dies that has the lease", func() bool {
		died = strings.TrimSpace(content(t, filepath.Join(dir, "died", "who")))
		return died != ""
	})
	for i, w := range list {
		if w.name == died {
			list = append(list[:i:i], list[i+1:]...)
			w.cmd.Wait()
			until(t, "it is proved gone", func() bool { return w.try("git-lease", "recover").Code == 0 })
			break
		}
	}
	for _, w := range list {
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("%s was not served: %v: %s", w.name, err, w.stderr)
		}
	}
	if got := ran(t, dir); got != n-killed-1 {
		t.Errorf("%d were served, want %d", got, n-killed-1)
	}
	if got := kinds(t, remote); !strings.HasSuffix(got, "release") || strings.Count(got, "recover") != 1 {
		t.Errorf("events %q", got)
	}
	most := looksAtFree(t, remote, content(t, looks))
	t.Logf("%d of %d served, %d looks in all, at most %d at a free lease in vain", len(list), n, strings.Count(content(t, looks), "\n"), most)
}

// looksAtFree is how often at most a waiter looked at one free lease before it pushed, or the
// lease was somebody's. It fails the test where that is more than twice.
func looksAtFree(t *testing.T, remote, looks string) int {
	t.Helper()
	free := map[string]bool{}
	for line := range strings.Lines(gittest.Git(t, remote, "log", "--format=%H %(trailers:key=Lease-State,valueonly,separator=)", "refs/lease/main") + "\n") {
		f := strings.Fields(line)
		free[f[0]] = f[1] == "free"
	}
	type count struct {
		tip string
		n   int
	}
	most, last := 0, map[string]count{}
	for line := range strings.Lines(looks) {
		who, tip, _ := strings.Cut(strings.TrimSpace(line), " ")
		c := last[who]
		if tip != c.tip || !free[tip] {
			c = count{tip: tip}
		}
		c.n++
		last[who] = c
		if free[tip] {
			if most = max(most, c.n); c.n > 2 {
				t.Errorf("%s looks %d times at the free lease %s", who, c.n, tip)
			}
		}
	}
	return most
}

// content is that of a file, nothing where there is none yet.
func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

// Who gives the lease back and comes again at once, each time right after the other has
// looked in vain, lets that one go first.
func TestWhoComesBackLetsOthersGoFirst(t *testing.T) {
	t.Parallel()
	remote, dir := gittest.Remote(t), t.TempDir()
	looks, served := filepath.Join(dir, "looks"), filepath.Join(dir, "served")
	// It holds the lease until the other has looked once more: six times at first, when its
	// looks are as far apart as they get.
	again := clone(t, remote).cmd("sh", "-c", `for i in 1 2 3 4 5 6 7 8 9; do
	git-lease run --wait -- sh -c 'n=$(wc -l <"$0/looks"); [ "$1" != 1 ] || n=6
		until [ "$(wc -l <"$0/looks")" -gt "$n" ] || grep -q waited "$0/served"; do sleep 0.02; done
		echo again >>"$0/served"' "$0" $i || exit
done`, dir)
	for _, path := range []string{looks, served} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again.Stderr = new(strings.Builder)
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "it has the lease", func() bool { return strings.HasSuffix(tryKinds(t, remote), "acquire") })
	watched(t, remote, looks, "waiter").exits(0, "git-lease", "run", "--wait", "--", "sh", "-c", `echo waited >>"$0"`, served)
	if err := again.Wait(); err != nil {
		t.Fatalf("%v: %s", err, again.Stderr)
	}
	before, _, _ := strings.Cut(content(t, served), "waited")
	n := strings.Count(before, "again")
	if n == 9 {
		t.Errorf("it had the lease %d times before who waited", n)
	}
	t.Logf("who waited came after %d holds of the other", n)
}

// tryKinds is kinds of a lease that may not have begun.
func tryKinds(t *testing.T, remote string) string {
	t.Helper()
	if gittest.TryGit(t, remote, "rev-parse", "-q", "--verify", "refs/lease/main").Code != 0 {
		return ""
	}
	return kinds(t, remote)
}

package gittest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Killer is a Counter that ends a program at one of its git calls: the wrapper
// sends a signal to the whole process group, as a closed terminal does, or the
// kernel when memory runs out.
type Killer struct{ *Counter }

// A Point is where a program ends: before its nth git process became git, or
// when that one had done its work and nobody had heard of it yet. Those that run
// side by side are counted in the order in which they start.
type Point struct {
	N      int // from 1
	After  bool
	Signal syscall.Signal // SIGKILL, SIGTERM or SIGINT
}

func (p Point) String() string {
	when := "before"
	if p.After {
		when = "after"
	}
	return fmt.Sprintf("%s %s call %d", signalNames[p.Signal], when, p.N)
}

var signalNames = map[syscall.Signal]string{syscall.SIGKILL: "KILL", syscall.SIGTERM: "TERM", syscall.SIGINT: "INT"}

// To create a file that must not be there is how each call comes to a number of
// its own. A call outside of the group (git-land's reader of objects, which is
// to outlive Ctrl-C) lives on after TERM; after KILL its pipes end.
const killing = `#!/bin/sh
dir=${0%/*}
set -C
n=1
until printf '%s\037' "$@" >"$dir/calls/$n"; do n=$((n+1)); done 2>/dev/null
set +C
printf '%s\037' "$@" "$(printf '\036')" >>"$dir/log"
read -r at when signal <"$dir/point"
[ "$n" = "$at" ] || exec "$GITTEST_GIT" "$@"
code=137
[ "$when" = before ] || { "$GITTEST_GIT" "$@"; code=$?; }
: >"$dir/killed"
kill -s "$signal" -- "-$(cat "$dir/group")"
[ "$when$signal" = beforeTERM ] || [ "$when$signal" = beforeINT ] && exec "$GITTEST_GIT" "$@"
exit $code
`

// KillGit makes a killer.
func KillGit(t T) *Killer {
	t.Helper()
	k := &Killer{CountGit(t)}
	Script(t, filepath.Join(k.dir, "git"), strings.ReplaceAll(killing, "$GITTEST_GIT", k.git))
	return k
}

// Run runs cmd, which it starts as the leader of a process group of its own,
// and reports whether it was killed: it may have ended before the point, and
// there is none after a call that cmd itself kills. It returns when everything that cmd
// started is gone. The calls are those of this run.
func (k *Killer) Run(cmd *exec.Cmd, at Point) (r Result, killed bool) {
	k.t.Helper()
	k.Reset()
	point := fmt.Sprintf("%d before %s\n", at.N, signalNames[at.Signal])
	if at.After {
		point = strings.Replace(point, "before", "after", 1)
	}
	err := errors.Join(os.RemoveAll(filepath.Join(k.dir, "calls")), os.Mkdir(filepath.Join(k.dir, "calls"), 0o777),
		os.RemoveAll(filepath.Join(k.dir, "killed")), os.WriteFile(filepath.Join(k.dir, "point"), []byte(point), 0o666))
	if err != nil {
		k.t.Fatalf("gittest: %v", err)
	}
	r = RunGroup(k.t, cmd, filepath.Join(k.dir, "group"))
	_, err = os.Stat(filepath.Join(k.dir, "killed"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.t.Fatalf("gittest: %v", err)
	}
	return r, err == nil
}

// Call returns the arguments of the nth git process of the last Run.
func (k *Killer) Call(n int) []string {
	k.t.Helper()
	args, err := os.ReadFile(filepath.Join(k.dir, "calls", fmt.Sprint(n)))
	if err != nil {
		k.t.Fatalf("gittest: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(args), "\x1f"), "\x1f")
}

// groupTime is how long a process group may live. Nothing here takes as long,
// unless it is stuck.
const groupTime = 2 * time.Minute

// RunGroup is Run for a command that leads a process group of its own, whose id
// it writes into a file first. It returns when all that the command started is
// gone, and ends what is stuck.
func RunGroup(t T, cmd *exec.Cmd, file string) Result {
	t.Helper()
	alive, hold, err := os.Pipe()
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	defer alive.Close()
	defer hold.Close()
	script := `echo $$ >"$0" && exec "$@"`
	shell := Command(t, cmd.Env, cmd.Dir, "sh", append([]string{"-c", script, file, cmd.Path}, cmd.Args[1:]...)...)
	var stdout, stderr bytes.Buffer
	shell.Stdin, shell.Stdout, shell.Stderr = cmd.Stdin, &stdout, &stderr
	shell.ExtraFiles = []*os.File{hold} // every descendant has it open until it ends
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := shell.Start(); err != nil {
		t.Fatalf("gittest: %v", err)
	}
	hold.Close()
	stuck := time.AfterFunc(groupTime, func() { syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) })
	err = shell.Wait()
	alive.Read(make([]byte, 1)) // its end
	if !stuck.Stop() {
		t.Fatalf("gittest: %q was stuck and had to be ended\n%s%s", cmd.Args, stdout.String(), stderr.String())
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("gittest: %v", err)
	}
	return Result{stdout.String(), stderr.String(), ExitCode(shell)}
}

package gittest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// A Barrier holds processes back, each as near to its first instruction as can
// be, and lets them go all at once.
type Barrier struct {
	t             T
	ready, readyW *os.File // each process writes a byte when it is there
	gate, gateW   *os.File // nothing is ever written; its end is the signal
	held          int
}

// NewBarrier makes a barrier for one use.
func NewBarrier(t T) *Barrier {
	t.Helper()
	b := &Barrier{t: t}
	var err, err2 error
	b.ready, b.readyW, err = os.Pipe()
	b.gate, b.gateW, err2 = os.Pipe()
	if err := errors.Join(err, err2); err != nil {
		t.Fatalf("gittest: %v", err)
	}
	t.Cleanup(func() {
		for _, f := range []*os.File{b.ready, b.readyW, b.gate, b.gateW} {
			f.Close() // an error only means that Release was here before
		}
	})
	return b
}

// Start starts cmd, which waits at the barrier. A shell does the waiting and
// then becomes cmd, so that the process is the same.
func (b *Barrier) Start(cmd *exec.Cmd) {
	b.t.Helper()
	ready := strconv.Itoa(3 + len(cmd.ExtraFiles))
	gate := strconv.Itoa(4 + len(cmd.ExtraFiles))
	cmd.ExtraFiles = append(cmd.ExtraFiles, b.readyW, b.gate)
	script := "echo >&" + ready + "; read -r _ <&" + gate + "; " +
		`exec "$@" ` + ready + ">&- " + gate + "<&-"
	shell, err := exec.LookPath("sh")
	if err != nil {
		b.t.Fatalf("gittest: %v", err)
	}
	cmd.Args = append([]string{shell, "-c", script, "barrier", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = shell
	if err := cmd.Start(); err != nil {
		b.t.Fatalf("gittest: %v", err)
	}
	b.held++
}

// Release waits until every started process is at the barrier, and lets all of
// them go.
func (b *Barrier) Release() {
	b.t.Helper()
	b.readyW.Close() // so that a process that died before it is an end of file
	if _, err := io.ReadFull(b.ready, make([]byte, b.held)); err != nil {
		b.t.Fatalf("gittest: a process did not reach the barrier: %v", err)
	}
	b.gateW.Close()
}

// Together starts the commands, lets them go at once, waits for all of them
// and returns what each said, in order.
func Together(t T, cmds ...*exec.Cmd) []Result {
	t.Helper()
	b := NewBarrier(t)
	outputs := make([]struct{ stdout, stderr bytes.Buffer }, len(cmds))
	for i, cmd := range cmds {
		if cmd.Stdout == nil {
			cmd.Stdout = &outputs[i].stdout
		}
		if cmd.Stderr == nil {
			cmd.Stderr = &outputs[i].stderr
		}
		b.Start(cmd)
	}
	b.Release()
	var all sync.WaitGroup
	errs := make([]error, len(cmds))
	for i, cmd := range cmds {
		all.Go(func() { errs[i] = cmd.Wait() })
	}
	all.Wait()
	results := make([]Result, len(cmds))
	for i, cmd := range cmds {
		if exit := (*exec.ExitError)(nil); errs[i] != nil && !errors.As(errs[i], &exit) {
			t.Fatalf("gittest: %v", errs[i])
		}
		results[i] = Result{outputs[i].stdout.String(), outputs[i].stderr.String(), ExitCode(cmd)}
	}
	return results
}

// Package child runs a command of the user's, as a shell would: in the same
// process group, so that the terminal and its job control (Ctrl-C, Ctrl-Z, fg,
// bg) treat the command and us as one job.
//
// It promises to wait for the command whatever happens, to pass on the signals
// that reach only us, and not to repeat those that the terminal has already
// sent to the command. Files that are handed down disturb no other descriptor.
//
// It refuses to kill: there is no SIGKILL here and no signal to a whole group.
// What the command leaves running in the background is not waited for.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// outputDelay is how long Run reads on after the end of the command, if Stdout
// or Stderr is no file and something in the background has its pipe open.
const outputDelay = 3 * time.Second

// The codes of a shell for a command that could not be started.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// A Request says what to run. Files (not mere readers and writers) for Stdin,
// Stdout and Stderr are given to the command itself; the zero value of each is
// the null device.
type Request struct {
	Argv   []string // required: the command and its arguments
	Dir    string   // where to run it; empty is our own directory
	Env    []string // its whole environment; nil is our own
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Inherit are files that the command and its children keep open, such as
	// a witness. They get descriptors that neither they nor scripts use.
	Inherit []*os.File
	// All has signals go to what the command has started, too, where that is in our
	// process group: they ask the whole for its end, as those of a terminal do. A SIGINT
	// does so once, after a second in which it did not end the command.
	All bool
	// Started is told the PID of the command once it runs; may be nil.
	Started func(pid int)
}

// A Result says how a command ended.
type Result struct {
	Code     int            // what a shell has in $?: 128+n if signal n ended it
	Signal   syscall.Signal // the signal that ended it, or 0
	Duration time.Duration
}

// Cut reports whether a signal ended the command, or, by what its shell says, one in it: it
// has said nothing then. A shell's 129, of SIGHUP, does not count: it is git's for usage.
func (r Result) Cut() bool {
	return r.Signal != 0 || r.Code > 128+int(syscall.SIGHUP) && r.Code <= 128+31
}

// Shell is the argv that has a shell run command.
func Shell(command string) []string { return []string{"sh", "-c", command} }

// Run runs a command and waits for its end. An error says that it was not
// started, when Code is a shell's 127 (not found) or 126 (not executable), 128+n
// if signal n came first, or else 1; or that its output could not be written; with an error, Code is not 0.
//
// When ctx is done, the command is sent SIGTERM, once, and waited for. A context
// that a signal cancels (signal.NotifyContext) is welcome: the command then gets
// that signal, and no SIGTERM as well. From the call to its return the signals
// in forwarded do not end this process; before and after, that is the caller's
// care.
func Run(ctx context.Context, req Request) (Result, error) {
	if len(req.Argv) == 0 {
		return Result{Code: codeNotFound}, errors.New("no command given")
	}
	signals := catch(req.All)
	defer signals.release()
	if sig := signals.pendingEnd(); sig != 0 {
		return Result{Code: 128 + int(sig), Signal: sig}, fmt.Errorf("%s: not started: %s", req.Argv[0], sig)
	}
	if ctx.Err() != nil {
		return Result{Code: 1}, context.Cause(ctx)
	}
	cmd := exec.Command(req.Argv[0], req.Argv[1:]...)
	cmd.Dir, cmd.Env = req.Dir, req.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = req.Stdin, req.Stdout, req.Stderr
	cmd.WaitDelay = outputDelay

	start := time.Now()
	if err := launch(cmd, req.Inherit); err != nil {
		return Result{Code: startCode(err)}, startError(req.Argv[0], err)
	}
	signals.catchUp(cmd.Process)
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	if req.Started != nil {
		req.Started(cmd.Process.Pid)
	}
	err := signals.forward(ctx, cmd.Process, exited)

	result := Result{Code: cmd.ProcessState.ExitCode(), Duration: time.Since(start)}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		result.Signal = status.Signal()
		result.Code = 128 + int(result.Signal)
	}
	if _, ended := errors.AsType[*exec.ExitError](err); ended || errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if err != nil {
		result.Code = max(result.Code, 1)
		err = fmt.Errorf("output of %s: %w", req.Argv[0], err)
	}
	return result, err
}

// launch starts cmd with files handed down.
func launch(cmd *exec.Cmd, files []*os.File) error {
	extra, err := place(files)
	if err != nil {
		return err
	}
	defer closeAll(extra)
	cmd.ExtraFiles = extra
	return cmd.Start()
}

// startCode is what a shell would have in $? after err.
func startCode(err error) int {
	switch path, _ := errors.AsType[*fs.PathError](err); {
	case path != nil && path.Op == "chdir":
		return 1
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return codeNotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR):
		return codeNotExecutable
	}
	return 1
}

// startError names the command as the user wrote it, once.
func startError(name string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok && path.Op == "fork/exec" {
		err = path.Err
	} else if lookup, ok := errors.AsType[*exec.Error](err); ok {
		err = lookup.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

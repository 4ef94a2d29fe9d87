package child_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gitland/internal/child"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("echo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		argv   []string
		dir    string
		code   int
		signal syscall.Signal
		err    string
	}{
		{name: "success", argv: child.Shell("exit 0")},
		{name: "own code", argv: child.Shell("exit 3"), code: 3},
		{name: "killed", argv: child.Shell("kill -KILL $$"), code: 137, signal: syscall.SIGKILL},
		{name: "terminated", argv: child.Shell("kill -TERM $$"), code: 143, signal: syscall.SIGTERM},
		{name: "not in PATH", argv: []string{"no-such-command-here"}, code: 127,
			err: "no-such-command-here: executable file not found in $PATH"},
		{name: "no such file", argv: []string{"./gone"}, dir: dir, code: 127, err: "./gone: no such file or directory"},
		{name: "no interpreter", argv: []string{script}, code: 127, err: script + ": no such file or directory"},
		{name: "not executable", argv: []string{"./plain"}, dir: dir, code: 126, err: "./plain: permission denied"},
		{name: "directory", argv: []string{dir}, code: 126, err: dir + ": permission denied"},
		{name: "no such directory", argv: child.Shell("exit 0"), dir: filepath.Join(dir, "gone"), code: 1,
			err: "sh: chdir " + filepath.Join(dir, "gone") + ": no such file or directory"},
		{name: "nothing", code: 127, err: "no command given"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			result, err := child.Run(t.Context(), child.Request{Argv: test.argv, Dir: test.dir})
			if result.Code != test.code || result.Signal != test.signal {
				t.Errorf("got code %d and signal %d, want %d and %d", result.Code, result.Signal, test.code, test.signal)
			}
			if got := fmt.Sprint(err); err == nil && test.err != "" || err != nil && got != test.err {
				t.Errorf("got error %q, want %q", got, test.err)
			}
			if started := test.err == ""; started != (result.Duration > 0) {
				t.Errorf("started %v, but took %v", started, result.Duration)
			}
		})
	}
}

func TestStreamsDirectoryAndEnvironment(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	result, err := child.Run(t.Context(), child.Request{
		Argv:   child.Shell(`pwd -P; printf '%s\n' "$WORD"; cat; echo err >&2`),
		Dir:    dir,
		Env:    append(os.Environ(), "WORD=word"),
		Stdin:  strings.NewReader("in\n"),
		Stdout: &stdout,
		Stderr: &stderr,
	})
	if err != nil || result.Code != 0 {
		t.Fatal(result, err)
	}
	if got, want := stdout.String(), dir+"\nword\nin\n"; got != want {
		t.Errorf("stdout: got %q, want %q", got, want)
	}
	if got := stderr.String(); got != "err\n" {
		t.Errorf("stderr: got %q", got)
	}
}

func TestStarted(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	var pids []string
	_, err := child.Run(t.Context(), child.Request{Argv: child.Shell("echo $$"), Stdout: &stdout,
		Started: func(pid int) { pids = append(pids, strconv.Itoa(pid)) }})
	if err != nil || len(pids) != 1 || stdout.String() != pids[0]+"\n" {
		t.Errorf("told of %q, it was %q, %v", pids, stdout.String(), err)
	}
	_, err = child.Run(t.Context(), child.Request{Argv: []string{"no-such-command-here"}, Started: func(int) { t.Error("told of nothing") }})
	if err == nil {
		t.Error("no error")
	}
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestLostOutputIsAnError(t *testing.T) {
	t.Parallel()
	result, err := child.Run(t.Context(), child.Request{Argv: child.Shell("echo x"), Stdout: fullWriter{}})
	if err == nil || err.Error() != "output of sh: disk full" || result.Code != 1 {
		t.Errorf("got %+v, %v", result, err)
	}
}

// What a command leaves in the background has its output open, and must not be
// waited for.
func TestBackgroundIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	result, err := child.Run(t.Context(), child.Request{Argv: child.Shell("sleep 600 & echo $!"), Stdout: &stdout})
	pid, convErr := strconv.Atoi(strings.TrimSpace(stdout.String()))
	if convErr != nil {
		t.Fatal(convErr)
	}
	if killErr := syscall.Kill(pid, syscall.SIGKILL); killErr != nil {
		t.Errorf("the background process ended: %v", killErr)
	}
	if err != nil || result.Code != 0 {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestContextDoneBefore(t *testing.T) {
	t.Parallel()
	cause := errors.New("no use")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	made := filepath.Join(t.TempDir(), "made")
	result, err := child.Run(ctx, child.Request{Argv: []string{"touch", made}})
	if !errors.Is(err, cause) || result.Code == 0 {
		t.Errorf("got %+v, %v", result, err)
	}
	if _, err := os.Lstat(made); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the command was run: %v", err)
	}
}

// A done context asks the command to end, and its end is waited for.
func TestContextDoneWhileRunning(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var stdout bytes.Buffer
	go func() {
		r.Read(make([]byte, 1)) // the trap is set
		cancel()
	}()
	result, err := child.Run(ctx, child.Request{
		Argv:   child.Shell(`trap 'echo asked; exit 9' TERM; echo >&2; while :; do sleep 0.01; done`),
		Stdout: &stdout,
		Stderr: w,
	})
	w.Close()
	if err != nil || result.Code != 9 || stdout.String() != "asked\n" {
		t.Errorf("got %+v, %v, output %q", result, err, stdout.String())
	}
}

func TestForwardsSignals(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "command", nil)
	_, runner := p.ready()
	for _, sig := range []syscall.Signal{
		syscall.SIGUSR1, syscall.SIGINT, syscall.SIGUSR2, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGINT,
	} {
		p.kill(runner, sig)
		p.expect(unix.SignalName(sig))
	}
	p.kill(runner, syscall.SIGTERM)
	p.expect("SIGTERM", "result 7 0 <nil>", "")
}

// A shell that waits for a command leaves it to that to end: it has to be told, too.
func TestForwardsToAll(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "command", func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "CHILD_TEST_ALL=1") })
	_, shell := p.ready()
	runner := p.cmd.Process.Pid
	if shell == runner {
		t.Fatal("the shell is not between")
	}
	p.kill(runner, syscall.SIGINT)
	p.expect("SIGINT")
	p.kill(runner, syscall.SIGTERM)
	got := []string{p.line(), p.line()}
	slices.Sort(got)
	if got[0] != "SIGTERM" || !strings.HasPrefix(got[1], "result 143 ") {
		t.Errorf("got %q", got)
	}
}

// A signal that cancels the context too is passed on as itself only.
func TestSignalContext(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "command", func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "CHILD_TEST_NOTIFY=1") })
	_, runner := p.ready()
	p.kill(runner, syscall.SIGINT)
	got := []string{p.line(), p.line()}
	slices.Sort(got)
	if want := []string{"SIGINT", "context done"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for range 3 {
		p.kill(runner, syscall.SIGUSR1)
		p.expect("SIGUSR1")
	}
	p.kill(runner, syscall.SIGTERM)
	p.expect("SIGTERM", "result 7 0 <nil>", "")
}

// What nohup made us ignore is ignored by the command as well.
func TestIgnoredStaysIgnored(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "command", func(cmd *exec.Cmd) {
		sh, err := exec.LookPath("sh")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Args = sh, []string{"sh", "-c", `trap "" HUP INT; exec "$0"`, os.Args[0]}
	})
	_, runner := p.ready()
	p.kill(runner, syscall.SIGHUP)
	p.kill(runner, syscall.SIGINT)
	p.kill(runner, syscall.SIGUSR1)
	p.expect("SIGUSR1")
	p.kill(runner, syscall.SIGTERM)
	p.expect("SIGTERM", "result 7 0 <nil>", "")
}

// Handed-down files get numbers of their own, and those that we inherited keep
// theirs, low (3) as well as in the way (10) and beyond (12).
func TestInherit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := make([]*os.File, 4)
	inode := make([]uint64, 4)
	for i := range files {
		f, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		files[i], inode[i] = f, info.Sys().(*syscall.Stat_t).Ino
	}
	p := start(t, "run", "fds", func(cmd *exec.Cmd) {
		extra := make([]*os.File, 10) // descriptors 3 to 12
		extra[0], extra[7], extra[9] = cmd.ExtraFiles[0], files[0], files[1]
		cmd.ExtraFiles = extra
		cmd.Env = append(cmd.Env, "CHILD_TEST_INHERIT="+files[2].Name()+" "+files[3].Name())
	})
	if first := p.line(); !strings.HasPrefix(first, "fd 3 ") {
		t.Errorf("got %q, want the pipe at 3", first)
	}
	p.expect(
		fmt.Sprint("fd 10 ", inode[0]), fmt.Sprint("fd 11 ", inode[2]),
		fmt.Sprint("fd 12 ", inode[1]), fmt.Sprint("fd 13 ", inode[3]),
		"result 0 0 <nil>", "")
}

// The files are open until the last of the command's children is gone.
func TestInheritOutlivesTheCommand(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	hold, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer release.Close()
	result, err := child.Run(t.Context(), child.Request{
		Argv: child.Shell("exec 4<&0; cat <&4 >/dev/null & exit 0"), Stdin: hold, Inherit: []*os.File{w},
	})
	hold.Close()
	w.Close()
	if err != nil || result.Code != 0 {
		t.Fatal(result, err)
	}
	if hungUp(t, r, 0) {
		t.Fatal("the pipe is closed already")
	}
	release.Close()
	if !hungUp(t, r, time.Minute) {
		t.Error("the pipe is still open")
	}
}

// hungUp reports whether nobody has the other end of a pipe open, or comes to
// have closed it within the time.
func hungUp(t *testing.T, r *os.File, wait time.Duration) bool {
	t.Helper()
	poll := []unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, int(wait.Milliseconds()))
		if err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		if err == nil {
			return n == 1 && poll[0].Revents&unix.POLLHUP != 0
		}
	}
}

package child_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startTTY starts a role as the leader of a session on a terminal of its own.
// What is written to the returned file is typed there; closing it hangs up.
func startTTY(t *testing.T, role string, env ...string) (*program, *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	p := start(t, role, "command", func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
		cmd.SysProcAttr.Setctty = true
		cmd.Env = append(cmd.Env, env...)
	})
	return p, keyboard
}

func press(t *testing.T, keyboard io.Writer, key string) {
	t.Helper()
	if _, err := io.WriteString(keyboard, key); err != nil {
		t.Fatal(err)
	}
}

const (
	ctrlC         = "\x03"
	ctrlZ         = "\x1a"
	ctrlBackslash = "\x1c"
)

// The terminal sends what is typed to the whole group, so the command must not
// get it from us too. SIGUSR1 comes after: had there been a second one, it would
// have come before that.
func TestTerminalSignalsComeOnce(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"run", "shell"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			p, keyboard := startTTY(t, role)
			_, runner := p.ready()
			for range 3 {
				press(t, keyboard, ctrlC)
				p.expect("SIGINT")
				p.kill(runner, syscall.SIGUSR1)
				p.expect("SIGUSR1")
				press(t, keyboard, ctrlBackslash)
				p.expect("SIGQUIT")
				p.kill(runner, syscall.SIGUSR1)
				p.expect("SIGUSR1")
			}
			p.kill(runner, syscall.SIGTERM)
			p.expect("SIGTERM", "result 7 0 <nil>")
		})
	}
}

// The terminal does not reach a command that left our group.
func TestTerminalSignalForAnotherGroup(t *testing.T) {
	t.Parallel()
	p, keyboard := startTTY(t, "shell", "CHILD_TEST_OWN_GROUP=1")
	_, runner := p.ready()
	press(t, keyboard, ctrlC)
	p.expect("SIGINT")
	p.kill(runner, syscall.SIGTERM)
	p.expect("SIGTERM", "result 7 0 <nil>", "job ended 7", "")
}

// Ctrl-Z stops us and the command, and both go on together.
func TestSuspend(t *testing.T) {
	t.Parallel()
	p, keyboard := startTTY(t, "shell")
	command, runner := p.ready()
	for range 2 {
		press(t, keyboard, ctrlZ)
		p.expect("job stopped")
		waitStopped(t, command)
		p.kill(-runner, syscall.SIGCONT)
		p.kill(runner, syscall.SIGUSR1)
		p.expect("SIGUSR1")
	}
	p.kill(runner, syscall.SIGTERM)
	p.expect("SIGTERM", "result 7 0 <nil>", "job ended 7", "")
}

// When the terminal goes away its session's leader is told, and at the leader's
// death the group in the foreground: once.
func TestHangup(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"run", "shell"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			p, keyboard := startTTY(t, role)
			_, runner := p.ready()
			keyboard.Close()
			p.expect("SIGHUP")
			p.kill(runner, syscall.SIGUSR1)
			p.expect("SIGUSR1")
			p.kill(runner, syscall.SIGTERM)
			p.expect("SIGTERM", "result 7 0 <nil>", "")
		})
	}
}

// waitStopped waits until the kernel has stopped the process, which it does to
// each of a group on its own.
func waitStopped(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if state := stat[bytes.LastIndexByte(stat, ')')+2]; state == 'T' {
			return
		}
	}
	t.Fatalf("process %d is not stopped", pid)
}

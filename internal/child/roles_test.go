package child_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gitland/internal/child"
)

// The test binary is every program of these tests; the variable says which.
// All of them report on descriptor 3, a pipe to the test.
const roleVar = "CHILD_TEST_ROLE"

// TestMain plays the role that the environment names, or runs the tests.
func TestMain(m *testing.M) {
	roles := map[string]func(*os.File){"run": playRun, "command": playCommand, "fds": playFDs, "shell": playShell}
	if play := roles[os.Getenv(roleVar)]; play != nil {
		play(os.NewFile(3, "report"))
	}
	os.Exit(m.Run())
}

// playRun runs the role in CHILD_TEST_NEXT through child.Run.
func playRun(report *os.File) {
	ctx := context.Background()
	if os.Getenv("CHILD_TEST_NOTIFY") != "" {
		notify, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(notify, func() { fmt.Fprintln(report, "context done") })
		ctx = notify
	}
	var files []*os.File
	for _, path := range strings.Fields(os.Getenv("CHILD_TEST_INHERIT")) {
		f, err := os.Open(path)
		if err != nil {
			panic(err)
		}
		files = append(files, f)
	}
	argv, all := []string{os.Args[0]}, os.Getenv("CHILD_TEST_ALL") != ""
	if all {
		argv = child.Shell("'" + os.Args[0] + "'; true")
	}
	result, err := child.Run(ctx, child.Request{
		Argv:    argv,
		All:     all,
		Env:     append(os.Environ(), roleVar+"="+os.Getenv("CHILD_TEST_NEXT")),
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Inherit: files,
	})
	fmt.Fprintf(report, "result %d %d %v\n", result.Code, result.Signal, err)
	os.Exit(result.Code)
}

// playCommand reports each signal that it gets and ends with the first SIGTERM.
func playCommand(report *os.File) {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	if os.Getenv("CHILD_TEST_OWN_GROUP") != "" {
		if err := syscall.Setpgid(0, 0); err != nil {
			panic(err)
		}
	}
	fmt.Fprintln(report, "ready", os.Getpid(), os.Getppid())
	for sig := range ch {
		fmt.Fprintln(report, unix.SignalName(sig.(syscall.Signal)))
		if sig == syscall.SIGTERM {
			os.Exit(7)
		}
	}
}

// playFDs reports the descriptors that it was given, with their inodes.
func playFDs(report *os.File) {
	for fd := 3; fd < 64; fd++ {
		var stat unix.Stat_t
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 && unix.Fstat(fd, &stat) == nil {
			fmt.Fprintln(report, "fd", fd, stat.Ino)
		}
	}
	os.Exit(0)
}

// playShell is the leader of a session on the terminal that is its stdin. It
// runs a job in the foreground and reports its stops and its end.
func playShell(report *os.File) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=run")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			panic(err)
		case status.Stopped():
			fmt.Fprintln(report, "job stopped")
		default:
			fmt.Fprintln(report, "job ended", status.ExitStatus())
			os.Exit(0)
		}
	}
}

// A program is a running role and what it and its children report.
type program struct {
	t       *testing.T
	cmd     *exec.Cmd
	report  *os.File
	scanner *bufio.Scanner
}

// start starts a role, which runs the role next. change is made to the command
// before.
func start(t *testing.T, role, next string, change func(*exec.Cmd)) *program {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role, "CHILD_TEST_NEXT="+next)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{w}
	// A session of its own: a terminal of whoever runs the tests is not theirs.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if change != nil {
		change(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.SetReadDeadline(time.Now().Add(time.Minute))
	p := &program{t, cmd, r, bufio.NewScanner(r)}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		r.Close()
	})
	return p
}

// line is the next line of the reports, or "" at their end.
func (p *program) line() string {
	p.t.Helper()
	if !p.scanner.Scan() && p.scanner.Err() != nil {
		p.t.Fatalf("report: %v", p.scanner.Err())
	}
	return p.scanner.Text()
}

func (p *program) expect(want ...string) {
	p.t.Helper()
	for _, w := range want {
		if got := p.line(); got != w {
			p.t.Fatalf("report: got %q, want %q", got, w)
		}
	}
}

// ready waits for the command and returns its process id, and that of the
// process that runs it.
func (p *program) ready() (command, runner int) {
	p.t.Helper()
	words := strings.Fields(p.line())
	if len(words) != 3 || words[0] != "ready" {
		p.t.Fatalf("report: got %q, want ready", words)
	}
	command, _ = strconv.Atoi(words[1])
	runner, _ = strconv.Atoi(words[2])
	// Should the test fail, nothing stays.
	p.t.Cleanup(func() { syscall.Kill(command, syscall.SIGKILL) })
	return command, runner
}

func (p *program) kill(pid int, sig syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		p.t.Fatalf("kill %d: %v", pid, err)
	}
}

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// A process is one of our executables at work.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr bytes.Buffer
	said   chan string // lines of standard error
}

func begin(t *testing.T, environ []string, dir, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: gittest.Command(t, environ, dir, name, args...), said: make(chan string, 100)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill() })
	go func() {
		defer close(p.said)
		for lines := bufio.NewScanner(errs); lines.Scan(); {
			p.said <- lines.Text()
		}
	}()
	return p
}

// expect reads standard error until a line has text in it.
func (p *process) expect(text string) {
	p.t.Helper()
	for line := range p.said {
		p.stderr.WriteString(line + "\n")
		if strings.Contains(line, text) {
			return
		}
	}
	p.t.Fatalf("%q was not said:\n%s", text, p.stderr.String())
}

// finish waits for the end, and returns the exit code and standard output.
func (p *process) finish() (int, string) {
	p.t.Helper()
	var out bytes.Buffer
	if _, err := out.ReadFrom(p.stdout); err != nil {
		p.t.Fatal(err)
	}
	for line := range p.said {
		p.stderr.WriteString(line + "\n")
	}
	if err := p.cmd.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			p.t.Fatal(err)
		}
	}
	return gittest.ExitCode(p.cmd), out.String()
}

// free fails the test unless the lease main is free.
func free(t *testing.T, environ []string, dir string) {
	t.Helper()
	if r := gittest.Run(t, gittest.Command(t, environ, dir, "git-lease", "show", "main", "--exit-code")); r.Code != 0 {
		t.Errorf("the lease is not free: %s%s", r.Stdout, r.Stderr)
	}
}

// A wait that is interrupted leaves nothing behind, and a shell that wanted to
// evaluate its outcome fails.
func TestInterruptedWait(t *testing.T) {
	t.Parallel()
	environ, dir := scene(t)
	holder := gittest.With(environ, "GIT_LEASE_SESSION=holder")
	if r := gittest.Run(t, gittest.Command(t, holder, dir, "git-lease", "acquire")); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	before := gittest.Run(t, gittest.Command(t, environ, dir, "git-lease", "log")).Stdout
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		p := begin(t, environ, dir, "git-lease", "acquire", "--wait")
		p.expect("waiting for the lease")
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		// Ctrl-C comes twice through git, from the terminal and from git.
		if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		code, stdout := p.finish()
		if code != 128+int(sig) || !strings.HasPrefix(stdout, "(: refused, so that eval fails; exit 1") {
			t.Errorf("%s: exit %d, %q\n%s", sig, code, stdout, p.stderr.String())
		}
		if !strings.Contains(p.stderr.String(), "git lease: ended by SIG") {
			t.Errorf("%s: %s", sig, p.stderr.String())
		}
	}
	if after := gittest.Run(t, gittest.Command(t, environ, dir, "git-lease", "log")).Stdout; after != before {
		t.Errorf("the chain was\n%s and is\n%s", before, after)
	}
}

// slowly makes the next push to a remote stop in the server's hook, and
// returns what tells that it is there, and what lets it go on.
func slowly(t *testing.T, remote string) (arrived func(), resume func()) {
	t.Helper()
	there, proceed := filepath.Join(remote, "there"), filepath.Join(remote, "proceed")
	hook := filepath.Join(remote, "hooks", "pre-receive")
	gittest.Script(t, hook, "#!/bin/sh\nrm '"+hook+"'\n: >'"+there+"'\nwhile ! [ -e '"+proceed+"' ]; do sleep 0.05; done\n")
	return func() {
			t.Helper()
			for range 600 {
				if _, err := os.Stat(there); err == nil {
					return
				} else if !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond)
			}
			t.Fatal("no push has arrived")
		}, func() {
			t.Helper()
			if err := os.WriteFile(proceed, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
}

// A push that is under way when Ctrl-C comes must not take the lease later.
func TestInterruptedPush(t *testing.T) {
	t.Parallel()
	environ, _ := gittest.Env(t)
	remote := gittest.Remote(t)
	dir := gittest.Clone(t, gittest.URL(remote))
	// The probe is over before.
	if r := gittest.Run(t, gittest.Command(t, environ, dir, "git-lease", "adopt")); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	arrived, resume := slowly(t, remote)
	p := begin(t, environ, dir, "git-lease", "acquire")
	arrived()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code, stdout := p.finish()
	if code != 130 || stdout != "(: refused, so that eval fails; exit 130)\n" {
		t.Errorf("exit %d, %q\n%s", code, stdout, p.stderr.String())
	}
	resume()
	free(t, environ, dir)
}

// From the acquisition on, signals are the command's: it decides how to end,
// and the lease is given back all the same.
func TestRunPassesSignalsOn(t *testing.T) {
	t.Parallel()
	environ, dir := scene(t)
	p := begin(t, environ, dir, "git-lease", "run", "--", "sh", "-c",
		`trap 'echo got it; exit 9' TERM; echo ready; while :; do sleep 0.05; done`)
	if line, err := p.stdout.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v\n", line, err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, stdout := p.finish(); code != 9 || stdout != "got it\n" {
		t.Errorf("exit %d, %q\n%s", code, stdout, p.stderr.String())
	}
	free(t, environ, dir)
}

// A command that ends well in spite of a signal ends well.
func TestRunOfACommandThatIgnoresSignals(t *testing.T) {
	t.Parallel()
	environ, dir := scene(t)
	p := begin(t, environ, dir, "git-lease", "run", "--", "sh", "-c",
		`trap 'stop=1' TERM; echo ready; while [ -z "$stop" ]; do sleep 0.05; done`)
	if line, err := p.stdout.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v\n", line, err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, stdout := p.finish(); code != 0 {
		t.Errorf("exit %d, %q\n%s", code, stdout, p.stderr.String())
	}
	free(t, environ, dir)
}

// What is waiting for a lease when it is interrupted runs no command.
func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	environ, dir := scene(t)
	holder := gittest.With(environ, "GIT_LEASE_SESSION=holder")
	if r := gittest.Run(t, gittest.Command(t, holder, dir, "git-lease", "acquire")); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	p := begin(t, environ, dir, "git-lease", "run", "--wait", "--", "echo", "ran")
	p.expect("waiting for the lease")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, stdout := p.finish(); code != 143 || stdout != "" {
		t.Errorf("exit %d, %q\n%s", code, stdout, p.stderr.String())
	}
}

// A reader that has seen enough is no failure to tell about.
func TestReaderThatGoesAway(t *testing.T) {
	t.Parallel()
	environ, dir := scene(t)
	if r := gittest.Run(t, gittest.Command(t, environ, dir, "git-lease", "adopt")); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	cmd := gittest.Command(t, environ, dir, "git-lease", "log")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd.Stdout = w
	result := gittest.Run(t, cmd)
	w.Close()
	if result.Code != 141 || result.Stderr != "" {
		t.Errorf("exit %d: %s", result.Code, result.Stderr)
	}
}

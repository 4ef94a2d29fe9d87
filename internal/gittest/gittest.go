// Package gittest gives tests real git: an environment that nothing of the
// user's leaks into, real repositories, and real servers on the loopback
// interface.
//
// It promises that whatever it starts ends with the test, that all it writes
// is under the test's temporary directory, and that it keeps nothing between
// calls but what a new repository looks like, so that tests may run in parallel. It refuses to fake anything: there
// is no mock here, and what a machine lacks is skipped by name.
//
// Only tests, and the benchmark in its own folder, import it.
package gittest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// T is the part of testing.TB that this package needs. It is an interface so
// that a program, such as the benchmark, can use the package too.
type T interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	TempDir() string
}

// Identity is whom commits are by, unless a repository or an environment says
// otherwise.
const Identity = "Ada <ada@example.com>"

// The global configuration of every test: an identity, and nothing that
// starts work in the background or waits for a person. A receiving git asks for
// the refs of each place that it has objects from, and so for its own again, which
// it knows: true(1) takes less time to say nothing than git to list them.
const gitconfig = `[user]
	name = Ada
	email = ada@example.com
[init]
	defaultBranch = main
[core]
	editor = false
	alternateRefsCommand = true
[gc]
	auto = 0
[pack]
	threads = 1
[maintenance]
	auto = false
[receive]
	autogc = false
[advice]
	detachedHead = false
[protocol "file"]
	allow = always
`

// Env makes an empty HOME with a git configuration and returns a whole
// environment for a process: of our own environment only what finding and
// running programs needs is in it, so nothing of GIT_*, GIT_LEASE_* or the
// user's configuration.
func Env(t T) (env []string, home string) {
	t.Helper()
	home = t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(gitconfig), 0o600); err != nil {
		t.Fatalf("gittest: %v", err)
	}
	env = []string{
		"HOME=" + home,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C",
		"TZ=UTC",
		"GIT_TEST_FSYNC=0",         // no test cuts the power
		"GORACE=atexit_sleep_ms=0", // else an end of our own executable takes a second
	}
	for _, name := range []string{"PATH", "TMPDIR", "GOCOVERDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env, home
}

// With returns a copy of env in which every "NAME=value" of vars replaces what
// was there; "NAME" alone removes it.
func With(env []string, vars ...string) []string {
	env = slices.Clone(env)
	for _, v := range vars {
		name, _, set := strings.Cut(v, "=")
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if set {
			env = append(env, v)
		}
	}
	return env
}

// WithPath returns a copy of env in which dir is searched before all else in
// PATH.
func WithPath(env []string, dir string) []string {
	return With(env, "PATH="+dir+string(os.PathListSeparator)+lookup(env, "PATH"))
}

// lookup returns the value of a variable in env, empty when unset.
func lookup(env []string, name string) string {
	for _, e := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// Command prepares a process in dir. Unlike exec.Command it finds name in the
// PATH of env, which is what makes a Counter or freshly built executables
// count.
func Command(t T, env []string, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(find(t, env, name), args...)
	cmd.Dir = dir
	cmd.Env = env
	return cmd
}

func find(t T, env []string, name string) string {
	t.Helper()
	if strings.ContainsRune(name, filepath.Separator) {
		return name
	}
	for _, dir := range filepath.SplitList(lookup(env, "PATH")) {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path
		}
	}
	t.Fatalf("gittest: %s is not in PATH", name)
	return ""
}

// A Result is what a finished process said.
type Result struct {
	Stdout, Stderr string
	// Code is the exit code; 128+n when signal n ended the process.
	Code int
}

// Run runs cmd to its end, whatever its exit code. It keeps the outputs that
// cmd does not already send elsewhere.
func Run(t T, cmd *exec.Cmd) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("gittest: %v", err)
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: ExitCode(cmd)}
}

// ExitCode is the exit code of a finished process as a shell would give it.
func ExitCode(cmd *exec.Cmd) int {
	if sig, ok := signalled(cmd.ProcessState); ok {
		return 128 + sig
	}
	return cmd.ProcessState.ExitCode()
}

// Git runs git in dir, which must succeed, and returns its standard output
// without the newline at its end. Each call has a HOME of its own; settings
// that must last belong in the repository, or use Command with one Env.
func Git(t T, dir string, args ...string) string {
	t.Helper()
	r := TryGit(t, dir, args...)
	if r.Code != 0 {
		t.Fatalf("git %s: exit %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return strings.TrimSuffix(r.Stdout, "\n")
}

// TryGit is Git for a command that may fail.
func TryGit(t T, dir string, args ...string) Result {
	t.Helper()
	env, _ := Env(t)
	return Run(t, Command(t, env, dir, "git", args...))
}

func signalled(state *os.ProcessState) (int, bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0, false
	}
	return int(status.Signal()), true
}

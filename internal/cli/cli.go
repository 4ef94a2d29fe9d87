// Package cli owns the two command lines, "git land" and "git lease": their
// arguments, what they print, and their exit codes.
//
// It promises that standard output has data alone and standard error the
// prose, that text which others wrote reaches a terminal without its control
// characters, that an argument which is not understood is refused and never
// guessed at, and that "eval" of a refused acquisition fails. It refuses to
// decide anything that the packages below decide. It is the only importer of
// urfave/cli, and nothing but the commands' main functions imports it.
package cli

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
)

// An Env is what a command sees of the world around it.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// StdinTTY says that a person can answer, on a terminal; StdoutTTY and StderrTTY that
	// one reads along.
	StdinTTY, StdoutTTY, StderrTTY bool
	Environ                        []string // as os.Environ
	Dir                            string   // where the command runs; "" is the process's directory
	Now                            func() time.Time
}

// System is the world of this process.
func System() Env {
	return Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdinTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		StdoutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		StderrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Environ:   os.Environ(),
		Now:       time.Now,
	}
}

// Get is the value of an environment variable, "" when it is not set.
func (e Env) Get(name string) string {
	value := ""
	for _, kv := range e.Environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// Has reports whether an environment variable is set, be it to nothing.
func (e Env) Has(name string) bool {
	return slices.ContainsFunc(e.Environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

// GitLand runs "git land" with the arguments that follow its name, and returns
// the exit code.
func GitLand(ctx context.Context, args []string, env Env) int { return run(ctx, landTool(), args, env) }

// GitLease runs "git lease" likewise.
func GitLease(ctx context.Context, args []string, env Env) int {
	return run(ctx, leaseTool(), args, env)
}

// run is the life of a command, from its arguments to its exit code.
func run(ctx context.Context, t *tool, args []string, env Env) int {
	ctx, signals := catchSignals(ctx)
	defer signals.release()
	inv := &invocation{tool: t, env: env, in: parseArguments(t, args), args: args}
	inv.out = &stream{w: env.Stdout, colour: colours(env, env.StdoutTTY)}
	inv.err = &stream{w: env.Stderr, colour: colours(env, env.StderrTTY)}
	finished := false
	defer func() {
		if !finished { // a panic is on its way up: "eval" must fail there too
			inv.failClosed(codeUnexpected)
		}
	}()
	err := inv.dispatch(ctx)
	if err == nil {
		err = inv.out.failure // what was asked for did not reach the reader
	}
	code := inv.end(err, signals.behind(err))
	finished = true
	return code
}

// An invocation is one run of a tool.
type invocation struct {
	*tool
	env  Env
	args []string
	in   arguments
	out  *stream
	err  *stream
	// passed is set once signals belong to a command of the user's: they no
	// longer say how we end.
	passed bool
	// partial is what --json tells beside an error.
	partial map[string]any
}

// colours follows no-color.org, on terminals alone.
func colours(env Env, tty bool) bool {
	return tty && env.Get("NO_COLOR") == "" && env.Get("TERM") != "dumb"
}

// note is the ledger's Notice: one line for the user, though nothing failed.
func (inv *invocation) note(format string, args ...any) {
	inv.err.printf("%s "+format+"\n", append([]any{paint(faint, "note:")}, args...)...)
}

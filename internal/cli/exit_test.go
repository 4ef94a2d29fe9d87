package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitland/internal/fault"
	"gitland/internal/git"
)

func TestCodeOf(t *testing.T) {
	t.Parallel()
	for class, want := range map[fault.Class]int{
		fault.Failed: 1, fault.Held: 3, fault.Unverified: 4, fault.Conflict: 5, fault.Lost: 6,
		fault.Disagree: 7, fault.Ambiguous: 8, fault.Unreachable: 9, fault.Usage: 129,
	} {
		err := fmt.Errorf("land: %w", fault.New(class, "x"))
		if got := codeOf(err); got != want {
			t.Errorf("%s: exit code %d, want %d", class, got, want)
		}
	}
	if got := codeOf(errors.New("x")); got != 1 {
		t.Errorf("an unexpected error: exit code %d", got)
	}
	if got := codeOf(nil); got != 0 {
		t.Errorf("no error: exit code %d", got)
	}
}

// ended is how an invocation with the given arguments ends after err.
func ended(t *testing.T, err error, sig syscall.Signal, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	tool := leaseTool()
	var out, errs bytes.Buffer
	inv := &invocation{tool: tool, in: parseArguments(tool, args), out: &stream{w: &out}, err: &stream{w: &errs}}
	code = inv.end(err, sig)
	return code, out.String(), errs.String()
}

func TestEnd(t *testing.T) {
	t.Parallel()
	held := fault.New(fault.Held, "it is held").WithHint("git lease show").WithFacts(map[string]any{"operation": "X", "code": "mine"})
	for name, c := range map[string]struct {
		err    error
		sig    syscall.Signal
		args   string
		code   int
		stdout string
		stderr string
	}{
		"done":       {nil, 0, "show", 0, "", ""},
		"unexpected": {errors.New("disk full"), 0, "show", 1, "", "git lease: disk full\n"},
		"refusal":    {held, 0, "show", 3, "", "git lease: it is held\nhint: git lease show\n"},
		"usage without a hint": {fault.New(fault.Usage, "what?"), 0, "break", 129, "",
			"git lease: what?\nhint: git lease break -h\n"},
		"refusal to a shell":      {held, 0, "acquire", 3, "(: refused, so that eval fails; exit 3)\n", "git lease: it is held\nhint: git lease show\n"},
		"refusal to fish":         {held, 0, "acquire --format=fish", 3, "false\n", "git lease: it is held\nhint: git lease show\n"},
		"refusal to a shell late": {held, 0, "break --acquire", 3, "(: refused, so that eval fails; exit 3)\n", "git lease: it is held\nhint: git lease show\n"},
		"refusal of break alone":  {held, 0, "break", 3, "", "git lease: it is held\nhint: git lease show\n"},
		"refusal to a program": {held, 0, "acquire --json", 3,
			`{"error":{"code":"held","hint":"git lease show","message":"it is held","operation":"X"}}` + "\n",
			"git lease: it is held\nhint: git lease show\n"},
		"several": {errors.Join(held, errors.New("and the lease was not given back")), 0, "show --json", 3,
			`{"error":{"also":["and the lease was not given back"],"code":"held","hint":"git lease show","message":"it is held","operation":"X"}}` + "\n",
			"git lease: it is held\nhint: git lease show\ngit lease: and the lease was not given back\n"},
		"signal": {errors.Join(held, context.Canceled), syscall.SIGINT, "acquire", 130, "(: refused, so that eval fails; exit 130)\n",
			"git lease: it is held\nhint: git lease show\ngit lease: ended by SIGINT\n"},
		"signal alone": {fmt.Errorf("fetch: %w", context.Canceled), syscall.SIGTERM, "show --json", 143,
			`{"error":{"code":"interrupted","message":"ended by SIGTERM","signal":"SIGTERM"}}` + "\n",
			"git lease: ended by SIGTERM\n"},
		"signal's own cause":    {interrupt{syscall.SIGHUP}, syscall.SIGHUP, "show", 129, "", "git lease: ended by SIGHUP\n"},
		"signal after the end":  {nil, syscall.SIGINT, "show", 0, "", ""},
		"a command's own code":  {&status{code: 7}, 0, "run -- x", 7, "", ""},
		"a code and its reason": {&status{42, held}, 0, "run -- x", 42, "", "git lease: it is held\nhint: git lease show\n"},
		"no repository": {fmt.Errorf("%w: fatal: not a git repository", git.ErrNoRepository), 0, "show", 1, "",
			"git lease: not in a git repository: fatal: not a git repository\nhint: cd to a clone first, or name one: git -C DIRECTORY ...\n"},
	} {
		code, stdout, stderr := ended(t, c.err, c.sig, strings.Fields(c.args)...)
		if code != c.code || stdout != c.stdout || stderr != c.stderr {
			t.Errorf("%s:\n got %d %q %q\nwant %d %q %q", name, code, stdout, stderr, c.code, c.stdout, c.stderr)
		}
	}
}

// Once a command of the user's runs, signals are its own, and say nothing of us.
func TestSignalsOfTheCommand(t *testing.T) {
	t.Parallel()
	tool := leaseTool()
	var out, errs bytes.Buffer
	inv := &invocation{tool: tool, in: parseArguments(tool, []string{"run", "--", "x"}),
		out: &stream{w: &out}, err: &stream{w: &errs}, passed: true}
	if code := inv.end(fault.New(fault.Lost, "lost"), syscall.SIGINT); code != 6 {
		t.Errorf("exit code %d, want 6", code)
	}
}

// A terminal is shown no failing command, and no token.
func TestTerminal(t *testing.T) {
	t.Parallel()
	env, dir := scene(t)
	for _, args := range [][]string{{"acquire"}, {"acquire", "-m", "it's mine", "docs"}, {"acquire", "--json"},
		{"break", "--operation", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--reason", "x", "--acquire"}} {
		code, stdout, stderr := inProcess(t, GitLease, env, dir, args...)
		if code != 129 || strings.Contains(stdout, "exit") || !strings.Contains(stderr, "printed on the terminal") {
			t.Errorf("%q: exit %d\n%s%s", args, code, stdout, stderr)
		}
		line := fault.Command(append([]string{"git", "lease"}, args...)...)
		if !strings.Contains(stderr, ` eval "$(`+line+`)"`) && !strings.Contains(stderr, line+" | PROGRAM") {
			t.Errorf("%q: no way on in\n%s", args, stderr)
		}
	}
	code, stdout, stderr := inProcess(t, GitLease, env, dir, "log", "--json")
	if code != 0 || !strings.Contains(stdout, `"events":[]`) {
		t.Errorf("the refusals left something: %s%s", stdout, stderr)
	}
	code, stdout, stderr = inProcess(t, GitLease, append(env, "GIT_LEASE_SESSION=s"), dir, "acquire")
	if code != 0 || stdout != "" || !strings.Contains(stderr, string(green)+"acquired") {
		t.Errorf("with a session: exit %d\n%s%s", code, stdout, stderr)
	}
	if _, stdout, _ = inProcess(t, GitLease, append(env, "NO_COLOR=1"), dir, "show"); strings.Contains(stdout, "\x1b") || !strings.Contains(stdout, "held by") {
		t.Errorf("with NO_COLOR: %q", stdout)
	}
	if _, stdout, _ = inProcess(t, GitLease, env, dir, "show"); !strings.Contains(stdout, string(yellow)+"held") {
		t.Errorf("without NO_COLOR: %q", stdout)
	}
	code, stdout, _ = inProcess(t, GitLease, append(env, "GIT_LEASE_SESSION=other"), dir, "acquire", "--json")
	var told struct{ Error struct{ Code string } }
	if err := json.Unmarshal([]byte(stdout), &told); code != 3 || err != nil || told.Error.Code != "held" {
		t.Errorf("refused to another session: exit %d, %v\n%s", code, err, stdout)
	}
}

// A token that nobody could read is a lease that nobody could give back.
func TestTokenThatIsNotRead(t *testing.T) {
	t.Parallel()
	vars, dir := scene(t)
	var stderr bytes.Buffer
	env := Env{Stdin: strings.NewReader(""), Stdout: broken{}, Stderr: &stderr, Environ: vars, Dir: dir, Now: time.Now}
	if code := GitLease(t.Context(), []string{"acquire"}, env); code != 1 {
		t.Errorf("exit %d\n%s", code, stderr.String())
	}
	if !strings.Contains(stderr.String(), "given back") {
		t.Errorf("stderr: %s", stderr.String())
	}
	if code, stdout, _ := inProcess(t, GitLease, vars, dir, "show", "--exit-code"); code != 0 {
		t.Errorf("it is still held: %s", stdout)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, syscall.EPIPE }

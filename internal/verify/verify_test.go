package verify_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitland/internal/fault"
	"gitland/internal/gittest"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/verify"
)

func TestVerification(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := initRepo(t, "--object-format="+format)
			c.git("config", "lease.host", "desk\nlamp")
			base := object.OID(c.git("rev-parse", "HEAD"))
			command := "printf '%s\\n' a \"b\"; echo ü >&2 # <&>"
			got := c.verify(c.tree("HEAD"), command, func(r *verify.Request) {
				r.Base, r.Check, r.Unit = base, "lint check", " unit\x1b\n1 "
			})
			got.wantPass(t, "a\nb\nü\n")
			v := got.Verification
			if v.ID.IsZero() || v.Duration <= 0 || v.Duration > time.Hour {
				t.Errorf("got id %s and duration %v", v.ID, v.Duration)
			}
			want := note.Verification{Format: 1, ID: v.ID, Check: "lint check", Verdict: note.Pass, Command: command,
				Duration: v.Duration, Tree: c.tree("HEAD"), Base: base, Unit: "unit  1", Actor: gittest.Identity,
				Host: "desk lamp", Time: now}
			if v != want {
				t.Errorf("got  %+v\nwant %+v", v, want)
			}
			if _, err := note.EncodeLine(v); err != nil {
				t.Error(err)
			}
			if got := c.worktrees(); len(got) != 0 {
				t.Errorf("worktrees %q for what is in place", got)
			}
		})
	}
}

// The exit code alone decides.
func TestExitCode(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	for command, exit := range map[string]int{
		"exit 0": 0, "exit 1": 1, "exit 77": 77, "exit 128": 128, "exit 255": 255,
		"no-such-command-here": 127, "./file-that-is-not": 127, "./file": 126,
		"git no-such-command -zz; exit 129": 129, // git's code for a wrong option
		"kill -SEGV $$":                     139,
		"sh -c 'kill -ABRT $$'; exit $?":    134,
	} {
		wantExit(t, c.verify(c.tree("HEAD"), command), command, exit)
	}
}

func TestExitCodeInWorktree(t *testing.T) {
	t.Parallel()
	c, tree := dirty(t)
	for command, exit := range map[string]int{"exit 0": 0, "exit 1": 1, "no-such-command-here": 127} {
		wantExit(t, c.verify(tree, command), command, exit)
	}
}

func wantExit(t *testing.T, got run, command string, exit int) {
	t.Helper()
	want := note.Fail
	if exit == 0 {
		want = note.Pass
	}
	if got.err != nil || got.Verdict != want || got.Exit != exit {
		t.Errorf("%s: got %s with %d, %v; want %s with %d", command, got.Verdict, got.Exit, got.err, want, exit)
	}
}

// What somebody else ended says nothing, be it the shell or a command of it.
func TestEndedBySignal(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	for command, want := range map[string]syscall.Signal{
		"kill -TERM $$":                  syscall.SIGTERM,
		"kill -KILL $$":                  syscall.SIGKILL,
		"kill -USR1 $$":                  syscall.SIGUSR1,
		"sh -c 'kill -KILL $$'; exit $?": syscall.SIGKILL,
		"exit 130":                       syscall.SIGINT, // not sent: a background job of a script ignores it
		"exit 143":                       syscall.SIGTERM,
	} {
		got := c.verify(c.tree("HEAD"), command)
		got.wantFault(t, fault.Unverified, "check default was ended by SIG")
		ended, ok := errors.AsType[*verify.SignalError](got.err)
		if !ok || ended.Signal != want {
			t.Errorf("%s: got %v, want %v", command, got.err, want)
		}
	}
}

// A context that ends while the check runs ends the check, and leaves no
// verdict, whatever the check makes of it.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"in place", "in a worktree"} {
		for _, exit := range []string{"0", "1"} {
			t.Run(where+" "+exit, func(t *testing.T) {
				t.Parallel()
				c := initRepo(t)
				if where != "in place" {
					gittest.Write(t, c.dir, map[string]string{"file": "dirty\n"})
				}
				cause := errors.New("enough")
				ctx, cancel := context.WithCancelCause(t.Context())
				running := fifo(t)
				go func() {
					os.ReadFile(running) // until the trap is set
					cancel(cause)
				}()
				got := c.verifyContext(ctx, c.tree("HEAD"),
					"trap 'exit "+exit+"' TERM; echo >"+running+"; while :; do sleep 0.01; done")
				if !errors.Is(got.err, cause) || got.Verdict != "" {
					t.Errorf("got %q, %v", got.Verdict, got.err)
				}
			})
		}
	}
}

// A context that has ended before runs nothing, and takes no worktree for
// broken.
func TestContextEndedBefore(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	tree := c.tree("HEAD")
	gittest.Write(t, c.dir, map[string]string{"file": "dirty\n"})
	c.verify(tree, "touch cached.tmp").wantPass(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := c.verifyContext(ctx, tree, "echo run"); !errors.Is(got.err, context.Canceled) || got.output != "" {
		t.Errorf("got %v, output %q", got.err, got.output)
	}
	c.verify(tree, "ls *.tmp").wantPass(t, "cached.tmp\n")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	for name, test := range map[string]struct {
		change func(*verify.Request)
		want   string
	}{
		"no check":        {func(r *verify.Request) { r.Check = "" }, "must be one line"},
		"two lines":       {func(r *verify.Request) { r.Check = "a\nb" }, "must be one line"},
		"spaces outside":  {func(r *verify.Request) { r.Check = " a" }, "must be one line"},
		"not UTF-8":       {func(r *verify.Request) { r.Check = "a\xff" }, "must be one line"},
		"no command":      {func(r *verify.Request) { r.Command = " \n" }, "has no command"},
		"NUL":             {func(r *verify.Request) { r.Command = "echo \x00" }, "NUL"},
		"odd command":     {func(r *verify.Request) { r.Command = "echo \xff" }, "not UTF-8"},
		"long command":    {func(r *verify.Request) { r.Command = "true " + strings.Repeat("x", 16<<10) }, "too long"},
		"longest command": {func(r *verify.Request) { r.Command = "true " + strings.Repeat("\x01", 64<<10) }, "too long"},
		"no tree":         {func(r *verify.Request) { r.Tree = "" }, "no tree"},
		"odd base":        {func(r *verify.Request) { r.Base = "main" }, "base"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.verify(c.tree("HEAD"), "echo run", test.change)
			got.wantFault(t, fault.Usage, test.want)
			if got.output != "" {
				t.Errorf("it was run: %q", got.output)
			}
		})
	}
}

func TestNoIdentity(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	c.git("config", "user.useConfigOnly", "true")
	tree := c.tree("HEAD")
	none := c.in(c.dir, "HOME="+t.TempDir())
	if got := none.verify(tree, "echo run"); got.err == nil || got.output != "" {
		t.Errorf("got %v, output %q", got.err, got.output)
	}
}

func TestNoSuchTree(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	if got := c.verify(object.OID(strings.Repeat("1", 40)), "echo run"); got.err == nil || got.output != "" {
		t.Errorf("got %v, output %q", got.err, got.output)
	}
}

// A long command is run and recorded as it is.
func TestLongCommand(t *testing.T) {
	t.Parallel()
	c := initRepo(t)
	command := "echo " + strings.Repeat("x", 12<<10)
	got := c.verify(c.tree("HEAD"), command)
	got.wantPass(t, command[5:]+"\n")
	if got.Command != command {
		t.Error("the command was changed")
	}
}

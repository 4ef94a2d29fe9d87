package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gitland/internal/gittest"
)

// TestMain makes this test's executable stand in for ours, so that scripts run
// "git land" through the real git.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"git-land":  func() { os.Exit(GitLand(context.Background(), os.Args[1:], System())) },
		"git-lease": func() { os.Exit(GitLease(context.Background(), os.Args[1:], System())) },
	})
}

// Each script starts beside a bare origin.git with one commit, and its clones
// ada and bob, with a HOME of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	staged := stage(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               func(env *testscript.Env) error { return setUp(t, env, staged) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"field":  field,
			"lands":  landsAlike,
			"setenv": setenv,
		},
	})
}

// stage is what every script begins with, made once. The clones name the remote by
// where it is from there, so that the whole can be copied, and know what is found
// out about such a remote once.
func stage(t *testing.T) string {
	t.Helper()
	dir, known := t.TempDir(), filepath.Join(clones(t, t.TempDir(), "one"), "one", ".git", "lease")
	environ, _ := gittest.Env(t)
	if r := gittest.Run(t, gittest.Command(t, environ, filepath.Join(known, "..", ".."), "git-lease", "adopt")); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	for _, who := range []string{"ada", "bob"} {
		clone := filepath.Join(clones(t, dir, who), who)
		gittest.Git(t, clone, "config", "user.name", who)
		gittest.Git(t, clone, "config", "user.email", who+"@example.com")
		gittest.Git(t, clone, "config", "lease.host", who+"s-laptop")
		gittest.CopyTree(t, filepath.Join(known, "probe"), filepath.Join(clone, ".git", "lease", "probe"))
	}
	return dir
}

// clones makes a clone in dir, of the remote there, which it makes first if need be.
func clones(t *testing.T, dir, name string) string {
	t.Helper()
	origin := filepath.Join(dir, "origin.git")
	if _, err := os.Stat(origin); err != nil {
		if err := os.Rename(gittest.Remote(t), origin); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Git(t, dir, "clone", "--quiet", "--template=", gittest.URL(origin), name)
	gittest.Git(t, filepath.Join(dir, name), "remote", "set-url", "origin", "../origin.git")
	if err := os.MkdirAll(filepath.Join(dir, name, ".git", "lease"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func setUp(t *testing.T, env *testscript.Env, stage string) error {
	vars, _ := gittest.Env(t)
	env.Vars = append(env.Vars, vars...)
	return os.CopyFS(env.WorkDir, os.DirFS(stage))
}

// exits CODE COMMAND... runs a command that must end with exactly that code;
// "! exec" cannot tell codes apart.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// field PATH [WANT] looks into the one JSON object that the last command
// printed: the value at PATH ("leases.0.hold.operation") is there, or is WANT.
// "! field PATH" wants it absent.
func field(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: [!] field PATH [WANT]")
	}
	got, found := lookUp(ts, args[0])
	switch {
	case neg && found:
		ts.Fatalf("%s is %s", args[0], got)
	case neg:
	case !found:
		ts.Fatalf("%s is missing", args[0])
	case len(args) == 2 && got != args[1]:
		ts.Fatalf("%s is %q, want %q", args[0], got, args[1])
	}
}

// setenv NAME PATH sets an environment variable to what field would look at.
func setenv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: setenv NAME PATH")
	}
	value, found := lookUp(ts, args[1])
	if !found {
		ts.Fatalf("%s is missing", args[1])
	}
	ts.Setenv(args[0], value)
}

func lookUp(ts *testscript.TestScript, path string) (string, bool) {
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	decoder.UseNumber()
	var at any
	ts.Check(decoder.Decode(&at))
	if decoder.More() {
		ts.Fatalf("standard output has more than one JSON object")
	}
	for step := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[step]
			if !ok {
				return "", false
			}
			at = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return "", false
			}
			at = v[i]
		default:
			return "", false
		}
	}
	return fmt.Sprint(at), true
}

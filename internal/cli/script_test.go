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
			"setenv": setenv,
		},
	})
}

// stage is what every script begins with, made once. The clones reach the
// remote by a path of their own, so that the whole can be copied.
func stage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	origin := filepath.Join(dir, "origin.git")
	if err := os.Rename(gittest.Remote(t), origin); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"ada", "bob"} {
		clone := filepath.Join(dir, who)
		gittest.Git(t, dir, "clone", "--quiet", "--template=", gittest.URL(origin), clone)
		gittest.Git(t, clone, "config", "user.name", who)
		gittest.Git(t, clone, "config", "user.email", who+"@example.com")
		gittest.Git(t, clone, "config", "lease.host", who+"s-laptop")
	}
	return dir
}

func setUp(t *testing.T, env *testscript.Env, stage string) error {
	vars, _ := gittest.Env(t)
	env.Vars = append(env.Vars, vars...)
	if err := os.CopyFS(env.WorkDir, os.DirFS(stage)); err != nil {
		return err
	}
	for _, who := range []string{"ada", "bob"} {
		path := filepath.Join(env.WorkDir, who, ".git", "config")
		config, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		moved := strings.ReplaceAll(string(config), gittest.URL(stage), gittest.URL(env.WorkDir))
		if err := os.WriteFile(path, []byte(moved), 0o600); err != nil {
			return err
		}
	}
	return nil
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

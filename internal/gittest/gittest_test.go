package gittest

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestEnvKeepsTheUserOut(t *testing.T) {
	t.Setenv("GIT_DIR", "/nowhere")
	t.Setenv("GIT_LEASE_TOKEN", "secret")
	env, home := Env(t)
	for _, e := range env {
		if strings.Contains(e, "/nowhere") || strings.Contains(e, "secret") {
			t.Errorf("%s reached the environment", e)
		}
	}
	r := Run(t, Command(t, env, home, "git", "config", "--show-origin", "--get-regexp", "user.*"))
	for line := range strings.Lines(r.Stdout) {
		if !strings.HasPrefix(line, "file:"+home) {
			t.Errorf("configuration from elsewhere: %s", line)
		}
	}
	if got := Git(t, home, "var", "GIT_AUTHOR_IDENT"); !strings.HasPrefix(got, Identity+" ") {
		t.Errorf("identity %q, want %q", got, Identity)
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	env := []string{"A=1", "B=2"}
	got := With(env, "A=3", "B", "C=4")
	if want := []string{"A=3", "C=4"}; !slices.Equal(got, want) {
		t.Errorf("With = %q, want %q", got, want)
	}
	if want := []string{"A=1", "B=2"}; !slices.Equal(env, want) {
		t.Errorf("With changed its argument: %q", env)
	}
}

func TestRunTellsExitAndSignal(t *testing.T) {
	t.Parallel()
	env, dir := Env(t)
	for script, want := range map[string]int{"exit 6": 6, "kill -TERM $$": 143} {
		if got := Run(t, Command(t, env, dir, "sh", "-c", script)).Code; got != want {
			t.Errorf("%s: exit %d, want %d", script, got, want)
		}
	}
}

func TestRepositories(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		remote := Remote(t, "--object-format="+format)
		clone := Clone(t, URL(remote))
		before := Refs(t, remote)
		oid := Commit(t, clone, "add", map[string]string{"a/b.txt": "b\n"})
		if !maps.Equal(before, Refs(t, remote)) {
			t.Errorf("%s: a commit in a clone moved the remote", format)
		}
		Git(t, clone, "push", "--quiet", "origin", "main")
		if got := Refs(t, remote)["refs/heads/main"]; got != oid {
			t.Errorf("%s: remote is at %s, want %s", format, got, oid)
		}
		if got := slices.Sorted(maps.Keys(Index(t, clone))); !slices.Equal(got, []string{"README", "a/b.txt"}) {
			t.Errorf("%s: index has %q", format, got)
		}
		files := Files(t, clone)
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, []string{"README", "a/b.txt"}) {
			t.Errorf("%s: working tree has %q", format, got)
		}
		Write(t, clone, map[string]string{"README": "changed\n"})
		if maps.Equal(files, Files(t, clone)) {
			t.Errorf("%s: a changed file was not seen", format)
		}
	}
}

func TestTogetherHoldsAllBack(t *testing.T) {
	t.Parallel()
	env, dir := Env(t)
	b := NewBarrier(t)
	var cmds []*exec.Cmd
	for _, name := range []string{"one", "two three"} {
		cmd := Command(t, env, dir, "sh", "-c", `: >"$1"`, "sh", name)
		b.Start(cmd)
		cmds = append(cmds, cmd)
	}
	if files := Files(t, dir); len(files) != 1 {
		t.Errorf("before the release: %v, want .gitconfig alone", files)
	}
	b.Release()
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if files := Files(t, dir); len(files) != 3 {
		t.Errorf("after the release: %v", files)
	}

	results := Together(t,
		Command(t, env, dir, "sh", "-c", "echo a; exit 3"),
		Command(t, env, dir, "sh", "-c", "echo b >&2"))
	if want := []Result{{Stdout: "a\n", Code: 3}, {Stderr: "b\n"}}; !slices.Equal(results, want) {
		t.Errorf("Together = %+v, want %+v", results, want)
	}
}

func TestCounterSeesOnlyOurProcesses(t *testing.T) {
	t.Parallel()
	remote := Remote(t)
	clone := Clone(t, URL(remote))
	c := CountGit(t)
	env, _ := Env(t)
	// A hook's git is git's child, like the upload-pack of a fetch.
	Script(t, filepath.Join(clone, ".git", "hooks", "pre-push"), "#!/bin/sh\ngit rev-parse HEAD\n")
	script := `git fetch -q && git commit -q --allow-empty -m "a
b" && git push -q`
	if r := Run(t, Command(t, c.Env(env), clone, "sh", "-c", script)); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	want := [][]string{{"fetch", "-q"}, {"commit", "-q", "--allow-empty", "-m", "a\nb"}, {"push", "-q"}}
	if got := c.Calls(); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("calls %q, want %q", got, want)
	}
	c.Reset()
	if got := c.Calls(); len(got) != 0 {
		t.Errorf("calls after Reset: %q", got)
	}
	if _, err := os.Stat(filepath.Join(clone, ".git", "hooks", "pre-push")); err != nil {
		t.Error(err)
	}
}

// Package scripts has the tests of the scripts beside it. They are run as a
// newcomer runs them; scripts/test, which runs these tests, is the exception.
package scripts

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// environment is gittest's, with what go needs to find its caches and modules.
func environment(t *testing.T) (env []string, home string) {
	t.Helper()
	env, home = gittest.Env(t)
	names := []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GONOSUMDB", "GOSUMDB", "GOTOOLCHAIN", "GOFLAGS"}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	values := strings.Split(string(out), "\n")
	for i, name := range names {
		env = gittest.With(env, name+"="+values[i])
	}
	return env, home
}

// script runs a script of this directory from elsewhere.
func script(t *testing.T, env []string, name string, args ...string) gittest.Result {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return gittest.Run(t, gittest.Command(t, env, t.TempDir(), path, args...))
}

// files lists a HOME, without the counters that the go command keeps there.
func files(t *testing.T, home string) map[string]string {
	t.Helper()
	files := gittest.Files(t, home)
	maps.DeleteFunc(files, func(name, _ string) bool {
		return strings.HasPrefix(name, ".config/go/") || strings.HasPrefix(name, "Library/")
	})
	return files
}

func TestDemoLeavesNothingBehind(t *testing.T) {
	env, home := environment(t)
	tmp := t.TempDir()
	env = gittest.With(env, "TMPDIR="+tmp,
		// None of these may reach the demo's repositories.
		"GIT_DIR=/nowhere", "GIT_LEASE_TOKEN=stray", "GIT_LEASE_SESSION=stray")
	root, before := "..", files(t, home)
	status := gittest.Git(t, root, "status", "--porcelain")
	r := script(t, env, "demo")
	if r.Code != 0 {
		t.Fatalf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	for _, want := range []string{"[exit 4]", "landed ", "[exit 3]", "[exit 6]"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, r.Stdout)
		}
	}
	if left := gittest.Files(t, tmp); len(left) != 0 {
		t.Errorf("temporary files left: %v", left)
	}
	if after := files(t, home); !maps.Equal(before, after) {
		t.Errorf("HOME was %v and is %v", before, after)
	}
	if after := gittest.Git(t, root, "status", "--porcelain"); after != status {
		t.Errorf("the checkout was\n%s\nand is\n%s", status, after)
	}
}

func TestInstall(t *testing.T) {
	env, home := environment(t)
	for _, args := range [][]string{nil, {filepath.Join(t.TempDir(), "a prefix")}} {
		prefix := filepath.Join(home, ".local")
		if len(args) == 1 {
			prefix = args[0]
		}
		bin := filepath.Join(prefix, "bin")
		r := script(t, env, "install", args...)
		if r.Code != 0 {
			t.Fatalf("install %q: exit %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
		}
		if want := `export PATH="` + bin; !strings.Contains(r.Stdout, want) {
			t.Errorf("install %q does not say %s:\n%s", args, want, r.Stdout)
		}
		for _, name := range []string{"land", "lease"} {
			help := gittest.Run(t, gittest.Command(t, gittest.WithPath(env, bin), home, "git", name, "-h"))
			if help.Code != 0 || !strings.Contains(help.Stdout, "git "+name) {
				t.Errorf("git %s -h after install %q: %+v", name, args, help)
			}
		}
	}
}

func TestInstallRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	env, home := gittest.Env(t)
	for _, args := range [][]string{{"a", "b"}, {"--prefix=a"}, {""}} {
		if r := script(t, env, "install", args...); r.Code != 129 || !strings.Contains(r.Stderr, "usage: ") {
			t.Errorf("install %q: %+v, want usage and exit 129", args, r)
		}
	}
	if _, err := os.Stat(filepath.Join(home, ".local")); !os.IsNotExist(err) {
		t.Error("a refused install made directories")
	}
}

func TestBench(t *testing.T) {
	env, _ := environment(t)
	r := script(t, env, "bench", "-n", "1", "-link", "file")
	if r.Code != 0 || !strings.Contains(r.Stdout, "\nfile://") || strings.Contains(r.Stdout, "sshd") {
		t.Fatalf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// TestOldToolsAreNamed has each script meet a Go and a git that are too old or
// not there.
func TestOldToolsAreNamed(t *testing.T) {
	t.Parallel()
	env, _ := gittest.Env(t)
	const (
		oldGo  = "#!/bin/sh\necho go1.20.3\n"
		newGo  = "#!/bin/sh\necho go1.99\n"
		oldGit = "#!/bin/sh\necho git version 2.37.9\n"
	)
	for _, name := range []string{"test", "demo", "install", "bench"} {
		for _, c := range []struct{ goTool, gitTool, want string }{
			{"", "", "no go is in PATH: install it"},
			{oldGo, "", "this is go1.20.3: install it"},
			{newGo, "", "none is in PATH: install"},
			{newGo, oldGit, "this is 2.37.9: install"},
		} {
			dir := t.TempDir()
			for tool, content := range map[string]string{"go": c.goTool, "git": c.gitTool} {
				if content != "" {
					gittest.Script(t, filepath.Join(dir, tool), content)
				}
			}
			for _, tool := range []string{"awk", "dirname", "mkdir", "sh"} {
				path, err := exec.LookPath(tool)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(path, filepath.Join(dir, tool)); err != nil {
					t.Fatal(err)
				}
			}
			r := script(t, gittest.With(env, "PATH="+dir), name)
			if r.Code != 1 || !strings.Contains(r.Stderr, name+": ") || !strings.Contains(r.Stderr, c.want) {
				t.Errorf("%s: %+v, want exit 1 and %q", name, r, c.want)
			}
		}
	}
}

func TestAtLeast(t *testing.T) {
	t.Parallel()
	env, _ := gittest.Env(t)
	for _, c := range []struct {
		have, want string
		ok         bool
	}{
		{"2.39.5", "2.38", true},
		{"2.38", "2.38.0", true},
		{"2.54.0.rc1", "2.38", true},
		{"3", "2.38", true},
		{"2.37.9", "2.38", false},
		{"2.4", "2.38", false},
		{"1.26rc1", "1.26.0", true},
		{"older", "1.26.0", false},
	} {
		r := gittest.Run(t, gittest.Command(t, env, ".", "sh", "-c", `. ./need.sh; at_least "$@"`, "sh", c.have, c.want))
		if (r.Code == 0) != c.ok {
			t.Errorf("at_least %s %s: %+v, want %v", c.have, c.want, r, c.ok)
		}
	}
}

// What the README says brings a release of the example, as it is typed. Only the registry
// listens elsewhere.
func TestReleaseExample(t *testing.T) {
	env, _ := environment(t)
	dir := filepath.Join(t.TempDir(), "shop")
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(readme), "### A release as an example\n")
	_, block, _ = strings.Cut(block, "```sh\n")
	block, _, found := strings.Cut(block, "```\n")
	if own, err := os.ReadFile("release-example/README.md"); err != nil || !found || !strings.Contains(string(own), "```sh\n"+block+"```\n") {
		t.Fatalf("%v: the example's own README does not have\n%s", err, block)
	}
	block = strings.ReplaceAll(block, "/tmp/shop", dir)
	block = strings.Replace(block, "registry &\n", `registry -addr 127.0.0.1:0 >../url &
		trap 'kill $!' EXIT
		until [ -s ../url ]; do sleep 0.1; done
		git config release.registry "$(cat ../url)"
`, 1)
	r := gittest.Run(t, gittest.Command(t, env, "..", "sh", "-e", "-c", block))
	if r.Code != 0 || !strings.Contains(r.Stderr, "done      upload-web in ") || !strings.Contains(r.Stdout, "on main") {
		t.Fatalf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if tags := gittest.Git(t, filepath.Join(dir, "origin.git"), "tag"); strings.Count(tags, "\n") != 5 {
		t.Errorf("tags:\n%s", tags)
	}
	for _, args := range [][]string{nil, {"--help"}, {"a", "b"}, {""}} {
		if r := script(t, env, "release-example/setup", args...); r.Code != 129 || !strings.Contains(r.Stderr, "usage: ") {
			t.Errorf("setup %q: %+v, want usage and exit 129", args, r)
		}
	}
	if r := script(t, env, "release-example/setup", dir); r.Code != 1 || !strings.Contains(r.Stderr, "another directory") {
		t.Errorf("setup of the same again: %+v", r)
	}
}

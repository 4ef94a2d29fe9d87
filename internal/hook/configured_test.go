package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/git"
	"gitland/internal/gittest"
)

// Whatever git is at hand can write the configuration that newer ones run: the command
// comes first and goes last, wherever it stops, since git dies of an event without one.
func TestConfiguredInstallStops(t *testing.T) {
	t.Parallel()
	dir := gittest.Bare(t)
	gittest.Git(t, dir, "config", "hook.lint.command", "true")
	env, _ := gittest.Env(t)
	repo, err := git.Open(t.Context(), git.Options{Dir: dir, Environ: env})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	before := gittest.Read(t, dir, "config")
	keys := func() string {
		t.Helper()
		out := gittest.TryGit(t, dir, "config", "--local", "--get-regexp", "^hook[.]git-lease[.]").Stdout
		var keys []string
		for line := range strings.Lines(out) {
			key, _, _ := strings.Cut(line, " ")
			keys = append(keys, strings.TrimPrefix(key, "hook.git-lease."))
		}
		return strings.Join(keys, " ")
	}
	install := func(done string) {
		t.Helper()
		if c, err := installConfigured(t.Context(), repo, "/usr/bin/git-lease"); err != nil || c.Done != done || keys() != "command event" {
			t.Errorf("install: %+v, %v, keys %q, want %s", c, err, keys(), done)
		}
	}
	uninstall := func() {
		t.Helper()
		if c, err := uninstallConfigured(t.Context(), repo); err != nil || c.Done != "removed" {
			t.Errorf("uninstall: %+v, %v", c, err)
		}
		if got := gittest.Read(t, dir, "config"); got != before || exists(stubPath(repo)) {
			t.Errorf("was %q and is %q", before, got)
		}
	}
	install("installed")
	install("unchanged")
	uninstall()
	// A lock stops it before it has written anything of the two.
	lock := filepath.Join(dir, "config.lock")
	gittest.Write(t, dir, map[string]string{"config.lock": ""})
	if _, err := installConfigured(t.Context(), repo, "/usr/bin/git-lease"); err == nil || keys() != "" {
		t.Errorf("install: %v, keys %q", err, keys())
	}
	os.Remove(lock)
	install("installed")
	gittest.Write(t, dir, map[string]string{"config.lock": ""})
	if _, err := uninstallConfigured(t.Context(), repo); err == nil || keys() != "command event" {
		t.Errorf("uninstall: %v, keys %q", err, keys())
	}
	os.Remove(lock)
	// Between the two keys.
	gittest.Git(t, dir, "config", "--unset", eventKey)
	install("installed")
	gittest.Git(t, dir, "config", "--unset", eventKey)
	if has, err := isConfigured(t.Context(), repo); !has || err != nil {
		t.Errorf("configured %v, %v", has, err)
	}
	uninstall()
	// What the command runs is found from wherever git runs it.
	install("installed")
	gittest.Script(t, stubPath(repo), "#!/bin/sh\necho \"$@\"\n")
	if got := shell(t, dir, gittest.Git(t, dir, "config", commandKey)+` "$@"`); got != "origin url\n" {
		t.Errorf("ran %q", got)
	}
	install("installed")
	gittest.Git(t, dir, "config", commandKey, "true")
	install("updated")
	// What somebody else wrote of our hook stays.
	gittest.Git(t, dir, "config", "hook.git-lease.enabled", "false")
	if _, err := uninstallConfigured(t.Context(), repo); err != nil || keys() != "enabled" {
		t.Errorf("uninstall: %v, keys %q", err, keys())
	}
}

// shell runs a command line as git does that of a configured hook.
func shell(t *testing.T, dir, line string) string {
	t.Helper()
	env, _ := gittest.Env(t)
	r := gittest.Run(t, gittest.Command(t, env, dir, "sh", "-c", line, line, "origin", "url"))
	return r.Stdout + r.Stderr
}

package acceptance

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

type initialized struct {
	Remote, Branch, Lease string
	Steps                 []struct{ Name, Done, Text string }
	Unaccepted            []struct{ Key, Command string }
}

// inits runs git land init, and returns what it did by the names of the steps.
func (s seat) inits(args ...string) (initialized, map[string]string) {
	s.t.Helper()
	got := decode[initialized](s.t, s.exits(0, "git-land", append([]string{"init", "--json"}, args...)...))
	done := map[string]string{}
	for _, step := range got.Steps {
		done[step.Name] += step.Done
	}
	return got, done
}

// The first contributor begins the chain; the second gets hook and configuration, and
// adopts nothing. Twice is as once.
func TestInit(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	first, second := clone(t, remote), clone(t, remote)
	for _, tt := range []struct {
		seat                seat
		config, hook, lease string
	}{
		{first, "done", "done", "done"},
		{first, "ok", "ok", "ok"},
		{second, "done", "done", "ok"},
		{second, "ok", "ok", "ok"},
	} {
		got, done := tt.seat.inits()
		if got.Remote != "origin" || got.Branch != "refs/heads/main" || got.Lease != "main" ||
			done["config"] != tt.config || done["hook"] != tt.hook || done["lease"] != tt.lease || done["target"] != "ok" || done["writable"] != "ok" {
			t.Errorf("%+v", got)
		}
		if k := kinds(t, remote); k != "adopt" {
			t.Errorf("the chain has %q", k)
		}
	}
	gittest.Commit(t, second.dir, "by hand", map[string]string{"f": "f\n"})
	second.exits(1, "git", "push", "origin", "main")
	second.force()
	// A remote that comes later changes nothing.
	second.git("remote", "add", "fork", gittest.URL(gittest.Remote(t)))
	if got, _ := second.inits(); got.Remote != "origin" {
		t.Errorf("%+v", got)
	}
}

func TestInitChooses(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	gittest.Git(t, remote, "branch", "develop", "main")
	s := clone(t, remote)
	s.git("remote", "add", "fork", gittest.URL(gittest.Remote(t)))
	s.exits(129, "git-land", "init")
	if r := s.exits(129, "git-land", "init", "--remote", "origin", "--onto", "delevop"); !strings.Contains(r.Stderr, "origin has no branch delevop\nhint: git land init --onto main --remote origin") {
		t.Error(r.Stderr)
	}
	if got := gittest.Read(t, s.dir, ".git/config"); strings.Contains(got, "[lease]") || strings.Contains(got, "[land]") {
		t.Errorf("a refused init configured %q", got)
	}
	got, _ := s.inits("--remote", "origin", "--onto", "develop")
	if got.Branch != "refs/heads/develop" || got.Lease != "develop" || s.git("config", "land.onto") != "develop" || s.git("config", "lease.remote") != "origin" {
		t.Errorf("%+v", got)
	}
	if again, _ := s.inits(); again.Branch != got.Branch || again.Remote != got.Remote {
		t.Errorf("then without options %+v", again)
	}
	// Where the team has chosen, a clone cannot choose for good.
	agrees(t, remote, "main", "[land]\n\tonto = main\n")
	if r := s.exits(129, "git-land", "init", "--onto", "develop"); !strings.Contains(r.Stderr, ".gitland at origin has landings go onto main") {
		t.Error(r.Stderr)
	}
	if got, _ := s.inits(); got.Branch != "refs/heads/main" {
		t.Errorf("%+v", got)
	}
}

// What does not come to count is not told as done, and a remote that was renamed is told
// with what has to follow it.
func TestInitWhereAnotherScopeCounts(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	s.git("remote", "add", "fork", gittest.URL(gittest.Remote(t)))
	s.git("config", "extensions.worktreeConfig", "true")
	s.git("config", "--worktree", "lease.remote", "fork")
	if r := s.exits(5, "git-land", "init", "--remote", "origin"); !strings.Contains(r.Stderr, "another scope, which counts before that, has fork") {
		t.Error(r.Stderr)
	}
	s.git("config", "--worktree", "--unset", "lease.remote")
	s.inits()
	s.git("remote", "rename", "origin", "up")
	s.git("remote", "remove", "fork")
	if r := s.exits(129, "git-land", "status"); !strings.Contains(r.Stderr, "hint: git config lease.remote up\n") {
		t.Error(r.Stderr)
	}
}

// Where a remote cannot do what landings need, or does not answer, nothing is set up.
func TestInitRefused(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	gittest.Script(t, remote+"/hooks/pre-receive", "#!/bin/sh\necho 'branches only'\nexit 1\n")
	before := gittest.Read(t, s.dir, ".git/config")
	if r := s.exits(9, "git-land", "init"); !strings.Contains(r.Stderr, "branches only") {
		t.Error(r.Stderr)
	}
	nobody := s.with("GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=", "GIT_CONFIG_KEY_1=user.useConfigOnly", "GIT_CONFIG_VALUE_1=true")
	for _, args := range [][]string{{"init"}, {"-x", "true", "-m", "m", "--", "README"}} {
		if r := nobody.exits(129, "git-land", args...); !strings.Contains(r.Stderr, "git does not know who you are: ") || !strings.Contains(r.Stderr, "hint: git config user.name 'Your Name' && ") {
			t.Error(r.Stderr)
		}
	}
	s.git("remote", "set-url", "origin", gittest.URL(remote+".gone"))
	s.exits(9, "git-land", "init")
	s.git("remote", "set-url", "origin", gittest.URL(remote))
	if after := gittest.Read(t, s.dir, ".git/config"); after != before {
		t.Errorf("a refused init changed the configuration to %q", after)
	}
	if _, err := os.Stat(s.dir + "/.git/hooks/pre-push"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the hook: %v", err)
	}
}

// Before there is a branch there is nothing to adopt; the first landing does it.
func TestInitBeforeTheFirstCommit(t *testing.T) {
	t.Parallel()
	remote := gittest.Bare(t)
	s := clone(t, remote)
	if got, done := s.inits(); done["lease"] != "later" || got.Branch != "refs/heads/main" {
		t.Errorf("%+v", got)
	}
	s.write(map[string]string{"f": "f\n"})
	s.force("--", "f")
	if _, done := s.inits(); done["lease"] != "ok" {
		t.Errorf("%+v", done)
	}
}

// Of worktrees that share a repository each has a HEAD of its own: init says which branch
// they all land on.
func TestInitForWorktrees(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	s.git("remote", "remove", "origin")
	linked := s
	linked.dir = s.dir + ".linked"
	s.git("worktree", "add", "-q", "-b", "topic", linked.dir)
	if r := linked.exits(129, "git-land", "init"); !strings.Contains(r.Stderr, "hint: git land init --onto BRANCH") {
		t.Error(r.Stderr)
	}
	s.inits()
	for _, w := range []seat{s, linked} {
		if got, _ := w.inits(); got.Branch != "refs/heads/main" || got.Remote != "." {
			t.Errorf("%+v", got)
		}
	}
	linked.write(map[string]string{"f": "f\n"})
	linked.force("--", "f")
	if got := s.git("log", "-1", "--format=%s", "main"); got != "change" {
		t.Errorf("main is at %q", got)
	}
}

package acceptance

import (
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// Over HTTP, behind the server's hooks and with the hook of the clone: a push is several
// requests there, the hook's input comes through a program of its own, and a hook that
// refuses is told otherwise.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	gittest.Git(t, remote, "branch", "develop", "main")
	newSeat(t, remote).exits(0, "git-lease", "hook", "install", "--server")
	server := gittest.HTTP(t, remote)
	s := newSeat(t, gittest.Clone(t, server.URL(remote)))
	if r := s.exits(0, "git-land", "init"); !strings.Contains(r.Stdout, "moves several of them all or none; its hooks watch over them") {
		t.Errorf("init says %q", r.Stdout)
	}
	s.exits(0, "git-lease", "doctor")
	s.write(map[string]string{"first": "landed\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "first", "--", "first")
	if k := kinds(t, remote); k != "adopt land" {
		t.Errorf("the chain has %q", k)
	}
	s.exits(0, "git-land", "reconcile")

	// By hand: neither with the hook nor without.
	gittest.Commit(t, s.dir, "by hand", map[string]string{"hand": "by hand\n"})
	before := gittest.Refs(t, remote)
	if r := s.exits(1, "git", "push", "origin", "HEAD:main"); !strings.Contains(r.Stderr, "nobody holds it, which is no permission") {
		t.Error(r.Stderr)
	}
	if r := s.exits(1, "git", "push", "--no-verify", "origin", "HEAD:main"); !strings.Contains(r.Stderr, "remote: git lease: ") {
		t.Error(r.Stderr)
	}
	sameRefs(t, "by hand", before, gittest.Refs(t, remote))
	s.git("push", "-q", "origin", "HEAD:refs/heads/topic")
	s.exits(0, "git-land", "override", "--reason", "site is down", "HEAD:main")

	// Another hook of the clone refuses: nothing was sent, and nothing is in doubt.
	s.write(map[string]string{"second": "2\n"})
	s.exits(0, "git-lease", "hook", "uninstall")
	gittest.Script(t, s.dir+"/.git/hooks/pre-push", "#!/bin/sh\necho 'not today' >&2; exit 1\n")
	s.exits(0, "git-lease", "hook", "install")
	if r := s.exits(9, "git-land", "-x", "true", "-m", "second", "--", "second"); !strings.Contains(r.Stderr, "not today") || !strings.Contains(r.Stderr, "nothing landed") {
		t.Error(r.Stderr)
	}
	if left, err := filepath.Glob(s.dir + "/.git/lease/journal/*"); err != nil || len(left) > 0 {
		t.Errorf("journals: %q, %v", left, err)
	}
	s.exits(0, "git-lease", "hook", "uninstall")
	gittest.Script(t, s.dir+"/.git/hooks/pre-push", "#!/bin/sh\nexit 0\n")

	// Two clones race, and one under a lease that it holds.
	other := newSeat(t, gittest.Clone(t, server.URL(remote)))
	other.write(map[string]string{"third": "3\n"})
	other.exits(0, "git-land", "-x", "true", "-m", "third", "--", "third")
	s.exits(0, "git-land", "-x", "true", "-m", "second", "--", "second")
	held := other.session("held")
	held.exits(0, "git-lease", "acquire", "-m", "release")
	other.write(map[string]string{"fourth": "4\n"})
	s.write(map[string]string{"fifth": "5\n"})
	s.exits(3, "git-land", "--no-wait", "-x", "true", "-m", "fifth", "--", "fifth")
	held.exits(0, "git-land", "-x", "true", "-m", "fourth", "--", "fourth")
	held.exits(0, "git-lease", "release")
	s.exits(0, "git-land", "-x", "true", "-m", "fifth", "--", "fifth")
	s.exits(0, "git-land", "reconcile")
	if got := gittest.Git(t, remote, "log", "--format=%s", "main", "-5"); got != "fifth\nfourth\nsecond\nthird\nby hand" {
		t.Errorf("landed %q", got)
	}
}

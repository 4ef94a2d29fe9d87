package acceptance

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// beforeFirstPush runs a script between a landing's look at the authority and
// its sending: git runs pre-push there. Its standard input is the hook's.
func (s seat) beforeFirstPush(script string) {
	s.t.Helper()
	gittest.Script(s.t, filepath.Join(s.dir, ".git/hooks/pre-push"), fmt.Sprintf(`#!/bin/sh
[ -e '%[1]s/once' ] && exec cat >/dev/null
: >'%[1]s/once'
unset GIT_DIR
%[2]s
`, s.t.TempDir(), script))
}

// Somebody pushes past the tool, to the branch or to the notes alone: the
// landing is planned anew, and lands.
func TestPushesPastTheTool(t *testing.T) {
	t.Parallel()
	for name, refspec := range map[string]string{
		"branch": "HEAD:refs/heads/main", "notes": "+HEAD:refs/notes/landing/main",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote := gittest.Remote(t)
			s, other := clone(t, remote), clone(t, remote)
			other.write(map[string]string{"first": "f\n"})
			other.force("--", "first") // the chain and the notes begin
			gittest.Commit(t, other.dir, "past the tool", map[string]string{"direct": "d\n"})
			s.beforeFirstPush(fmt.Sprintf("git -C '%s' push -q origin %s", other.dir, refspec))
			s.write(map[string]string{"new": "n\n"})
			s.force("--", "new")
			if got := gittest.Git(t, remote, "show", "main:new"); got != "n" {
				t.Errorf("landed %q", got)
			}
		})
	}
}

// The server moves the branch alone and dies, and another lands on top of it
// before anybody notices. It is one landing, with its event and its record.
func TestHalfALandingThatOthersLandedUpon(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	other.write(map[string]string{"first": "f\n"})
	other.force("--", "first")
	other.write(map[string]string{"second": "s\n"})
	s.write(map[string]string{"new": "n\n"})
	s.beforeFirstPush(fmt.Sprintf(`
while read -r local oid ref old; do
	case $ref in refs/heads/main) git push -q --no-verify origin $oid:refs/heads/main || exit 1 ;; esac
done
cd '%s' && git-land -m second --force-unverified --reason test -- second`, other.dir))
	r := s.force("--", "new")
	tip := gittest.Git(t, remote, "rev-parse", "main")
	commit := gittest.Git(t, remote, "rev-parse", "main~1")
	if want := "landed " + commit[:12] + " on main\n"; r.Stdout != want {
		t.Errorf("stdout %q, want %q", r.Stdout, want)
	}
	log := other.exits(0, "git-land", "log", "--json").Stdout
	for _, oid := range []string{tip, commit} {
		if n := strings.Count(gittest.Git(t, remote, "log", "--format=%B", "refs/lease/main"), "Landing-Commit: "+oid); n != 1 {
			t.Errorf("%d events of %s, want 1", n, oid)
		}
		gittest.Git(t, remote, "notes", "--ref", "landing/main", "show", oid)
		if !strings.Contains(log, oid) {
			t.Errorf("the log lacks %s: %s", oid, log)
		}
	}
}

// A check that passes cannot make up for another one that failed.
func TestCheckBesideOneThatFailed(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"new": "n\n"})
	s.exits(0, "git-land", "verify", "--record", "fail", "--check", "lint", "--", "new")
	s.exits(4, "git-land", "-m", "new", "-x", "true", "--", "new")
	if got := s.exits(0, "git-lease", "show").Stdout; strings.Contains(got, "held") {
		t.Errorf("the lease: %q", got)
	}
}

// A hook of the clone refuses under the session's lease: nothing was sent, so
// what was refused does not land later, with the lease still held.
func TestHookRefusesUnderTheSessionsLease(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote).with("GIT_LEASE_SESSION=mine")
	s.exits(0, "git-lease", "acquire")
	before := gittest.Refs(t, remote)
	s.beforeFirstPush("exit 1")
	s.write(map[string]string{"new": "refused\n"})
	r := s.exits(9, "git-land", "--force-unverified", "--reason", "test", "-m", "new", "--", "new")
	if !strings.Contains(r.Stderr, "nothing landed") {
		t.Errorf("stderr %q", r.Stderr)
	}
	sameRefs(t, "remote", before, gittest.Refs(t, remote))
	s.write(map[string]string{"new": "mended\n"})
	s.force("--", "new")
	if got := gittest.Git(t, remote, "log", "--format=%s", "main"); got != "change\nbegin" {
		t.Errorf("landed %q", got)
	}
	s.exits(0, "git-lease", "release")
}

// Another session of the clone tells the mirror what it moved, between the look
// of our fetch at it and its writing.
func TestMirrorMovesUnderAFetch(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	other.write(map[string]string{"one": "1\n"})
	other.force("--", "one")
	s.exits(0, "git-lease", "show")
	other.write(map[string]string{"two": "2\n"})
	other.force("--", "two")
	dir := t.TempDir()
	gittest.Script(t, dir+"/pack", fmt.Sprintf(`#!/bin/sh
(
	unset GIT_DIR
	cd '%s' && git update-ref refs/lease-remote/origin/heads/main refs/lease-remote/origin/heads/main~1
)
exec "$@"
`, s.dir))
	s.with("GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=uploadpack.packObjectsHook", "GIT_CONFIG_VALUE_0="+dir+"/pack").
		exits(0, "git-lease", "show")
}

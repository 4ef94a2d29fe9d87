package acceptance

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// offAfterPush is a seat whose remote goes away with the push of a chain, which arrives
// or does not, and is back when the file "off" is gone.
func offAfterPush(t *testing.T, s seat, arrives bool) (broken seat, off string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	off = filepath.Join(dir, "off")
	push := `'` + git + `' "$@" >/dev/null 2>&1;`
	if !arrives {
		push = ""
	}
	gittest.Script(t, filepath.Join(dir, "git"), fmt.Sprintf(`#!/bin/sh
case "$*" in *push*:refs/lease/*) mkdir '%[2]s.first' 2>/dev/null && { %[3]s mkdir '%[2]s'; exit 128; } ;; esac
[ ! -e '%[2]s' ] || case "$*" in *fetch*|*ls-remote*|*push*) exit 128 ;; esac
exec '%[1]s' "$@"
`, git, off, push))
	s.env = gittest.WithPath(s.env, dir)
	return s, off
}

// Who cannot be told whether it has the lease gets the token all the same, beside the
// failure: the same command again tells, and then the lease is given back.
func TestAcquireThatIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, arrives := range []bool{true, false} {
		for _, format := range []string{"sh", "json"} {
			t.Run(fmt.Sprintf("arrives %v as %s", arrives, format), func(t *testing.T) {
				t.Parallel()
				remote, s, _ := zeroLanded(t, false)
				s, off := offAfterPush(t, s, arrives)
				if format == "json" {
					r := s.exits(9, "git-lease", "acquire", "--json")
					g := decode[grant](t, r)
					if g.Token == "" || g.Operation == "" || g.Name != "main" || !strings.Contains(r.Stdout, `"error"`) {
						t.Fatalf("told %s", r.Stdout)
					}
					s.git("version")
					s = s.with("GIT_LEASE_TOKEN="+g.Token, "GIT_LEASE_OPERATION="+g.Operation, "GIT_LEASE_NAME=main", "GIT_LEASE_REMOTE=origin")
					s.exits(0, "rmdir", off)
					s.exits(0, "git-lease", "acquire", "--json")
					s.exits(0, "git-lease", "release")
				} else {
					r := s.exits(0, "sh", "-c", `GIT_LEASE_FENCE=7; export GIT_LEASE_FENCE
eval "$(git-lease acquire)" && { echo taken; exit 1; }
[ -z "$GIT_LEASE_FENCE" ] && rmdir "$0" && eval "$(git-lease acquire)" && [ "$GIT_LEASE_FENCE" = 3 ] && git-lease release`, off)
					if !strings.Contains(r.Stderr, `hint: eval "$(git lease acquire)"`) {
						t.Errorf("told %s", r.Stderr)
					}
				}
				want := "adopt land acquire release"
				if got := kinds(t, remote); got != want {
					t.Errorf("events %q, want %q", got, want)
				}
			})
		}
	}
}

// The same of a lease that is taken off somebody else.
func TestBreakAndTakeThatIsNotKnown(t *testing.T) {
	t.Parallel()
	remote, s, other := zeroLanded(t, false)
	other.with("GIT_LEASE_SESSION=theirs").exits(0, "git-lease", "acquire")
	op := holder(t, remote)
	s, off := offAfterPush(t, s, true)
	s.exits(0, "sh", "-c", `eval "$(git-lease break --operation "$1" --reason gone --acquire)" && exit 1
rmdir "$0" && eval "$(git-lease acquire)" && git-lease release`, off, op)
	if got, want := kinds(t, remote), "adopt land acquire break release"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
}

package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// Two sessions of one clone: the one has its answer from the authority when the other pushes,
// and remembers what it pushed. That is no chain which somebody put back, or deleted.
func TestSeenByAnotherSessionMeanwhile(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"a chain": true, "a first event": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote := gittest.Remote(t)
			dir := t.TempDir()
			at := func(file string) string { return filepath.Join(dir, file) }
			there := func(file string) func() bool {
				return func() bool { _, err := os.Lstat(at(file)); return err == nil }
			}
			touch := func(file string) {
				t.Helper()
				if err := os.WriteFile(at(file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := clone(t, remote)
			s.exits(0, "git-lease", "run", "warm", "--", "true") // so that its remote is known
			if begun {
				s.exits(0, "git-lease", "run", "main", "--", "true")
			}
			gittest.Script(t, filepath.Join(remote, "hooks", "pre-receive"), fmt.Sprintf(`#!/bin/sh
touch '%[1]s/sent'
until [ -e '%[1]s/go' ]; do sleep 0.02; done
`, dir))
			first := s.cmd("git-lease", "acquire", "main")
			done := make(chan error, 1)
			go func() { done <- first.Run() }()
			until(t, "the first one pushes", there("sent"))

			git, err := exec.LookPath("git")
			if err != nil {
				t.Fatal(err)
			}
			gittest.Script(t, at("git"), fmt.Sprintf(`#!/bin/sh
case " $* " in
*" fetch "*) ;;
*) exec '%[2]s' "$@" ;;
esac
'%[2]s' "$@"
code=$?
touch '%[1]s/fetched'
until [ -e '%[1]s/over' ]; do sleep 0.02; done
exit $code
`, dir, git))
			second := s
			second.env = gittest.WithPath(s.env, dir)
			result := make(chan gittest.Result, 1)
			go func() { result <- second.try("git-lease", "acquire", "main") }()
			until(t, "the second one has fetched", there("fetched"))
			touch("go")
			if err := <-done; err != nil {
				t.Errorf("the first one: %v", err)
			}
			touch("over")
			if r := <-result; r.Code != 3 || strings.Contains(r.Stderr, "ambiguous") {
				t.Errorf("the second one: exit %d\n%s", r.Code, r.Stderr)
			}
		})
	}
}

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// Hooks of a commit have said their say once: a landing that loses its race does not ask
// them again, and makes its commit with the message that they left.
func TestHooksOfACommitRunOnce(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	asked := filepath.Join(t.TempDir(), "asked")
	gittest.Script(t, filepath.Join(s.dir, ".git/hooks/pre-commit"), fmt.Sprintf("#!/bin/sh\necho pre-commit >>'%s'\n", asked))
	gittest.Script(t, filepath.Join(s.dir, ".git/hooks/commit-msg"), fmt.Sprintf("#!/bin/sh\necho commit-msg >>'%s'\necho 'Change-Id: 1' >>\"$1\"\n", asked))
	gittest.Commit(t, other.dir, "past the tool", map[string]string{"direct": "d\n"})
	s.beforeFirstPush(fmt.Sprintf("git -C '%s' push -q origin HEAD:main", other.dir))
	s.write(map[string]string{"new": "n\n"})
	s.force("--", "new")
	if got := gittest.Read(t, "", asked); got != "pre-commit\ncommit-msg\n" {
		t.Errorf("asked %q", got)
	}
	if got := gittest.Git(t, remote, "log", "-2", "--format=%B", "main"); !strings.Contains(got, "Change-Id: 1") || !strings.Contains(got, "past the tool") {
		t.Errorf("landed %q", got)
	}
	s.leftBehind()
}

// What a landing that was killed in a hook leaves is gone after the next one.
func TestKilledInAHookOfACommit(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"new": "n\n"})
	s.diesWhen(filepath.Join(s.dir, ".git"), "pre-commit", "true", "--", "new")
	if left := s.temporary(); len(left) != 3 {
		t.Errorf("it left %q, want the change's index, that of the hooks, and a message", left)
	}
	s.force("--", "new")
	if left := s.temporary(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	s.leftBehind()
}

// temporary are copies of the index, and messages.
func (s seat) temporary() (names []string) {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, ".git"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "lease-") {
			names = append(names, e.Name())
		}
	}
	return names
}

// Configured hooks run as git runs them: before the one in the hooks directory.
func TestConfiguredHooksOfACommit(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote).newer()
	asked := filepath.Join(t.TempDir(), "asked")
	s.git("config", "hook.mine.command", fmt.Sprintf("echo configured >>'%s'; test ! -e refuse;", asked))
	s.git("config", "hook.mine.event", "pre-commit")
	s.write(map[string]string{"new": "n\n"})
	s.force("--", "new")
	gittest.Script(t, filepath.Join(s.dir, ".git/hooks/pre-commit"), fmt.Sprintf("#!/bin/sh\necho file >>'%s'\n", asked))
	s.write(map[string]string{"new": "m\n"})
	s.force("--", "new")
	if got := gittest.Read(t, "", asked); got != "configured\nconfigured\nfile\n" {
		t.Errorf("asked %q", got)
	}
	s.write(map[string]string{"new": "o\n", "refuse": ""})
	if r := s.exits(5, "git-land", "--force-unverified", "--reason", "test", "-m", "new", "--", "new"); !strings.Contains(r.Stderr, "the hook pre-commit refused") {
		t.Errorf("told %q", r.Stderr)
	}
}

// Hooks that are not there cost nothing. One that is costs one process, and pre-commit
// another for the tree that it leaves.
func TestWhatHooksOfACommitCost(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	counter := gittest.CountGit(t)
	s.env = counter.Env(s.env)
	costs := func(file string) int {
		s.write(map[string]string{file: file})
		s.verify(file)
		counter.Reset()
		s.exits(0, "git-land", "-m", file, "--", file)
		return len(counter.Calls())
	}
	costs("first")
	none := costs("none")
	gittest.Script(t, filepath.Join(s.dir, ".git/hooks/commit-msg"), "#!/bin/sh\n")
	if n := costs("msg"); n != none+1 {
		t.Errorf("with commit-msg %d git processes, and %d without", n, none)
	}
	gittest.Script(t, filepath.Join(s.dir, ".git/hooks/pre-commit"), "#!/bin/sh\n")
	if n := costs("both"); n != none+3 {
		t.Errorf("with pre-commit and commit-msg %d git processes, and %d without", n, none)
	}
}

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// A landing that runs its check and publishes the verdict remembers the tip of
// the chain all the same: a chain that is gone afterwards, records and all, was
// deleted, and is not free.
func TestTipIsRememberedAfterACheck(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"new": "n\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "new", "--", "new")
	tip := gittest.Git(t, remote, "rev-parse", "refs/lease/main")
	for ref, of := range map[string]string{"seen/main": "refs/lease/main", "lease/main": "refs/lease/main",
		"records/main": "refs/notes/landing/main", "heads/main": "refs/heads/main", "verification": "refs/notes/verification"} {
		want := gittest.Git(t, remote, "rev-parse", of)
		if got := s.git("for-each-ref", "--format=%(objectname)", "refs/lease-remote/origin/"+ref); got != want {
			t.Errorf("%s of the mirror is %q, want %s", ref, got, want)
		}
	}
	gittest.Git(t, remote, "update-ref", "-d", "refs/lease/main")
	gittest.Git(t, remote, "update-ref", "-d", "refs/notes/landing/main")
	s.write(map[string]string{"new": "m\n"})
	if r := s.exits(8, "git-land", "-x", "true", "-m", "again", "--", "new"); !strings.Contains(r.Stderr, "adopt main --over "+tip) {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// A chain that cannot be trusted is not free, also where something else stands
// in the way of a landing.
func TestStatusOfABrokenChain(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"new": "n\n"})
	s.force("--", "new")
	bad := gittest.Git(t, remote, "commit-tree", "-p", "refs/lease/main", "-m", "garbage", "main^{tree}")
	gittest.Git(t, remote, "update-ref", "refs/lease/main", bad)
	s.write(map[string]string{"new": "not chosen\n"})
	got := s.exits(0, "git-land", "status").Stdout
	if strings.Contains(got, "is free") || !strings.Contains(got, "adopt main --over "+bad) {
		t.Errorf("status %q", got)
	}
}

// What is known of a remote is only a memory: where it cannot be read, the
// remote is asked again.
func TestProbeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	s.write(map[string]string{"new": "n\n"})
	s.exits(0, "git-land", "status")
	files, err := filepath.Glob(filepath.Join(s.dir, ".git/lease/probe/*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("\x00rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.exits(0, "git-land", "-x", "true", "-m", "new", "--", "new")
}

// A kept verification or a journal that cannot be read is named, with the way
// on; the former keeps nothing else from going on.
func TestDamagedLocalFiles(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	const id = "01M8MGBKN9FH8W4SF5WF6M437T"
	for _, rubbish := range []string{"rubbish", "{}", ""} {
		name := "f" + fmt.Sprint(len(rubbish))
		s.write(map[string]string{name: name, ".git/lease/outbox/" + id + ".json": rubbish})
		r := s.exits(0, "git-land", "-x", "true", "-m", name, "--", name)
		if n := strings.Count(r.Stderr, "rm "); n != 1 || !strings.Contains(r.Stderr, id) {
			t.Errorf("%q: told %d times: %s", rubbish, n, r.Stderr)
		}
	}
	for rubbish, hint := range map[string]string{"rubbish": "then: rm ", `{"format":1,"git_dir":".","remote":"origin"}`: "then: rm ", `{"format":2}`: "install a newer gitland"} {
		s.write(map[string]string{"g": "g\n", ".git/lease/journal/" + id + ".json": rubbish})
		if r := s.exits(1, "git-land", "-x", "true", "-m", "g", "--", "g"); !strings.Contains(r.Stderr, hint) {
			t.Errorf("%q: %s", rubbish, r.Stderr)
		}
	}
}

// A notes ref that is no commit is told as what it is.
func TestNotesRefThatIsNoCommit(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"a": "a\n", "b": "b\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "a", "--", "a")
	gittest.Git(t, remote, "update-ref", "refs/notes/landing/main", gittest.Git(t, remote, "rev-parse", "main:README"))
	before := gittest.Git(t, remote, "rev-parse", "main")
	if r := s.exits(8, "git-land", "-x", "true", "-m", "b", "--", "b"); !strings.Contains(r.Stderr, "which is a blob and no commit") {
		t.Errorf("stderr %q", r.Stderr)
	}
	if got := gittest.Git(t, remote, "rev-parse", "main"); got != before {
		t.Errorf("main moved to %s", got)
	}
}

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

// spied is the seat with a git that notes every temporary index it is given, and whether the
// operation that the index is named for has a witness. The notes are lines of the file.
func (s seat) spied(notes string) seat {
	s.t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		s.t.Fatal(err)
	}
	dir := s.t.TempDir()
	gittest.Script(s.t, filepath.Join(dir, "git"), fmt.Sprintf(`#!/bin/sh
name=${GIT_INDEX_FILE##*/}
case $name in
lease-index-*)
	id=${name#lease-index-}
	id=${id%%%%-*}
	if [ -e '%s'/.git/lease/witness/"$id" ]; then echo watched; else echo "loose $*"; fi >>'%s' ;;
esac
exec '%s' "$@"
`, s.dir, notes, git))
	s.env = gittest.WithPath(s.env, dir)
	return s
}

// Every temporary index is of an operation that has a witness: what has none is taken for
// what a dead process left, and others, who land in the same clone, sweep it away.
func TestTemporaryIndexesAreWatched(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	other := clone(t, remote)
	notes := filepath.Join(t.TempDir(), "notes")
	s := clone(t, remote).spied(notes)
	// watched makes sure that what has run used temporary indexes, all of them watched.
	watched := func(what string) {
		t.Helper()
		data, err := os.ReadFile(notes)
		if err != nil {
			t.Fatalf("%s: no temporary index: %v", what, err)
		}
		for line := range strings.Lines(string(data)) {
			if line != "watched\n" {
				t.Errorf("%s: %s", what, strings.TrimSpace(line))
			}
		}
		if err := os.Remove(notes); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.Repeat("a line of some length\n", 20)
	s.write(map[string]string{"one": text})
	s.force("--", "one")
	watched("a landing of a path")

	s.write(map[string]string{"two": text + "more\n"})
	if err := os.Remove(filepath.Join(s.dir, "one")); err != nil {
		t.Fatal(err)
	}
	s.exits(5, "git-land", "-m", "x", "--force-unverified", "--reason", "test", "--", "two")
	watched("half of a renaming")
	s.exits(0, "git-land", "status", "--", "two")
	watched("its outlook")

	hook := filepath.Join(s.dir, ".git", "hooks", "pre-commit")
	gittest.Script(t, hook, "#!/bin/sh\ngit diff --cached --quiet && exit 1; exit 0\n")
	s.git("add", "-A", "one", "two")
	s.force()
	watched("what is staged, with a hook")
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}

	// What others landed is here already, unknown to the index.
	other.write(map[string]string{"theirs": "theirs\n"})
	other.force("--", "theirs")
	s.write(map[string]string{"theirs": "theirs\n", "ours": "ours\n"})
	s.force("--", "ours")
	watched("a landing beside what is here already")
	if status := s.git("status", "--porcelain"); status != "" {
		t.Errorf("left: %s", status)
	}
	s.write(map[string]string{"checked": "c\n"})
	s.exits(0, "git-land", "verify", "-x", "test -e checked", "--", "checked")
	watched("a verification")
}

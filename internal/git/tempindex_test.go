package git_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// A file that was changed in the very second in which it was staged, and has
// the same size, can be told only by its content. Git reads it if it is no older
// than the index, so a copy of the index must not be younger.
func TestTempIndexSeesChangeOfTheSameSecond(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	// Only the whole seconds of the file's time and its size are compared then,
	// as on systems that have no more to compare.
	gittest.Git(t, dir, "config", "core.checkStat", "minimal")
	gittest.Git(t, dir, "config", "core.trustCtime", "false")
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	touch := func(name string) {
		if err := os.Chtimes(filepath.Join(dir, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Write(t, dir, map[string]string{"file": "old\n"})
	touch("file")
	gittest.Git(t, dir, "add", "file")
	gittest.Write(t, dir, map[string]string{"file": "new\n"})
	touch("file")
	touch(".git/index")

	r := open(t, dir)
	index := must(r.TempIndex(t.Context(), "id"))(t)
	defer index.Close()
	if err := index.Add(t.Context()); err != nil {
		t.Fatal(err)
	}
	tree := must(index.WriteTree(t.Context()))(t)
	if got := gittest.Git(t, dir, "cat-file", "blob", string(tree)+":file"); got != "new" {
		t.Errorf("the tree has %q, the file is new", got)
	}
}

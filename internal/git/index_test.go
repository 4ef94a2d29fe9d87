package git_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

// oddNames are names that a shell, a pathspec or a line would take for something
// else.
var oddNames = []string{"-n", " lead", "trail ", "new\nline", "tab\there", `quo"te`, `back\slash`, "é", "\xff\xfe", "*", "[x]", ":(top)x", "a/b c/d", "#"}

func TestIndexRoundTrip(t *testing.T) {
	t.Parallel()
	for _, format := range formats {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			dir := initRepo(t, "--object-format="+string(format))
			gittest.Commit(t, dir, "begin", map[string]string{"keep": "x\n", "sub/keep": "y\n"})
			before := gittest.Index(t, dir)
			r := open(t, filepath.Join(dir, "sub"))
			var want []git.IndexEntry
			var objs []object.Object
			for i, name := range oddNames {
				o := format.New(object.Blob, []byte(fmt.Sprint(i)))
				objs = append(objs, o)
				want = append(want, git.IndexEntry{Mode: []string{"100644", "100755", "120000"}[i%3], OID: o.OID, Path: name})
			}
			if err := r.Write(t.Context(), objs...); err != nil {
				t.Fatal(err)
			}
			if err := r.SetIndex(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			got, unmerged, err := r.IndexEntries(t.Context(), oddNames)
			if err != nil || unmerged || !slices.Equal(got, want) {
				t.Errorf("got %+v, %v, %v", got, unmerged, err)
			}
			// And away again, in both spellings.
			for i := range want {
				want[i] = git.IndexEntry{Mode: []string{"0", "000000"}[i%2], Path: want[i].Path}
			}
			if err := r.SetIndex(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			if after := gittest.Index(t, dir); !maps.Equal(after, before) {
				t.Errorf("got %v, want %v", after, before)
			}
			got, _, err = r.IndexEntries(t.Context(), []string{"*", "keep", "sub"})
			if err != nil || len(got) != 3 || got[0] != (git.IndexEntry{Mode: "0", OID: format.Zero(), Path: "*"}) ||
				got[1].Mode != "100644" || got[2].Mode != "0" {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestIndexEntriesOfMany(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	r := open(t, dir, "GIT_ICASE_PATHSPECS=1")
	blob := r.Format.New(object.Blob, nil)
	var want []git.IndexEntry
	var names []string
	for i := range 1201 {
		names = append(names, fmt.Sprintf("file%d", i))
		want = append(want, git.IndexEntry{Mode: "100644", OID: blob.OID, Path: names[i]})
	}
	if err := r.Write(t.Context(), blob); err != nil {
		t.Fatal(err)
	}
	if err := r.SetIndex(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if got, _, err := r.IndexEntries(t.Context(), names); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %d entries, %v", len(got), err)
	}
	if got, _, err := r.IndexEntries(t.Context(), []string{"FILE1"}); err != nil || got[0].Mode != "0" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, _, err := r.IndexEntries(t.Context(), nil); err != nil || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if err := r.SetIndex(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// conflict leaves a repository in the middle of a merge, of "file".
func conflict(t *testing.T) string {
	t.Helper()
	dir := initRepo(t)
	gittest.Commit(t, dir, "begin", map[string]string{"file": "one\n", "other": "x\n"})
	gittest.Git(t, dir, "checkout", "--quiet", "-b", "side")
	gittest.Commit(t, dir, "side", map[string]string{"file": "side\n"})
	gittest.Git(t, dir, "checkout", "--quiet", "main")
	gittest.Commit(t, dir, "main", map[string]string{"file": "main\n"})
	if r := gittest.TryGit(t, dir, "merge", "side"); r.Code != 1 {
		t.Fatalf("there is no conflict: %+v", r)
	}
	return dir
}

func TestUnmerged(t *testing.T) {
	t.Parallel()
	dir := conflict(t)
	r := open(t, dir)
	for path, want := range map[string]bool{"file": true, "other": false} {
		if _, got, err := r.IndexEntries(t.Context(), []string{path}); got != want || err != nil {
			t.Errorf("%s: got %v, %v", path, got, err)
		}
	}
	diff := must(r.DiffEntries(t.Context(), revParse(t, dir, "HEAD^{tree}"), git.Scope{Paths: []string{"."}, FromTop: true}))(t)
	if len(diff) != 1 || diff[0].Path != "file" || !diff[0].Unmerged {
		t.Errorf("got %+v", diff)
	}
	if tree, err := r.WriteTree(t.Context()); err == nil {
		t.Errorf("got the tree %s", tree)
	}
	got := must(r.DiffIndex(t.Context(), revParse(t, dir, "HEAD^{tree}"), nil))(t)
	if len(got) != 1 || got[0].Path != "file" || !got[0].Unmerged {
		t.Errorf("got %+v", got)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "begin", map[string]string{"file": "one\n", "sub/a b": "two\n", "moved": "a text of some length\n"})
	gittest.Git(t, dir, "config", "diff.renames", "copies")
	gittest.Git(t, dir, "config", "diff.ignoreSubmodules", "all")
	gittest.Git(t, dir, "config", "diff.external", "false")
	gittest.Git(t, dir, "config", "diff.relative", "true")
	gittest.Git(t, dir, "config", "color.ui", "always")
	from := revParse(t, dir, "HEAD^{tree}")
	gittest.Git(t, dir, "mv", "moved", "here")
	gittest.Write(t, dir, map[string]string{"sub/a b": "changed\n"})
	gittest.Git(t, dir, "add", "sub")
	gittest.Write(t, dir, map[string]string{"file": "not staged\n", "untracked": "x\n"})
	r := open(t, filepath.Join(dir, "sub"))
	want := []git.Change{
		{Path: "here", OldMode: "000000", NewMode: "100644", Old: r.Format.Zero(), New: revParse(t, dir, "HEAD:moved")},
		{Path: "moved", OldMode: "100644", NewMode: "000000", Old: revParse(t, dir, "HEAD:moved"), New: r.Format.Zero()},
		{Path: "sub/a b", OldMode: "100644", NewMode: "100644", Old: revParse(t, dir, "HEAD:sub/a b"), New: revParse(t, dir, ":sub/a b")},
	}
	if got := must(r.DiffIndex(t.Context(), from, nil))(t); !reflect.DeepEqual(got, want) {
		t.Errorf("index: got  %+v\nwant %+v", got, want)
	}
	if got := must(r.DiffIndex(t.Context(), from, []string{"sub"}))(t); !reflect.DeepEqual(got, want[2:]) {
		t.Errorf("index within: got %+v", got)
	}
	to := must(r.WriteTree(t.Context()))(t)
	if got := must(r.DiffTrees(t.Context(), from, to))(t); !reflect.DeepEqual(got, want) {
		t.Errorf("trees: got %+v", got)
	}
	if got := must(r.DiffTrees(t.Context(), r.Format.EmptyTree(), from))(t); len(got) != 3 {
		t.Errorf("from nothing: got %+v", got)
	}
	if got := must(r.DiffTrees(t.Context(), to, to))(t); got != nil {
		t.Errorf("to itself: got %+v", got)
	}
	if got := must(r.Modified(t.Context()))(t); !slices.Equal(got, []string{"file"}) {
		t.Errorf("modified: got %q", got)
	}
}

func TestMoveWorkTree(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "begin", map[string]string{"file": "one\n", "sub/other": "x\n", "gone": "x\n"})
	from := revParse(t, dir, "HEAD^{tree}")
	gittest.Git(t, dir, "rm", "--quiet", "gone")
	gittest.Write(t, dir, map[string]string{"file": "two\n", "new": "new\n", "deep/er/new": "new\n"})
	gittest.Git(t, dir, "add", "--all")
	to := object.OID(gittest.Git(t, dir, "write-tree"))
	gittest.Git(t, dir, "reset", "--quiet", "--hard")
	r := open(t, filepath.Join(dir, "sub"))

	move := func(want bool) {
		t.Helper()
		files, index := gittest.Files(t, dir), gittest.Index(t, dir)
		if err := r.MoveWorkTree(t.Context(), from, to, true); (err == nil) != want {
			t.Errorf("dry: got %v", err)
		}
		x := must(r.TempIndex(t.Context(), "id"))(t)
		if err := x.MoveWorkTree(t.Context(), from, to, true); (err == nil) != want {
			t.Errorf("on the copy: got %v", err)
		}
		x.Close()
		if !want {
			if err := r.MoveWorkTree(t.Context(), from, to, false); err == nil {
				t.Error("it moved")
			}
		}
		if !maps.Equal(files, gittest.Files(t, dir)) || !maps.Equal(index, gittest.Index(t, dir)) {
			t.Error("files or index were touched")
		}
	}
	// The user's own changes stay, unless they are in the way.
	gittest.Write(t, dir, map[string]string{"sub/other": "mine\n", "new": "in the way\n"})
	move(false)
	if err := os.Remove(filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	gittest.Write(t, dir, map[string]string{"file": "mine\n"})
	move(false)
	gittest.Write(t, dir, map[string]string{"file": "one\n"})
	// So do files that git ignores: in the place of a new one, of its directory, or inside of it.
	gittest.Write(t, dir, map[string]string{".git/info/exclude": "new\ndeep\n"})
	for _, name := range []string{"new", "new/x", "deep", "deep/er"} {
		gittest.Write(t, dir, map[string]string{name: "ignored\n"})
		move(false)
		if err := os.RemoveAll(filepath.Join(dir, strings.Split(name, "/")[0])); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Write(t, dir, map[string]string{"new": "new\n"}) // as it would be anyway
	r.Refresh(t.Context())                                   // the file is as it was, but git sees by its times alone that it was written
	move(true)
	if err := r.MoveWorkTree(t.Context(), from, to, false); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"file": "two\n", "new": "new\n", "sub/other": "mine\n"} {
		if got := gittest.Read(t, dir, name); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := gittest.Git(t, dir, "status", "--porcelain", "sub", "gone"); got != "D  gone\n M sub/other" {
		t.Errorf("got %q", got)
	}
}

func TestHashFile(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Write(t, dir, map[string]string{".gitattributes": "*.txt text\n", "sub/a.txt": "x\r\n", "-b": "x\r\n"})
	if err := os.Symlink("sub/a.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	r := open(t, filepath.Join(dir, "sub"))
	for path, content := range map[string]string{"sub/a.txt": "x\n", "-b": "x\r\n", "link": "sub/a.txt"} {
		if got, err := r.HashFile(t.Context(), path); got != r.Format.Hash(object.Blob, []byte(content)) || err != nil {
			t.Errorf("%s: got %s, %v", path, got, err)
		}
	}
	if _, err := r.HashFile(t.Context(), "absent"); !errors.Is(err, git.ErrNotFound) {
		t.Errorf("absent: got %v", err)
	}
	if got, err := r.HashFile(t.Context(), "sub"); err == nil {
		t.Errorf("a directory: got %s", got)
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "begin", map[string]string{"file": "one\n"})
	gittest.Git(t, dir, "read-tree", "HEAD") // without any times
	if gittest.TryGit(t, dir, "diff-files", "--quiet").Code == 0 {
		t.Fatal("the times are known")
	}
	open(t, dir).Refresh(t.Context())
	if r := gittest.TryGit(t, dir, "diff-files", "--quiet"); r.Code != 0 {
		t.Errorf("got %+v", r)
	}
}

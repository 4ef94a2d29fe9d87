package git_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

func TestMergeTrees(t *testing.T) {
	t.Parallel()
	for _, format := range formats {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			dir := initRepo(t, "--object-format="+string(format))
			r := open(t, dir)
			tree := func(files map[string]string) object.OID {
				t.Helper()
				var objs []object.Object
				var entries []object.TreeEntry
				for _, name := range slices.Sorted(maps.Keys(files)) {
					o := format.New(object.Blob, []byte(files[name]))
					objs = append(objs, o)
					entries = append(entries, object.TreeEntry{Mode: "100644", Name: name, OID: o.OID})
				}
				o := format.New(object.Tree, must(object.EncodeTree(entries))(t))
				if err := r.Write(t.Context(), append(objs, o)...); err != nil {
					t.Fatal(err)
				}
				return o.OID
			}
			base := tree(map[string]string{"a": "1\n2\n3\n4\n5\n", "b": "b\n", "c c": "c\n"})
			ours := tree(map[string]string{"a": "one\n2\n3\n4\n5\n", "b": "b\n", "c c": "ours\n"})
			theirs := tree(map[string]string{"a": "1\n2\n3\n4\nfive\n", "c c": "c\n", "d": "d\n"})
			merged := tree(map[string]string{"a": "one\n2\n3\n4\nfive\n", "c c": "ours\n", "d": "d\n"})
			gone := tree(map[string]string{"a": "x\n", "b": "b\n"})
			before := gittest.Refs(t, dir)
			for _, test := range []struct{ base, ours, theirs, want object.OID }{
				{base, ours, theirs, merged}, {base, theirs, ours, merged}, {base, ours, base, ours}, {base, base, theirs, theirs},
				{base, ours, ours, ours}, {base, base, base, base}, {format.EmptyTree(), format.EmptyTree(), base, base},
			} {
				if err := r.Write(t.Context(), format.New(object.Tree, nil)); err != nil {
					t.Fatal(err)
				}
				if got, err := r.MergeTrees(t.Context(), test.base, test.ours, test.theirs); got != test.want || err != nil {
					t.Errorf("got %s, %v, want %s", got, err, test.want)
				}
			}
			got, err := r.MergeTrees(t.Context(), base, ours, gone)
			conflict, ok := errors.AsType[*git.ConflictError](err)
			if !ok || got != "" {
				t.Fatalf("got %s, %v", got, err)
			}
			if want := []string{"a", "c c"}; !slices.Equal(conflict.Paths, want) {
				t.Errorf("got %q, want %q", conflict.Paths, want)
			}
			if got := err.Error(); got != "2 conflicting paths: a, c c" {
				t.Errorf("got %q", got)
			}
			for what, oid := range map[string]object.OID{
				"absent": format.Hash(object.Tree, []byte("absent")), "a blob": format.Hash(object.Blob, []byte("b\n")),
			} {
				for _, trees := range [][3]object.OID{{oid, ours, theirs}, {base, oid, theirs}, {base, ours, oid}} {
					got, err := r.MergeTrees(t.Context(), trees[0], trees[1], trees[2])
					if _, ok := errors.AsType[*git.ConflictError](err); ok || err == nil {
						t.Errorf("%s: got %s, %v", what, got, err)
					}
				}
			}
			if after := gittest.Refs(t, dir); !maps.Equal(after, before) {
				t.Errorf("refs moved: %v", after)
			}
		})
	}
}

func TestMergeTreesOddNames(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	var want []string
	all := func(content string) object.OID {
		files := map[string]string{}
		want = nil
		for _, name := range oddNames {
			if name != "\xff\xfe" { // a file system may refuse it
				files[name] = content
				want = append(want, name)
			}
		}
		gittest.Write(t, dir, files)
		gittest.Git(t, dir, "add", "--all")
		return object.OID(gittest.Git(t, dir, "write-tree"))
	}
	base, ours, theirs := all("1\n"), all("2\n"), all("3\n")
	slices.Sort(want)
	below := filepath.Join(dir, "below")
	if err := os.MkdirAll(below, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, below} { // git merge-tree names paths from where it runs
		_, err := open(t, at).MergeTrees(t.Context(), base, ours, theirs)
		conflict, ok := errors.AsType[*git.ConflictError](err)
		if !ok || !slices.Equal(conflict.Paths, want) {
			t.Errorf("in %s: got %q, %v, want %q", at, conflict.Paths, err, want)
		}
	}
}

package git_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

// randomTree stores a tree of few names, so that two of them have much in
// common: files, links, submodules, and directories of the same names.
func randomTree(t *testing.T, r *git.Repo, random *rand.Rand, depth int) object.OID {
	t.Helper()
	var entries []object.TreeEntry
	objs := []object.Object{}
	for _, name := range []string{"a", "a-b", "a.c", "a0", "b"} {
		blob := r.Format.New(object.Blob, fmt.Append(nil, random.IntN(2)))
		e := object.TreeEntry{Name: name, Mode: []string{"100644", "100755", "120000"}[random.IntN(3)], OID: blob.OID}
		switch n := random.IntN(6); {
		case n == 0:
			continue
		case n == 1:
			e.Mode, e.OID = "160000", r.Format.Hash(object.Commit, nil)
		case n < 4 && depth > 0:
			e.Mode, e.OID = "40000", randomTree(t, r, random, depth-1)
		default:
			objs = append(objs, blob)
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b object.TreeEntry) int {
		if object.TreeLess(a, b) {
			return -1
		}
		return 1 // no two have one name
	})
	tree := r.Format.New(object.Tree, must(object.EncodeTree(entries))(t))
	if err := r.Write(t.Context(), append(objs, tree)...); err != nil {
		t.Fatal(err)
	}
	return tree.OID
}

// What we compare ourselves is what git would say.
func TestDiffTreesAsGitDoes(t *testing.T) {
	t.Parallel()
	for _, format := range formats {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			r := open(t, initRepo(t, "--object-format="+string(format)))
			random := rand.New(rand.NewPCG(1, 2))
			trees := []object.OID{r.Format.EmptyTree()}
			for range 8 {
				trees = append(trees, randomTree(t, r, random, 2))
			}
			for i := range trees[1:] {
				from, to := trees[i], trees[i+1]
				var got strings.Builder
				for _, c := range must(r.DiffTrees(t.Context(), from, to))(t) {
					fmt.Fprintf(&got, "%s %s %s %s %s\n", c.OldMode, c.NewMode, c.Old, c.New, c.Path)
				}
				var want strings.Builder
				for line := range strings.Lines(gittest.Git(t, r.Dir, "diff-tree", "-r", "--raw", "--no-renames", "--full-index", string(from), string(to)) + "\n") {
					head, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
					if f := strings.Fields(strings.TrimPrefix(head, ":")); len(f) == 5 {
						fmt.Fprintf(&want, "%s %s %s %s %s\n", f[0], f[1], f[2], f[3], path)
					}
				}
				if got.String() != want.String() {
					t.Errorf("got\n%s\nwant\n%s", got.String(), want.String())
				}
			}
			if _, err := r.DiffTrees(t.Context(), trees[1], r.Format.Hash(object.Tree, []byte("absent"))); !errors.Is(err, git.ErrNotFound) {
				t.Errorf("absent: got %v", err)
			}
		})
	}
}

// Old trees have modes that git no longer writes, and takes for those it does.
func TestDiffTreesOldModes(t *testing.T) {
	t.Parallel()
	r := open(t, initRepo(t))
	blob := r.Format.New(object.Blob, []byte("x"))
	tree := func(modes ...string) object.OID {
		var entries []object.TreeEntry
		for i, mode := range modes {
			entries = append(entries, object.TreeEntry{Mode: mode, Name: fmt.Sprint(i), OID: blob.OID})
		}
		o := r.Format.New(object.Tree, must(object.EncodeTree(entries))(t))
		if err := r.Write(t.Context(), blob, o); err != nil {
			t.Fatal(err)
		}
		return o.OID
	}
	got := must(r.DiffTrees(t.Context(), tree("100664", "100775", "100600"), tree("100644", "100755", "100775")))(t)
	if len(got) != 1 || got[0].Path != "2" || got[0].OldMode != "100644" || got[0].NewMode != "100755" {
		t.Errorf("got %+v", got)
	}
}

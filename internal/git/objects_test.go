package git_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

var formats = []object.Format{object.SHA1, object.SHA256}

// What is written is what git reads, whatever its size and format: lengths of
// one, two and three bytes in the pack, compressible or not.
func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	for _, format := range formats {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			r := open(t, initRepo(t, "--object-format="+string(format)))
			random := rand.NewChaCha8([32]byte{1})
			var objs []object.Object
			for _, size := range []int{0, 1, 15, 16, 17, 2047, 2048, 2049, 70000, 300000} {
				data := make([]byte, size)
				random.Read(data)
				objs = append(objs, format.New(object.Blob, data), format.New(object.Blob, bytes.Repeat([]byte("x"), size)))
			}
			tree := format.New(object.Tree, must(object.EncodeTree([]object.TreeEntry{{Mode: "100644", Name: "file", OID: objs[4].OID}}))(t))
			commit := format.New(object.Commit, object.CommitData{Tree: tree.OID, Author: gittest.Identity + " 1 +0000",
				Committer: gittest.Identity + " 2 +0000", Message: "subject\n"}.Encode())
			objs = append(objs, format.New(object.Tree, nil), tree, commit)
			for range 2 { // the second time they are there already
				if err := r.Write(t.Context(), objs...); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Write(t.Context()); err != nil {
				t.Error(err)
			}
			gittest.Git(t, r.Dir, "fsck", "--strict", "--no-dangling")
			for _, want := range objs {
				got, err := r.Object(t.Context(), string(want.OID))
				if err != nil || got.OID != want.OID || got.Kind != want.Kind || !bytes.Equal(got.Data, want.Data) {
					t.Errorf("%s of %d bytes: got %s of %d, %v", want.Kind, len(want.Data), got.Kind, len(got.Data), err)
				}
				got, err = r.Lookup(t.Context(), string(want.OID))
				if err != nil || got.OID != want.OID || got.Kind != want.Kind || got.Data != nil {
					t.Errorf("look up %s: got %+v, %v", want.OID, got, err)
				}
			}
			if got := must(r.Object(t.Context(), string(commit.OID)+":file"))(t); got.OID != objs[4].OID {
				t.Errorf("by path: got %s", got.OID)
			}
			if got := gittest.Git(t, r.Dir, "log", "--format=%s %at %ct", string(commit.OID)); got != "subject 1 2" {
				t.Errorf("git log: %q", got)
			}
		})
	}
}

func TestWriteOfTheWrongFormat(t *testing.T) {
	t.Parallel()
	r := open(t, initRepo(t))
	tree := object.SHA256.New(object.Tree, nil)
	c := object.CommitData{Tree: tree.OID, Author: "A <> 1 +0000", Committer: "A <> 1 +0000"}
	if err := r.Write(t.Context(), object.SHA256.New(object.Commit, c.Encode())); err == nil {
		// Git takes it, as it takes any text; but nothing is found under our id.
		if _, err := r.Object(t.Context(), string(object.SHA256.Hash(object.Commit, c.Encode()))); !errors.Is(err, git.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
}

func TestObjectNames(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "begin", map[string]string{"a b c": "x\n", "dir/file": "y\n"})
	r := open(t, dir)
	for _, name := range []string{
		"", "absent", "two words", "now three words", "refs/heads/absent", "main:absent", "main:absent name with words", "main:dir/absent",
		strings.Repeat("1", 40), strings.Repeat("0", 40), "-x", "--help", "main\n", "main\x00", "main missing", "x y missing",
	} {
		if got, err := r.Object(t.Context(), name); !errors.Is(err, git.ErrNotFound) {
			t.Errorf("%q: got %+v, %v", name, got, err)
		}
	}
	for name, want := range map[string]object.Kind{
		"HEAD": object.Commit, "refs/heads/main": object.Commit, "main^{tree}": object.Tree, "main:a b c": object.Blob, "main:dir": object.Tree,
	} {
		if got, err := r.Object(t.Context(), name); err != nil || got.Kind != want {
			t.Errorf("%q: got %s, %v", name, got.Kind, err)
		}
	}
	c := must(r.Commit(t.Context(), revParse(t, dir, "HEAD")))(t)
	if c.Message != "begin\n" || c.Tree != revParse(t, dir, "HEAD^{tree}") {
		t.Errorf("got %+v", c)
	}
	for name, oid := range map[string]object.OID{"tree": c.Tree, "absent": object.OID(strings.Repeat("1", 40))} {
		if got, err := r.Commit(t.Context(), oid); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// A replaced object is not what was pushed.
func TestObjectsAreNotReplaced(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	first := gittest.Commit(t, dir, "first", nil)
	second := gittest.Commit(t, dir, "second", nil)
	gittest.Git(t, dir, "replace", second, first)
	r := open(t, dir)
	if c := must(r.Commit(t.Context(), object.OID(second)))(t); c.Message != "second\n" {
		t.Errorf("got %q", c.Message)
	}
}

// One reader serves all, and is started again when it has died.
func TestObjectReader(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "begin", map[string]string{"file": "x\n"})
	r := open(t, dir)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 20 {
				name, kind := "main", object.Commit
				if i%2 == 0 {
					name, kind = "main:file", object.Blob
				}
				if got, err := r.Object(t.Context(), name); err != nil || got.Kind != kind {
					t.Errorf("%s: got %s, %v", name, got.Kind, err)
				}
			}
		})
	}
	wg.Wait()
	r.Close()
	if _, err := r.Object(t.Context(), "main"); err != nil {
		t.Errorf("after Close: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Object(ctx, "main"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCommitTree(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	parent := object.OID(gittest.Commit(t, dir, "begin", map[string]string{"file": "x\n"}))
	r := open(t, dir)
	tree := revParse(t, dir, "HEAD^{tree}")
	oid := must(r.CommitTree(t.Context(), git.NewCommit{Tree: tree, Parents: []object.OID{parent}, Message: "subject\n\n# no comment\n"}))(t)
	c := must(r.Commit(t.Context(), oid))(t)
	if c.Tree != tree || !slices.Equal(c.Parents, []object.OID{parent}) || c.Message != "subject\n\n# no comment\n" {
		t.Errorf("got %+v", c)
	}
	gittest.Git(t, dir, "config", "user.signingKey", "absent")
	gittest.Git(t, dir, "config", "gpg.program", "false")
	if oid, err := r.CommitTree(t.Context(), git.NewCommit{Tree: tree, Message: "x\n", Sign: true}); err == nil {
		t.Errorf("signed with nothing: %s", oid)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	commit := func(name string) object.OID {
		return object.OID(gittest.Commit(t, dir, name, map[string]string{name: name + "\n"}))
	}
	a, b := commit("a"), commit("b")
	gittest.Git(t, dir, "checkout", "--quiet", "-b", "side", string(a))
	c, d := commit("c"), commit("d [x]")
	gittest.Git(t, dir, "checkout", "--quiet", "main")
	gittest.Git(t, dir, "cherry-pick", string(c))
	picked := revParse(t, dir, "HEAD")
	gittest.Git(t, dir, "checkout", "--quiet", "--orphan", "root")
	root := object.OID(gittest.Commit(t, dir, "root", nil))

	// In whatever way paths would be taken, they are literal.
	r := open(t, dir, "GIT_ICASE_PATHSPECS=1")
	ctx := t.Context()
	for _, test := range []struct {
		a, b object.OID
		is   bool
		base object.OID
	}{{a, a, true, a}, {a, b, true, a}, {b, a, false, a}, {c, picked, false, a}, {root, a, false, ""}} {
		if got, err := r.IsAncestor(ctx, test.a, test.b); got != test.is || err != nil {
			t.Errorf("is ancestor: got %v, %v", got, err)
		}
		if got, err := r.MergeBase(ctx, test.a, test.b); got != test.base || err != nil {
			t.Errorf("merge base: got %v, %v, want %v", got, err, test.base)
		}
	}
	absent := object.OID(strings.Repeat("1", 40))
	if got, err := r.IsAncestor(ctx, absent, a); got || err != nil {
		t.Errorf("is ancestor, of one that is not here: got %v, %v", got, err)
	}
	if got, err := r.IsAncestor(ctx, a, absent); !errors.Is(err, git.ErrNotFound) {
		t.Errorf("is ancestor of one that is not here: got %v, %v", got, err)
	}
	if got, err := r.MergeBase(ctx, absent, a); err == nil {
		t.Errorf("merge base: got %v", got)
	}
	got := must(r.Unlanded(ctx, picked, d))(t)
	if len(got) != 2 || got[0].OID != c || !got[0].Alike || got[1].OID != d || got[1].Alike || !slices.Equal(got[1].Parents, []object.OID{c}) {
		t.Errorf("unlanded: got %+v", got)
	}
	if got := must(r.Unlanded(ctx, picked, d, c))(t); len(got) != 1 || got[0].OID != d {
		t.Errorf("unlanded, but for what has landed: got %+v", got)
	}
	if got := must(r.Alike(ctx, picked, d))(t); len(got) != 1 || got[0].OID != picked {
		t.Errorf("alike: got %+v", got)
	}
	if got := must(r.Unlanded(ctx, "", d))(t); len(got) != 3 || got[0].OID != a || len(got[0].Parents) != 0 || got[2].OID != d {
		t.Errorf("unlanded on nothing: got %+v", got)
	}
	if got := must(r.Unlanded(ctx, d, d))(t); got != nil {
		t.Errorf("unlanded on itself: got %+v", got)
	}
	if got := must(r.FirstParents(ctx, d, "", 2))(t); !slices.Equal(got, []object.OID{d, c}) {
		t.Errorf("first parents: got %v", got)
	}
	if got := must(r.FirstParents(ctx, d, a, 9))(t); !slices.Equal(got, []object.OID{d, c}) {
		t.Errorf("first parents: got %v", got)
	}
	for path, want := range map[string]object.OID{"a": a, "d [x]": d, "d*": "", "A": ""} {
		if got := must(r.LastTouched(ctx, d, git.Scope{Paths: []string{path}, FromTop: true, Literal: true}))(t); got != want {
			t.Errorf("last touched %q: got %v, want %v", path, got, want)
		}
	}
}

package git_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

func TestContentsInOrder(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	first := object.OID(gittest.Commit(t, dir, "first", map[string]string{"a": "one\n"}))
	r := open(t, dir)
	blob := revParse(t, dir, "HEAD:a")
	missing := object.OID(strings.Repeat("12", 20))
	var kinds []object.Kind
	var text string
	err := r.Contents(t.Context(), []object.OID{first, missing, blob, blob}, func(i int, o object.Object, err error) error {
		if (i == 1) != errors.Is(err, git.ErrNotFound) {
			t.Errorf("object %d: %v", i, err)
		}
		kinds = append(kinds, o.Kind)
		text = string(o.Data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(kinds, []object.Kind{object.Commit, "", object.Blob, object.Blob}) || text != "one\n" {
		t.Errorf("kinds %q, text %q", kinds, text)
	}
	enough := errors.New("enough")
	if err := r.Contents(t.Context(), []object.OID{first, blob}, func(int, object.Object, error) error { return enough }); err != enough {
		t.Errorf("stopped with %v", err)
	}
}

func TestHistoryBetween(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	one := object.OID(gittest.Commit(t, dir, "one", map[string]string{"a": "1"}))
	two := object.OID(gittest.Commit(t, dir, "two", map[string]string{"a": "2"}))
	three := object.OID(gittest.Commit(t, dir, "three", map[string]string{"a": "3"}))
	r := open(t, dir)
	missing := object.OID(strings.Repeat("12", 20))
	blob := revParse(t, dir, "HEAD:a")
	var got []git.HistoryEntry
	err := r.History(t.Context(), []object.OID{three, missing, blob, two}, []object.OID{one, missing}, func(e git.HistoryEntry) error {
		got = append(got, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].OID != three || !slices.Equal(got[1].Parents, []object.OID{one}) || got[1].Tree != revParse(t, dir, "HEAD~:") {
		t.Errorf("history %v", got)
	}
	if r.IsShallow() {
		t.Error("shallow")
	}
}

func TestTreeFiles(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "one", map[string]string{"a/b/c": "1", "d\te": "2"})
	r := open(t, dir)
	files, err := r.TreeFiles(t.Context(), revParse(t, dir, "HEAD"))
	if err != nil || len(files) != 2 || files[0].Path != "a/b/c" || files[1].Path != "d\te" || files[0].OID != revParse(t, dir, "HEAD:a/b/c") {
		t.Errorf("%v, %v", files, err)
	}
	if _, err := r.TreeFiles(t.Context(), object.OID(strings.Repeat("12", 20))); err == nil {
		t.Error("a tree that is not there has files")
	}
}

package session_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gitland/internal/session"
)

// What died before it had a journal or a record is swept away; what lives, and
// what somebody will ask for, is not.
func TestSweepDead(t *testing.T) {
	d := session.Open(t.TempDir())
	ids := make(map[string]string)
	file := func(name string, elem ...string) {
		path := d.Path(elem...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		ids[filepath.Base(path)] = name
	}
	dead, journaled, recorded, writing := session.NewID(time.Now()), session.NewID(time.Now()), session.NewID(time.Now()), session.NewID(time.Now())
	file("dead", "witness", dead.String())
	file("dead, writing its journal", "journal", dead.String()+".json.123.tmp")
	file("dead, writing its record", "witness", dead.String()+".json.123.tmp")
	file("journaled", "witness", journaled.String())
	file("journal", "journal", journaled.String()+".json")
	file("recorded", "witness", recorded.String())
	file("record", "witness", recorded.String()+".json")
	file("alive, writing its journal", "journal", writing.String()+".json.123.tmp")
	file("of nobody", "journal", "notes.txt")
	w, err := d.Witness(writing)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ids[writing.String()], ids["guard.lock"] = "alive", "guard"
	if err := d.SweepDead(); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, dir := range []string{"journal", "witness"} {
		entries, err := os.ReadDir(d.Path(dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, ids[e.Name()])
		}
	}
	slices.Sort(left)
	want := []string{"alive", "alive, writing its journal", "guard", "journal", "journaled", "of nobody", "record", "recorded"}
	if !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
	if err := session.Open(t.TempDir()).SweepDead(); err != nil {
		t.Errorf("in a clone without operations: %v", err)
	}
}

// What a process that is gone did not write to its end is swept, what one writes
// now is not.
func TestSweepOfUnwrittenFiles(t *testing.T) {
	d := session.Open(t.TempDir())
	old := time.Now().Add(-48 * time.Hour)
	var want []string
	for _, dir := range []string{"probe", "session", "outbox"} {
		if err := os.MkdirAll(d.Path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, stays := range map[string]bool{"a.json.1.tmp": false, "a.json.2.tmp": true, "a.json": true} {
			path := d.Path(dir, name)
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if name != "a.json.2.tmp" {
				if err := os.Chtimes(path, old, old); err != nil {
					t.Fatal(err)
				}
			}
			if stays {
				want = append(want, path)
			}
		}
	}
	if err := d.SweepDead(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(d.Path("*", "*"))
	slices.Sort(left)
	slices.Sort(want)
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left: %q, %v; want %q", left, err, want)
	}
}

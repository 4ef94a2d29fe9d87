package session_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/session"
)

// What checks printed is kept for the user alone, and the oldest of it goes.
func TestOutputs(t *testing.T) {
	t.Parallel()
	dir := session.Open(t.TempDir())
	start := time.Now()
	var ids []ulid.ULID
	for n := range 43 {
		id := session.NewID(start.Add(time.Duration(n) * time.Second))
		ids = append(ids, id)
		if err := dir.KeepOutput(id, []byte(strings.Repeat("x", n))); err != nil {
			t.Fatal(err)
		}
	}
	stranger := dir.Path("output", "notes.log")
	if err := os.WriteFile(stranger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	old := dir.Path("output", "half.tmp")
	if err := errors.Join(os.WriteFile(old, nil, 0o600), os.Chtimes(old, time.Time{}, start.Add(-48*time.Hour))); err != nil {
		t.Fatal(err)
	}
	last := session.NewID(start.Add(time.Hour))
	if err := dir.KeepOutput(last, []byte("last")); err != nil {
		t.Fatal(err)
	}
	for n, id := range append(ids, last) {
		text, err := dir.Output(id)
		if gone := n < 4; gone != errors.Is(err, fs.ErrNotExist) || !gone && err != nil {
			t.Errorf("output %d: %q, %v", n, text, err)
		}
	}
	info, err := os.Stat(dir.OutputPath(last))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(stranger); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("what was left half written is still there")
	}
}

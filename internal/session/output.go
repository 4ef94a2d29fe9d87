package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
)

// maxOutputs is how many outputs a clone keeps.
const maxOutputs = 40

// KeepOutput keeps what a check printed, of at most the size that all files here may
// have, under the id of its verification. Of all that are kept the oldest go.
func (d Dir) KeepOutput(id ulid.ULID, text []byte) error {
	if err := writeFile(d.OutputPath(id), text); err != nil {
		return err
	}
	d.sweepOutputs()
	return nil
}

// Output reads what KeepOutput kept. The error is fs.ErrNotExist where that is
// nothing, or not any more.
func (d Dir) Output(id ulid.ULID) ([]byte, error) { return readFile(d.OutputPath(id), nil) }

// OutputPath is the file of what the check of a verification printed.
func (d Dir) OutputPath(id ulid.ULID) string { return d.Path("output", id.String()+".log") }

// sweepOutputs is worth no failure: the next one tries again.
func (d Dir) sweepOutputs() {
	entries, _ := os.ReadDir(d.Path("output"))
	var kept []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".log"); ok {
			if _, err := ulid.ParseStrict(name); err == nil {
				kept = append(kept, e.Name())
			}
		}
	}
	slices.Sort(kept) // by time: so ids sort
	for _, name := range kept[:max(0, len(kept)-maxOutputs)] {
		_ = removeFile(filepath.Join(d.Path("output"), name))
	}
	_ = d.sweepUnwritten("output")
}

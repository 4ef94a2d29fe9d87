package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Several files change as one, in the directory .release at the top of the checkout:
//
//	.release/new/0…  what the files shall be, written and synced first
//	.release/begun   what goes where; that it has this name is the point of no return
//	.release/ended   the same when all of it is done
//
// Whoever finds begun goes on from there, as often as it takes, and whoever does not
// drops what there is of new. All this is for the holder of the lease alone.

// A change is of one file.
type change struct {
	Path string `json:"path"`          // from the top
	Was  string `json:"was,omitempty"` // SHA-256 of what it replaces; "" where there was no file
	Is   string `json:"is,omitempty"`  // SHA-256 of what it shall be; "" where the file goes

	content []byte
}

// An operation is a set of changes, and under which operation of the lease they are made.
type operation struct {
	Lease   string   `json:"lease_operation"`
	Changes []change `json:"changes"`
}

func (t *tool) state(name string) string { return filepath.Join(t.top, ".release", name) }

func (t *tool) isBegun() bool {
	_, err := os.Lstat(t.state("begun"))
	return err == nil
}

// write makes the changes, all of them or, for now, none.
func (t *tool) write(op operation) error {
	if err := os.MkdirAll(t.state("new"), 0o777); err != nil {
		return err
	}
	// Git need not know of all this, nor who looks at git status.
	if err := writeSynced(t.state(".gitignore"), []byte("*\n")); err != nil {
		return err
	}
	for i, c := range op.Changes {
		if c.Is == "" {
			continue
		}
		if err := writeSynced(t.staged(i), c.content); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(op, "", "  ")
	if err != nil {
		return err
	}
	if err := writeSynced(t.state("new/begun"), text); err != nil {
		return err
	}
	if err := syncDirs(t.state("new"), t.top); err != nil {
		return err
	}
	if err := os.Rename(t.state("new/begun"), t.state("begun")); err != nil {
		return err
	}
	if err := syncDirs(t.state("")); err != nil {
		return err
	}
	_, _, err = t.settle()
	return err
}

// settle ends what a call of write has begun, and reports whether there was anything.
// A file that is neither what it was nor what it shall be has been changed by somebody
// since: nothing is touched then.
func (t *tool) settle() (op operation, finished bool, err error) {
	if op, err = t.read("begun"); errors.Is(err, fs.ErrNotExist) {
		return op, false, os.RemoveAll(t.state("new"))
	}
	if err != nil {
		return op, false, err
	}
	var todo []int
	for i, c := range op.Changes {
		now, err := digestOf(t.path(c))
		switch {
		case err != nil:
			return op, false, err
		case now == c.Is:
		case now == c.Was:
			todo = append(todo, i)
		default:
			return op, false, &fault{refused, fmt.Sprintf("%s was changed after the preparation of operation %s had stopped half way", c.Path, op.Lease),
				"put it back: git checkout -- " + quote(c.Path)}
		}
	}
	for _, i := range todo {
		c := op.Changes[i]
		if c.Is == "" {
			err = os.Remove(t.path(c))
		} else {
			err = os.Rename(t.staged(i), t.path(c))
		}
		if err != nil {
			return op, false, err
		}
	}
	var dirs []string
	for _, c := range op.Changes {
		dirs = append(dirs, filepath.Dir(t.path(c)))
	}
	slices.Sort(dirs)
	if err := syncDirs(slices.Compact(dirs)...); err != nil {
		return op, false, err
	}
	if err := os.Rename(t.state("begun"), t.state("ended")); err != nil {
		return op, false, err
	}
	return op, true, errors.Join(syncDirs(t.state("")), os.RemoveAll(t.state("new")))
}

// ended is the last operation, if its files are as it left them.
func (t *tool) ended() (op operation, ok bool) {
	op, err := t.read("ended")
	if err != nil {
		return op, false
	}
	return op, !slices.ContainsFunc(op.Changes, func(c change) bool {
		now, err := digestOf(t.path(c))
		return err != nil || now != c.Is
	})
}

func (t *tool) read(name string) (op operation, err error) {
	text, err := os.ReadFile(t.state(name))
	if err != nil {
		return op, err
	}
	return op, json.Unmarshal(text, &op)
}

func (t *tool) path(c change) string { return filepath.Join(t.top, filepath.FromSlash(c.Path)) }

func (t *tool) staged(i int) string { return t.state(filepath.Join("new", strconv.Itoa(i))) }

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func digestOf(path string) (string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return digest(content), err
}

func writeSynced(path string, content []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDirs has the names in directories last, as Sync of a file has its content.
func syncDirs(dirs ...string) error {
	for _, dir := range dirs {
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
	}
	return nil
}

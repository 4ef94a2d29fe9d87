package git

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"gitland/internal/object"
)

// A Pointer is what git-lfs has in the place of a file.
type Pointer struct {
	Blob   object.OID
	Object string // the SHA-256 of the file's content
}

// maxPointer is how large a pointer can be, and smaller than it no pointer is.
const minPointer, maxPointer = 100, 1024

// pointerText is a pointer by git-lfs's docs/spec.md: keys in order, version first.
var pointerText = regexp.MustCompile(`^version https?://[^\n]*/spec/v1\n(?:[a-z0-9.-]+ [^\n]*\n)*?oid sha256:([0-9a-f]{64})\nsize ([0-9]+)\n`)

// LostPointers are those of the blobs that are pointers of git-lfs whose objects are not in
// this clone. In a partial clone that does not use git-lfs none is looked at: that would
// fetch them.
func (r *Repo) LostPointers(ctx context.Context, blobs []object.OID) ([]Pointer, error) {
	if len(blobs) == 0 || r.partial() && len(r.Config.Below("filter.lfs.")) == 0 {
		return nil, nil
	}
	small, err := r.Small(ctx, blobs, maxPointer)
	if err != nil {
		return nil, err
	}
	var lost []Pointer
	for _, o := range small {
		if len(o.Data) < minPointer || !bytes.HasPrefix(o.Data, []byte("version http")) {
			continue
		}
		m := pointerText.FindSubmatch(o.Data)
		if m == nil || string(m[2]) == "0" { // an empty file has no object
			continue
		}
		if size, _ := strconv.ParseInt(string(m[2]), 10, 64); !r.hasLFSObject(string(m[1]), size) {
			lost = append(lost, Pointer{o.OID, string(m[1])})
		}
	}
	return lost, nil
}

// partial reports whether objects that are not here may be fetched when they are read.
func (r *Repo) partial() bool {
	return r.Config.Get("extensions.partialclone") != "" || len(r.promisors()) > 0
}

func (r *Repo) promisors() (remotes []string) {
	for _, remote := range r.Config.Remotes() {
		if on, err := r.Config.Bool("remote."+remote+".promisor", false); err == nil && on {
			remotes = append(remotes, remote)
		}
	}
	return remotes
}

// hasLFSObject looks where git-lfs keeps its objects: at lfs.storage, which is relative to
// the git directory, and beside the object stores that this one borrows from.
func (r *Repo) hasLFSObject(sha string, size int64) bool {
	storage := r.Config.Get("lfs.storage")
	if storage == "" {
		storage = "lfs"
	}
	if !filepath.IsAbs(storage) {
		storage = filepath.Join(r.CommonDir, storage)
	}
	stores := []string{storage}
	alternates, _ := os.ReadFile(filepath.Join(r.CommonDir, "objects", "info", "alternates")) // most have none
	for line := range strings.Lines(string(alternates)) {
		if objects := strings.TrimSpace(line); objects != "" && objects[0] != '#' {
			if !filepath.IsAbs(objects) {
				objects = filepath.Join(r.CommonDir, "objects", objects)
			}
			stores = append(stores, filepath.Join(filepath.Dir(objects), "lfs"))
		}
	}
	for _, store := range stores {
		info, err := os.Stat(filepath.Join(store, "objects", sha[:2], sha[2:4], sha))
		if err == nil && info.Size() == size {
			return true
		}
	}
	return false
}

// FilteredBy are those of some paths, relative to the top, that have the filter by
// .gitattributes of the work tree; none where there is no work tree.
func (r *Repo) FilteredBy(ctx context.Context, filter string, paths []string) ([]string, error) {
	if r.Top == "" || len(paths) == 0 {
		return nil, nil
	}
	out, err := r.run(ctx, command{reading: true, dir: r.Top, args: []string{"check-attr", "-z", "--stdin", "filter"},
		stdin: []byte(strings.Join(paths, "\x00") + "\x00")})
	if err != nil {
		return nil, err
	}
	var filtered []string
	fields := strings.Split(out, "\x00")
	for i := 0; i+2 < len(fields); i += 3 { // path, attribute, value
		if fields[i+2] == filter {
			filtered = append(filtered, fields[i])
		}
	}
	return filtered, nil
}

package property

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitland/internal/object"
)

// A store writes objects into a repository as git has them, without starting it.
type store struct {
	t      *testing.T
	gitDir string
	format object.Format
}

func (s store) write(kind object.Kind, data []byte) object.OID {
	s.t.Helper()
	o := s.format.New(kind, data)
	path := filepath.Join(s.gitDir, "objects", string(o.OID[:2]), string(o.OID[2:]))
	if _, err := os.Stat(path); err == nil {
		return o.OID
	}
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	fmt.Fprintf(z, "%s %d\x00", kind, len(data))
	z.Write(data)
	err := errors.Join(z.Close(), os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, packed.Bytes(), 0o444))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		s.t.Fatal(err)
	}
	return o.OID
}

// id is the object id of an entry.
func id(format object.Format, e entry) object.OID {
	if e.mode == gitlink {
		return object.OID(e.data)
	}
	return format.Hash(object.Blob, []byte(e.data))
}

func (s store) blob(e entry) object.OID {
	if e.mode == gitlink {
		return object.OID(e.data)
	}
	return s.write(object.Blob, []byte(e.data))
}

// tree writes what is below dir, which is empty or ends with a slash.
func (s store) tree(t tree, dir string) object.OID {
	s.t.Helper()
	var entries []object.TreeEntry
	below := map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(t)) {
		rest, ok := strings.CutPrefix(p, dir)
		if !ok {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		switch {
		case !deeper:
			entries = append(entries, object.TreeEntry{Mode: t[p].mode, Name: name, OID: s.blob(t[p])})
		case !below[name]:
			below[name] = true
			entries = append(entries, object.TreeEntry{Mode: "40000", Name: name, OID: s.tree(t, dir+name+"/")})
		}
	}
	slices.SortFunc(entries, func(a, b object.TreeEntry) int {
		if object.TreeLess(a, b) {
			return -1
		}
		return 1
	})
	data, err := object.EncodeTree(entries)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.write(object.Tree, data)
}

func (s store) commit(t tree, parents []object.OID, author, message string) object.OID {
	s.t.Helper()
	return s.write(object.Commit, object.CommitData{Tree: s.tree(t, ""), Parents: parents,
		Author: author, Committer: author, Message: message}.Encode())
}

// refs reads all refs of a repository from its files.
func refs(t *testing.T, gitDir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	if packed, err := os.ReadFile(filepath.Join(gitDir, "packed-refs")); err == nil {
		for line := range strings.Lines(string(packed)) {
			if oid, ref, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
				found[ref] = oid
			}
		}
	}
	err := filepath.WalkDir(filepath.Join(gitDir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		data, err := os.ReadFile(path)
		name, relErr := filepath.Rel(gitDir, path)
		found[filepath.ToSlash(name)] = strings.TrimSpace(string(data))
		return errors.Join(err, relErr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// setRef moves a ref as a push by somebody else would have.
func setRef(t *testing.T, gitDir, ref string, oid object.OID) {
	t.Helper()
	path := filepath.Join(gitDir, filepath.FromSlash(ref))
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(string(oid)+"\n"), 0o666))
	if err != nil {
		t.Fatal(err)
	}
}

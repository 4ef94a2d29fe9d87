package gittest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// An image is a small directory in memory: made by git once, and put down as often
// as a test wants one like it. To start the processes that would make it again is
// what most of a test's time goes into. The keys are paths with slashes.
type image map[string]imageFile

type imageFile struct {
	mode fs.FileMode
	data []byte // not of a directory
}

// imageOf reads a directory, without the sample hooks that git puts everywhere.
func imageOf(dir string) (image, error) {
	im := image{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, ".sample") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		file := imageFile{mode: info.Mode()}
		if info.Mode().IsRegular() {
			if file.data, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		im[filepath.ToSlash(name)] = file
		return nil
	})
	return im, err
}

// put writes the image to a directory that is not there yet.
func (im image) put(t T, dir string) {
	t.Helper()
	for name, file := range im {
		path, err := filepath.Join(dir, filepath.FromSlash(name)), error(nil)
		if file.mode.IsDir() {
			err = os.MkdirAll(path, 0o777)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
			err = os.WriteFile(path, file.data, file.mode.Perm())
		}
		if err != nil {
			t.Fatalf("gittest: %v", err)
		}
	}
}

// replaced is the image with another text in its configuration and its reflogs.
func (im image) replaced(old, new string) image {
	changed := image{}
	for name, file := range im {
		if name == ".git/config" || strings.HasPrefix(name, ".git/logs/") {
			file.data = bytes.ReplaceAll(file.data, []byte(old), []byte(new))
		}
		changed[name] = file
	}
	return changed
}

// origin is the URL that a clone is from.
func (im image) origin() string {
	_, url, _ := strings.Cut(string(im[".git/config"].data), "url = ")
	url, _, _ = strings.Cut(url, "\n")
	return url
}

// stands says whether a bare repository is what the image says. What it takes from
// a push is left out: a clone is the same for it.
func (im image) stands(dir string) bool {
	now, err := imageOf(dir)
	if err != nil || len(now) != len(im) {
		return false
	}
	for name, file := range im {
		data := now[name].data
		if name == "config" {
			data, _, _ = bytes.Cut(data, []byte("[receive]"))
		}
		if now[name].mode.Type() != file.mode.Type() || !bytes.Equal(data, file.data) {
			return false
		}
	}
	return true
}

var (
	imagesMu sync.Mutex
	images   = map[string]image{}
)

// imageFor is the image of a name, which make makes a directory of once.
func imageFor(t T, name string, make func() string) image {
	t.Helper()
	imagesMu.Lock()
	defer imagesMu.Unlock()
	im, ok := images[name]
	if !ok {
		var err error
		if im, err = imageOf(make()); err != nil {
			t.Fatalf("gittest: %v", err)
		}
		images[name] = im
	}
	return im
}

// CopyTree copies a directory to another that is not there yet, with modes and
// modification times.
func CopyTree(t T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case d.IsDir():
			return os.Mkdir(target, info.Mode().Perm())
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if info.Mode()&0o111 != 0 { // as Script does it
			Script(t, target, string(data))
		} else if err := os.WriteFile(target, data, info.Mode().Perm()); err != nil {
			return err
		}
		return os.Chtimes(target, info.ModTime(), info.ModTime())
	})
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
}

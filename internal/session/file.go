package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The bounds of files, when written as when read. A landing's journal has a line
// for each path that was staged.
const (
	maxFile    = 1 << 20
	maxJournal = 64 << 20
)

func bound(path string) int {
	if filepath.Base(filepath.Dir(path)) == "journal" {
		return maxJournal
	}
	return maxFile
}

// writeFile replaces path by data: one write, one sync of the file, one of the
// directory. After a crash the old file or the new one is there, and after a
// return without an error it is the new one.
func writeFile(path string, data []byte) error {
	if limit := bound(path); len(data) > limit {
		return fmt.Errorf("write %s: %d bytes, at most %d are allowed", path, len(data), limit)
	}
	// A name of its own for each writer: two of them must not share a file.
	dir, pattern := filepath.Dir(path), filepath.Base(path)+".*.tmp"
	f, err := inDir(dir, func() (*os.File, error) { return os.CreateTemp(dir, pattern) })
	if err != nil {
		return err
	}
	if err := fill(f, data); err != nil {
		os.Remove(f.Name())
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		os.Remove(f.Name())
		return err
	}
	return syncDir(dir)
}

// fill writes, syncs and closes f.
func fill(f *os.File, data []byte) error {
	err := ownerMode(f, 0o600)
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// readFile reads at most as many bytes as bound says. check, when not nil, sees the opened
// file first.
func readFile(path string, check func(fs.FileInfo) error) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if check != nil {
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if err := check(info); err != nil {
			return nil, err
		}
	}
	limit := bound(path)
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("read %s: more than %d bytes", path, limit)
	}
	return data, err
}

// removeFile removes path; one that is not there is removed already. It does
// not sync: what a crash brings back is concluded, or sent, a second time.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// inDir calls create, and once more after making dir if that was missing.
// Trying first keeps the checks of the first time out of every later one.
func inDir[F any](dir string, create func() (F, error)) (F, error) {
	f, err := create()
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDir(dir); err != nil {
			return f, err
		}
		return create()
	}
	return f, err
}

// makeDir creates dir and, if need be, the directory above it, but nothing
// higher: a repository that was removed under us is not begun anew.
func makeDir(dir string) error {
	err := makePrivate(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makePrivate(filepath.Dir(dir)); err != nil {
			return err
		}
		err = makePrivate(dir)
	}
	return err
}

func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		// Made under a umask that takes the owner's rights away.
		if err = os.Chmod(dir, 0o700); err == nil {
			f, err = os.Open(dir)
		}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := ownerMode(f, 0o700); err != nil {
		return err
	}
	// Also when it was there: whoever made it may not have come to this yet.
	return syncDir(filepath.Dir(dir))
}

// ownerMode gives back what a strange umask took from the owner of a file that
// was created with mode. A umask never adds rights, so there is nothing else to
// do, and nothing to fail on a file system without modes.
func ownerMode(f *os.File, mode fs.FileMode) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode()&mode != mode {
		return f.Chmod(mode)
	}
	return nil
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	// Some network file systems cannot, and say so.
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

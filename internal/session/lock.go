package session

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// A Flock is an exclusive lock on a file. It belongs to the open file, not to
// the process: a child that inherits File goes on holding it when this process
// has closed it or died. Keep it until Close: one that nothing refers to any
// more is closed with the file.
type Flock struct{ f *os.File }

// TryLock locks the file at path, which it creates, or reports false at once
// if somebody has it locked. The directory, and the one above it, are created
// too.
func TryLock(path string) (*Flock, bool, error) {
	f, err := inDir(filepath.Dir(path), func() (*os.File, error) {
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	})
	if err != nil {
		return nil, false, err
	}
	if err := ownerMode(f, 0o600); err != nil {
		f.Close()
		return nil, false, err
	}
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = nil
		}
		return nil, false, err
	}
	return &Flock{f}, true, nil
}

// File is the locked file, to be handed down to a child. Other children do not
// get it: it is closed on exec.
func (l *Flock) File() *os.File { return l.f }

// Close gives up this process's part of the lock. It never unlocks, which would
// unlock the file under a child that inherited it.
func (l *Flock) Close() error { return l.f.Close() }

// Lock locks the file at path, which it creates like TryLock, and waits for it
// until ctx is done. It is for short work, and closing it unlocks it for
// everybody.
func Lock(ctx context.Context, path string) (io.Closer, error) {
	type result struct {
		f   *lockedfile.File
		err error
	}
	got := make(chan result)
	go func() {
		// A wait for a file lock cannot be cut short; left alone, it ends here.
		f, err := lockPrivate(path)
		select {
		case got <- result{f, err}:
		case <-ctx.Done():
			if err == nil {
				f.Close()
			}
		}
	}()
	select {
	case r := <-got:
		if r.err != nil {
			return nil, r.err
		}
		return r.f, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lockPrivate waits for an exclusive lock on the file at path, which it creates.
func lockPrivate(path string) (*lockedfile.File, error) {
	f, err := inDir(filepath.Dir(path), func() (*lockedfile.File, error) {
		return lockedfile.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	})
	if err != nil {
		return nil, err
	}
	if err := ownerMode(f.File, 0o600); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// flock is flock(2), which a signal may interrupt.
func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch err {
		case nil:
			return nil
		case syscall.EINTR:
		default:
			return &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

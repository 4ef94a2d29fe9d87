package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rogpeppe/go-internal/lockedfile"
)

// ErrAlive says that the operation's witness is locked: somebody works on it.
var ErrAlive = errors.New("the operation is alive")

// ErrNoWitness says that the operation has no witness in this clone: nothing
// is known about whether it lives.
var ErrNoWitness = errors.New("no witness of the operation in this clone")

// A Witness shows that an operation is alive: its file is locked until every
// process that has it open is gone, however they went. Close only lets go of
// this process's part.
type Witness struct {
	*Flock
	dir Dir
	op  ulid.ULID
}

// Witness locks the witness of op, which it creates: for a new operation, or to
// take over a dead one, of which exactly one process succeeds. The error is
// ErrAlive if another process has it. Take it before the first journal of op is
// written.
func (d Dir) Witness(op ulid.ULID) (*Witness, error) {
	guard, err := lockPrivate(d.guard())
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	lock, ok, err := TryLock(d.witness(op))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("operation %s: %w", op, ErrAlive)
	}
	return &Witness{lock, d, op}, nil
}

// Remove removes the files of a finished operation and closes the witness. Only
// the holder can, and it must have removed the journal and ended any hold
// before: nobody asks for the witness of an operation that left neither, so
// nobody can mistake a file that is gone for a process that is.
func (w *Witness) Remove() error {
	guard, err := lockPrivate(w.dir.guard())
	if err != nil {
		return errors.Join(err, w.Close())
	}
	defer guard.Close()
	err = removeFile(w.dir.witness(w.op))
	entries, _ := os.ReadDir(w.dir.Path("witness"))
	for _, e := range entries { // what a crash in the middle of writing the record has left
		if strings.HasPrefix(e.Name(), w.op.String()+".json.") {
			err = errors.Join(err, removeFile(w.dir.Path("witness", e.Name())))
		}
	}
	// The record last: Sweep finds by it what a crash has left here.
	return errors.Join(err, removeFile(w.dir.record(w.op)), w.Close())
}

// SweepDead removes what is left of operations that died before they had a
// journal or a record, and of writes that did not come to their end: nobody will
// ask for it any more.
func (d Dir) SweepDead() error {
	var errs []error
	for _, name := range []string{"journal", "witness"} {
		entries, err := os.ReadDir(d.Path(name))
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			id, rest, _ := strings.Cut(e.Name(), ".json")
			op, notOurs := ulid.ParseStrict(id)
			if notOurs != nil || name == "journal" && rest == "" || rest == "" && d.leftMore(op) {
				continue
			}
			errs = append(errs, d.sweep(op, d.Path(name, e.Name()), rest != ""))
		}
	}
	for _, name := range []string{"probe", "session", "outbox"} {
		errs = append(errs, d.sweepUnwritten(name))
	}
	return errors.Join(errs...)
}

// writing is longer than any write of a small file takes. What is older was left
// by a process that is gone; were it not, its write would fail, and say so.
const writing = 24 * time.Hour

// sweepUnwritten removes files that writeFile began and did not end.
func (d Dir) sweepUnwritten(name string) error {
	entries, err := os.ReadDir(d.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		if info, statErr := e.Info(); statErr == nil && time.Since(info.ModTime()) > writing {
			err = errors.Join(err, removeFile(d.Path(name, e.Name())))
		}
	}
	return err
}

// sweep removes a file of op, unless that is alive.
func (d Dir) sweep(op ulid.ULID, path string, unfinished bool) error {
	if alive, err := d.Alive(op); alive || err != nil && !errors.Is(err, ErrNoWitness) {
		return err
	}
	if unfinished {
		return removeFile(path)
	}
	w, err := d.Witness(op)
	if errors.Is(err, ErrAlive) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.leftMore(op) { // between the look and the lock
		return w.Close()
	}
	return w.Remove()
}

func (d Dir) leftMore(op ulid.ULID) bool {
	_, err := os.Lstat(d.Journal().Path(op))
	return err == nil || d.Recorded(op)
}

// Alive reports whether some process has the witness of op open. The error is
// ErrNoWitness if there is no such file. It creates nothing.
func (d Dir) Alive(op ulid.ULID) (bool, error) {
	none := fmt.Errorf("operation %s: %w", op, ErrNoWitness)
	// First, as the guard is older than any witness: where there is a witness,
	// the guard is missing only if somebody removed it.
	if _, err := os.Lstat(d.witness(op)); errors.Is(err, fs.ErrNotExist) {
		return false, none
	}
	guard, err := lockedfile.Open(d.guard())
	switch {
	case err == nil:
		defer guard.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	f, err := os.Open(d.witness(op))
	if errors.Is(err, fs.ErrNotExist) {
		return false, none
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = flock(f, syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// Not left to Close: a child that is just being started has a copy of the
	// descriptor until its exec.
	return false, flock(f, syscall.LOCK_UN)
}

// guard is a file that Witness and Remove lock for themselves, and Alive
// together with others of its kind. Without it the lock that Alive takes for an
// instant would be seen as a sign of life.
func (d Dir) guard() string { return d.Path("witness", "guard.lock") }

func (d Dir) witness(op ulid.ULID) string { return d.Path("witness", op.String()) }

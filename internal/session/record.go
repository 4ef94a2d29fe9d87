package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/oklog/ulid/v2"
)

// Work says what an operation is about to do, for those who ask later whether
// it still does.
type Work struct {
	Lease LeaseAt // that it takes, before any other
	// Tie is the PID of a process that the operation is to last as long as; 0
	// for one that lasts as long as its witness is locked.
	Tie int
}

// ErrNoProcess says that no process has the given PID.
var ErrNoProcess = errors.New("there is no such process")

// Begin locks the witness of a new operation, like Witness, and records where
// it runs. The error is ErrNoProcess when Work names no process.
func (d Dir) Begin(op ulid.ULID, work Work) (*Witness, error) {
	r := Record{Operation: op, LeaseAt: work.Lease, PID: os.Getpid(), Tied: work.Tie != 0}
	if r.Tied {
		r.PID = work.Tie
		if err := CanTie(r.PID); err != nil {
			return nil, err
		}
	}
	seen := look(r.PID)
	w, err := d.Witness(op)
	if err != nil {
		return nil, err
	}
	here, err := d.here(op)
	if err == nil {
		err = writeJSON(d.record(op), newRecord(r, here, seen.Start))
	}
	if err != nil {
		return nil, errors.Join(err, w.Remove())
	}
	return w, nil
}

// Runs adds to the record of a begun operation that it runs a command.
func (w *Witness) Runs(pid int) error {
	var r Record
	if err := readJSON(w.dir.record(w.op), &r); err != nil {
		return err
	}
	seen := look(pid)
	if seen.Absent { // it was a short one
		return nil
	}
	r.Command, r.CommandStart = pid, r.digest("start", seen.Start)
	return writeJSON(w.dir.record(w.op), r)
}

// Takes adds to the record of a begun operation that it takes one more lease.
func (w *Witness) Takes(lease LeaseAt) error {
	var r Record
	if err := readJSON(w.dir.record(w.op), &r); err != nil {
		return err
	}
	r.Further = append(r.Further, lease)
	return writeJSON(w.dir.record(w.op), r)
}

// End takes leases that were given back, or taken off the operation, from its record, and
// closes the witness. Where none is left all files go, as with Remove: while one is,
// somebody may have to be told by them whether the operation lives.
func (w *Witness) End(ended ...LeaseAt) error {
	var r Record
	if readJSON(w.dir.record(w.op), &r) != nil { // it tells nobody anything
		return w.Remove()
	}
	left := slices.DeleteFunc(r.leases(), func(l LeaseAt) bool { return slices.Contains(ended, l) })
	if len(left) == 0 {
		return w.Remove()
	}
	r.LeaseAt, r.Further = left[0], left[1:]
	return errors.Join(writeJSON(w.dir.record(w.op), r), w.Close())
}

// CanTie says why an operation cannot be tied to the process with a PID. The
// error is ErrNoProcess when there is none.
func CanTie(pid int) error {
	switch seen := look(pid); {
	case seen.Absent:
		return fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	case seen.Start == "" || namespace() == "": // /proc may be that of others
		return fmt.Errorf("process %d: when it was started cannot be read, so it could not be told from a later one", pid)
	}
	return nil
}

// Recorded reports whether op has a record in this clone.
func (d Dir) Recorded(op ulid.ULID) bool {
	_, err := os.Lstat(d.record(op))
	return err == nil
}

// Left are the leases that a recorded operation took, or was about to, and is not known to
// have lost.
func (d Dir) Left(op ulid.ULID) []LeaseAt {
	var r Record
	if readJSON(d.record(op), &r) != nil { // there is none, mostly
		return nil
	}
	return r.leases()
}

// Evidence gathers what there is about op, here and now. It creates nothing.
func (d Dir) Evidence(op ulid.ULID) (Evidence, error) {
	var e Evidence
	var r Record
	switch err := readJSON(d.record(op), &r); {
	case err == nil:
		e.Record = &r
	case !errors.Is(err, fs.ErrNotExist):
		return e, err
	}
	var err error
	if e.Here, err = d.here(op); err != nil {
		return e, err
	}
	// Before the witness: who is seen to have ended has let go of it.
	if e.Record != nil {
		e.Seen = look(r.PID)
	}
	if r.Command != 0 {
		e.Command = look(r.Command)
	}
	switch alive, err := d.Alive(op); {
	case errors.Is(err, ErrNoWitness):
		e.Witness = NoWitness
	case err != nil:
		return e, err
	case alive:
		e.Witness, e.Holders = Locked, holders(d.witness(op))
	default:
		e.Witness = Free
	}
	return e, nil
}

// Forget removes what is left of a recorded operation that has ended on a lease, as End
// does. It leaves everything as it is while a process has the witness: that one will.
func (d Dir) Forget(op ulid.ULID, ended LeaseAt) error {
	if !d.Recorded(op) {
		return nil
	}
	w, err := d.Witness(op)
	if errors.Is(err, ErrAlive) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.End(ended)
}

// Sweep forgets the operations on a lease but the one that holds it: they have
// ended there, whether or not they came to tidy up.
func (d Dir) Sweep(on LeaseAt, but ulid.ULID) error {
	ids, err := Store{d, "witness"}.List()
	for _, id := range ids {
		var r Record
		if id == but || readJSON(d.record(id), &r) != nil || !slices.Contains(r.leases(), on) {
			continue
		}
		err = errors.Join(err, d.Forget(id, on))
	}
	return err
}

// here is this place, with the identity of op's witness where there is one.
func (d Dir) here(op ulid.ULID) (Place, error) {
	p := Place{Machine: machineID(), Boot: bootID(), Namespace: namespace()}
	common := filepath.Dir(d.path)
	info, err := os.Stat(common)
	if err != nil {
		return p, err
	}
	p.Local = isLocal(common)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		p.Clone.Device, p.Clone.Inode = uint64(stat.Dev), stat.Ino
	}
	switch info, err := os.Lstat(d.witness(op)); {
	case err == nil:
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			p.Clone.Witness = stat.Ino
		}
	case !errors.Is(err, fs.ErrNotExist):
		return p, err
	}
	return p, nil
}

func (d Dir) record(op ulid.ULID) string { return Store{d, "witness"}.Path(op) }

// commandName is what a process may be called by: the words of its command
// before the first option, two at most. What follows may be nobody's business.
func commandName(argv []string) string {
	var words []string
	for _, w := range argv[:min(len(argv), 2)] {
		if len(words) == 0 {
			w = strings.TrimPrefix(filepath.Base(w), "-") // of a login shell
		}
		if w == "" || strings.HasPrefix(w, "-") || strings.Trim(w, wordBytes) != "" {
			break
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+"

package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/git"
	"gitland/internal/note"
	"gitland/internal/object"
)

// A ChainError says which object keeps a chain from being one.
type ChainError struct {
	OID object.OID
	Err error
}

func (e *ChainError) Error() string { return e.Err.Error() }
func (e *ChainError) Unwrap() error { return e.Err }

// WholeChain reads all events of the lease called name up to tip, oldest first,
// and folds them. The error is a *ChainError where they are no sound chain; one
// that is of a newer format wraps a *event.NewerError. tell is told how far it
// is, and may be nil.
func (l *Ledger) WholeChain(ctx context.Context, name string, tip object.OID, tell func(done, all int)) ([]event.Event, error) {
	ids, err := l.Repo.FirstParents(ctx, tip, "", math.MaxInt32)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		if o, lookErr := l.Repo.Lookup(ctx, string(tip)); lookErr != nil || o.Kind == object.Commit {
			err = fmt.Errorf("%w: %w", git.ErrNotFound, err) // something below it is not here
		}
		return nil, &ChainError{tip, err}
	}
	if len(ids) == 0 {
		return nil, &ChainError{tip, fmt.Errorf("%s is no commit", tip.Short())}
	}
	bad := make([]error, len(ids))
	events, err := readAll(ctx, l, ids, tell, func(i int, o object.Object, err error) event.Event {
		var e event.Event
		if err == nil {
			e, err = event.Parse(l.Repo.Format, o)
		}
		if err == nil && e.Name != name {
			err = fmt.Errorf("%s is an event of the lease %q", o.OID.Short(), e.Name)
		}
		bad[i] = err
		return e
	})
	if err != nil {
		return nil, err
	}
	for i := range events {
		if bad[i] != nil {
			return nil, &ChainError{ids[i], bad[i]}
		}
		if events[i].First() { // what an adopt goes over may lie below
			events = events[:i+1]
			break
		}
	}
	slices.Reverse(events)
	if first := events[0]; !first.First() { // git takes the edge of a shallow clone for an end
		return nil, &ChainError{first.Parents[0], fmt.Errorf("%w: %s", git.ErrNotFound, first.Parents[0])}
	}
	return events, sound(events)
}

// sound says which event does not follow the one before it, if one does not.
func sound(events []event.Event) error {
	_, err := chain.Fold(events)
	if err == nil {
		return nil
	}
	n := sort.Search(len(events), func(i int) bool {
		_, err := chain.Fold(events[:i+1])
		return err != nil
	})
	return &ChainError{events[min(n, len(events)-1)].OID, err}
}

// A RecordNote is the note with the records of one landed commit.
type RecordNote struct {
	On    object.OID
	Lines []note.Line[note.Record]
	Err   error // why it could not be read
}

// WholeRecords reads the notes with landing records at tip, in the order of the
// objects that they are on. It passes over those that skip says, which may be
// nil. The error is for notes that cannot be listed at all.
func (l *Ledger) WholeRecords(ctx context.Context, tip object.OID, skip func(on object.OID) bool, tell func(done, all int)) ([]RecordNote, error) {
	if tip.IsZero() {
		return nil, nil
	}
	files, err := l.Repo.TreeFiles(ctx, tip)
	if err != nil {
		return nil, err
	}
	notes := make([]RecordNote, 0, len(files))
	ids := make([]object.OID, 0, len(files))
	for _, f := range files {
		on, err := object.ParseOID(strings.ReplaceAll(f.Path, "/", ""))
		if err != nil || !isNotePath(f.Path) || skip != nil && skip(on) {
			continue // git passes over what is no note, too
		}
		notes = append(notes, RecordNote{On: on})
		ids = append(ids, f.OID)
	}
	lines, err := readAll(ctx, l, ids, tell, func(i int, o object.Object, err error) []note.Line[note.Record] {
		if err == nil && o.Kind != object.Blob {
			err = fmt.Errorf("a %s", o.Kind)
		}
		if err != nil {
			notes[i].Err = err
			return nil
		}
		return note.ParseRecords(o.Data)
	})
	for i := range lines {
		notes[i].Lines = lines[i]
	}
	return notes, err
}

// readAll reads objects in one process and turns each into a value, as many at
// once as there are processors: taking them apart costs more than reading them.
// The data of an object is parse's only until it returns.
func readAll[T any](ctx context.Context, l *Ledger, ids []object.OID, tell func(done, all int), parse func(int, object.Object, error) T) ([]T, error) {
	values := make([]T, len(ids))
	batches := make(chan *batch, runtime.NumCPU())
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for b := range batches {
				for i, o := range b.objects {
					values[b.first+i] = parse(b.first+i, o, b.errs[i])
				}
				spare.Put(b)
			}
		})
	}
	b := emptied(0)
	err := l.Repo.ContentsIn(ctx, ids, func(size int) []byte { return b.room(size) }, func(i int, o object.Object, err error) error {
		b.objects, b.errs = append(b.objects, o), append(b.errs, err)
		if len(b.objects) == maxBatch || i == len(ids)-1 {
			batches <- b
			b = emptied(i + 1)
			if tell != nil {
				tell(i+1, len(ids))
			}
		}
		return nil
	})
	close(batches)
	wg.Wait()
	return values, err
}

const maxBatch = 256

// A batch is some objects in a row, with their data in one piece of memory that
// is used again.
type batch struct {
	first   int
	objects []object.Object
	errs    []error
	data    []byte
}

var spare = sync.Pool{New: func() any { return &batch{data: make([]byte, 0, 512<<10)} }}

func emptied(first int) *batch {
	b := spare.Get().(*batch)
	b.first, b.objects, b.errs, b.data = first, b.objects[:0], b.errs[:0], b.data[:0]
	return b
}

func (b *batch) room(size int) []byte {
	at := len(b.data)
	if size > cap(b.data)-at {
		return make([]byte, size)
	}
	b.data = b.data[:at+size]
	return b.data[at : at+size : at+size]
}

// lost reports whether the chain of v, which does not descend from the last tip that
// this clone saw, was put back to an earlier event. Otherwise it went on elsewhere,
// or cannot be read.
func (l *Ledger) lost(ctx context.Context, v View) (bool, error) {
	if v.BadTip == "" || v.LastGood == "" || v.Deleted || v.BadTip == v.LastGood {
		return false, nil
	}
	ids, err := l.Repo.FirstParents(ctx, v.LastGood, "", math.MaxInt32)
	if err != nil {
		return false, err
	}
	return slices.Contains(ids, v.BadTip), nil
}

// IsNewer reports whether err is about an event of a newer format.
func IsNewer(err error) bool {
	var newer *event.NewerError
	return errors.As(err, &newer)
}

// IsMissing reports whether err is about an object that is not in this clone.
func IsMissing(err error) bool { return errors.Is(err, git.ErrNotFound) }

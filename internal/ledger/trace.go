package ledger

import (
	"context"
	"errors"
	"slices"

	"gitland/internal/event"
	"gitland/internal/git"
	"gitland/internal/object"
)

// An Attempt is a publication whose outcome is not known: the tip that it
// expected, empty for none, and the events that it may have put on the chain.
type Attempt struct {
	Expected object.OID   `json:"expected"`
	Events   []object.OID `json:"events"`
}

// A Fate is what became of attempts, as a view of the authority tells.
type Fate struct {
	// Arrived is the newest of the attempted events that is on the chain,
	// nil when none is. It happened, and so did all that it follows.
	Arrived *event.Event
	// Pending means that the chain is where the last attempt expected it: the
	// push has not arrived yet, and may still.
	Pending bool
	// Others are the events on the chain since the first attempt, oldest
	// first; those of the attempts among them.
	Others []event.Event
}

// Trace finds out what became of attempts, given in the order in which they
// were made, from a view that was fetched after the last of them (rule 2 of
// the protocol, docs/design.md).
func (l *Ledger) Trace(ctx context.Context, v View, attempts []Attempt) (Fate, error) {
	if v.Problem != nil {
		return Fate{}, v.Problem
	}
	if len(attempts) == 0 || v.Tip == nil {
		return Fate{Pending: true}, nil
	}
	from := attempts[0].Expected
	others, err := l.after(ctx, *v.Tip, from)
	if isAmbiguous(err) || errors.Is(err, git.ErrNotFound) {
		// The chain is sound, and was led over what the attempts expected: it
		// went on elsewhere, so they cannot arrive any more.
		others, err = l.after(ctx, *v.Tip, "")
	}
	if err != nil {
		return Fate{}, err
	}
	fate := Fate{Others: others, Pending: v.TipOID() == attempts[len(attempts)-1].Expected}
	for i := range others {
		for _, a := range attempts {
			if slices.Contains(a.Events, others[i].OID) {
				fate.Arrived = &others[i]
			}
		}
	}
	return fate, nil
}

// after lists the events that follow from, or the whole chain when from is
// empty, up to tip.
func (l *Ledger) after(ctx context.Context, tip event.Event, from object.OID) ([]event.Event, error) {
	if from.IsZero() {
		run, err := l.Since(ctx, tip, tip.Root())
		return run, err
	}
	run, err := l.Since(ctx, tip, from)
	if err != nil {
		return nil, err
	}
	return run[1:], nil
}

// An UnsettledError is the error of a publication that was sent, and of which it
// is not known what became: it may have arrived, or may still. It says what its
// cause says, whatever the class of that.
type UnsettledError struct{ err error }

func (e *UnsettledError) Error() string { return e.err.Error() }

func (e *UnsettledError) Unwrap() error { return e.err }

// Unsettled makes err an UnsettledError, unless it is nil.
func Unsettled(err error) error {
	if err == nil {
		return nil
	}
	return &UnsettledError{err}
}

// IsUnsettled reports whether there is an UnsettledError in err's tree.
func IsUnsettled(err error) bool {
	_, is := errors.AsType[*UnsettledError](err)
	return is
}

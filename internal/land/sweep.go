package land

import (
	"errors"

	"github.com/oklog/ulid/v2"

	"gitland/internal/ledger"
	"gitland/internal/session"
)

// watched is an id for temporary files, with a witness that says that they are in
// use. Where there can be none, in a clone that is read only say, there is none.
func watched(l *ledger.Ledger) (id ulid.ULID, done func()) {
	id = l.NewID()
	w, err := l.Dir.Witness(id)
	if err != nil {
		return id, func() {}
	}
	return id, func() { w.Remove() }
}

// sweep removes what was left in this clone by operations that were killed before
// they had a journal. It is worth no failure: the next one tries again.
func sweep(l *ledger.Ledger) {
	l.Repo.SweepTemporary(ulid.EncodedSize, func(id string) bool {
		op, err := ulid.ParseStrict(id)
		if err != nil {
			return true
		}
		alive, err := l.Dir.Alive(op)
		return alive || err != nil && !errors.Is(err, session.ErrNoWitness)
	})
	_ = l.Dir.SweepDead()
}

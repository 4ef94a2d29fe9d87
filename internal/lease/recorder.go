package lease

import (
	"slices"

	"github.com/oklog/ulid/v2"

	"gitland/internal/ledger"
	"gitland/internal/session"
)

// A recorder shows of an operation, by its witness and its record in this clone, that it is
// alive, and which leases it has or may have.
type recorder struct {
	ledger  *ledger.Ledger
	tie     int              // as in an Acquisition
	witness *session.Witness // locked; nil before it takes anything
	leases  []session.LeaseAt
}

// takes records that op is about to take a lease.
func (r *recorder) takes(op ulid.ULID, lease session.LeaseAt) (err error) {
	switch {
	case slices.Contains(r.leases, lease): // and the race for it was lost
		return nil
	case r.witness == nil:
		r.witness, err = r.ledger.Dir.Begin(op, session.Work{Lease: lease, Tie: r.tie})
	default:
		err = r.witness.Takes(lease)
	}
	if err == nil {
		r.leases = append(r.leases, lease)
	}
	return err
}

// dismiss lets go of the witness of an acquisition that ended with err. Its files
// stay where the lease is held, or may be: Recover needs them then.
func (r *recorder) dismiss(err error) error {
	switch {
	case r.witness == nil:
		return nil
	case err == nil || ledger.IsUnsettled(err):
		return r.witness.Close()
	}
	return r.witness.Remove()
}

// close lets go of the witness. Of leases that may be held still the record stays, beside a
// witness that nobody has: the proof that nobody is at work.
func (r *recorder) close(left []session.LeaseAt) {
	if r.witness == nil {
		return
	}
	over := slices.DeleteFunc(slices.Clone(r.leases), func(l session.LeaseAt) bool { return slices.Contains(left, l) })
	tidy(r.ledger, r.witness.End(over...))
}

// tidy tells of files that could not be removed, which is no failure.
func tidy(l *ledger.Ledger, err error) {
	if err != nil {
		l.Notice("what an ended operation left in this clone could not be removed: %v", err)
	}
}

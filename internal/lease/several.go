package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

// A Part is one of the leases that a run takes.
type Part struct {
	Ledger *ledger.Ledger
	Want   ledger.Want
}

// A hold is a lease that was taken.
type hold struct {
	place
	grant Grant
}

// A holding is what a run has taken: all by one operation with one root, and shown to be
// alive by one witness.
type holding struct {
	holds  []hold // in the order in which they were taken
	root   session.Root
	record *recorder
}

// takeAll takes the leases of all parts, or none.
func takeAll(ctx context.Context, parts []Part, a Acquisition) (*holding, error) {
	h := &holding{root: a.Root, record: &recorder{ledger: parts[0].Ledger}}
	if len(parts) == 1 { // which has no place among others, and is in nobody's way
		a.Want = parts[0].Want
		grant, err := acquire(ctx, parts[0].Ledger, a, h.record)
		if err != nil {
			return nil, errors.Join(err, h.record.dismiss(err))
		}
		h.holds = []hold{{place{Part: parts[0]}, grant}}
		return h, nil
	}
	start, limit := time.Now(), a.Waiting.Limit
	list, err := inOrder(ctx, parts, a.Waiting)
	if err != nil {
		return nil, err
	}
	a.Operation = parts[0].Ledger.NewID()
	for _, p := range list {
		if limit != Forever { // it is for all of them together
			a.Waiting.Limit = max(0, limit-time.Since(start))
		}
		a.Want, a.Chain = p.Want, p.chain
		grant, err := acquire(ctx, p.Ledger, a, h.record)
		if err != nil {
			return nil, h.without(ctx, p, err)
		}
		h.holds = append(h.holds, hold{p, grant})
	}
	return h, nil
}

// without gives back what was taken before p, which could not be had for the reason given.
func (h *holding) without(ctx context.Context, p place, reason error) error {
	if f, ok := errors.AsType[*fault.Error](reason); ok && f.Facts["own"] == true {
		// The remote has two names or addresses, and the lease was taken by the other.
		if same := slices.IndexFunc(h.holds, func(one hold) bool { return one.chain == p.chain }); same >= 0 {
			reason = twice(h.holds[same].place, p)
		}
	}
	var unclear []session.LeaseAt
	if ledger.IsUnsettled(reason) {
		unclear = append(unclear, p.at())
	}
	ended, failed := h.end(ctx, ending{}, unclear...)
	given := "nothing was taken"
	if len(ended) > 0 {
		given = "given back: " + strings.Join(ended, ", ")
	}
	return errors.Join(inTheWay(p, reason, given), failed)
}

// inTheWay adds to a refusal which of several leases it is of, and what became of the others.
func inTheWay(p place, reason error, others string) error {
	if f, ok := errors.AsType[*fault.Error](reason); ok && f.Class != fault.Usage {
		f.WithDetails(fmt.Sprintf("%s was in the way; %s", p, others))
	} else if !ok { // told to stop, mostly
		return errors.Join(reason, fault.New(fault.Failed, "%s was in the way; %s", p, others))
	}
	return reason
}

// giveBack gives back all that was taken.
func (h *holding) giveBack(ctx context.Context, how ending) error {
	_, err := h.end(ctx, how)
	return err
}

// end gives back what was taken, the last first, and names what it gave back. The leases in
// left may be held still, beside those that cannot be given back.
func (h *holding) end(ctx context.Context, how ending, left ...session.LeaseAt) (ended []string, err error) {
	var lost, failed []error
	tries := map[*ledger.Ledger]int{}
	for _, one := range slices.Backward(h.holds) {
		err := release(ctx, one.Ledger, ledger.Want{Name: one.grant.Name, Branch: one.Want.Branch}, h.root, cmp.Or(tries[one.Ledger], patience))
		switch {
		case err == nil:
			ended = append(ended, one.String())
		case fault.ClassOf(err) == fault.Lost: // which counts first: others may have been at work
			lost = append(lost, err)
		default:
			failed = append(failed, stillHeld(one.Ledger, one.grant, how, err))
			left = append(left, one.grant.at())
			tries[one.Ledger] = 1 // it was away long enough
		}
	}
	h.record.close(left)
	return ended, errors.Join(append(lost, failed...)...)
}

// grants are those of a holding as its leases were named.
func (h *holding) grants() []Grant {
	var list []Grant
	for _, one := range slices.SortedFunc(slices.Values(h.holds), func(a, b hold) int { return a.named - b.named }) {
		list = append(list, one.grant)
	}
	return list
}

// environ are the variables that prove the holding to a command, and describe the lease that
// was named first, and all.
func (h *holding) environ() []string {
	grants := h.grants()
	var lines []string
	for _, g := range grants {
		lines = append(lines, session.HoldLine(g.Fence, g.Remote, g.Name))
	}
	return append(grants[0].Environ(h.root), session.HoldsVar+"="+strings.Join(lines, "\n"))
}

package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

// A Recovery frees a lease whose holder is gone, by proof.
type Recovery struct {
	Want      ledger.Want
	Operation ulid.ULID    // that has to hold it; zero for whichever does
	Root      session.Root // of this session, to word a refusal; may be zero
	// Take, when not nil, takes the lease in the same push. Its Root is
	// required, its Waiting and Tie are not used.
	Take *Acquisition
	// Proved is told of the proof before anything is changed; may be nil.
	Proved func(event.Hold, session.Judgement)
}

// A Recovered says what was recovered.
type Recovered struct {
	Broken
	Judgement session.Judgement
	Left      []session.LeaseAt // that the operation may hold besides; each is recovered by itself
}

// Recover frees a lease if this clone can prove that the operation which holds
// it is gone: by the witness and the record that it left here. In every other
// case, and when the operation has steps to be finished, it returns a fault of
// class Held, which says what was compared; nothing has been changed then. With a
// ledger.UnsettledError it is as in Break.
func Recover(ctx context.Context, l *ledger.Ledger, r Recovery) (Recovered, error) {
	if r.Take != nil && r.Take.Operation.IsZero() {
		r.Take.Operation = l.NewID()
	}
	var done Recovered
	var witness *session.Witness // of the dead, so that nobody else concludes it
	e, err := l.Append(ctx, r.Want, func(v ledger.View, d *ledger.Draft) error {
		r.Want.Name, r.Want.Branch = v.Name, v.Branch
		h := v.Hold()
		switch {
		case witness != nil && (h == nil || h.Operation != done.Hold.Operation):
			return fault.New(fault.Held, "the lease %s changed while it was being recovered; nothing was recovered", v.Name).
				WithHint("%s", l.Command("git", "lease", "show", v.Name))
		case witness == nil:
			if err := r.holds(ctx, l, v); err != nil {
				return err
			}
			var err error
			done.Name, done.Hold = v.Name, *h
			if done.Judgement, witness, err = r.prove(l, v); err != nil {
				return err
			}
		}
		if err := unfinished(l, v, done.Judgement); err != nil {
			return err
		}
		return takeOff(ctx, d, v, event.Recover, event.CleanText(done.Judgement.Why, event.MaxText), r.Take)
	})
	if e == nil {
		if witness != nil {
			err = errors.Join(err, witness.Close())
		}
		return Recovered{Broken: Broken{Grant: promised(l, r.Want, r.Take, err)}}, err
	}
	tidy(l, witness.End(session.LeaseAt{Remote: l.Remote, Lease: done.Name}))
	done.Event, done.Grant = *e, granted(l, *e, r.Take)
	done.Left = l.Dir.Left(done.Hold.Operation)
	return done, nil
}

// holds refuses where there is nothing to recover.
func (r Recovery) holds(ctx context.Context, l *ledger.Ledger, v ledger.View) error {
	h := v.Hold()
	switch {
	case v.Phase() == event.Frozen:
		return InFrost(ctx, l, v)
	case h == nil:
		return isFree(l, v, "recover")
	case !r.Operation.IsZero() && r.Operation != h.Operation:
		f := Held(l, v, Owns(r.Root, v.Tip))
		f.What = notTheHolder(ctx, l, v, r.Operation) + ": " + f.What
		return f
	}
	return nil
}

// prove judges the holder, and locks its witness if it is gone.
func (r Recovery) prove(l *ledger.Ledger, v ledger.View) (session.Judgement, *session.Witness, error) {
	h := *v.Hold()
	evidence, err := l.Dir.Evidence(h.Operation)
	if err != nil {
		return session.Judgement{}, nil, err
	}
	j := evidence.Judge()
	refuse := func(format string, args ...any) *fault.Error {
		facts := factsOf(l, v, j)
		if len(evidence.Holders) > 0 {
			facts["witness_held_by"] = evidence.Holders
		}
		return fault.New(fault.Held, format, args...).WithFacts(facts)
	}
	if j.Verdict == session.Alive {
		see := ""
		if evidence.Witness == session.Locked && len(evidence.Holders) == 0 {
			see = fmt.Sprintf("; to see who has its witness: %s", fault.Command("lsof", l.Dir.Path("witness", h.Operation.String())))
		}
		return j, nil, refuse("operation %s of %s is alive: %s", h.Operation, h.Holder, j.Why).
			WithHint("let it end, or, to take the lease off a live holder: %s%s", r.breakCommand(l, v), see)
	}
	if err := unfinished(l, v, j); err != nil {
		return j, nil, err
	}
	if j.Verdict != session.Gone {
		f := refuse("operation %s of %s is not provably gone: %s", h.Operation, h.Holder, j.Why).
			WithHint("%s   (when you know that it does not come back)", r.breakCommand(l, v))
		if Owns(r.Root, v.Tip) {
			f.WithHint("%s   (it is this session's)", l.Command("git", "lease", "release", v.Name))
		}
		return j, nil, f
	}
	if r.Proved != nil {
		r.Proved(h, j)
	}
	witness, err := l.Dir.Witness(h.Operation)
	if errors.Is(err, session.ErrAlive) {
		err = refuse("somebody else is at work on operation %s", h.Operation).
			WithHint("%s", l.Command("git", "lease", "show", v.Name))
	}
	return j, witness, err
}

func (r Recovery) breakCommand(l *ledger.Ledger, v ledger.View) string {
	return breakCommand(l, v, "WHY", r.Take != nil)
}

func factsOf(l *ledger.Ledger, v ledger.View, j session.Judgement) map[string]any {
	h := v.Hold()
	return map[string]any{"lease": v.Name, "remote": l.Remote, "state": event.Held, "operation": h.Operation.String(), "holder": h.Holder,
		"host": h.Host, "verdict": j.Verdict, "comparison": j.Why}
}

// unfinished refuses to free an operation that announced a landing, has steps to come, or
// has a journal here: what it did in part has to be finished, or given up, first.
func unfinished(l *ledger.Ledger, v ledger.View, j session.Judgement) error {
	h := v.Hold()
	here, found := landingHere(l, *h)
	if h.Intent.IsZero() && h.Steps == "" && !found {
		return nil
	}
	id, what := h.Operation.String(), "announced a landing that did not end"
	switch {
	case h.Steps != "":
		what = "did not end: " + Coming(*h)
	case h.Intent.IsZero():
		what = "has a landing that did not end"
	}
	f := fault.New(fault.Held, "operation %s of %s %s, so it is not recovered; compared: %s", id, h.Holder, what, j.Why).WithFacts(factsOf(l, v, j))
	breaks := TakeCommand(l, v)
	if !found {
		return f.WithHint("%s   (where its clone is gone; then: %s; or, to give it up: %s)", breaks,
			l.Command("git", "land", "resume", id), l.Command("git", "land", "abort", id, "--reason", "WHY"))
	}
	id = here.operation.String()
	if here.alive {
		f.What = fmt.Sprintf("operation %s of %s is at work in this clone, as operation %s, so it is not recovered", h.Operation, h.Holder, id)
		return f.WithHint("let it end, or, to take the lease off it: %s", breaks)
	}
	return f.WithHint("%s   (or, to give it up: %s; or, where its clone is gone: %s)", l.Command("git", "land", "resume", id),
		l.Command("git", "land", "abort", id, "--reason", "WHY"), breaks)
}

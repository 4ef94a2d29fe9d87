package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
)

// A Publication moves refs of the authority, all or none.
type Publication struct {
	Moves []git.Move
	// Hooks runs the user's pre-push hook; for landings.
	Hooks   bool
	Environ []string // added to git's environment, for hooks
	// Message is the reflog line where the authority is this repository.
	Message string
}

// HookEnviron tells a pre-push hook of ours which operation pushes, and which event
// accounts for what moves.
func HookEnviron(op ulid.ULID, event object.OID) []string {
	return []string{"GIT_LEASE_OPERATION=" + op.String(), "GIT_LEASE_EVENT=" + string(event)}
}

// An Outcome is how a publication went as far as its own answer tells.
type Outcome struct {
	// Done means that every ref moved. Without it nothing is known: the
	// authority has to be read.
	Done bool
	// Said is what git or the remote said of a publication that is not done.
	Said error
	// Unsent means that nothing was sent: a pre-push hook of this clone refused.
	Unsent bool
	// Refused means that the authority has answered for every ref that it did not
	// move it. It has to be read all the same: a server can be wrong about what it
	// did. But what is found unmoved then cannot be moved by this publication later.
	Refused bool
	// Declined means that it was refused in the words of a rule, so that the same
	// again would be in vain. Nothing else is decided by words.
	Declined bool
}

// Publish moves refs of the authority. The error is for a publication that
// could not be tried.
func (l *Ledger) Publish(ctx context.Context, p Publication) (Outcome, error) {
	if l.IsLocal() {
		err := l.Repo.MoveRefs(ctx, p.Message, p.Moves...)
		return Outcome{Done: err == nil, Said: err}, nil
	}
	result, err := l.Repo.Push(ctx, git.Push{Remote: l.remote, Moves: p.Moves,
		Atomic: len(p.Moves) > 1, Hooks: p.Hooks, Environ: p.Environ})
	if err != nil {
		return Outcome{}, err
	}
	if result.Complete {
		return Outcome{Done: true}, nil
	}
	return Outcome{Said: saidOf(result), Unsent: result.Unsent, Refused: result.Rejected, Declined: result.Rejected && declined(result)}, nil
}

// rules are words in which servers say no by a rule of theirs: a hook, a
// protected branch, a missing permission. Their words for a race are others.
var rules = []string{"declined", "prohibited", "denied", "deny ", "not permitted", "not allowed", "protected", "permission", "checked out"}

func declined(result git.PushResult) bool {
	for _, status := range result.Refs {
		if slices.ContainsFunc(rules, func(word string) bool { return strings.Contains(strings.ToLower(status.Reason()), word) }) {
			return true
		}
	}
	return false
}

// saidOf gathers what a push said, for people.
func saidOf(result git.PushResult) error {
	if result.Rejected {
		return wordsOf(result)
	}
	var parts []string
	for ref, status := range result.Refs {
		if !status.OK {
			parts = append(parts, fmt.Sprintf("%s %s", ref, status.Summary))
		}
	}
	slices.Sort(parts)
	if result.Err != nil {
		parts = append(parts, result.Err.Error())
	}
	return errors.New(strings.Join(parts, "; "))
}

// wordsOf are the words in which a remote refused a push: its reason, or reasons,
// and whatever its hooks said, line by line.
func wordsOf(result git.PushResult) error {
	reasons := map[string][]string{}
	for ref, status := range result.Refs {
		reasons[status.Reason()] = append(reasons[status.Reason()], string(ref))
	}
	var parts []string
	for reason, refs := range reasons {
		slices.Sort(refs)
		if len(reasons) > 1 {
			reason += " (" + strings.Join(refs, ", ") + ")"
		}
		parts = append(parts, reason)
	}
	slices.Sort(parts)
	text := strings.Join(parts, "; ")
	if e, ok := errors.AsType[*git.Error](result.Err); ok {
		for line := range strings.Lines(e.Stderr) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "remote:") {
				text += "\n" + line
			}
		}
	}
	return errors.New(text)
}

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

// limits of the compare-and-swap loop. Losing to others is progress of theirs,
// and bounded only against a server that answers nonsense; a push that neither
// arrives nor is overtaken is refused, or stands before a lock that a dead
// server left.
const (
	maxLosses  = 100
	maxRepeats = 4
)

// Backoff is how long to wait before the n-th repetition, with jitter, so that
// those who collided do not collide again.
func Backoff(n int, most time.Duration) time.Duration {
	d := min(most, 25*time.Millisecond<<min(n, 20))
	return d/2 + rand.N(d/2+1)
}

// Pause waits, or until ctx is done.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Append publishes events that move nothing but the chain, and what goes with it
// (Draft.With). compose adds them to a draft on what was just fetched; it is called again after each lost race,
// and may refuse. Append returns the last event that it published. An event
// that could not be seen to arrive is an UnsettledError: of class Unreachable, if
// the authority did not tell, or what kept it from being read.
//
// When ctx ends in the middle, Append finds out what happened before it
// returns, so that nothing arrives behind its back: the error then is the
// context's, and the event is not nil if it stands on the chain.
func (l *Ledger) Append(ctx context.Context, w Want, compose func(View, *Draft) error) (*event.Event, error) {
	v, err := l.Fetch(ctx, w)
	for loss := 0; err == nil; loss++ {
		if loss == maxLosses {
			return nil, fault.New(fault.Unreachable, "the lease %s changed %d times while it was being written", v.Name, loss)
		}
		var d *Draft
		if d, err = l.Draft(v); err != nil {
			return nil, err
		}
		if err = compose(v, d); err != nil {
			return nil, err
		}
		var e *event.Event
		if e, v, err = l.publishDraft(ctx, d, w); e != nil || err != nil {
			return e, err
		}
	}
	return nil, err
}

// publishDraft pushes a draft until it is known to have arrived, or to have
// been overtaken; then it returns no event and the state to compose on.
func (l *Ledger) publishDraft(ctx context.Context, d *Draft, w Want) (*event.Event, View, error) {
	if err := l.Ready(ctx); err != nil {
		return nil, View{}, err
	}
	if err := d.Write(ctx); err != nil {
		return nil, View{}, err
	}
	w.Name, w.Branch = d.view.Name, d.view.Branch
	p := Publication{Moves: append([]git.Move{d.Move()}, d.further...), Hooks: d.further != nil, Message: "lease: " + string(d.Tip().Kind),
		Environ: HookEnviron(d.Tip().By.Operation, d.Tip().OID)}
	var out Outcome
	answered := true // with no, each time
	for repeat := range maxRepeats {
		if repeat > 0 {
			if err := Pause(ctx, Backoff(repeat, time.Second)); err != nil {
				return l.interrupted(ctx, d, w)
			}
		}
		var err error
		if out, err = l.Publish(ctx, p); err != nil {
			if repeat > 0 { // an earlier one was sent
				err = Unsettled(err)
			}
			return nil, View{}, err
		}
		if out.Done {
			l.remember(d.view.Name, d.view.LastGood, d.Tip().OID)
			if l.Begun(d) {
				if err := l.ShowRecords(ctx); err != nil {
					l.Notice("git log will not show the landing records: %v", err)
				}
			}
			return d.Tip(), View{}, nil
		}
		if ctx.Err() != nil {
			return l.interrupted(ctx, d, w)
		}
		var fate Fate
		v, err := l.Fetch(ctx, w)
		if err == nil {
			fate, err = l.Trace(ctx, v, []Attempt{d.Attempt()})
		}
		if err != nil && ctx.Err() != nil { // the push was ended by what ends us, and we hear of it only now
			return l.interrupted(ctx, d, w)
		}
		if err != nil || fate.Arrived != nil || !fate.Pending {
			return fate.Arrived, v, Unsettled(err)
		}
		if answered = answered && out.Refused; answered && out.Declined {
			break
		}
	}
	f := l.refused(out.Said, d.Move().Ref)
	if !answered {
		return nil, View{}, Unsettled(f)
	}
	f.Err = &refusal{f.Err}
	return nil, View{}, f
}

// A refusal is a write that the authority has refused, and that cannot arrive.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// IsRefusal reports whether err says that the authority refused a write by its
// own answer, and was read and found unmoved after that: nothing has been changed,
// nor can it be by that write later.
func IsRefusal(err error) bool {
	_, refused := errors.AsType[*refusal](err)
	return refused
}

// Begun reports whether a published draft has put a branch under the lease, or
// begun its chain, and says so.
func (l *Ledger) Begun(d *Draft) bool {
	for _, e := range d.Events {
		switch {
		case e.Kind != event.Adopt || e.By.Adopt != nil && e.By.Adopt.Over != "":
			continue
		case e.By.Adopt == nil:
			l.Notice("began the lease %s at %s", e.Name, l.Remote)
		default:
			l.Notice("began to keep the branch %s under the lease %s at %s", e.By.Adopt.Branch.Branch(), e.Name, l.Remote)
		}
		return true
	}
	return false
}

// refused is the fault of a push to ref that the authority does not take.
func (l *Ledger) refused(said error, ref object.Ref) *fault.Error {
	return fault.New(fault.Unreachable, "%s refused the write to %s: %w", l.Remote, ref, said).
		WithHint("have %s take pushes to %s, by whoever keeps it, then run this again", l.Remote, ref)
}

// settleTime is how long we go on after Ctrl-C to leave nothing behind.
const settleTime = 20 * time.Second

// interrupted settles a push whose sender was told to stop. The dead process is
// not a dead push: until the chain has moved past the tip that it named it may
// still arrive. From a free lease a void moves it; a holder's own event is
// pushed again, since it only ends what the user wanted to end. An override under
// somebody's hold is neither: what becomes of it is not known then.
func (l *Ledger) interrupted(ctx context.Context, d *Draft, w Want) (*event.Event, View, error) {
	cause := context.Cause(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	attempts := []Attempt{d.Attempt()}
	next := d
	for repeat := range maxRepeats {
		v, err := l.Fetch(ctx, w)
		if err != nil {
			break
		}
		fate, err := l.Trace(ctx, v, attempts)
		if err != nil || fate.Arrived != nil && fate.Arrived.Kind != event.Void || fate.Arrived == nil && !fate.Pending {
			return fate.Arrived, v, errors.Join(cause, Unsettled(err))
		}
		if fate.Arrived != nil {
			return nil, v, cause
		}
		if v.Phase() == event.Free && repeat == 0 {
			if next, err = l.voidDraft(ctx, v, d); err != nil {
				break
			}
			attempts = append(attempts, next.Attempt())
			if err := next.Write(ctx); err != nil {
				break
			}
		}
		if next == d && d.further != nil {
			break // the event alone would say that they moved
		}
		l.Publish(ctx, Publication{Moves: []git.Move{next.Move()}, Message: "lease: " + string(next.Tip().Kind)})
	}
	return nil, View{}, errors.Join(cause, Unsettled(fault.New(fault.Unreachable,
		"it is not known whether the last push to %s arrived", l.Remote).WithHint("%s", l.Command("git", "lease", "show", d.view.Name))))
}

// voidDraft builds the event that outruns the push of d.
func (l *Ledger) voidDraft(ctx context.Context, v View, d *Draft) (*Draft, error) {
	void, err := l.Draft(v)
	if err != nil {
		return nil, err
	}
	if v.Tip == nil { // d begins with an adopt, and so must what outruns it
		var begin event.Adoption
		if a := d.Events[0].By.Adopt; a != nil {
			begin = *a
		}
		if err := void.Adopt(ctx, begin.Branch, begin.Tip); err != nil {
			return nil, err
		}
	}
	_, err = void.Add(event.Event{Kind: event.Void, By: event.By{
		Operation: d.Tip().By.Operation, Reason: "the push was interrupted"}})
	return void, err
}

// Overrule publishes a draft that leads over a bad tip: old is what the chain's
// ref must be. It is tried once; whoever was faster has changed what the user
// decided on.
func (l *Ledger) Overrule(ctx context.Context, v View, d *Draft, old git.Expect) error {
	if err := l.Ready(ctx); err != nil {
		return err
	}
	if err := d.Write(ctx); err != nil {
		return err
	}
	move := d.Move()
	move.Old = old
	out, err := l.Publish(ctx, Publication{Moves: []git.Move{move}, Message: "lease: adopt"})
	if err != nil {
		return err
	}
	if !out.Done {
		return l.refused(out.Said, move.Ref)
	}
	l.remember(v.Name, v.LastGood, move.New)
	return nil
}

// Follow makes tip the last good event of this clone, although it does not
// descend from the one before.
func (l *Ledger) Follow(v View, tip event.Event) { l.remember(v.Name, v.LastGood, tip.OID) }

// Package chain owns the rules of a lease: which event may follow which, and
// what state that leaves.
//
// It promises that Next is the only place where a rule stands: what Next
// builds Check accepts, and Check accepts nothing else. From the rules follows
// what the lease promises: at most one holder, a fencing number that only
// grows, and no landing by an operation that was taken off. It refuses an
// event that breaks a rule and says which. Everything here is a pure function
// of its arguments.
package chain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/object"
)

// Next makes the event that act is to be after prev, or says why it may not
// follow. prev is nil where there is no good event; then only an adopt may be.
//
// act has Name, Kind, ID, Actor, Time and By, and for an event that takes the
// lease (acquire, or a break or recover that takes it) State.Hold with Operation, Holder,
// Host, Purpose and Digest. Next fills Parents, Seq, Chain and the whole State,
// and leaves OID empty. For an adopt over a bad tip, act.Seq may carry that
// tip's sequence, so that the fence rises above both. What an adopt goes over
// becomes the last parent; where it is no commit, the caller takes it off.
func Next(prev *event.Event, act event.Event) (event.Event, error) {
	next, err := follow(prev, act)
	if err == nil {
		err = next.Validate()
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("%s of lease %q: %w", act.Kind, act.Name, err)
	}
	return next, nil
}

func follow(prev *event.Event, act event.Event) (event.Event, error) {
	next := act
	next.OID, next.Parents, next.Chain, next.Seq = "", nil, "", 1
	next.State = event.State{Phase: event.Free}
	if prev == nil {
		if act.Kind != event.Adopt {
			return next, errors.New("only an adopt begins a chain")
		}
		return adopt(next, act.Seq)
	}
	switch {
	case act.Name != prev.Name:
		return next, fmt.Errorf("the chain is of lease %q", prev.Name)
	case act.ID == prev.ID:
		return next, fmt.Errorf("event id %s is that of the event before", act.ID)
	}
	next.Parents = []object.OID{prev.OID}
	next.Chain = prev.Root()
	next.Seq = prev.Seq + 1
	next.State.Branches = slices.Clone(prev.State.Branches)
	if act.Kind == event.Adopt {
		next.State = prev.State
		return adopt(next, act.Seq)
	}
	if act.Kind == event.Override { // it passes by the lease, wherever that stands
		next.State = prev.State
		return next, nil
	}
	act.Seq = next.Seq
	hold, err := transition(prev.State, act)
	switch {
	case hold != nil:
		next.State.Phase, next.State.Hold = event.Held, hold
	case act.Kind == event.Freeze:
		next.State.Phase = event.Frozen
	}
	return next, err
}

// adopt adds a branch to a state that is otherwise kept: it may come under the
// lease while somebody holds it.
func adopt(next event.Event, seq uint64) (event.Event, error) {
	var a event.Adoption
	if next.By.Adopt != nil {
		a = *next.By.Adopt
	}
	listed := a.Branch == "" || slices.Contains(next.State.Branches, a.Branch)
	switch {
	case a.Over != "":
		next.Parents = append(next.Parents, a.Over)
		next.Seq = max(next.Seq, seq+1)
	case next.First():
	case a.Branch == "":
		return next, errors.New("no branch to adopt")
	case listed:
		return next, fmt.Errorf("%s is adopted already", a.Branch)
	}
	if !listed {
		next.State.Branches = append(slices.Clone(next.State.Branches), a.Branch)
	}
	return next, nil
}

// transition is who holds the lease after act: nobody, the holder of state, or
// who stands in act.State.Hold. act.Seq is already that of the result.
func transition(state event.State, act event.Event) (*event.Hold, error) {
	by := act.By
	switch act.Kind {
	case event.Acquire:
		if state.Phase != event.Free {
			return nil, standing(state)
		}
		return take(act)
	case event.Void, event.Repair:
		return passing(state, act)
	case event.Release:
		if err := busy(state); err != nil {
			return nil, err
		}
		return nil, own(state, by)
	case event.Abort:
		return nil, own(state, by)
	case event.Break:
		return takingOff(state, act)
	case event.Recover:
		if err := busy(state); err != nil {
			return nil, err
		}
		return takingOff(state, act)
	case event.Land:
		return landing(state, by)
	case event.Intent:
		return intending(state, by)
	case event.Step:
		return stepping(state, by)
	case event.Freeze:
		if state.Phase != event.Free {
			return nil, standing(state)
		}
		return nil, nil
	case event.Thaw:
		if state.Phase != event.Frozen {
			return nil, standing(state)
		}
		return nil, nil
	}
	return nil, errors.New("unknown kind of event")
}

func take(act event.Event) (*event.Hold, error) {
	hold := act.State.Hold
	switch {
	case hold == nil:
		return nil, errors.New("nobody to hold the lease")
	case hold.Operation != act.By.Operation:
		return nil, fmt.Errorf("operation %s takes it for operation %s", act.By.Operation, hold.Operation)
	}
	taken := *hold
	taken.TakenBy, taken.Fence = act.ID, act.Seq
	taken.Since = act.Time.UTC().Truncate(time.Second)
	taken.Intent, taken.Stuck = ulid.Zero, ""
	return &taken, nil
}

// passing leaves a free lease free, and a held one with its holder, who alone
// may do it. A void withdraws the landing that the holder had announced.
func passing(state event.State, act event.Event) (*event.Hold, error) {
	if act.By.Land != nil && !slices.Contains(state.Branches, act.By.Land.Branch) {
		return nil, fmt.Errorf("%s is not under this lease", act.By.Land.Branch)
	}
	if back := act.By.TakenBack; !back.IsZero() && (state.Hold == nil || state.Hold.Intent != back) {
		return nil, fmt.Errorf("landing %s, which it takes back, is not announced", back)
	}
	if state.Phase == event.Free {
		return nil, nil
	}
	if err := holds(state, act.By.Operation); err != nil {
		return nil, err
	}
	hold := *state.Hold
	if act.Kind == event.Void {
		hold.Intent = ulid.Zero
	}
	if f := act.By.Finding; f != nil && f.Code == StepsUnfinished {
		hold.Motion, hold.Steps, hold.Stuck = ulid.Zero, "", ""
	}
	return &hold, nil
}

// intending announces a landing, one at a time.
func intending(state event.State, by event.By) (*event.Hold, error) {
	if by.Land == nil {
		return nil, errors.New("nothing is to land")
	}
	if !slices.Contains(state.Branches, by.Land.Branch) {
		return nil, fmt.Errorf("%s is not under this lease", by.Land.Branch)
	}
	if err := holds(state, by.Operation); err != nil {
		return nil, err
	}
	if !state.Hold.Intent.IsZero() {
		return nil, announced(state)
	}
	if state.Hold.Steps != "" && by.Land.Steps != "" {
		return nil, unfinished(state)
	}
	hold := *state.Hold
	hold.Intent = by.Land.ID
	return &hold, nil
}

func announced(state event.State) error {
	return fmt.Errorf("landing %s of operation %s was announced and has not ended", state.Hold.Intent, state.Hold.Operation)
}

func takingOff(state event.State, act event.Event) (*event.Hold, error) {
	if state.Hold == nil {
		return nil, errors.New("nobody holds it")
	}
	if act.By.Target != state.Hold.Operation {
		return nil, fmt.Errorf("operation %s is not its holder: %w", act.By.Target, standing(state))
	}
	if act.State.Hold == nil {
		return nil, nil
	}
	if act.By.Operation == act.By.Target {
		return nil, fmt.Errorf("operation %s takes it off itself", act.By.Target)
	}
	taken, err := take(act)
	if err == nil { // what was begun under the lease is still to come
		taken.Motion, taken.Steps, taken.Stuck = state.Hold.Motion, state.Hold.Steps, state.Hold.Stuck
	}
	return taken, err
}

// landing checks the landing's place. A land under a hold that does not reveal
// the secret leaves the lease with its holder. Where a landing was announced it
// is that one, and no longer to come.
func landing(state event.State, by event.By) (*event.Hold, error) {
	if by.Land == nil {
		return nil, errors.New("nothing landed")
	}
	if !slices.Contains(state.Branches, by.Land.Branch) {
		return nil, fmt.Errorf("%s is not under this lease", by.Land.Branch)
	}
	switch {
	case state.Phase == event.Free && by.Secret != "":
		return nil, errors.New("a secret, and nobody holds it")
	case state.Phase == event.Free:
		return nil, nil
	case state.Hold != nil && !state.Hold.Intent.IsZero() && state.Hold.Intent != by.Land.ID:
		return nil, announced(state)
	case state.Hold != nil && state.Hold.Steps != "" && (by.Secret != "" || by.Land.Steps != ""):
		return nil, unfinished(state)
	case by.Secret != "" && by.Land.Steps != "":
		return nil, errors.New("steps are to follow, and the lease is given back")
	case by.Secret != "":
		return nil, own(state, by)
	}
	if err := holds(state, by.Operation); err != nil {
		return nil, err
	}
	hold := *state.Hold
	hold.Intent = ulid.Zero
	if by.Land.Steps != "" {
		hold.Motion, hold.Steps = by.Land.ID, by.Land.Steps
	}
	return &hold, nil
}

// stepping says how the first of the steps to come went. The last one that is done may
// give the lease back.
func stepping(state event.State, by event.By) (*event.Hold, error) {
	if err := holds(state, by.Operation); err != nil {
		return nil, err
	}
	hold := *state.Hold
	first, rest, _ := strings.Cut(hold.Steps, " ")
	switch {
	case by.Step == nil:
		return nil, errors.New("no step")
	case hold.Motion != by.Step.Motion || first != by.Step.Name:
		return nil, fmt.Errorf("step %s of motion %s is not the next one", by.Step.Name, by.Step.Motion)
	case !by.Step.Outcome.Ends():
		hold.Stuck = by.Step.Outcome
	default:
		hold.Steps, hold.Stuck = rest, ""
	}
	if hold.Steps == "" {
		hold.Motion = ulid.Zero
	}
	switch {
	case by.Secret == "":
		return &hold, nil
	case hold.Steps != "":
		return nil, unfinished(event.State{Phase: state.Phase, Hold: &hold})
	}
	return nil, own(state, by)
}

// busy says what keeps a hold from ending in peace.
func busy(state event.State) error {
	switch {
	case state.Hold == nil:
		return nil
	case !state.Hold.Intent.IsZero():
		return announced(state)
	case state.Hold.Steps != "":
		return unfinished(state)
	}
	return nil
}

func unfinished(state event.State) error {
	return fmt.Errorf("steps of motion %s of operation %s are to come: %s", state.Hold.Motion, state.Hold.Operation, state.Hold.Steps)
}

// own says why by does not end the hold of state as its holder.
func own(state event.State, by event.By) error {
	if err := holds(state, by.Operation); err != nil {
		return err
	}
	if event.Digest(by.Secret) != state.Hold.Digest {
		return fmt.Errorf("the secret is not that of operation %s", by.Operation)
	}
	return nil
}

func holds(state event.State, operation ulid.ULID) error {
	if state.Hold == nil || state.Hold.Operation != operation {
		return fmt.Errorf("operation %s does not hold it: %w", operation, standing(state))
	}
	return nil
}

// standing tells where the lease stands instead of where it should.
func standing(state event.State) error {
	if state.Hold == nil {
		return fmt.Errorf("it is %s", state.Phase)
	}
	return fmt.Errorf("it is %s by operation %s", state.Phase, state.Hold.Operation)
}

// Check says why e is not exactly what Next would give after prev.
func Check(prev *event.Event, e event.Event) error {
	act := e
	act.Seq-- // the fence of an adopt over a bad tip may be anything above both
	want, err := Next(prev, act)
	if err != nil {
		return err
	}
	switch {
	case e.Seq != want.Seq:
		return fmt.Errorf("sequence %d, want %d", e.Seq, want.Seq)
	case e.Chain != want.Chain:
		return fmt.Errorf("chain %s, want %s", e.Chain, want.Chain)
	case !e.State.Equal(want.State):
		return errors.New("the state is not what the event leads to")
	case !slices.Equal(e.Parents, want.Parents) && !slices.Equal(e.Parents, withoutOver(want)):
		return errors.New("the parents are not the event before")
	}
	return nil
}

// withoutOver gives e's parents without the one that an adopt goes over, which
// is there only if that is a commit.
func withoutOver(e event.Event) []object.OID {
	if e.By.Adopt == nil || e.By.Adopt.Over == "" {
		return e.Parents
	}
	return e.Parents[:len(e.Parents)-1]
}

// Fold checks a run of events, oldest first, and gives its last one. The run
// is the whole chain, or begins with an event that was checked before: only a
// first event is itself checked here as the first of the run. The error names
// the event that does not fit.
func Fold(events []event.Event) (event.Event, error) {
	var prev *event.Event
	seen := make(map[ulid.ULID]object.OID, len(events))
	for i := range events {
		e := &events[i]
		if i > 0 || e.First() {
			if err := Check(prev, *e); err != nil {
				return event.Event{}, fmt.Errorf("event %s: %w", e.OID, err)
			}
		}
		if other, ok := seen[e.ID]; ok {
			return event.Event{}, fmt.Errorf("event %s: has the id of event %s", e.OID, other)
		}
		seen[e.ID] = e.OID
		prev = e
	}
	if prev == nil {
		return event.Event{}, errors.New("a chain without events")
	}
	return *prev, nil
}

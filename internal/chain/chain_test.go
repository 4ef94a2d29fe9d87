package chain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/object"
)

const (
	mainRef = object.Ref("refs/heads/main")
	relRef  = object.Ref("refs/heads/release")
)

func id(n int) ulid.ULID {
	var u ulid.ULID
	_ = u.SetTime(1785585600000)
	u[14], u[15] = byte(n>>8), byte(n)
	return u
}

func oid(digit string) object.OID { return object.OID(strings.Repeat(digit, 40)) }

// operation makes the id of operation n; each has a root of its own.
func operation(n int) ulid.ULID { return id(0x8000 + n) }

func secretOf(n int, takenBy ulid.ULID, root object.OID) string {
	return event.Secret([32]byte{byte(n)}, takenBy, root)
}

// A writer makes a chain as a session would: Next, encode, hash, parse.
type writer struct {
	t      testing.TB
	events []event.Event
	acts   int
}

func (w *writer) tip() *event.Event {
	if len(w.events) == 0 {
		return nil
	}
	return &w.events[len(w.events)-1]
}

// act fills what every event of these tests has in common.
func (w *writer) act(k event.Kind, by event.By) event.Event {
	w.acts++
	return event.Event{
		Name: "main", Kind: k, ID: id(w.acts), Actor: "Ada <ada@example.com>", By: by,
		Time: time.Date(2026, 8, 1, 12, 0, w.acts, 5000, time.FixedZone("", 3600)),
	}
}

// taking is an act that takes the lease for operation n.
func (w *writer) taking(k event.Kind, n int, by event.By) event.Event {
	by.Operation = operation(n)
	a := w.act(k, by)
	root := oid("f") // of a chain that does not exist yet
	if w.tip() != nil {
		root = w.tip().Root()
	}
	a.State.Hold = &event.Hold{
		Operation: operation(n), Holder: a.Actor, Host: "lab", Purpose: "test",
		Digest: event.Digest(secretOf(n, a.ID, root)),
	}
	return a
}

// secret is what operation n would reveal for the hold that is on.
func (w *writer) secret(n int) string {
	if w.tip() == nil || w.tip().State.Hold == nil {
		return event.Digest("no hold")
	}
	return secretOf(n, w.tip().State.Hold.TakenBy, w.tip().Root())
}

func (w *writer) landing(branch object.Ref) *event.Landing {
	return &event.Landing{ID: id(w.acts + 1), Unit: "u", Branch: branch, Base: oid("a"), Commit: oid("b"), Tree: oid("c")}
}

// append puts act on the chain, or gives the rule that forbids it.
func (w *writer) append(act event.Event) error {
	w.t.Helper()
	next, err := chain.Next(w.tip(), act)
	if err != nil {
		return err
	}
	e := commit(w.t, next)
	if err := chain.Check(w.tip(), e); err != nil {
		w.t.Fatalf("Check refuses what Next gave: %v", err)
	}
	w.events = append(w.events, e)
	return nil
}

func (w *writer) must(act event.Event) {
	w.t.Helper()
	if err := w.append(act); err != nil {
		w.t.Fatal(err)
	}
}

// commit sends an event through its encoding, which gives it its object id.
func commit(t testing.TB, e event.Event) event.Event {
	t.Helper()
	raw, err := e.Encode(object.SHA1, e.Ident())
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := event.Parse(object.SHA1, object.SHA1.New(object.Commit, raw))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func adopt(branch object.Ref) event.By { return event.By{Adopt: &event.Adoption{Branch: branch}} }

func over(bad object.OID) event.By {
	return event.By{Reason: "pushed by hand", Adopt: &event.Adoption{Branch: mainRef, Over: bad}}
}

// begun is a writer whose chain has adopted main, and is held by operation 1
// when held is set.
func begun(t testing.TB, held bool) *writer {
	w := &writer{t: t}
	w.must(w.act(event.Adopt, adopt(mainRef)))
	if held {
		w.must(w.taking(event.Acquire, 1, event.By{}))
	}
	return w
}

// by makes what operation n does; secret gives whose secret it reveals, if any.
func (w *writer) by(n int, revealed ...int) event.By {
	b := event.By{Operation: operation(n)}
	for _, r := range revealed {
		b.Secret = w.secret(r)
	}
	return b
}

func (w *writer) land(n int, branch object.Ref, revealed ...int) event.Event {
	b := w.by(n, revealed...)
	b.Land = w.landing(branch)
	return w.act(event.Land, b)
}

// landID is land with the id of a landing.
func (w *writer) landID(n, landing int, revealed ...int) event.Event {
	a := w.land(n, mainRef, revealed...)
	a.By.Land.ID = id(landing)
	return a
}

func (w *writer) intent(n, landing int) event.Event {
	a := w.landID(n, landing)
	a.Kind, a.By.Record = event.Intent, "{}"
	return a
}

// twoSteps are the names of those that motions of these tests have.
const twoSteps = "upload announce"

// begins takes the lease for operation n, for steps that follow no landing.
func (w *writer) begins(n int) event.Event {
	a := w.taking(event.Acquire, n, event.By{})
	a.State.Hold.Motion, a.State.Hold.Steps = operation(n), twoSteps
	return a
}

// landSteps is landID of a landing that steps follow.
func (w *writer) landSteps(n, landing int, revealed ...int) event.Event {
	a := w.landID(n, landing, revealed...)
	a.By.Land.Steps = twoSteps
	return a
}

// step is one of the motion that is under way, or of none.
func (w *writer) step(n int, name string, outcome event.Outcome, revealed ...int) event.Event {
	b := w.by(n, revealed...)
	b.Step = &event.StepResult{Motion: id(900), Name: name, Outcome: outcome, Took: 12}
	if w.tip() != nil && w.tip().State.Hold != nil && !w.tip().State.Hold.Motion.IsZero() {
		b.Step.Motion = w.tip().State.Hold.Motion
	}
	if outcome == event.Declared {
		b.Reason = "looked at by Ada"
	}
	return w.act(event.Step, b)
}

func (w *writer) repair(n int) event.Event {
	b := w.by(n)
	b.Reason, b.Finding = "seen", &event.Finding{Code: "commit-without-record", Object: oid("b")}
	return w.act(event.Repair, b)
}

func (w *writer) takesBack(landing int) event.Event {
	b := w.by(1)
	b.TakenBack = id(landing)
	return w.act(event.Void, b)
}

func (w *writer) freeze() event.Event {
	b := w.by(2)
	b.Reason = "it moves"
	return w.act(event.Freeze, b)
}

func (w *writer) overrides(n int) event.Event {
	b := w.by(n)
	b.Reason, b.Updates = "the lease is in the way", []event.Update{{Ref: mainRef, Old: oid("a"), New: oid("b")}}
	return w.act(event.Override, b)
}

func (w *writer) breaks(n, target int, take bool) event.Event {
	return w.takesOff(event.Break, n, target, take)
}

func (w *writer) takesOff(k event.Kind, n, target int, take bool) event.Event {
	b := event.By{Operation: operation(n), Target: operation(target), Reason: "on holiday"}
	if take {
		return w.taking(k, n, b)
	}
	return w.act(k, b)
}

// A hold that goes on is the same hold, whatever happens under it.
func TestHoldIsKept(t *testing.T) {
	t.Parallel()
	w := begun(t, true)
	taken := w.tip()
	if h := taken.State.Hold; h.TakenBy != taken.ID || h.Fence != taken.Seq || h.Since.Unix() != taken.Time.Unix() {
		t.Errorf("hold %+v is not that of its event", h)
	}
	w.must(w.land(1, mainRef))
	w.must(w.act(event.Adopt, adopt(relRef)))
	w.must(w.land(1, relRef))
	w.must(w.act(event.Adopt, over(oid("e"))))
	if got := *w.tip().State.Hold; got != *taken.State.Hold {
		t.Errorf("hold %+v, want %+v", got, *taken.State.Hold)
	}
	if got, want := w.tip().State.Branches, []object.Ref{mainRef, relRef}; !slices.Equal(got, want) {
		t.Errorf("branches %q, want %q", got, want)
	}
	w.must(w.act(event.Release, w.by(1, 1)))
	if _, err := chain.Fold(w.events); err != nil {
		t.Error(err)
	}
}

// An adopt over a bad tip rises above both, descends from both where it can,
// and may begin a chain of its own.
func TestAdoptOver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ hint, want uint64 }{{0, 3}, {1, 3}, {2, 3}, {7, 8}} {
		w := begun(t, true)
		last := w.tip().OID
		act := w.act(event.Adopt, over(oid("e")))
		act.Seq = tt.hint
		w.must(act)
		tip := w.tip()
		if tip.Seq != tt.want || !slices.Equal(tip.Parents, []object.OID{last, oid("e")}) {
			t.Errorf("sequence %d after %d, parents %s", tip.Seq, tt.hint, tip.Parents)
		}
		alone := *tip
		alone.Parents = alone.Parents[:1]
		if err := chain.Check(&w.events[1], commit(t, alone)); err != nil {
			t.Errorf("over what is no commit: %v", err)
		}
		low := *tip
		low.Seq = 2
		if err := chain.Check(&w.events[1], commit(t, low)); err == nil {
			t.Error("a fence that did not rise is accepted")
		}
	}
	w := &writer{t: t}
	act := w.act(event.Adopt, over(oid("e")))
	act.Seq = 41
	w.must(act)
	w.must(w.taking(event.Acquire, 1, event.By{}))
	w.must(w.act(event.Release, w.by(1, 1)))
	if tip, err := chain.Fold(w.events); err != nil || tip.Seq != 44 || tip.Chain != w.events[0].OID {
		t.Errorf("a chain begun over a bad tip: %+v, %v", tip, err)
	}
	act = w.act(event.Adopt, over(oid("e")))
	act.Seq = event.MaxSeq
	if err := w.append(act); err == nil || !strings.Contains(err.Error(), "range") {
		t.Errorf("a sequence that cannot grow: %v", err)
	}
}

// Check refuses an event that is well formed and differs in one field from
// what Next gives.
func TestCheckIsExact(t *testing.T) {
	t.Parallel()
	w := &writer{t: t}
	w.must(w.act(event.Adopt, adopt(mainRef)))
	w.must(w.begins(1))
	w.must(w.step(1, "upload", event.Failed))
	good := *w.tip()
	for name, change := range map[string]func(*event.Event){
		"sequence": func(e *event.Event) { e.Seq++ },
		"chain":    func(e *event.Event) { e.Chain = oid("9") },
		"parents":  func(e *event.Event) { e.Parents = []object.OID{oid("9")} },
		"branches": func(e *event.Event) { e.State.Branches = []object.Ref{mainRef, relRef} },
		"phase":    func(e *event.Event) { e.State = event.State{Phase: event.Free, Branches: e.State.Branches} },
		"operation": func(e *event.Event) {
			e.State.Hold.Operation = operation(9)
		},
		"holder":   func(e *event.Event) { e.State.Hold.Holder = "Eve <eve@example.com>" },
		"host":     func(e *event.Event) { e.State.Hold.Host = "" },
		"purpose":  func(e *event.Event) { e.State.Hold.Purpose = "" },
		"digest":   func(e *event.Event) { e.State.Hold.Digest = event.Digest("mine") },
		"taken by": func(e *event.Event) { e.State.Hold.TakenBy = e.ID },
		"fence":    func(e *event.Event) { e.State.Hold.Fence = e.Seq },
		"since":    func(e *event.Event) { e.State.Hold.Since = e.State.Hold.Since.Add(time.Second) },
		"motion":   func(e *event.Event) { e.State.Hold.Motion = id(77) },
		"steps":    func(e *event.Event) { e.State.Hold.Steps = "announce" },
		"no steps": func(e *event.Event) { h := e.State.Hold; h.Motion, h.Steps, h.Stuck = ulid.Zero, "", "" },
		"stuck":    func(e *event.Event) { e.State.Hold.Stuck = event.Unknown },
		"outcome":  func(e *event.Event) { e.By.Step.Outcome = event.Done },
		"author":   func(e *event.Event) { e.By.Operation = operation(2) },
		"name":     func(e *event.Event) { e.Name = "other" },
		"id":       func(e *event.Event) { e.ID = w.events[1].ID },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, hold, step := good, *good.State.Hold, *good.By.Step
			e.State.Hold, e.By.Step = &hold, &step
			change(&e)
			e = commit(t, e)
			if err := chain.Check(&w.events[1], e); err == nil {
				t.Error("accepted")
			}
			events := []event.Event{w.events[0], w.events[1], e}
			if _, err := chain.Fold(events); err == nil || !strings.Contains(err.Error(), string(e.OID)) {
				t.Errorf("error %v does not name %s", err, e.OID)
			}
		})
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	w := begun(t, true)
	w.must(w.act(event.Release, w.by(1, 1)))
	w.must(w.act(event.Void, w.by(2)))
	for i := range w.events {
		// From a trusted event on, as well as from the first.
		if tip, err := chain.Fold(w.events[i:]); err != nil || tip.OID != w.tip().OID {
			t.Errorf("from event %d: %v", i, err)
		}
	}
	if _, err := chain.Fold(nil); err == nil {
		t.Error("a chain without events is one")
	}
	gap := slices.Delete(slices.Clone(w.events), 1, 2)
	if _, err := chain.Fold(gap); err == nil || !strings.Contains(err.Error(), string(w.events[2].OID)) {
		t.Errorf("a gap: %v", err)
	}
	twice := append(slices.Clone(w.events), w.events[0])
	if _, err := chain.Fold(twice); err == nil {
		t.Error("a chain that begins twice is one")
	}
	again := w.act(event.Void, w.by(2))
	again.ID = w.events[1].ID
	w.must(again)
	if _, err := chain.Fold(w.events); err == nil || !strings.Contains(err.Error(), "has the id of") {
		t.Errorf("an event id that is used twice: %v", err)
	}
}

// Next leaves its arguments alone: a plan is made again after a lost race.
func TestNextLeavesItsArguments(t *testing.T) {
	t.Parallel()
	w := begun(t, false)
	w.tip().State.Branches = slices.Grow(w.tip().State.Branches, 4)
	before := *w.tip()
	act := w.taking(event.Acquire, 1, event.By{})
	hold := *act.State.Hold
	for range 2 {
		for _, a := range []event.Event{act, w.act(event.Adopt, adopt(relRef)), w.act(event.Adopt, over(oid("e")))} {
			if _, err := chain.Next(w.tip(), a); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !w.tip().State.Equal(before.State) || w.tip().State.Branches[:2][1] != "" || *act.State.Hold != hold {
		t.Error("Next changed its arguments")
	}
}

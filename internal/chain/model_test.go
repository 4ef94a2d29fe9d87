package chain_test

import (
	"math/rand/v2"
	"testing"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/object"
)

// A model says the rules a second time, as simply as can be: by who holds, with
// no events.
type model struct {
	holder  int // an operation; 0 for nobody
	frozen  bool
	intent  bool // the holder has announced a landing
	steps   int  // that are to come: 2, or the second one
	stuck   bool // the first of them did not succeed
	adopted map[object.Ref]bool
}

// A move is one attempt of one operation, decoded from three bytes, so that a
// fuzzer can steer it.
type move struct {
	kind     byte
	op       int // 1 to 4
	target   int // 1 to 4: whose hold is broken, or whose secret is revealed
	branch   object.Ref
	reveal   bool
	take     bool
	fails    bool   // of a step
	first    bool   // of a step: that it is the first of two
	fenceFor uint64 // the hint of an adopt over something
}

func decode(b []byte) move {
	return move{
		kind: b[0] % 20, op: 1 + int(b[1]%4), target: 1 + int(b[1]/4%4),
		branch: []object.Ref{mainRef, relRef}[b[2]&1],
		reveal: b[2]&2 != 0, take: b[2]&4 != 0, fails: b[2]&8 != 0, first: b[2]&16 != 0, fenceFor: uint64(b[2] >> 3),
	}
}

// allows says whether m may happen, and does it to the model.
func (s *model) allows(m move) bool {
	switch m.kind {
	case 0: // adopt
		if s.adopted[m.branch] {
			return false
		}
		s.adopted[m.branch] = true
	case 1: // adopt over
		s.adopted[mainRef] = true
	case 2, 15: // acquire, and begin steps
		if s.holder != 0 || s.frozen {
			return false
		}
		if s.holder = m.op; m.kind == 15 {
			s.steps = 2
		}
	case 3, 4: // release, abort
		if s.holder == 0 || s.holder != m.op || m.target != s.holder || m.kind == 3 && (s.intent || s.steps > 0) {
			return false
		}
		s.ends()
	case 5, 13: // void, repair
		if s.frozen || s.holder != 0 && s.holder != m.op {
			return false
		}
		s.intent = s.intent && m.kind == 13
	case 6, 11: // break, recover
		if s.holder == 0 || s.holder != m.target || m.take && m.op == m.target || m.kind == 11 && (s.intent || s.steps > 0) {
			return false
		}
		before := *s
		if s.ends(); m.take {
			s.holder, s.steps, s.stuck = m.op, before.steps, before.stuck
		}
	case 8: // freeze
		if s.holder != 0 || s.frozen {
			return false
		}
		s.frozen = true
	case 9: // thaw
		if !s.frozen {
			return false
		}
		s.frozen = false
	case 10, 16: // intent, of a landing with steps
		if !s.adopted[m.branch] || s.holder == 0 || s.holder != m.op || s.intent || m.kind == 16 && s.steps > 0 {
			return false
		}
		s.intent = true
	case 17, 18: // a step, with a word of which motion it is
		if s.holder == 0 || s.holder != m.op || s.steps == 0 || m.kind == 18 || m.first != (s.steps == 2) {
			return false
		}
		if m.reveal && (m.fails || s.steps > 1 || m.target != s.holder) {
			return false
		}
		if s.stuck = m.fails; !m.fails {
			s.steps--
		}
		if m.reveal {
			s.ends()
		}
	case 14: // override, which changes nothing
	case 7, 12, 19: // land, land what was announced, land with steps
		announced := m.kind == 12 && s.intent
		if !s.adopted[m.branch] || s.frozen || s.holder != 0 && s.holder != m.op || s.intent && !announced {
			return false
		}
		if s.holder != 0 && s.steps > 0 && (m.reveal || m.kind == 19) || m.reveal && m.kind == 19 {
			return false
		}
		if m.reveal {
			if s.holder == 0 || m.target != s.holder {
				return false
			}
			s.ends()
		}
		if s.intent = false; m.kind == 19 && s.holder != 0 {
			s.steps = 2
		}
	}
	return true
}

// ends leaves the lease to nobody.
func (s *model) ends() { s.holder, s.intent, s.steps, s.stuck = 0, false, 0, false }

func (w *writer) play(m move) event.Event {
	switch m.kind {
	case 0:
		return w.act(event.Adopt, adopt(m.branch))
	case 1:
		a := w.act(event.Adopt, over(oid("e")))
		a.Seq = m.fenceFor
		return a
	case 2:
		return w.taking(event.Acquire, m.op, event.By{})
	case 3:
		return w.act(event.Release, w.by(m.op, m.target))
	case 4:
		return w.act(event.Abort, w.by(m.op, m.target))
	case 5:
		return w.act(event.Void, w.by(m.op))
	case 6:
		return w.breaks(m.op, m.target, m.take)
	case 8:
		return w.freeze()
	case 9:
		return w.act(event.Thaw, w.by(m.op))
	case 10, 16:
		a := w.intent(m.op, w.acts+1)
		if a.By.Land.Branch = m.branch; m.kind == 16 {
			a.By.Land.Steps = twoSteps
		}
		return a
	case 11:
		return w.takesOff(event.Recover, m.op, m.target, m.take)
	case 13:
		return w.repair(m.op)
	case 14:
		return w.overrides(m.op)
	case 15:
		a := w.begins(m.op)
		a.State.Hold.Motion = a.ID // operations of the model come back, and motions do not
		return a
	case 17, 18:
		return w.playStep(m)
	}
	var a event.Event
	if m.reveal {
		a = w.land(m.op, m.branch, m.target)
	} else {
		a = w.land(m.op, m.branch)
	}
	if m.kind == 19 {
		a.By.Land.Steps = twoSteps
	}
	if hold := w.tip().State.Hold; m.kind == 12 && hold != nil && !hold.Intent.IsZero() {
		a.By.Land.ID = hold.Intent
	}
	return a
}

func (w *writer) playStep(m move) event.Event {
	name, outcome := "announce", event.Done
	if m.first {
		name = "upload"
	}
	if m.fails {
		outcome = event.Failed
	}
	var a event.Event
	if m.reveal {
		a = w.step(m.op, name, outcome, m.target)
	} else {
		a = w.step(m.op, name, outcome)
	}
	if m.kind == 18 {
		a.By.Step.Motion = id(w.acts + 500)
	}
	return a
}

// playAll tries every move on a chain and on the model, and checks what the
// lease promises after each.
func playAll(t testing.TB, data []byte) {
	w := &writer{t: t}
	w.must(w.act(event.Adopt, adopt(mainRef)))
	s := model{adopted: map[object.Ref]bool{mainRef: true}}
	for len(data) >= 3 && len(w.events) < 200 {
		m := decode(data)
		data = data[3:]
		before := *w.tip()
		err := w.append(w.play(m))
		if allowed := s.allows(m); allowed != (err == nil) {
			t.Fatalf("move %+v after %+v: the model allows it: %v, the rules: %v", m, before.State, allowed, err)
		}
		tip := w.tip()
		if err == nil && tip.Seq <= before.Seq {
			t.Fatalf("the fence went from %d to %d", before.Seq, tip.Seq)
		}
		hold := tip.State.Hold
		switch {
		case (tip.State.Phase == event.Frozen) != s.frozen, (hold != nil && !hold.Intent.IsZero()) != s.intent:
			t.Fatalf("frozen %v, announced %v in the model, state %+v", s.frozen, s.intent, tip.State)
		case len(hold.Pending()) != s.steps, hold != nil && (hold.Stuck != "") != s.stuck, hold != nil && hold.Motion.IsZero() != (s.steps == 0):
			t.Fatalf("%d steps to come in the model, stuck %v, state %+v", s.steps, s.stuck, hold)
		case (hold != nil) != (s.holder != 0):
			t.Fatalf("held by %d in the model, state %+v", s.holder, tip.State)
		case hold != nil && hold.Operation != operation(s.holder):
			t.Fatalf("held by %d in the model, by %s on the chain", s.holder, hold.Operation)
		case before.State.Hold != nil && hold != nil && hold.TakenBy != before.State.Hold.TakenBy && tip.Kind != event.Break && tip.Kind != event.Recover:
			t.Fatalf("%s handed the lease over", tip.Kind)
		}
	}
	tip, err := chain.Fold(w.events)
	if err != nil || tip.OID != w.tip().OID {
		t.Fatalf("the chain does not fold: %v", err)
	}
	nobodyLandsUnderAnother(t, w.events)
	nothingEndsBeforeItsSteps(t, w.events)
}

// nobodyLandsUnderAnother checks exclusion on the finished chain: between the
// event that took a hold and the one that ended it, only its holder landed.
func nobodyLandsUnderAnother(t testing.TB, events []event.Event) {
	for i, e := range events[1:] {
		hold := events[i].State.Hold
		if e.Kind == event.Land && hold != nil && e.By.Operation != hold.Operation {
			t.Fatalf("operation %s landed under the hold of %s", e.By.Operation, hold.Operation)
		}
	}
}

// nothingEndsBeforeItsSteps checks that a hold with steps to come ended by nothing but
// the last of them, or by what gives up.
func nothingEndsBeforeItsSteps(t testing.TB, events []event.Event) {
	for i, e := range events[1:] {
		if pending := events[i].State.Hold.Pending(); len(pending) == 0 || e.State.Hold != nil {
			continue
		} else if last := e.Kind == event.Step && len(pending) == 1; !last && e.Kind != event.Abort && e.Kind != event.Break {
			t.Fatalf("%s ended a hold with the steps %q to come", e.Kind, pending)
		}
	}
	for _, m := range chain.Motions(events) {
		if done := len(m.Open()) == 0; done == (m.Ended == nil || m.GivenUp) {
			t.Fatalf("motion %+v", m)
		}
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 2))
		data := make([]byte, 3*120)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		playAll(t, data)
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte{2, 0, 0, 7, 0, 0, 3, 0, 0, 5, 1, 0})                         // acquire, land, release, void
	f.Add([]byte{2, 0, 0, 6, 1, 4, 7, 0, 0, 7, 1, 0, 3, 5, 0})                // taken off, and the old holder tries to land
	f.Add([]byte{0, 0, 1, 2, 0, 0, 1, 0, 255, 7, 0, 3, 4, 0, 0})              // a second branch, over a bad tip, land and release
	f.Add([]byte{2, 1, 0, 2, 0, 0, 6, 5, 4, 6, 4, 0, 4, 5, 0, 1})             // contention, and a break of oneself
	f.Add([]byte{15, 0, 0, 17, 0, 24, 3, 0, 0, 17, 0, 16, 17, 0, 2, 2, 0, 0}) // a step that fails, is done, and the last one, which releases
	f.Add([]byte{2, 0, 0, 19, 0, 0, 6, 1, 4, 17, 0, 16, 17, 1, 16, 4, 5, 0})  // begun, taken over, and given up
	f.Add([]byte{2, 0, 0, 16, 0, 0, 11, 1, 0, 12, 0, 0, 17, 0, 16})
	f.Fuzz(func(t *testing.T, data []byte) { playAll(t, data) })
}

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
	fenceFor uint64 // the hint of an adopt over something
}

func decode(b []byte) move {
	return move{
		kind: b[0] % 15, op: 1 + int(b[1]%4), target: 1 + int(b[1]/4%4),
		branch: []object.Ref{mainRef, relRef}[b[2]&1],
		reveal: b[2]&2 != 0, take: b[2]&4 != 0, fenceFor: uint64(b[2] >> 3),
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
	case 2: // acquire
		if s.holder != 0 || s.frozen {
			return false
		}
		s.holder = m.op
	case 3, 4: // release, abort
		if s.holder == 0 || s.holder != m.op || m.target != s.holder || s.intent && m.kind == 3 {
			return false
		}
		s.holder, s.intent = 0, false
	case 5, 13: // void, repair
		if s.frozen || s.holder != 0 && s.holder != m.op {
			return false
		}
		s.intent = s.intent && m.kind == 13
	case 6, 11: // break, recover
		if s.holder == 0 || s.holder != m.target || m.take && m.op == m.target || s.intent && m.kind == 11 {
			return false
		}
		s.holder, s.intent = 0, false
		if m.take {
			s.holder = m.op
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
	case 10: // intent
		if !s.adopted[m.branch] || s.holder == 0 || s.holder != m.op || s.intent {
			return false
		}
		s.intent = true
	case 14: // override, which changes nothing
	case 7, 12: // land, land what was announced
		announced := m.kind == 12 && s.intent
		if !s.adopted[m.branch] || s.frozen || s.holder != 0 && s.holder != m.op || s.intent && !announced {
			return false
		}
		if m.reveal {
			if s.holder == 0 || m.target != s.holder {
				return false
			}
			s.holder = 0
		}
		s.intent = false
	}
	return true
}

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
	case 10:
		a := w.intent(m.op, w.acts+1)
		a.By.Land.Branch = m.branch
		return a
	case 11:
		return w.takesOff(event.Recover, m.op, m.target, m.take)
	case 13:
		return w.repair(m.op)
	case 14:
		return w.overrides(m.op)
	}
	var a event.Event
	if m.reveal {
		a = w.land(m.op, m.branch, m.target)
	} else {
		a = w.land(m.op, m.branch)
	}
	if hold := w.tip().State.Hold; m.kind == 12 && hold != nil && !hold.Intent.IsZero() {
		a.By.Land.ID = hold.Intent
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
	f.Add([]byte{2, 0, 0, 7, 0, 0, 3, 0, 0, 5, 1, 0})             // acquire, land, release, void
	f.Add([]byte{2, 0, 0, 6, 1, 4, 7, 0, 0, 7, 1, 0, 3, 5, 0})    // taken off, and the old holder tries to land
	f.Add([]byte{0, 0, 1, 2, 0, 0, 1, 0, 255, 7, 0, 3, 4, 0, 0})  // a second branch, over a bad tip, land and release
	f.Add([]byte{2, 1, 0, 2, 0, 0, 6, 5, 4, 6, 4, 0, 4, 5, 0, 1}) // contention, and a break of oneself
	f.Fuzz(func(t *testing.T, data []byte) { playAll(t, data) })
}

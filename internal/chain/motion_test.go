package chain_test

import (
	"fmt"
	"strings"
	"testing"

	"gitland/internal/chain"
	"gitland/internal/event"
)

// told says what the motions of a chain are: the number of the event that began each,
// how its steps went, what is open, and how and by which event it ended.
func told(events []event.Event) string {
	number := func(e event.Event) (n int) {
		for i := range events {
			if events[i].OID == e.OID {
				n = i + 1
			}
		}
		return n
	}
	var all []string
	for _, m := range chain.Motions(events) {
		text := fmt.Sprintf("%d:", number(m.Begun))
		for _, r := range m.Results {
			text += fmt.Sprintf(" %s %s", r.Name, r.Outcome)
		}
		if open := m.Open(); len(open) > 0 {
			text += fmt.Sprintf(" open %s", strings.Join(open, ","))
		}
		switch {
		case m.Ended != nil && m.GivenUp:
			text += fmt.Sprintf(" given up %d", number(*m.Ended))
		case m.Ended != nil:
			text += fmt.Sprintf(" ended %d", number(*m.Ended))
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// again takes up what operation of another hold has left of its steps.
func (w *writer) again(n, operationOf int, steps string) event.Event {
	a := w.begins(n)
	a.State.Hold.Motion, a.State.Hold.Steps = operation(operationOf), steps
	return a
}

// settles is the repair that gives up the motion which began with an event.
func (w *writer) settles(n, begun int) event.Event {
	a := w.repair(n)
	a.By.Finding.Code, a.By.Finding.Object = chain.StepsUnfinished, w.events[begun-1].OID
	return a
}

// vouches is the repair that says of an announced landing that it is on the branch.
func (w *writer) vouches(n, landing int) event.Event {
	a := w.repair(n)
	a.By.Finding.Code, a.By.Land = "intent-without-land", w.landID(n, landing).By.Land
	return a
}

// announced is an intent with steps whose hold was taken off it.
func announced(w *writer) {
	w.must(w.taking(event.Acquire, 1, event.By{}))
	a := w.intent(1, 70)
	a.By.Land.Steps = twoSteps
	w.must(a)
	w.must(w.breaks(2, 1, false)) // 4
}

// The first event of these chains is the adopt, so that a motion begins with 2 or 3.
func TestMotions(t *testing.T) {
	t.Parallel()
	broken := func(w *writer) {
		last(w)
		w.must(w.breaks(2, 1, false)) // 4
	}
	for _, tt := range []struct {
		name string
		make func(*writer)
		want string
	}{
		{"none", func(w *writer) { w.must(w.land(1, mainRef)) }, ""},
		{"begun", begins, "2: open upload,announce"},
		{"begun by a landing", lands, "3: open upload,announce"},
		{"a step that failed", stuck, "2: upload failed open upload,announce"},
		{"half done", last, "2: upload done open announce"},
		{"finished", func(w *writer) {
			last(w)
			w.must(w.step(1, "announce", event.Done))
			w.must(w.act(event.Release, w.by(1, 1)))
		}, "2: upload done announce done ended 4"},
		{"finished, by the event that releases", func(w *writer) {
			lands(w)
			w.must(w.step(1, "upload", event.Already))
			w.must(w.step(1, "announce", event.Declared, 1))
			w.must(w.land(2, mainRef))
		}, "3: upload already announce declared ended 5"},
		{"a step that failed and then was done", func(w *writer) {
			stuck(w)
			w.must(w.step(1, "upload", event.Unknown))
			w.must(w.step(1, "upload", event.Done))
			w.must(w.step(1, "announce", event.Done, 1))
		}, "2: upload failed upload unknown upload done announce done ended 6"},
		{"given up", func(w *writer) {
			last(w)
			w.must(w.act(event.Abort, w.by(1, 1)))
			w.must(w.act(event.Void, w.by(1)))
		}, "2: upload done open announce given up 4"},
		{"an abort of another hold", func(w *writer) {
			broken(w)
			w.must(w.taking(event.Acquire, 3, event.By{}))
			w.must(w.act(event.Abort, w.by(3, 3)))
		}, "2: upload done open announce"},
		{"broken", broken, "2: upload done open announce"},
		{"broken and taken over", func(w *writer) {
			last(w)
			w.must(w.breaks(2, 1, true))
		}, "2: upload done open announce"},
		{"taken over and finished", func(w *writer) {
			last(w)
			w.must(w.breaks(2, 1, true))
			w.must(w.step(2, "announce", event.Done, 2))
		}, "2: upload done announce done ended 5"},
		{"taken over and given up", func(w *writer) {
			last(w)
			w.must(w.breaks(2, 1, true))
			w.must(w.act(event.Abort, w.by(2, 2)))
		}, "2: upload done open announce given up 5"},
		{"broken and taken up again later", func(w *writer) {
			broken(w)
			w.must(w.land(2, mainRef))
			w.must(w.again(1, 1, "announce")) // 6
			w.must(w.step(1, "announce", event.Done, 1))
		}, "2: upload done announce done ended 7"},
		{"settled by a repair", func(w *writer) {
			broken(w)
			w.must(w.settles(2, 2))
		}, "2: upload done open announce given up 5"},
		{"settled under the hold that has it", func(w *writer) {
			last(w)
			w.must(w.settles(1, 2))
			w.must(w.act(event.Release, w.by(1, 1)))
		}, "2: upload done open announce given up 4"},
		{"settled under the hold of another, which is left without its own", func(w *writer) {
			broken(w)
			w.must(w.begins(3))     // 5
			w.must(w.settles(3, 2)) // reconcile does not write that
		}, "2: upload done open announce given up 6; 5: open upload,announce given up 6"},
		{"a repair of another", func(w *writer) {
			broken(w)
			w.must(w.settles(2, 1))
			w.must(w.repair(2))
		}, "2: upload done open announce"},
		{"a repair of what had ended", func(w *writer) {
			last(w)
			w.must(w.step(1, "announce", event.Done, 1))
			w.must(w.settles(2, 2))
		}, "2: upload done announce done ended 4"},
		{"settled, and taken up all the same", func(w *writer) {
			broken(w)
			w.must(w.settles(2, 2))
			w.must(w.again(1, 1, "announce")) // 6
		}, "2: upload done open announce"},
		{"settled, taken up all the same and finished", func(w *writer) {
			broken(w)
			w.must(w.settles(2, 2))
			w.must(w.again(1, 1, "announce"))
			w.must(w.step(1, "announce", event.Done, 1)) // 7
		}, "2: upload done announce done ended 7"},
		{"taken up with steps that it never had, as no tool of ours does", func(w *writer) {
			broken(w)
			w.must(w.again(1, 1, "strange announce")) // 5
			w.must(w.step(1, "strange", event.Failed))
		}, "2: upload done strange failed open announce,strange"},
		{"finished, and taken up with a step that it never had", func(w *writer) {
			last(w)
			w.must(w.step(1, "announce", event.Done, 1))
			w.must(w.again(2, 1, "strange")) // 5
		}, "2: upload done announce done open strange"},
		{"finished, and taken up with a step that is done", func(w *writer) {
			last(w)
			w.must(w.step(1, "announce", event.Done, 1))
			w.must(w.again(2, 1, "announce")) // 5
		}, "2: upload done announce done ended 4"},
		{"a landing whose steps never began", func(w *writer) {
			w.must(w.landSteps(1, 70))
			w.must(w.land(2, mainRef))
		}, "2: open upload,announce"},
		{"an announced landing, and then the land", func(w *writer) {
			w.must(w.taking(event.Acquire, 1, event.By{}))
			a := w.intent(1, 70)
			a.By.Land.Steps = twoSteps
			w.must(a)
			w.must(w.landSteps(1, 70)) // 4
		}, "4: open upload,announce"},
		{"an announced landing that lost the lease, and that a repair vouches for", func(w *writer) {
			announced(w)
			w.must(w.vouches(2, 70)) // 5
		}, "5: open upload,announce"},
		{"vouched for, and taken up", func(w *writer) {
			announced(w)
			w.must(w.vouches(2, 70)) // 5
			a := w.begins(1)
			a.State.Hold.Motion = id(70)
			w.must(a)
			w.must(w.step(1, "upload", event.Done))
		}, "5: upload done open announce"},
		{"vouched for, and settled", func(w *writer) {
			announced(w)
			w.must(w.vouches(2, 70)) // 5
			w.must(w.settles(2, 5))
		}, "5: open upload,announce given up 6"},
		{"vouched for as another commit", func(w *writer) {
			announced(w)
			a := w.vouches(2, 70)
			a.By.Land.Commit = oid("e")
			w.must(a)
		}, ""},
		{"two", func(w *writer) {
			last(w)
			w.must(w.step(1, "announce", event.Done))
			w.must(w.landSteps(1, 70)) // 5
			w.must(w.step(1, "upload", event.Failed))
		}, "2: upload done announce done ended 4; 5: upload failed open upload,announce"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := begun(t, false)
			tt.make(w)
			if got := told(w.events); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if _, err := chain.Fold(w.events); err != nil {
				t.Error(err)
			}
		})
	}
}

// Of a step that was tried again the last result counts.
func TestLastOfAStep(t *testing.T) {
	t.Parallel()
	w := begun(t, false)
	stuck(w)
	w.must(w.step(1, "upload", event.Done))
	m := chain.Motions(w.events)[0]
	if got := m.Last("upload"); got == nil || got.Outcome != event.Done || got.Took != 12 {
		t.Errorf("upload: %+v", got)
	}
	if got := m.Last("announce"); got != nil {
		t.Errorf("announce: %+v", got)
	}
}

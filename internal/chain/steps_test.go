package chain_test

import (
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
)

// A stepRule is one of steps: what is left of the hold after act, or a part of the
// refusal.
type stepRule struct {
	name   string
	before func(*writer) // on a chain that nobody holds
	act    func(*writer) event.Event
	want   string // "-", or the holder, its steps to come and how it is stuck
}

// begins, lands and stuck are where the steps of operation 1 are to come: after its
// acquire, after its landing 70, and when the first of them has failed.
func begins(w *writer) { w.must(w.begins(1)) }

func lands(w *writer) {
	w.must(w.taking(event.Acquire, 1, event.By{}))
	w.must(w.landSteps(1, 70))
}

func stuck(w *writer) {
	begins(w)
	w.must(w.step(1, "upload", event.Failed))
}

// last has but one step to come.
func last(w *writer) {
	begins(w)
	w.must(w.step(1, "upload", event.Done))
}

func free(*writer) {}

// stepRules are those of what begins steps, and of the steps.
func stepRules() []stepRule {
	holds := func(w *writer) { w.must(w.taking(event.Acquire, 1, event.By{})) }
	return []stepRule{
		{"acquire begins steps", free, func(w *writer) event.Event { return w.begins(1) }, "1 upload announce"},
		{"acquire takes up the steps of another operation", free, func(w *writer) event.Event {
			a := w.begins(1)
			a.State.Hold.Motion, a.State.Hold.Steps = operation(2), "announce"
			return a
		}, "1 announce"},
		{"acquire that is stuck already", free, func(w *writer) event.Event {
			a := w.begins(1)
			a.State.Hold.Stuck = event.Failed
			return a
		}, "1 upload announce"},
		{"acquire with steps of no motion", free, func(w *writer) event.Event {
			a := w.begins(1)
			a.State.Hold.Motion = ulid.Zero
			return a
		}, "if and only if there is a motion"},
		{"acquire with a motion of no steps", free, func(w *writer) event.Event {
			a := w.begins(1)
			a.State.Hold.Steps = ""
			return a
		}, "if and only if there is a motion"},
		{"land begins steps", holds, func(w *writer) event.Event { return w.landSteps(1, 70) }, "1 upload announce"},
		{"land begins steps under a free lease", free, func(w *writer) event.Event { return w.landSteps(1, 70) }, "-"},
		{"land begins steps and releases", holds, func(w *writer) event.Event { return w.landSteps(1, 70, 1) }, "steps are to follow"},
		{"land begins steps under another's hold", holds, func(w *writer) event.Event { return w.landSteps(2, 70) }, "does not hold"},
		{"land begins steps under steps", begins, func(w *writer) event.Event { return w.landSteps(1, 70) }, "are to come: upload announce"},
		{"land under steps", begins, func(w *writer) event.Event { return w.landID(1, 70) }, "1 upload announce"},
		{"land and release under steps", begins, func(w *writer) event.Event { return w.landID(1, 70, 1) }, "are to come"},
		{"intent begins none", holds, func(w *writer) event.Event {
			a := w.intent(1, 70)
			a.By.Land.Steps = twoSteps
			return a
		}, "1"},
		{"intent with steps under steps", begins, func(w *writer) event.Event {
			a := w.intent(1, 70)
			a.By.Land.Steps = twoSteps
			return a
		}, "are to come"},
		{"intent under steps", begins, func(w *writer) event.Event { return w.intent(1, 70) }, "1 upload announce"},
		{"repair that begins steps", free, func(w *writer) event.Event {
			a := w.repair(1)
			a.By.Land = w.landing(mainRef)
			a.By.Land.Steps = twoSteps
			return a
		}, "a repair that begins steps"},

		{"step", begins, func(w *writer) event.Event { return w.step(1, "upload", event.Done) }, "1 announce"},
		{"step of a landing", lands, func(w *writer) event.Event { return w.step(1, "upload", event.Already) }, "1 announce"},
		{"step that a person declares", begins, func(w *writer) event.Event { return w.step(1, "upload", event.Declared) }, "1 announce"},
		{"step that failed", begins, func(w *writer) event.Event { return w.step(1, "upload", event.Failed) }, "1 upload announce failed"},
		{"step that is not known", stuck, func(w *writer) event.Event { return w.step(1, "upload", event.Unknown) }, "1 upload announce unknown"},
		{"step once more", stuck, func(w *writer) event.Event { return w.step(1, "upload", event.Done) }, "1 announce"},
		{"step of an outcome that there is not", begins, func(w *writer) event.Event { return w.step(1, "upload", "odd") }, `outcome "odd"`},
		{"step out of turn", begins, func(w *writer) event.Event { return w.step(1, "announce", event.Done) }, "is not the next one"},
		{"step that is done", last, func(w *writer) event.Event { return w.step(1, "upload", event.Done) }, "is not the next one"},
		{"step of another motion", begins, func(w *writer) event.Event {
			a := w.step(1, "upload", event.Done)
			a.By.Step.Motion = operation(2)
			return a
		}, "is not the next one"},
		{"step of nothing", begins, func(w *writer) event.Event { return w.act(event.Step, w.by(1)) }, "no step"},
		{"step where none is to come", holds, func(w *writer) event.Event { return w.step(1, "upload", event.Done) }, "is not the next one"},
		{"step under a free lease", free, func(w *writer) event.Event { return w.step(1, "upload", event.Done) }, "it is free"},
		{"step by another", begins, func(w *writer) event.Event { return w.step(2, "upload", event.Done) }, "does not hold"},
		{"last step", last, func(w *writer) event.Event { return w.step(1, "announce", event.Done) }, "1"},
		{"last step releases", last, func(w *writer) event.Event { return w.step(1, "announce", event.Done, 1) }, "-"},
		{"last step that failed releases", last, func(w *writer) event.Event { return w.step(1, "announce", event.Failed, 1) }, "are to come: announce"},
		{"last step with another's secret", last, func(w *writer) event.Event { return w.step(1, "announce", event.Done, 2) }, "the secret is not"},
		{"step before the last releases", begins, func(w *writer) event.Event { return w.step(1, "upload", event.Done, 1) }, "are to come: announce"},
	}
}

// pendingRules are those of a hold with steps to come.
func pendingRules() []stepRule {
	frozen := func(w *writer) { w.must(w.freeze()) }
	return []stepRule{
		{"release", begins, func(w *writer) event.Event { return w.act(event.Release, w.by(1, 1)) }, "are to come: upload announce"},
		{"release when stuck", stuck, func(w *writer) event.Event { return w.act(event.Release, w.by(1, 1)) }, "are to come"},
		{"recover", begins, func(w *writer) event.Event { return w.takesOff(event.Recover, 2, 1, false) }, "are to come"},
		{"recover and take", lands, func(w *writer) event.Event { return w.takesOff(event.Recover, 2, 1, true) }, "are to come"},
		{"abort", stuck, func(w *writer) event.Event { return w.act(event.Abort, w.by(1, 1)) }, "-"},
		{"abort by another", stuck, func(w *writer) event.Event { return w.act(event.Abort, w.by(2, 2)) }, "does not hold"},
		{"break", stuck, func(w *writer) event.Event { return w.breaks(2, 1, false) }, "-"},
		{"break and take", lands, func(w *writer) event.Event { return w.breaks(2, 1, true) }, "2 upload announce"},
		{"break and take what is stuck", stuck, func(w *writer) event.Event { return w.breaks(2, 1, true) }, "2 upload announce failed"},
		{"break and take begins none of its own", func(w *writer) { w.must(w.taking(event.Acquire, 1, event.By{})) }, func(w *writer) event.Event {
			a := w.breaks(2, 1, true)
			a.State.Hold.Motion, a.State.Hold.Steps = operation(2), twoSteps
			return a
		}, "2"},
		{"void", stuck, func(w *writer) event.Event { return w.act(event.Void, w.by(1)) }, "1 upload announce failed"},
		{"repair", stuck, func(w *writer) event.Event { return w.repair(1) }, "1 upload announce failed"},
		{"repair that gives them up", stuck, func(w *writer) event.Event { return w.settles(1, 2) }, "1"},
		{"repair that gives them up, by another", stuck, func(w *writer) event.Event { return w.settles(2, 2) }, "does not hold"},
		{"override", stuck, func(w *writer) event.Event { return w.overrides(2) }, "1 upload announce failed"},
		{"adopt", stuck, func(w *writer) event.Event { return w.act(event.Adopt, adopt(relRef)) }, "1 upload announce failed"},
		{"adopt over", stuck, func(w *writer) event.Event { return w.act(event.Adopt, over(oid("e"))) }, "1 upload announce failed"},
		{"freeze", stuck, func(w *writer) event.Event { return w.freeze() }, "held by operation"},
		{"step under a freeze", frozen, func(w *writer) event.Event { return w.step(1, "upload", event.Done) }, "it is frozen"},
		{"release after the last", func(w *writer) {
			last(w)
			w.must(w.step(1, "announce", event.Done))
		}, func(w *writer) event.Event { return w.act(event.Release, w.by(1, 1)) }, "-"},
		{"land begins steps after the last", func(w *writer) {
			last(w)
			w.must(w.step(1, "announce", event.Done))
		}, func(w *writer) event.Event { return w.landSteps(1, 70) }, "1 upload announce"},
	}
}

func TestStepRules(t *testing.T) {
	t.Parallel()
	for _, tt := range append(stepRules(), pendingRules()...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := begun(t, false)
			tt.before(w)
			err := w.append(tt.act(w))
			got := "-"
			if hold := w.tip().State.Hold; err != nil {
				got = err.Error()
			} else if hold != nil {
				got = strings.TrimSpace(string('0'+hold.Operation[15]) + " " + hold.Steps + " " + string(hold.Stuck))
			}
			if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

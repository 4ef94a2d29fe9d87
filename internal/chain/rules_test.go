package chain_test

import (
	"slices"
	"strings"
	"testing"

	"gitland/internal/event"
)

// A rule is an act, and what comes of it in each phase: who holds the lease
// afterwards ("-", "1", "2"), or a part of the refusal.
type rule struct {
	name   string
	act    func(*writer) event.Event
	free   string
	held   string // by operation 1
	begins string // where there is no chain yet
}

// A later rule is one from phases that others have led to.
type later struct {
	name     string
	before   func(*writer) // on a chain that operation 1 holds
	act      func(*writer) event.Event
	want     string
	intended bool // a landing stays announced
}

// intentRules are those of landings that are announced, frozenRules those of a
// lease that nobody may take.
func intentRules() []later {
	announce := func(w *writer) { w.must(w.intent(1, 70)) }
	return []later{
		{"announce", func(*writer) {}, func(w *writer) event.Event { return w.intent(1, 70) }, "1", true},
		{"announce another", announce, func(w *writer) event.Event { return w.intent(1, 71) }, "was announced", true},
		{"announce for another", func(*writer) {}, func(w *writer) event.Event { return w.intent(2, 70) }, "does not hold", false},
		{"announce on another branch", func(*writer) {}, func(w *writer) event.Event {
			a := w.intent(1, 70)
			a.By.Land.Branch = relRef
			return a
		}, "not under this lease", false},
		{"land it", announce, func(w *writer) event.Event { return w.landID(1, 70) }, "1", false},
		{"land it and release", announce, func(w *writer) event.Event { return w.landID(1, 70, 1) }, "-", false},
		{"land another", announce, func(w *writer) event.Event { return w.landID(1, 71) }, "was announced", true},
		{"release", announce, func(w *writer) event.Event { return w.act(event.Release, w.by(1, 1)) }, "was announced", true},
		{"abort", announce, func(w *writer) event.Event { return w.act(event.Abort, w.by(1, 1)) }, "-", false},
		{"void", announce, func(w *writer) event.Event { return w.act(event.Void, w.by(1)) }, "1", false},
		{"void takes back", announce, func(w *writer) event.Event { return w.takesBack(70) }, "1", false},
		{"void takes another back", announce, func(w *writer) event.Event { return w.takesBack(71) }, "is not announced", true},
		{"void takes back what was not announced", func(*writer) {}, func(w *writer) event.Event { return w.takesBack(70) }, "is not announced", false},
		{"repair", announce, func(w *writer) event.Event { return w.repair(1) }, "1", true},
		{"override", announce, func(w *writer) event.Event { return w.overrides(2) }, "1", true},
		{"recover", announce, func(w *writer) event.Event { return w.takesOff(event.Recover, 2, 1, false) }, "was announced", true},
		{"break", announce, func(w *writer) event.Event { return w.breaks(2, 1, false) }, "-", false},
		{"break and take", announce, func(w *writer) event.Event { return w.breaks(2, 1, true) }, "2", false},
	}
}

func frozenRules() []later {
	freeze := func(w *writer) {
		w.must(w.act(event.Release, w.by(1, 1)))
		w.must(w.freeze())
	}
	return []later{
		{"freeze a held lease", func(*writer) {}, func(w *writer) event.Event { return w.freeze() }, "held by operation", false},
		{"thaw what is not frozen", func(*writer) {}, func(w *writer) event.Event { return w.act(event.Thaw, w.by(2)) }, "held by operation", false},
		{"freeze again", freeze, func(w *writer) event.Event { return w.freeze() }, "it is frozen", false},
		{"thaw", freeze, func(w *writer) event.Event { return w.act(event.Thaw, w.by(2)) }, "-", false},
		{"acquire", freeze, func(w *writer) event.Event { return w.taking(event.Acquire, 2, event.By{}) }, "it is frozen", false},
		{"land", freeze, func(w *writer) event.Event { return w.land(2, mainRef) }, "it is frozen", false},
		{"void", freeze, func(w *writer) event.Event { return w.act(event.Void, w.by(2)) }, "it is frozen", false},
		{"repair", freeze, func(w *writer) event.Event { return w.repair(2) }, "it is frozen", false},
		{"override", freeze, func(w *writer) event.Event { return w.overrides(2) }, "frozen", false},
		{"adopt", freeze, func(w *writer) event.Event { return w.act(event.Adopt, adopt(relRef)) }, "frozen", false},
		{"adopt over", freeze, func(w *writer) event.Event { return w.act(event.Adopt, over(oid("e"))) }, "frozen", false},
	}
}

func TestLaterRules(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(intentRules(), frozenRules()) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := begun(t, true)
			tt.before(w)
			got := ""
			if err := w.append(tt.act(w)); err != nil {
				got = err.Error()
			} else if state := w.tip().State; state.Phase == event.Frozen {
				got = "frozen"
			} else if state.Hold == nil {
				got = "-"
			} else {
				got = string('0' + state.Hold.Operation[15])
			}
			if got != tt.want && (len(tt.want) < 2 || !strings.Contains(got, tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if hold := w.tip().State.Hold; (hold != nil && !hold.Intent.IsZero()) != tt.intended {
				t.Errorf("announced afterwards: %+v, want %v", hold, tt.intended)
			}
		})
	}
}

// adoptRules are those of adopt, and of what no lease takes.
func adoptRules() []rule {
	return []rule{
		{"adopt again", func(w *writer) event.Event { return w.act(event.Adopt, adopt(mainRef)) },
			"adopted already", "adopted already", "-"},
		{"adopt another", func(w *writer) event.Event { return w.act(event.Adopt, adopt(relRef)) },
			"-", "1", "-"},
		{"adopt over", func(w *writer) event.Event { return w.act(event.Adopt, over(oid("e"))) },
			"-", "1", "-"},
		{"adopt over without reason", func(w *writer) event.Event {
			b := over(oid("e"))
			b.Reason = ""
			return w.act(event.Adopt, b)
		}, "reason", "reason", "reason"},
		{"adopt nothing", func(w *writer) event.Event { return w.act(event.Adopt, event.By{}) },
			"no branch", "no branch", "-"},
		{"unknown", func(w *writer) event.Event { return w.act("seize", w.by(1)) }, "unknown", "unknown", "only an adopt"},
		{"another lease", func(w *writer) event.Event {
			a := w.act(event.Void, w.by(1))
			a.Name = "other"
			return a
		}, `of lease "main"`, `of lease "main"`, "only an adopt"},
		{"the same id", func(w *writer) event.Event {
			a := w.act(event.Void, w.by(1))
			if w.tip() != nil {
				a.ID = w.tip().ID
			}
			return a
		}, "event before", "event before", "only an adopt"},
	}
}

// holdRules are those of taking the lease and giving it back.
func holdRules() []rule {
	return []rule{
		{"acquire", func(w *writer) event.Event { return w.taking(event.Acquire, 2, event.By{}) },
			"2", "held by operation " + operation(1).String(), "only an adopt"},
		{"acquire again", func(w *writer) event.Event { return w.taking(event.Acquire, 1, event.By{}) },
			"1", "held by operation", "only an adopt"},
		{"acquire for nobody", func(w *writer) event.Event { return w.act(event.Acquire, w.by(2)) },
			"nobody to hold", "held by operation", "only an adopt"},
		{"acquire for another", func(w *writer) event.Event {
			a := w.taking(event.Acquire, 2, event.By{})
			a.By.Operation = operation(3)
			return a
		}, "takes it for", "held by operation", "only an adopt"},
		{"acquire with a digest that is none", func(w *writer) event.Event {
			a := w.taking(event.Acquire, 2, event.By{})
			a.State.Hold.Digest = "secret"
			return a
		}, "digest", "held by operation", "only an adopt"},
		{"release", func(w *writer) event.Event { return w.act(event.Release, w.by(1, 1)) },
			"does not hold it: it is free", "-", "only an adopt"},
		{"release by another", func(w *writer) event.Event { return w.act(event.Release, w.by(2, 1)) },
			"does not hold", "does not hold it: it is held by operation " + operation(1).String(), "only an adopt"},
		{"release with another's secret", func(w *writer) event.Event { return w.act(event.Release, w.by(1, 2)) },
			"does not hold", "secret is not that of", "only an adopt"},
		{"release without secret", func(w *writer) event.Event { return w.act(event.Release, w.by(1)) },
			"does not hold", "secret is not that of", "only an adopt"},
		{"abort", func(w *writer) event.Event { return w.act(event.Abort, w.by(1, 1)) },
			"does not hold", "-", "only an adopt"},
		{"abort by another", func(w *writer) event.Event { return w.act(event.Abort, w.by(2, 2)) },
			"does not hold", "does not hold", "only an adopt"},
	}
}

// landRules are those of landing, and of void.
func landRules() []rule {
	return []rule{
		{"void", func(w *writer) event.Event { return w.act(event.Void, w.by(2)) },
			"-", "does not hold it: it is held by operation", "only an adopt"},
		{"void by the holder", func(w *writer) event.Event { return w.act(event.Void, w.by(1)) },
			"-", "1", "only an adopt"},
		{"land", func(w *writer) event.Event { return w.land(1, mainRef) }, "-", "1", "only an adopt"},
		{"land and release", func(w *writer) event.Event { return w.land(1, mainRef, 1) },
			"nobody holds", "-", "only an adopt"},
		{"land with another's secret", func(w *writer) event.Event { return w.land(1, mainRef, 2) },
			"nobody holds", "secret is not", "only an adopt"},
		{"land under another's hold", func(w *writer) event.Event { return w.land(2, mainRef) },
			"-", "does not hold", "only an adopt"},
		{"land and release another's hold", func(w *writer) event.Event { return w.land(2, mainRef, 1) },
			"nobody holds", "does not hold", "only an adopt"},
		{"land on another branch", func(w *writer) event.Event { return w.land(1, relRef) },
			"not under this lease", "not under this lease", "only an adopt"},
		{"land nothing", func(w *writer) event.Event { return w.act(event.Land, w.by(1)) },
			"nothing landed", "nothing landed", "only an adopt"},
	}
}

// breakRules are those of break.
func breakRules() []rule {
	return []rule{
		{"break", func(w *writer) event.Event { return w.breaks(2, 1, false) }, "nobody holds", "-", "only an adopt"},
		{"break and take", func(w *writer) event.Event { return w.breaks(2, 1, true) }, "nobody holds", "2", "only an adopt"},
		{"recover", func(w *writer) event.Event { return w.takesOff(event.Recover, 2, 1, false) },
			"nobody holds", "-", "only an adopt"},
		{"recover and take", func(w *writer) event.Event { return w.takesOff(event.Recover, 2, 1, true) },
			"nobody holds", "2", "only an adopt"},
		{"repair", func(w *writer) event.Event { return w.repair(2) }, "-", "does not hold", "only an adopt"},
		{"override", func(w *writer) event.Event { return w.overrides(2) }, "-", "1", "only an adopt"},
		{"repair by the holder", func(w *writer) event.Event { return w.repair(1) }, "-", "1", "only an adopt"},
		{"break another operation", func(w *writer) event.Event { return w.breaks(2, 3, false) },
			"nobody holds", "is not its holder", "only an adopt"},
		{"break and take from itself", func(w *writer) event.Event { return w.breaks(1, 1, true) },
			"nobody holds", "off itself", "only an adopt"},
		{"break without reason", func(w *writer) event.Event {
			a := w.breaks(2, 1, false)
			a.By.Reason = ""
			return a
		}, "nobody holds", "without reason", "only an adopt"},
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(adoptRules(), holdRules(), landRules(), breakRules()) {
		for phase, want := range map[string]string{"free": tt.free, "held": tt.held, "begins": tt.begins} {
			t.Run(tt.name+"/"+phase, func(t *testing.T) {
				t.Parallel()
				w := &writer{t: t}
				if phase != "begins" {
					w = begun(t, phase == "held")
				}
				err := w.append(tt.act(w))
				got := ""
				if err != nil {
					got = err.Error()
				} else if hold := w.tip().State.Hold; hold == nil {
					got = "-"
				} else {
					got = string('0' + hold.Operation[15])
				}
				if got != want && (err == nil || len(want) < 2 || !strings.Contains(got, want)) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

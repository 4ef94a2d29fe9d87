package chain

import (
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
)

// StepsUnfinished is the code of the repair that settles a motion whose steps are not to
// come any more: its object is the event that began it.
const StepsUnfinished = "steps-unfinished"

// A Motion is a run of steps under a lease, as its chain tells it.
type Motion struct {
	ID ulid.ULID // of the landing that its steps follow; else its first operation's
	// Begun is the land, or the acquire, that says which steps are to come; or the repair
	// that vouches for a landing which was announced with steps, and lost the lease then.
	Begun     event.Event
	Operation ulid.ULID // that landed, or took the lease for them
	Steps     []string  // their names, in their order
	Under     ulid.ULID // the last operation to take it on
	// Results are what its step events say, in their order: of a step that was tried
	// again there are several.
	Results []event.StepResult
	// Ended is the event after which nothing of it is to come; nil while something is.
	Ended   *event.Event
	GivenUp bool // it was ended before its last step was done
}

// Last is the last result of a step, nil where there is none.
func (m *Motion) Last(name string) *event.StepResult {
	for i, r := range slices.Backward(m.Results) {
		if r.Name == name {
			return &m.Results[i]
		}
	}
	return nil
}

// Open are the steps that are not done, whether or not they are still to come.
func (m *Motion) Open() (names []string) {
	for _, name := range m.Steps {
		if last := m.Last(name); last == nil || !last.Outcome.Ends() {
			names = append(names, name)
		}
	}
	return names
}

// HeldBy reports whether a lease is held for the motion; h is nil where nobody has it.
func (m *Motion) HeldBy(h *event.Hold) bool { return h != nil && h.Motion == m.ID }

// takeUp has another hold go on with the motion. The names are those that are open, unless
// the event is of no tool of ours: then they are steps of it all the same.
func (m *Motion) takeUp(under ulid.ULID, names []string) {
	m.Under = under
	for _, name := range names {
		if !slices.Contains(m.Steps, name) {
			m.Steps = append(m.Steps, name)
		}
	}
	if len(m.Open()) > 0 {
		m.Ended, m.GivenUp = nil, false
	}
}

// Motions are those that began in a run of events, oldest first, of a sound chain. A
// break leaves one unfinished: whoever takes the lease goes on with it, then or later.
func Motions(events []event.Event) []Motion {
	var list []Motion
	find := func(id ulid.ULID) *Motion {
		i := slices.IndexFunc(list, func(m Motion) bool { return m.ID == id })
		if i < 0 {
			return nil
		}
		return &list[i]
	}
	announced := map[ulid.ULID]event.Event{} // landings with steps
	begin := func(id ulid.ULID, e event.Event, operation ulid.ULID, names string) {
		if m := find(id); m != nil { // it is taken up again, whatever was said of it before
			m.takeUp(operation, strings.Fields(names))
			return
		}
		list = append(list, Motion{ID: id, Begun: e, Operation: operation, Steps: strings.Fields(names), Under: operation})
	}
	for i := range events {
		e := events[i]
		hold := e.State.Hold
		switch {
		case e.Kind == event.Land && e.By.Land.Steps != "":
			begin(e.By.Land.ID, e, e.By.Operation, e.By.Land.Steps)
		case e.Kind == event.Intent && e.By.Land.Steps != "":
			announced[e.By.Land.ID] = e
		case e.Kind == event.Repair && e.By.Land != nil && announced[e.By.Land.ID].By.Land != nil:
			if in := announced[e.By.Land.ID]; in.By.Land.Commit == e.By.Land.Commit {
				begin(e.By.Land.ID, e, in.By.Operation, in.By.Land.Steps)
			}
		case hold != nil && hold.TakenBy == e.ID && !hold.Motion.IsZero():
			begin(hold.Motion, e, e.By.Operation, hold.Steps)
		case e.By.Step != nil:
			if m := find(e.By.Step.Motion); m != nil {
				m.Results = append(m.Results, *e.By.Step)
				if len(m.Open()) == 0 {
					m.Ended = &e
				}
			}
		case e.Kind == event.Abort && i > 0 && events[i-1].State.Hold != nil:
			if m := find(events[i-1].State.Hold.Motion); m != nil && m.Ended == nil {
				m.Ended, m.GivenUp = &e, true
			}
		case e.By.Finding != nil && e.By.Finding.Code == StepsUnfinished:
			var under ulid.ULID // the motion that the hold had, and has no more
			if i > 0 && events[i-1].State.Hold != nil {
				under = events[i-1].State.Hold.Motion
			}
			for j := range list {
				if m := &list[j]; (m.Begun.OID == e.By.Finding.Object || m.ID == under) && m.Ended == nil {
					m.Ended, m.GivenUp = &e, true
				}
			}
		}
	}
	return list
}

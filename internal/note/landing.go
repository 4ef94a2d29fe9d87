package note

import "gitland/internal/event"

// Of reports whether r is the record of the landing that an event tells: the same
// landing, unit, branch and commits. What a record says beyond that, an event
// does not know.
func (r Record) Of(l event.Landing) bool {
	return r.ID == l.ID && r.Unit == l.Unit && r.Branch == l.Branch &&
		r.Base == l.Base && r.Commit == l.Commit && r.Tree == l.Tree
}

package note

import (
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
)

// Announced is the record that an intent carries. Anybody may push an intent, so
// that it is taken only if it says of the landing what the event says, and is by
// the same actor under the same operation and lease.
func Announced(e event.Event) (Record, bool) {
	if e.Kind != event.Intent || e.By.Land == nil {
		return Record{}, false
	}
	lines := ParseRecords([]byte(e.By.Record))
	if len(lines) != 1 || lines[0].Err != nil || lines[0].Newer {
		return Record{}, false
	}
	r, land := lines[0].Value, *e.By.Land
	reason := ""
	if r.Override != nil {
		reason = r.Override.Reason
	}
	return r, r.ID == land.ID && r.Unit == land.Unit && r.Branch == land.Branch &&
		r.Base == land.Base && r.Commit == land.Commit && r.Tree == land.Tree &&
		r.Operation == e.By.Operation && r.Lease == e.Name && r.Actor == e.Actor &&
		(r.Override != nil) == (land.Unverified != "") && reason == land.Reason &&
		r.StepNames() == land.Steps && r.End == nil &&
		!slices.ContainsFunc(r.Verifications, func(v Verification) bool { return v.Tree != r.Tree && !r.MergedUnverified })
}

// StepNames are the names of the steps that follow the landing, as an event has them.
func (r Record) StepNames() string {
	var names []string
	for _, s := range r.Steps {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// Standing is what the lines of a note say of a landing: the newest of its records that
// says how its steps ended, or else the first one; nil where there is none. A line that
// has an end is no landing of its own.
func Standing(lines []Line[Record], landing ulid.ULID) (standing *Record) {
	for i := range lines {
		r := &lines[i].Value
		if lines[i].Err == nil && r.ID == landing && (standing == nil || r.End != nil) {
			standing = r
		}
	}
	return standing
}

// Sorted are the names of steps that are done, and of those that are not, as people are
// told them: how one went where that is special stands behind it.
func Sorted(steps []Step) (done, open []string) {
	for _, s := range steps {
		name := s.Name
		if s.Outcome != "" && s.Outcome != event.Done && s.Outcome != event.Already {
			name += " (" + string(s.Outcome) + ")"
		}
		if s.Outcome.Ends() {
			done = append(done, name)
		} else {
			open = append(open, name)
		}
	}
	return done, open
}

package note_test

import (
	"testing"

	"gitland/internal/event"
	"gitland/internal/note"
)

// The newest line that says how the steps of a landing ended is its record, wherever
// that stands among others; without one it is the first.
func TestStanding(t *testing.T) {
	t.Parallel()
	begun, done, givenUp := stepped()[0], stepped()[1], stepped()[2]
	other, again := done, begun
	other.ID, again.Host = id(77), "another"
	for name, tt := range map[string]struct {
		lines []note.Record
		want  *note.Record
	}{
		"none":                     {nil, nil},
		"of another landing":       {[]note.Record{other}, nil},
		"its record":               {[]note.Record{other, begun}, &begun},
		"doubled":                  {[]note.Record{begun, again}, &begun},
		"ended":                    {[]note.Record{begun, done, other}, &done},
		"ended, and doubled":       {[]note.Record{begun, done, again}, &done},
		"its end alone":            {[]note.Record{givenUp}, &givenUp},
		"given up, and then ended": {[]note.Record{begun, givenUp, done}, &done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blob := "no record\n"
			for _, r := range tt.lines {
				line, err := note.EncodeLine(r)
				if err != nil {
					t.Fatal(err)
				}
				blob += line + "\n"
			}
			got := note.Standing(note.ParseRecords([]byte(blob)), begun.ID)
			if (got == nil) != (tt.want == nil) || got != nil && (got.Host != tt.want.Host || got.End != tt.want.End && *got.End != *tt.want.End) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// An intent's record has the steps that the intent announces, and no end of them.
func TestAnnouncedSteps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*note.Record, *event.Landing)
		want   bool
	}{
		"as announced": {func(*note.Record, *event.Landing) {}, true},
		"other steps":  {func(_ *note.Record, l *event.Landing) { l.Steps = "upload" }, false},
		"no steps":     {func(r *note.Record, _ *event.Landing) { r.Steps = nil }, false},
		"an end": {func(r *note.Record, _ *event.Landing) {
			r.Steps, r.End = stepped()[1].Steps, stepped()[1].End
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := stepped()[0]
			land := event.Landing{ID: r.ID, Unit: r.Unit, Branch: r.Branch, Base: r.Base, Commit: r.Commit, Tree: r.Tree, Steps: "upload announce.2"}
			tt.change(&r, &land)
			line, err := note.EncodeLine(r)
			if err != nil {
				t.Fatal(err)
			}
			e := event.Event{Name: r.Lease, Kind: event.Intent, Actor: r.Actor, By: event.By{Operation: r.Operation, Land: &land, Record: line}}
			if _, got := note.Announced(e); got != tt.want {
				t.Errorf("taken: %v", got)
			}
		})
	}
}

package session

import "testing"

func TestParseStat(t *testing.T) {
	t.Parallel()
	rest := " 1 7 7 0 -1 4194560 100 0 0 0 0 0 0 0 20 0 "
	for _, c := range []struct {
		name, stat string
		want       Sighting
	}{
		{"running", "7 (cat) R" + rest + "1 0 4711 1000", Sighting{Start: "4711"}},
		{"stopped", "7 (cat) T" + rest + "1 0 4711 1000", Sighting{Start: "4711"}},
		{"hostile name", "7 (a) R 1 2 (b) S" + rest + "3 0 4711 1000", Sighting{Start: "4711"}},
		{"zombie", "7 (cat) Z" + rest + "1 0 4711 0", Sighting{Absent: true}},
		{"first thread ended", "7 (cat) Z" + rest + "2 0 4711 0", Sighting{Start: "4711"}},
		{"cut short", "7 (cat) R 1 7", Sighting{}},
		{"empty", "", Sighting{}},
	} {
		if got := parseStat([]byte(c.stat)); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

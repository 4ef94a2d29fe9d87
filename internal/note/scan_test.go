package note

import (
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
)

// What scan takes, encoding/json takes, and as the same value; what it is there
// for it takes; and of lines that were changed at random it takes no other.
func TestScanIsParsing(t *testing.T) {
	t.Parallel()
	scanIsParsing[Record](t, "records", 3)
	scanIsParsing[Record](t, "records-flaky", 1)
	scanIsParsing[Record](t, "records-no-verify", 1)
	scanIsParsing[Record](t, "records-allowed", 1)
	scanIsParsing[Record](t, "records-squashed", 1)
	scanIsParsing[Record](t, "records-steps", 4)
	scanIsParsing[Verification](t, "verifications", 3)
}

func scanIsParsing[T Record | Verification](t *testing.T, name string, least int) {
	t.Helper()
	blob, err := os.ReadFile("testdata/v1/" + name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(blob)), "\n")
	lines[0] = strings.ReplaceAll(lines[0], `\n`, " ") // an escape is not for scan
	taken := 0
	for _, line := range lines {
		if sameAsJSON[T](t, line) {
			taken++
		}
	}
	if least = min(least, len(lines)-1); taken < least {
		t.Errorf("%s: %d of %d lines were scanned, want %d", name, taken, len(lines), least)
	}
	r := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"", `"`, `\`, "{", "}", "[", "]", ",", "0", "1", "00", "-1", "9999999999999", "null", "\u2028", "\ufffd", "\xff", "\x7f", "\t", "é", "Z", "z", " "}
	for range 40_000 {
		line := lines[r.IntN(len(lines))]
		for range 1 + r.IntN(2) {
			from := r.IntN(len(line))
			to := min(len(line), from+r.IntN(3))
			line = line[:from] + pieces[r.IntN(len(pieces))] + line[to:]
		}
		sameAsJSON[T](t, line)
	}
}

func sameAsJSON[T Record | Verification](t *testing.T, line string) bool {
	t.Helper()
	value, ok := scan[T](line)
	if !ok || strings.ToValidUTF8(line, "") != line { // which is not given to scan
		return false
	}
	if want := parseJSON[T](line); want.Err != nil || want.Newer || !reflect.DeepEqual(value, want.Value) {
		t.Errorf("%s\nscanned as %+v\nparsed as  %+v, %v", line, value, want.Value, want.Err)
	}
	return true
}

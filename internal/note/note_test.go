package note_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/note"
	"gitland/internal/object"
)

func id(n byte) ulid.ULID {
	var u ulid.ULID
	_ = u.SetTime(1785585600000)
	u[15] = n
	return u
}

func oid(digit string) object.OID { return object.OID(strings.Repeat(digit, 40)) }

func at(n int) time.Time { return time.Date(2026, 8, 1, 12, n, 0, 0, time.UTC) }

// verification is a passing one in which every field is set.
func verification() note.Verification {
	return note.Verification{
		Format: note.Format, ID: id(1), Check: "test", Verdict: note.Pass, Command: "go vet ./... && go test ./... 2>&1",
		Exit: 0, Duration: 83*time.Second + 250*time.Millisecond, Tree: oid("c"), Base: oid("a"), Unit: "fix-42",
		Actor: "Ada Lovelace <ada@example.com>", Host: "lab-1", Time: at(1),
	}
}

// record is one in which every field is set.
func record() note.Record {
	return note.Record{
		Format: note.Format, ID: id(2), Unit: "fix-42", Operation: id(3), Lease: "main", Branch: "refs/heads/main",
		Base: oid("a"), Commit: oid("b"), Tree: oid("c"), Commits: 3, Note: "as they are\n\nall three",
		Verifications: []note.Verification{verification()}, VerificationRef: oid("d"), MergedUnverified: true,
		Override: &note.Override{Reason: "the runner is down", Actor: "Ada Lovelace <ada@example.com>", Missing: []string{"lint"}},
		Actor:    "Ada Lovelace <ada@example.com>", Host: "lab-1", Time: at(2),
	}
}

// bare is a record with nothing that may be left out.
func bare() note.Record {
	r := record()
	r.Base, r.Note, r.Verifications, r.VerificationRef = "", "", []note.Verification{}, ""
	r.MergedUnverified, r.Override, r.Host, r.Commits = false, nil, "", 1
	return r
}

// verifications and records are what stands in testdata/v1, line by line.
func verifications() []note.Verification {
	failed, other, odd := verification(), verification(), verification()
	failed.ID, failed.Verdict, failed.Exit, failed.Duration = id(4), note.Fail, 130, 0
	other.ID, other.Command, other.Base, other.Unit, other.Host = id(5), "", "", "", ""
	other.Tree = object.OID(strings.Repeat("c", 64))
	odd.ID, odd.Check = id(6), "ünïcode <&>"
	odd.Command = "a\tb\nc\rd \"quoted\" \\ \x00\x01\b\f\x1b\x7f \u2028\u2029 \U0001F680 \ufffd é"
	return []note.Verification{verification(), failed, other, odd}
}

func records() []note.Record {
	many := record()
	many.Verifications = verifications()
	return []note.Record{record(), bare(), many}
}

// flaky is in a file of its own: the others are older than the field.
func flaky() []note.Record {
	one, both := bare(), record()
	one.Verifications, one.Flaky = []note.Verification{verification()}, []string{"test"}
	both.Note, both.Flaky = "", []string{"test", "lint"}
	return []note.Record{one, both}
}

// skipped is likewise.
func skipped() []note.Record {
	one, both := bare(), flaky()[1]
	one.NoVerify, both.NoVerify = true, true
	return []note.Record{both, one}
}

// allowed is likewise.
func allowed() []note.Record {
	list := skipped()
	for i := range list {
		list[i].Allowed = []string{"rename", "submodule"}
	}
	return list
}

// squashed is in a file of its own likewise.
func squashed() []note.Record {
	one, both := bare(), record()
	one.Squashed, both.Squashed = oid("e"), oid("e")
	return []note.Record{one, both}
}

// stepped is likewise: a landing whose steps are to come, and how two of them ended.
func stepped() []note.Record {
	begun, done, givenUp, all := bare(), bare(), bare(), record()
	begun.Steps = []note.Step{{Name: "upload"}, {Name: "announce.2"}}
	done.Steps = []note.Step{{Name: "upload", Outcome: event.Done, DurationMS: 83_250}, {Name: "announce.2", Outcome: event.Already}}
	done.End = &note.End{Actor: "Grace Hopper <grace@example.com>", Time: at(9)}
	givenUp.Steps = []note.Step{{Name: "upload", Outcome: event.Failed, DurationMS: 1}, {Name: "announce.2"}}
	givenUp.End = &note.End{Reason: "the site is gone", Actor: "Grace Hopper <grace@example.com>", Time: at(9)}
	all.Note, all.Steps, all.End, all.Allowed = "", givenUp.Steps, givenUp.End, []string{"rename"}
	return []note.Record{begun, done, givenUp, all}
}

// The files of testdata/v1 are what this format is. They never change.
func TestFrozen(t *testing.T) {
	t.Parallel()
	frozen(t, "verifications", verifications(), note.ParseVerifications)
	frozen(t, "records", records(), note.ParseRecords)
	frozen(t, "records-flaky", flaky(), note.ParseRecords)
	frozen(t, "records-no-verify", skipped(), note.ParseRecords)
	frozen(t, "records-allowed", allowed(), note.ParseRecords)
	frozen(t, "records-squashed", squashed(), note.ParseRecords)
	frozen(t, "records-steps", stepped(), note.ParseRecords)
}

func frozen[T note.Record | note.Verification](t *testing.T, name string, values []T, parse func([]byte) []note.Line[T]) {
	t.Helper()
	blob, err := os.ReadFile(filepath.Join("testdata", "v1", name))
	if err != nil {
		t.Fatal(err)
	}
	lines := parse(blob)
	if len(lines) != len(values) {
		t.Fatalf("%d %s, want %d", len(lines), name, len(values))
	}
	for i, line := range lines {
		if line.Err != nil || line.Newer || !reflect.DeepEqual(line.Value, values[i]) {
			t.Errorf("%s, line %d: %+v, want %+v", name, i+1, line, values[i])
		}
		if got, err := note.EncodeLine(values[i]); err != nil || got != line.Raw {
			t.Errorf("%s, line %d: encodes to\n%s, %v, want\n%s", name, i+1, got, err, line.Raw)
		}
	}
}

func TestEncodeLineNormalizes(t *testing.T) {
	t.Parallel()
	r := record()
	r.Format, r.Verifications[0].Format = 0, 0
	r.Time = r.Time.In(time.FixedZone("", -7200)).Add(300 * time.Millisecond)
	r.Verifications[0].Time = r.Verifications[0].Time.Local().Add(time.Nanosecond)
	r.Verifications[0].Duration += time.Microsecond
	got, err := note.EncodeLine(r)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := note.EncodeLine(record()); got != want {
		t.Errorf("encodes to\n%s, want\n%s", got, want)
	}
	if r.Format != 0 || r.Verifications[0].Format != 0 {
		t.Error("the argument was changed")
	}
	ended := stepped()[1]
	ended.End.Time = ended.End.Time.In(time.FixedZone("", 3600)).Add(time.Millisecond)
	given := *ended.End
	if got, err := note.EncodeLine(ended); err != nil || !strings.Contains(got, `"time":"2026-08-01T12:09:00Z"}`) || *ended.End != given {
		t.Errorf("an end becomes %s, %v; %+v", got, err, ended.End)
	}
	none := bare()
	none.Verifications = nil
	if got, err := note.EncodeLine(none); err != nil || !strings.Contains(got, `"verifications":[]`) {
		t.Errorf("no verifications become %s, %v", got, err)
	}
}

func TestEncodeLineRefuses(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*note.Record){
		"newer than":               func(r *note.Record) { r.Format = 2 },
		"format -1":                func(r *note.Record) { r.Format = -1 },
		"no id":                    func(r *note.Record) { r.ID = ulid.ULID{} },
		"no time":                  func(r *note.Record) { r.Time = time.Time{} },
		"without an operation":     func(r *note.Record) { r.Operation = ulid.ULID{} },
		"without unit and lease":   func(r *note.Record) { r.Unit = "" },
		"no commit":                func(r *note.Record) { r.Commit = "" },
		"tree: object id":          func(r *note.Record) { r.Tree = "c0ffee" },
		"base: object id":          func(r *note.Record) { r.Base = "c0ffee" },
		"verification_ref: object": func(r *note.Record) { r.VerificationRef = "c0ffee" },
		`ref "main"`:               func(r *note.Record) { r.Branch = "main" },
		"0 commits":                func(r *note.Record) { r.Commits = 0 },
		"not UTF-8":                func(r *note.Record) { r.Note = "\xff" },
		"override without":         func(r *note.Record) { r.Override.Reason = "" },
		"too long":                 func(r *note.Record) { r.Note = strings.Repeat("x", note.MaxLine) },
		"neither pass nor fail":    func(r *note.Record) { r.Verifications[0].Verdict = "maybe" },
		"without a check":          func(r *note.Record) { r.Verifications[0].Check = "" },
		"negative duration":        func(r *note.Record) { r.Verifications[0].Duration = -time.Second },
		"format 3 is newer":        func(r *note.Record) { r.Verifications[0].Format = 3 },
		"no tree":                  func(r *note.Record) { r.Verifications[0].Tree = oid("0") },
		"no name of a step":        func(r *note.Record) { r.Steps = []note.Step{{Name: "up load"}} },
		"is there twice":           func(r *note.Record) { r.Steps = []note.Step{{Name: "a"}, {Name: "a"}} },
		"nothing has ended":        func(r *note.Record) { r.Steps = []note.Step{{Name: "a", Outcome: event.Done}} },
		`with the outcome ""`:      func(r *note.Record) { r.Steps = []note.Step{{Name: "a", DurationMS: 1}} },
		`the outcome "odd"`:        func(r *note.Record) { *r = stepped()[1]; r.Steps[0].Outcome = "odd" },
		"took 9007199254740992":    func(r *note.Record) { *r = stepped()[1]; r.Steps[0].DurationMS = 1 << 53 },
		"an end of no steps":       func(r *note.Record) { *r = stepped()[1]; r.Steps = nil },
		"an end without a time":    func(r *note.Record) { *r = stepped()[1]; r.End.Time = time.Time{} },
		"if and only if not all":   func(r *note.Record) { *r = stepped()[2]; r.End.Reason = "" },
		"an end has a reason":      func(r *note.Record) { *r = stepped()[1]; r.End.Reason = "why" },
		"text that is not UTF-8":   func(r *note.Record) { *r = stepped()[2]; r.End.Reason = "\xff" },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			r := record()
			change(&r)
			if line, err := note.EncodeLine(r); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("line %.80q, error %v, want %q in it", line, err, want)
			}
		})
	}
}

// A bad line is told on that line, and its neighbours are read.
func TestParseKeepsGoodLines(t *testing.T) {
	t.Parallel()
	good, err := note.EncodeLine(verification())
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"no JSON":         "not a note of ours",
		"other JSON":      "[1]",
		"null":            "null",
		"cut short":       good[:40],
		"two objects":     good + good,
		"spaces":          strings.Replace(good, `":`, `": `, 1),
		"CRLF":            good + "\r",
		"unknown key":     strings.Replace(good, `"exit":0`, `"exit":0,"moon":"full"`, 1),
		"key twice":       strings.Replace(good, `"verdict":"pass"`, `"verdict":"fail","verdict":"pass"`, 1),
		"key in capitals": strings.Replace(good, `"verdict"`, `"Verdict"`, 1),
		"missing key":     strings.Replace(good, `"unit":"fix-42",`, "", 1),
		"escapes":         strings.Replace(good, "fix-42", `fix\u002d42`, 1),
		"bad id":          strings.Replace(good, `"id":"0`, `"id":"U`, 1),
		"id in small":     strings.Replace(good, "01KYY", "01kyy", 1),
		"wrong type":      strings.Replace(good, `"exit":0`, `"exit":"0"`, 1),
		"time in a zone":  strings.Replace(good, "12:01:00Z", "14:01:00+02:00", 1),
		"part of second":  strings.Replace(good, "12:01:00Z", "12:01:00.5Z", 1),
		"overflow":        strings.Replace(good, `"duration_ms":83250`, `"duration_ms":9223372036854775807`, 1),
		"not UTF-8":       strings.Replace(good, "fix-42", "fix-\xff", 1),
		"no format":       strings.Replace(good, `"format":1,`, "", 1),
		"too long":        strings.Replace(good, "fix-42", strings.Repeat("x", note.MaxLine), 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if bad == good {
				t.Fatal("the case changes nothing")
			}
			lines := note.ParseVerifications([]byte(good + "\n\n" + bad + "\n" + good))
			if len(lines) != 3 {
				t.Fatalf("%d lines, want 3", len(lines))
			}
			for i, line := range lines {
				if (line.Err == nil) != (i != 1) || line.Newer {
					t.Errorf("line %d: error %v, newer %v", i+1, line.Err, line.Newer)
				}
				if i != 1 && line.Value != verification() {
					t.Errorf("line %d: %+v", i+1, line.Value)
				}
			}
			if lines[1].Raw != bad {
				t.Errorf("the bad line reads %q", lines[1].Raw)
			}
		})
	}
	if lines := note.ParseRecords(nil); len(lines) != 0 {
		t.Errorf("an empty note has %d lines", len(lines))
	}
}

func TestNewerIsReadAsFarAsPossible(t *testing.T) {
	t.Parallel()
	good, err := note.EncodeLine(record())
	if err != nil {
		t.Fatal(err)
	}
	raw := strings.Replace(good, `{"format":1,`, `{"format":2,"moon":"full",`, 1)
	line := note.ParseRecords([]byte(raw))[0]
	want := record()
	want.Format = 2
	if line.Err != nil || !line.Newer || !reflect.DeepEqual(line.Value, want) {
		t.Errorf("a newer line reads %+v", line)
	}
	if _, err := note.EncodeLine(line.Value); err == nil {
		t.Error("a newer format is written")
	}
	changed := strings.Replace(raw, `"commits":3`, `"commits":{"count":3}`, 1)
	line = note.ParseRecords([]byte(changed))[0]
	if line.Err == nil || !line.Newer || line.Value.Lease != "main" {
		t.Errorf("a newer line with a field of another type reads %+v", line)
	}
	long := strings.Replace(raw, "full", strings.Repeat("o", note.MaxLine), 1)
	if line = note.ParseRecords([]byte(long))[0]; line.Err == nil || !line.Newer {
		t.Errorf("a newer line that is too long: %v, newer %v", line.Err, line.Newer)
	}
}

// Plain encoding/json reads and writes the same fields, for --json output.
func TestJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(record())
	if err != nil {
		t.Fatal(err)
	}
	var back note.Record
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, record()) {
		t.Errorf("%s reads as %+v, %v", data, back, err)
	}
}

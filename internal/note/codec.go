package note

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/object"
)

// A Line is one line of a note.
type Line[T Record | Verification] struct {
	Value T      // as far as it could be read
	Raw   string // as it stands in the note, without the line feed
	Err   error  // why it is no T; the other lines of the note still are
	Newer bool   // of a newer format: known fields were read, and none may be rewritten
}

// EncodeLine gives the one spelling of a record or a verification, without a
// line feed. A zero Format stands for the current one; times become whole
// seconds in UTC.
func EncodeLine[T Record | Verification](value T) (string, error) {
	var err error
	switch v := any(&value).(type) {
	case *Record:
		*v = v.normal()
		err = v.validate()
	case *Verification:
		*v = v.normal()
		err = v.validate()
	}
	if err != nil {
		return "", err
	}
	line, err := marshal(value)
	if err != nil {
		return "", err
	}
	if len(line) > MaxLine {
		return "", fmt.Errorf("%d bytes are too long for a line, which may have %d", len(line), MaxLine)
	}
	return string(line), nil
}

// ParseRecords reads the landing records of a note, in its order. Blank lines
// are left out.
func ParseRecords(blob []byte) []Line[Record] { return parse[Record](blob) }

// ParseVerifications reads the verifications of a note, in its order. Blank
// lines are left out.
func ParseVerifications(blob []byte) []Line[Verification] { return parse[Verification](blob) }

func parse[T Record | Verification](blob []byte) []Line[T] {
	var lines []Line[T]
	for raw := range strings.SplitSeq(string(blob), "\n") {
		if raw != "" {
			lines = append(lines, parseLine[T](raw))
		}
	}
	return lines
}

// canonicalHead is how every line of the current format begins. One that does
// not end accordingly fails to be parsed, or to be the same when encoded again.
var canonicalHead = fmt.Sprintf(`{"format":%d,`, Format)

func parseLine[T Record | Verification](raw string) Line[T] {
	if len(raw) <= MaxLine && utf8.ValidString(raw) {
		if value, ok := scan[T](raw); ok {
			return Line[T]{Value: value, Raw: raw}
		}
	}
	return parseJSON[T](raw)
}

// parseJSON is parseLine for every line there may be.
func parseJSON[T Record | Verification](raw string) Line[T] {
	line := Line[T]{Raw: raw}
	// The format comes before the payload, which may have changed with it.
	head := struct{ Format int }{Format}
	if !strings.HasPrefix(raw, canonicalHead) {
		if line.Err = json.Unmarshal([]byte(raw), &head); line.Err != nil {
			return line
		}
	}
	line.Newer = head.Format > Format
	switch {
	case len(raw) > MaxLine:
		line.Err = fmt.Errorf("%d bytes are too long for a line, which may have %d", len(raw), MaxLine)
	case head.Format < 1:
		line.Err = errors.New("no format number")
	case !utf8.ValidString(raw):
		line.Err = errors.New("not UTF-8")
	default:
		line.Err = json.Unmarshal([]byte(raw), &line.Value)
	}
	if line.Err != nil || line.Newer {
		return line
	}
	// One comparison refuses what readers could take in different ways: keys
	// that are unknown, doubled or in another case, and malformed ids.
	again, err := EncodeLine(line.Value)
	if err != nil {
		line.Err = err
	} else if again != raw {
		line.Err = errors.New("not in canonical form")
	}
	return line
}

// verificationLine is a Verification on the wire.
type verificationLine struct {
	Format     int        `json:"format"`
	ID         ulid.ULID  `json:"id"`
	Check      string     `json:"check"`
	Verdict    Verdict    `json:"verdict"`
	Command    string     `json:"command"`
	Exit       int        `json:"exit"`
	DurationMS int64      `json:"duration_ms"`
	Tree       object.OID `json:"tree"`
	Base       object.OID `json:"base"`
	Unit       string     `json:"unit"`
	Actor      string     `json:"actor"`
	Host       string     `json:"host"`
	Time       time.Time  `json:"time"`
}

// MarshalJSON gives the fields of docs/format.md in their order, as EncodeLine spells
// them.
func (v Verification) MarshalJSON() ([]byte, error) {
	v = v.normal()
	return marshal(verificationLine{
		Format: v.Format, ID: v.ID, Check: v.Check, Verdict: v.Verdict, Command: v.Command,
		Exit: v.Exit, DurationMS: v.Duration.Milliseconds(), Tree: v.Tree, Base: v.Base,
		Unit: v.Unit, Actor: v.Actor, Host: v.Host, Time: v.Time,
	})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (v *Verification) UnmarshalJSON(data []byte) error {
	var w verificationLine
	err := json.Unmarshal(data, &w)
	*v = Verification{
		Format: w.Format, ID: w.ID, Check: w.Check, Verdict: w.Verdict, Command: w.Command,
		Exit: w.Exit, Duration: time.Duration(w.DurationMS) * time.Millisecond, Tree: w.Tree, Base: w.Base,
		Unit: w.Unit, Actor: w.Actor, Host: w.Host, Time: w.Time,
	}
	return err
}

// marshal is json.Marshal without its escapes for HTML, which would make
// commands unreadable in "git log".
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func (v Verification) normal() Verification {
	if v.Format == 0 {
		v.Format = Format
	}
	v.Duration = v.Duration.Truncate(time.Millisecond)
	v.Time = v.Time.UTC().Truncate(time.Second)
	return v
}

func (r Record) normal() Record {
	if r.Format == 0 {
		r.Format = Format
	}
	r.Time = r.Time.UTC().Truncate(time.Second)
	copied := make([]Verification, len(r.Verifications))
	for i, v := range r.Verifications {
		copied[i] = v.normal()
	}
	r.Verifications = copied
	if r.End != nil {
		end := *r.End
		end.Time = end.Time.UTC().Truncate(time.Second)
		r.End = &end
	}
	return r
}

func (v Verification) validate() error {
	if v.Verdict != Pass && v.Verdict != Fail {
		return fmt.Errorf("verdict %q is neither pass nor fail", v.Verdict)
	}
	if v.Check == "" {
		return errors.New("verification without a check")
	}
	if v.Duration < 0 {
		return errors.New("verification of negative duration")
	}
	return cmp.Or(validHead(v.Format, v.ID, v.Time), validOID("tree", v.Tree), validOptional("base", v.Base),
		validText(v.Check, v.Command, v.Unit, v.Actor, v.Host))
}

func (r Record) validate() error {
	err := cmp.Or(validHead(r.Format, r.ID, r.Time), validOID("commit", r.Commit), validOID("tree", r.Tree),
		validOptional("base", r.Base), validOptional("squashed", r.Squashed), validOptional("verification_ref", r.VerificationRef),
		validText(r.Unit, r.Lease, r.Note, r.Actor, r.Host, string(r.Branch)))
	if err != nil {
		return err
	}
	if _, err := object.ParseRef(string(r.Branch)); err != nil {
		return err
	}
	switch {
	case r.Operation.IsZero():
		return errors.New("record without an operation")
	case r.Unit == "" || r.Lease == "":
		return errors.New("record without unit and lease")
	case r.Commits < 1:
		return fmt.Errorf("record of %d commits", r.Commits)
	}
	for _, v := range r.Verifications {
		if err := v.validate(); err != nil {
			return err
		}
	}
	if slices.Contains(r.Flaky, "") || slices.Contains(r.Allowed, "") {
		return errors.New("a flaky check, or a guard, without a name")
	}
	if err := validText(slices.Concat(r.Flaky, r.Allowed)...); err != nil {
		return err
	}
	if err := r.validateSteps(); err != nil {
		return err
	}
	if o := r.Override; o != nil {
		if o.Reason == "" || len(o.Missing) == 0 {
			return errors.New("override without a reason and what was missing")
		}
		return validText(append([]string{o.Reason, o.Actor}, o.Missing...)...)
	}
	return nil
}

func (r Record) validateSteps() error {
	for i, s := range r.Steps {
		if err := event.ValidStepName(s.Name); err != nil {
			return err
		}
		if slices.ContainsFunc(r.Steps[:i], func(o Step) bool { return o.Name == s.Name }) {
			return fmt.Errorf("step %s is there twice", s.Name)
		}
		if s.DurationMS != 0 && s.Outcome == "" || s.DurationMS > event.MaxSeq {
			return fmt.Errorf("step %s took %d ms, with the outcome %q", s.Name, s.DurationMS, s.Outcome)
		}
		if s.Outcome != "" && r.End == nil {
			return fmt.Errorf("step %s has an outcome, and nothing has ended", s.Name)
		}
		if s.Outcome != "" && !s.Outcome.Known() {
			return fmt.Errorf("step %s has the outcome %q", s.Name, s.Outcome)
		}
	}
	switch {
	case r.End == nil:
		return nil
	case len(r.Steps) == 0:
		return errors.New("an end of no steps")
	case r.End.Time.IsZero():
		return errors.New("an end without a time")
	case (r.End.Reason == "") == slices.ContainsFunc(r.Steps, func(s Step) bool { return !s.Outcome.Ends() }):
		return errors.New("an end has a reason if and only if not all steps are done")
	}
	return validText(r.End.Reason, r.End.Actor)
}

func validHead(format int, id ulid.ULID, at time.Time) error {
	switch {
	case format > Format:
		return fmt.Errorf("format %d is newer than %d, and is not written by this version", format, Format)
	case format != Format:
		return fmt.Errorf("format %d is not known", format)
	case id.IsZero():
		return errors.New("no id")
	case at.IsZero():
		return errors.New("no time")
	}
	return nil
}

func validOID(what string, oid object.OID) error {
	if oid.IsZero() {
		return fmt.Errorf("no %s", what)
	}
	return validOptional(what, oid)
}

func validOptional(what string, oid object.OID) error {
	if oid == "" {
		return nil
	}
	if _, err := object.ParseOID(string(oid)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// validText refuses what encoding/json would silently replace.
func validText(texts ...string) error {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return errors.New("text that is not UTF-8")
		}
	}
	return nil
}

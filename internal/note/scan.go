package note

import (
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/object"
)

// scan reads a line that stands in the one spelling, as nearly all do, in a tenth
// of the time that encoding/json needs. Where it reports false nothing is said of
// the line: it may have an escape in a text, or be none. Where it reports true the
// value is what parsing gives, and encoding it gives the line again.
func scan[T Record | Verification](raw string) (value T, ok bool) {
	c := scanner{rest: raw}
	switch v := any(&value).(type) {
	case *Record:
		*v = c.record()
		ok = c.end() && v.validate() == nil
	case *Verification:
		*v = c.verification()
		ok = c.end() && v.validate() == nil
	}
	return value, ok
}

// A scanner is at a place of a line of valid UTF-8.
type scanner struct {
	rest   string
	failed bool
}

func (c *scanner) end() bool { return !c.failed && c.rest == "" }

// has passes over the literal, where it comes next.
func (c *scanner) has(literal string) bool {
	rest, found := strings.CutPrefix(c.rest, literal)
	c.rest = rest
	return found
}

func (c *scanner) want(literal string) { c.failed = !c.has(literal) || c.failed }

// text reads what follows a key, up to and with its closing quote.
func (c *scanner) text(key string) string {
	c.want(key)
	for i := 0; i < len(c.rest) && !c.failed; i++ {
		switch b := c.rest[i]; {
		case b == '"':
			text := c.rest[:i]
			c.rest = c.rest[i+1:]
			return text
		case b == '\\', b < ' ', b == 0xe2 && (strings.HasPrefix(c.rest[i:], "\u2028") || strings.HasPrefix(c.rest[i:], "\u2029")):
			c.failed = true // JSON has it in another spelling
		}
	}
	c.failed = true
	return ""
}

// some is the text of a key that is left out when empty.
func (c *scanner) some(key string) string {
	if !strings.HasPrefix(c.rest, key) {
		return ""
	}
	text := c.text(key)
	c.failed = c.failed || text == ""
	return text
}

// texts reads what follows the opening bracket of an array of at least one text, up to
// and with its end.
func (c *scanner) texts() (list []string) {
	for !c.failed && !c.has("]") {
		if len(list) > 0 {
			c.want(",")
		}
		list = append(list, c.text(`"`))
	}
	c.failed = c.failed || len(list) == 0
	return list
}

// steps reads what follows the opening bracket of an array of at least one step, up to
// and with its end.
func (c *scanner) steps() (list []Step) {
	for !c.failed && !c.has("]") {
		if len(list) > 0 {
			c.want(",")
		}
		s := Step{Name: c.text(`{"name":"`), Outcome: event.Outcome(c.some(`,"outcome":"`))}
		if strings.HasPrefix(c.rest, `,"duration_ms":`) {
			s.DurationMS = uint64(c.number(`,"duration_ms":`))
			c.failed = c.failed || s.DurationMS == 0
		}
		c.want("}")
		list = append(list, s)
	}
	c.failed = c.failed || len(list) == 0
	return list
}

func (c *scanner) number(key string) int64 {
	c.want(key)
	n, digits := int64(0), 0
	for digits < len(c.rest) && c.rest[digits] >= '0' && c.rest[digits] <= '9' && digits < 13 {
		n = 10*n + int64(c.rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits == 13 || digits > 1 && c.rest[0] == '0' {
		c.failed = true
	}
	c.rest = c.rest[digits:]
	return n
}

func (c *scanner) id(key string) ulid.ULID {
	text := c.text(key)
	id, err := ulid.ParseStrict(text)
	var again [ulid.EncodedSize]byte
	if err != nil || id.MarshalTextTo(again[:]) != nil || string(again[:]) != text {
		c.failed = true
	}
	return id
}

func (c *scanner) time(key string) time.Time {
	text := c.text(key)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || len(text) != len("2006-01-02T15:04:05Z") || text[len(text)-1] != 'Z' {
		c.failed = true
	}
	return at
}

func (c *scanner) record() (r Record) {
	c.want(canonicalHead)
	r.Format = Format
	r.ID = c.id(`"id":"`)
	r.Unit = c.text(`,"unit":"`)
	r.Operation = c.id(`,"operation":"`)
	r.Lease = c.text(`,"lease":"`)
	r.Branch = object.Ref(c.text(`,"branch":"`))
	r.Base = object.OID(c.text(`,"base":"`))
	r.Commit = object.OID(c.text(`,"commit":"`))
	r.Tree = object.OID(c.text(`,"tree":"`))
	r.Commits = int(c.number(`,"commits":`))
	r.Squashed = object.OID(c.some(`,"squashed":"`))
	r.Note = c.some(`,"note":"`)
	c.want(`,"verifications":[`)
	r.Verifications = []Verification{}
	for !c.failed && !c.has("]") {
		if len(r.Verifications) > 0 {
			c.want(",")
		}
		r.Verifications = append(r.Verifications, c.verification())
	}
	r.VerificationRef = object.OID(c.some(`,"verification_ref":"`))
	r.MergedUnverified = c.has(`,"merged_unverified":true`)
	if c.has(`,"flaky":[`) {
		r.Flaky = c.texts()
	}
	r.NoVerify = c.has(`,"no_verify":true`)
	if c.has(`,"allowed":[`) {
		r.Allowed = c.texts()
	}
	if c.has(`,"steps":[`) {
		r.Steps = c.steps()
	}
	if c.has(`,"end":{`) {
		r.End = &End{Reason: c.some(`"reason":"`)}
		if r.End.Reason != "" {
			c.want(",")
		}
		r.End.Actor = c.text(`"actor":"`)
		r.End.Time = c.time(`,"time":"`)
		c.want("}")
	}
	if c.has(`,"override":{`) {
		r.Override = &Override{Reason: c.text(`"reason":"`), Actor: c.text(`,"actor":"`)}
		c.want(`,"missing":[`)
		r.Override.Missing = c.texts()
		c.want("}")
	}
	r.Actor = c.text(`,"actor":"`)
	r.Host = c.text(`,"host":"`)
	r.Time = c.time(`,"time":"`)
	c.want("}")
	return r
}

func (c *scanner) verification() (v Verification) {
	c.want(canonicalHead)
	v.Format = Format
	v.ID = c.id(`"id":"`)
	v.Check = c.text(`,"check":"`)
	v.Verdict = Verdict(c.text(`,"verdict":"`))
	v.Command = c.text(`,"command":"`)
	v.Exit = int(c.number(`,"exit":`))
	v.Duration = time.Duration(c.number(`,"duration_ms":`)) * time.Millisecond
	v.Tree = object.OID(c.text(`,"tree":"`))
	v.Base = object.OID(c.text(`,"base":"`))
	v.Unit = c.text(`,"unit":"`)
	v.Actor = c.text(`,"actor":"`)
	v.Host = c.text(`,"host":"`)
	v.Time = c.time(`,"time":"`)
	c.want("}")
	return v
}

package event

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"gitland/internal/object"
)

const (
	maxMessage = 32 << 10
	maxSubject = 72 // runes, so that "git log --oneline" fits a terminal
	sinceForm  = "2006-01-02T15:04:05Z"
)

// Parse reads an event from its commit, in a repository of the given format.
// A signature (gpgsig) is allowed and not part of the event: a signed event
// encodes to the commit as it was before signing. The error is a *NewerError
// or a *MalformedError.
func Parse(format object.Format, obj object.Object) (Event, error) {
	e, err := parse(format, obj)
	if err == nil {
		return e, nil
	}
	if newer, ok := errors.AsType[*NewerError](err); ok {
		return Event{}, newer
	}
	return Event{}, &MalformedError{OID: obj.OID, What: err.Error()}
}

func parse(format object.Format, obj object.Object) (Event, error) {
	if obj.Kind != object.Commit {
		return Event{}, fmt.Errorf("a %s, not a commit", obj.Kind)
	}
	c, err := object.ParseCommit(obj.Data)
	if err != nil {
		return Event{}, err
	}
	version, err := version(c.Message)
	if err != nil {
		return Event{}, err
	}
	if version > Format {
		return Event{}, &NewerError{OID: obj.OID, Format: version}
	}
	if len(c.Message) > maxMessage {
		return Event{}, fmt.Errorf("the message is longer than %d bytes", maxMessage)
	}
	for _, h := range c.Extra {
		if h.Key != "gpgsig" && h.Key != "gpgsig-sha256" {
			return Event{}, fmt.Errorf("header %q is not allowed", clip(h.Key))
		}
	}
	e := Event{OID: obj.OID, Parents: c.Parents}
	if e.Actor, e.Time, err = ParseIdent(c.Author); err != nil {
		return Event{}, err
	}
	if err := e.readMessage(c.Message); err != nil {
		return Event{}, err
	}
	// One comparison refuses every other spelling of the same event.
	canonical, err := e.Encode(format, e.Ident())
	if err != nil {
		return Event{}, err
	}
	c.Extra = nil
	if !bytes.Equal(canonical, c.Encode()) {
		return Event{}, errors.New("not in canonical form")
	}
	return e, nil
}

// version reads the format number, the one thing that every format keeps: the
// first line that begins with "Lease-Format: ".
func version(message string) (int, error) {
	for line := range strings.SplitSeq(message, "\n") {
		if v, ok := strings.CutPrefix(line, "Lease-Format: "); ok {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || v != strconv.Itoa(n) {
				return 0, fmt.Errorf("format %q is not a number", clip(v))
			}
			return n, nil
		}
	}
	return 0, errors.New("the message has no Lease-Format")
}

// Encode gives the commit of e in a repository of the given format. ident is
// git's "Name <email> seconds zone", and becomes author and committer; it has
// to say the same as e.Actor and e.Time, which the state may rest on.
func (e Event) Encode(format object.Format, ident string) ([]byte, error) {
	actor, when, err := ParseIdent(ident)
	if err != nil {
		return nil, err
	}
	if actor != e.Actor || when.Unix() != e.Time.Unix() {
		return nil, fmt.Errorf("identity %q is not the event's, %q", clip(ident), clip(e.Ident()))
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	for _, oid := range e.oids() {
		if len(oid) != 2*format.Size() {
			return nil, fmt.Errorf("object id %q is not of format %s", oid, format)
		}
	}
	e.Time = when
	message := e.message()
	if len(message) > maxMessage {
		return nil, fmt.Errorf("the message is longer than %d bytes", maxMessage)
	}
	return object.CommitData{
		Tree:      format.EmptyTree(),
		Parents:   e.Parents,
		Author:    e.Ident(),
		Committer: e.Ident(),
		Message:   message,
	}.Encode(), nil
}

func (e Event) message() string {
	var b strings.Builder
	b.WriteString(e.Subject())
	b.WriteString("\n\n")
	for _, t := range newWire(e).trailers() {
		if v := text(t.value); v != "" {
			b.WriteString(t.key + ": " + v + "\n")
		}
	}
	return b.String()
}

// readMessage fills e from a message of format 1. It is lenient where the
// comparison in parse is strict.
func (e *Event) readMessage(message string) error {
	_, body, _ := strings.Cut(message, "\n\n")
	w := newWire(*e)
	rest := w.trailers()
	for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
		key, value, ok := strings.Cut(line, ": ")
		if !ok {
			return fmt.Errorf("line %q is not a trailer", clip(line))
		}
		for len(rest) > 0 && rest[0].key != key {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return fmt.Errorf("trailer %q is unknown, repeated or out of order", clip(key))
		}
		if err := read(rest[0].value, value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		rest = rest[1:]
	}
	*e = w.done()
	return nil
}

// A wire is an event with all its parts present, so that every field has an
// address.
type wire struct {
	Event
	format uint64
	hold   Hold
	adopt  Adoption
	land   Landing
	find   Finding
}

func newWire(e Event) *wire {
	w := &wire{Event: e, format: Format}
	if e.State.Hold != nil {
		w.hold = *e.State.Hold
	}
	if e.By.Adopt != nil {
		w.adopt = *e.By.Adopt
	}
	if e.By.Land != nil {
		w.land = *e.By.Land
	}
	if e.By.Finding != nil {
		w.find = *e.By.Finding
	}
	return w
}

// done gives the event back, without the parts of which nothing was read.
func (w *wire) done() Event {
	e := w.Event
	if w.hold != (Hold{}) {
		e.State.Hold = &w.hold
	}
	if w.adopt != (Adoption{}) {
		e.By.Adopt = &w.adopt
	}
	if w.land != (Landing{}) {
		e.By.Land = &w.land
	}
	if w.find != (Finding{}) {
		e.By.Finding = &w.find
	}
	return e
}

// A trailer is one line of the message: its key, and where its value lives.
type trailer struct {
	key   string
	value any // a pointer to a type that text and read know
}

// trailers lists all fields in their order on the wire. docs/format.md says
// what each one means.
func (w *wire) trailers() []trailer {
	return []trailer{
		{"Lease-Format", &w.format},
		{"Lease-Name", &w.Name},
		{"Lease-Event", &w.Kind},
		{"Lease-Event-Id", &w.ID},
		{"Lease-Sequence", &w.Seq},
		{"Lease-Chain", &w.Chain},

		{"Lease-State", &w.State.Phase},
		{"Lease-Branches", &w.State.Branches},
		{"Lease-Operation", &w.hold.Operation},
		{"Lease-Holder", &w.hold.Holder},
		{"Lease-Host", &w.hold.Host},
		{"Lease-Purpose", &w.hold.Purpose},
		{"Lease-Digest", &w.hold.Digest},
		{"Lease-Taken-By", &w.hold.TakenBy},
		{"Lease-Fence", &w.hold.Fence},
		{"Lease-Since", &w.hold.Since},
		{"Lease-Intent", &w.hold.Intent},

		{"By-Operation", &w.By.Operation},
		{"By-Host", &w.By.Host},
		{"By-Target", &w.By.Target},
		{"By-Reason", &w.By.Reason},
		{"By-Secret", &w.By.Secret},
		{"Adopt-Branch", &w.adopt.Branch},
		{"Adopt-Tip", &w.adopt.Tip},
		{"Adopt-Over", &w.adopt.Over},
		{"Landing-Id", &w.land.ID},
		{"Landing-Unit", &w.land.Unit},
		{"Landing-Branch", &w.land.Branch},
		{"Landing-Base", &w.land.Base},
		{"Landing-Commit", &w.land.Commit},
		{"Landing-Tree", &w.land.Tree},
		{"Landing-Unverified", &w.land.Unverified},
		{"Landing-Reason", &w.land.Reason},
		{"Intent-Record", &w.By.Record},
		{"Repair-Finding", &w.find.Code},
		{"Repair-Object", &w.find.Object},
	}
}

// text is the value's spelling, empty for its zero.
func text(value any) string {
	switch v := value.(type) {
	case *string:
		return *v
	case *Kind:
		return string(*v)
	case *Phase:
		return string(*v)
	case *object.OID:
		return string(*v)
	case *object.Ref:
		return string(*v)
	case *[]object.Ref:
		// A ref name has no space in it.
		var names []string
		for _, ref := range *v {
			names = append(names, string(ref))
		}
		return strings.Join(names, " ")
	case *ulid.ULID:
		if !v.IsZero() {
			return v.String()
		}
	case *uint64:
		if *v != 0 {
			return strconv.FormatUint(*v, 10)
		}
	case *time.Time:
		if !v.IsZero() {
			return v.UTC().Format(sinceForm)
		}
	}
	return ""
}

// read is the inverse of text.
func read(value any, s string) (err error) {
	switch v := value.(type) {
	case *string:
		*v = s
	case *Kind:
		*v = Kind(s)
	case *Phase:
		*v = Phase(s)
	case *object.OID:
		*v, err = object.ParseOID(s)
	case *object.Ref:
		*v, err = object.ParseRef(s)
	case *[]object.Ref:
		for name := range strings.SplitSeq(s, " ") {
			*v = append(*v, object.Ref(name))
		}
	case *ulid.ULID:
		*v, err = ulid.ParseStrict(s)
	case *uint64:
		*v, err = strconv.ParseUint(s, 10, 64)
	case *time.Time:
		*v, err = time.Parse(sinceForm, s)
	default:
		err = fmt.Errorf("no codec for %T", value)
	}
	return err
}

// Subject is the first line of e's message: the event in a few words, made
// from its fields alone, for people. It is never parsed.
func (e Event) Subject() string {
	what, detail := string(e.Kind), e.By.Reason
	switch {
	case e.By.Adopt != nil && e.By.Adopt.Over != "":
		what += strings.TrimRight(" "+e.By.Adopt.Branch.Branch(), " ") + " over " + e.By.Adopt.Over.Short()
	case e.By.Adopt != nil:
		what += " " + e.By.Adopt.Branch.Branch()
	case e.Kind == Repair:
		what += " " + e.By.Finding.Code + " " + e.By.Finding.Object.Short()
	case e.By.Land != nil:
		land := e.By.Land
		what += " " + land.Commit.Short() + " on " + land.Branch.Branch()
		if land.Unverified != "" {
			what, detail = what+" unverified", land.Reason
		} else if land.Unit != land.ID.String() {
			detail = land.Unit
		}
	case e.Kind == Acquire && e.State.Hold != nil:
		detail = e.State.Hold.Purpose
	case (e.Kind == Break || e.Kind == Recover) && e.State.Hold != nil:
		what += " and take"
	}
	who, _, _ := strings.Cut(e.Actor, " <")
	s := "lease " + e.Name + ": " + what + " by " + who
	if e.By.Host != "" {
		s += " on " + e.By.Host
	}
	if detail != "" {
		s += " — " + detail
	}
	if utf8.RuneCountInString(s) > maxSubject {
		s = strings.TrimRight(string([]rune(s)[:maxSubject-1]), " —") + "…"
	}
	return s
}

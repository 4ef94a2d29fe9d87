package event

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	w := wires.Get().(*wire)
	defer wires.Put(w)
	if err := e.readMessage(w, c.Message); err != nil {
		return Event{}, err
	}
	if err := e.validateBody(); err != nil {
		return Event{}, err
	}
	// One comparison refuses every other spelling of the same event.
	canonical, err := e.encode(w, format)
	if err != nil {
		return Event{}, err
	}
	was := obj.Data
	if len(c.Extra) > 0 {
		c.Extra = nil
		was = c.Encode()
	}
	if !bytes.Equal(canonical, was) {
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
	e.Time = when
	w := wires.Get().(*wire)
	defer wires.Put(w)
	raw, err := e.encode(w, format)
	return bytes.Clone(raw), err
}

// encode gives the commit of a valid event. The bytes are w's.
func (e *Event) encode(w *wire, format object.Format) ([]byte, error) {
	if oid, other := e.otherLength(2 * format.Size()); other {
		return nil, fmt.Errorf("object id %q is not of format %s", oid, format)
	}
	w.set(e)
	b := append(w.buffer[:0], "tree "...)
	b = append(append(b, format.EmptyTree()...), '\n')
	for _, p := range e.Parents {
		b = append(append(append(b, "parent "...), p...), '\n')
	}
	for _, who := range []string{"author ", "committer "} {
		b = append(e.appendIdent(append(b, who...)), '\n')
	}
	b = append(b, '\n')
	head := len(b)
	b = append(append(b, e.Subject()...), "\n\n"...)
	for i := range w.list {
		t := &w.list[i]
		start := len(b)
		b = append(append(b, t.key...), ": "...)
		value := len(b)
		if b = appendText(b, t.value); len(b) == value {
			b = b[:start] // it has none
		} else {
			b = append(b, '\n')
		}
	}
	w.buffer = b
	if len(b)-head > maxMessage {
		return nil, fmt.Errorf("the message is longer than %d bytes", maxMessage)
	}
	return b, nil
}

// readMessage fills e from a message of format 1. It is lenient where the
// comparison in parse is strict.
func (e *Event) readMessage(w *wire, message string) error {
	_, body, _ := strings.Cut(message, "\n\n")
	w.set(e)
	rest := w.list
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
	step   StepResult

	list   []trailer // of the fields above
	buffer []byte
}

// wires are kept: a long chain is read without making one for each event.
var wires = sync.Pool{New: func() any {
	w := &wire{}
	w.list = w.trailers()
	return w
}}

func (w *wire) set(e *Event) {
	w.Event, w.format, w.hold, w.adopt, w.land, w.find, w.step = *e, Format, Hold{}, Adoption{}, Landing{}, Finding{}, StepResult{}
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
	if e.By.Step != nil {
		w.step = *e.By.Step
	}
}

// done gives the event back, without the parts of which nothing was read.
func (w *wire) done() Event {
	e := w.Event
	e.State.Hold, e.By.Adopt, e.By.Land, e.By.Finding, e.By.Step = part(w.hold), part(w.adopt), part(w.land), part(w.find), part(w.step)
	return e
}

// part is a copy of a part of which something was read.
func part[T comparable](read T) *T {
	var none T
	if read == none {
		return nil
	}
	return &read
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
		{"Lease-Motion", &w.hold.Motion},
		{"Lease-Steps", &w.hold.Steps},
		{"Lease-Stuck", &w.hold.Stuck},

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
		{"Landing-Steps", &w.land.Steps},
		{"Intent-Record", &w.By.Record},
		{"Void-Landing", &w.By.TakenBack},
		{"Repair-Finding", &w.find.Code},
		{"Repair-Object", &w.find.Object},
		{"Step-Motion", &w.step.Motion},
		{"Step-Name", &w.step.Name},
		{"Step-Outcome", &w.step.Outcome},
		{"Step-Took", &w.step.Took},
		{"Override-Updates", &w.By.Updates},
		{"Override-Announced", &w.By.Announced},
	}
}

// appendText appends the value's spelling, nothing for its zero.
func appendText(b []byte, value any) []byte {
	switch v := value.(type) {
	case *string:
		return append(b, *v...)
	case *Kind:
		return append(b, *v...)
	case *Phase:
		return append(b, *v...)
	case *Outcome:
		return append(b, *v...)
	case *object.OID:
		return append(b, *v...)
	case *object.Ref:
		return append(b, *v...)
	case *[]object.Ref:
		for i, ref := range *v {
			if i > 0 {
				b = append(b, ' ') // a ref name has none in it
			}
			b = append(b, ref...)
		}
	case *[]Update:
		for i, u := range *v {
			if i > 0 {
				b = append(b, ' ')
			}
			b = append(append(b, u.Ref...), ' ')
			b = append(append(b, cmp.Or(string(u.Old), none)...), ' ')
			b = append(b, cmp.Or(string(u.New), none)...)
		}
	case *bool:
		if *v {
			return append(b, yes...)
		}
	case *ulid.ULID:
		if !v.IsZero() {
			n := len(b)
			b = append(b, make([]byte, ulid.EncodedSize)...)
			v.MarshalTextTo(b[n:]) // it fails for want of room alone
		}
	case *uint64:
		if *v != 0 {
			return strconv.AppendUint(b, *v, 10)
		}
	case *time.Time:
		if !v.IsZero() {
			return v.UTC().AppendFormat(b, sinceForm)
		}
	}
	return b
}

// read is the inverse of appendText.
func read(value any, s string) (err error) {
	switch v := value.(type) {
	case *string:
		*v = s
	case *Kind:
		*v = Kind(s)
	case *Phase:
		*v = Phase(s)
	case *Outcome:
		*v = Outcome(s)
	case *object.OID:
		*v, err = object.ParseOID(s)
	case *object.Ref:
		*v, err = object.ParseRef(s)
	case *[]object.Ref:
		for name := range strings.SplitSeq(s, " ") {
			*v = append(*v, object.Ref(name))
		}
	case *[]Update:
		*v, err = readUpdates(s)
	case *bool:
		if *v = s == yes; !*v {
			err = fmt.Errorf("%q is not %q", clip(s), yes)
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

// none stands for no object in a list of updates, and yes for what is so.
const (
	none = "-"
	yes  = "yes"
)

// readUpdates reads triples of ref, old and new object.
func readUpdates(s string) (updates []Update, err error) {
	words := strings.Split(s, " ")
	if len(words)%3 != 0 {
		return nil, errors.New("not triples of a ref and two objects")
	}
	for triple := range slices.Chunk(words, 3) {
		u := Update{Ref: object.Ref(triple[0])}
		for i, oid := range []*object.OID{&u.Old, &u.New} {
			if word := triple[i+1]; word != none {
				if *oid, err = object.ParseOID(word); err != nil {
					return nil, err
				}
			}
		}
		updates = append(updates, u)
	}
	return updates, nil
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
	case e.Kind == Override:
		what += " " + e.By.Updates[0].Ref.Branch()
		if more := len(e.By.Updates) - 1; more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		if e.By.Announced {
			what += " announced"
		}
	case e.By.Land != nil:
		land := e.By.Land
		what += " " + land.Commit.Short() + " on " + land.Branch.Branch()
		if land.Unverified != "" {
			what, detail = what+" unverified", land.Reason
		} else if land.Unit != land.ID.String() {
			detail = land.Unit
		}
	case e.By.Step != nil:
		what += " " + e.By.Step.Name + " " + string(e.By.Step.Outcome)
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

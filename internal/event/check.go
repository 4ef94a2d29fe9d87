package event

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitland/internal/object"
)

// MaxRecord bounds the record line of an intent, in bytes.
const MaxRecord = 12 << 10

// maxBranches bounds the bytes of Lease-Branches. With the bound on text
// fields it keeps every valid event below maxMessage.
const maxBranches = 4 << 10

// Validate says what, if anything, makes e no event by itself: every field
// well formed, and those present that its kind must have, and no others. OID
// is not looked at.
func (e Event) Validate() error {
	if actor, _, err := ParseIdent(e.Ident()); err != nil {
		return err
	} else if actor != e.Actor {
		return fmt.Errorf("actor %q is not clean text", clip(e.Actor))
	}
	return e.validateBody()
}

// validateBody is Validate without what ParseIdent has seen to.
func (e *Event) validateBody() error {
	if _, err := EncodeName(e.Name); err != nil {
		return err
	}
	if e.ID.IsZero() {
		return errors.New("no event id")
	}
	if e.Seq < 1 || e.Seq > MaxSeq {
		return fmt.Errorf("sequence %d is out of range", e.Seq)
	}
	for oid := range e.oids {
		if _, err := object.ParseOID(string(oid)); err != nil {
			return err
		}
		if oid.IsZero() {
			return fmt.Errorf("object id %q is git's name for no object", oid)
		}
	}
	return cmp.Or(e.By.validate(e.Kind), e.State.validate(e.Seq), e.validatePosition())
}

// validatePosition checks what makes e the first event or a later one. The
// object that an adopt goes over is a parent only when it is a commit, which
// cannot be seen from here.
func (e *Event) validatePosition() error {
	var over object.OID
	if e.By.Adopt != nil {
		over = e.By.Adopt.Over
	}
	rest := e.Parents
	if e.First() {
		if e.Kind != Adopt {
			return fmt.Errorf("%s cannot begin a chain", e.Kind)
		}
		if e.State.Phase != Free {
			return errors.New("a first event that is not free")
		}
		if over == "" && e.Seq != 1 {
			return fmt.Errorf("the first event has sequence %d", e.Seq)
		}
	} else {
		if e.Seq < 2 {
			return errors.New("a later event has sequence 1")
		}
		if len(rest) == 0 {
			return errors.New("a later event has no parent")
		}
		if e.Kind == Adopt && e.By.Adopt == nil {
			return errors.New("a later adopt of nothing")
		}
		rest = rest[1:]
	}
	if len(rest) == 0 || len(rest) == 1 && rest[0] == over {
		return nil
	}
	return fmt.Errorf("%d parents do not fit %s", len(e.Parents), e.Kind)
}

func (s State) validate(seq uint64) error {
	size := 0
	for i, ref := range s.Branches {
		if err := validRef("branch", ref); err != nil {
			return err
		}
		if slices.Contains(s.Branches[:i], ref) {
			return fmt.Errorf("branch %q is adopted twice", ref)
		}
		size += len(ref) + 1
	}
	if size > maxBranches {
		return fmt.Errorf("adopted branches take more than %d bytes", maxBranches)
	}
	switch {
	case (s.Phase == Free || s.Phase == Frozen) && s.Hold == nil:
		return nil
	case s.Phase == Held && s.Hold != nil:
		return s.Hold.validate(seq)
	case s.Phase == Free || s.Phase == Held || s.Phase == Frozen:
		return fmt.Errorf("state %s does not fit the fields of a hold", s.Phase)
	}
	return fmt.Errorf("state %q is not known", clip(string(s.Phase)))
}

func (h Hold) validate(seq uint64) error {
	switch {
	case h.Operation.IsZero():
		return errors.New("held without an operation")
	case h.TakenBy.IsZero():
		return errors.New("held without a taking event")
	case h.Holder == "":
		return errors.New("held without a holder")
	case h.Fence < 1 || h.Fence > seq:
		return fmt.Errorf("fence %d is out of range", h.Fence)
	case h.Since.Unix() < 0 || h.Since.Unix() > maxUnix || !h.Since.Equal(h.Since.Truncate(time.Second)):
		return errors.New("held since no whole second")
	}
	if (h.Motion.IsZero()) != (h.Steps == "") {
		return errors.New("steps are to come if and only if there is a motion")
	}
	if h.Stuck != "" && (h.Steps == "" || h.Stuck != Failed && h.Stuck != Unknown) {
		return fmt.Errorf("a hold that is stuck with outcome %q", clip(string(h.Stuck)))
	}
	return cmp.Or(validHex("digest", h.Digest), validText("holder", h.Holder),
		validText("host", h.Host), validText("purpose", h.Purpose), validSteps(h.Steps))
}

// MaxStepName is the most bytes of a step's name.
const MaxStepName = 64

// ValidStepName says what is wrong with the name of a step: it is letters, digits and
// "._-", and begins with none of these three.
func ValidStepName(name string) error {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
	}
	if name == "" || len(name) > MaxStepName || strings.ContainsRune("._-", rune(name[0])) || strings.TrimFunc(name, plain) != "" {
		return fmt.Errorf("%q is no name of a step: at most %d letters, digits and dots, dashes and underscores, beginning with a letter or digit", clip(name), MaxStepName)
	}
	return nil
}

// validSteps is for names that are separated by single spaces; there may be none.
func validSteps(names string) error {
	if names == "" {
		return nil
	}
	if len(names) > MaxText {
		return fmt.Errorf("the names of the steps take more than %d bytes", MaxText)
	}
	list := strings.Split(names, " ")
	for i, name := range list {
		if err := ValidStepName(name); err != nil {
			return err
		}
		if slices.Contains(list[:i], name) {
			return fmt.Errorf("step %q is named twice", name)
		}
	}
	return nil
}

func (s StepResult) validate() error {
	switch {
	case s.Motion.IsZero():
		return errors.New("a step of no motion")
	case !s.Outcome.Known():
		return fmt.Errorf("outcome %q is not known", clip(string(s.Outcome)))
	case s.Took > MaxSeq: // the most that a number of this format is
		return fmt.Errorf("a step of %d milliseconds is out of range", s.Took)
	}
	return ValidStepName(s.Name)
}

// maxUpdates bounds the bytes of Override-Updates.
const maxUpdates = MaxRecord

// fields is a set of the fields of By. Host is in none: every kind may have it.
type fields uint

const (
	operation fields = 1 << iota
	target
	reason
	secret
	adoption
	landing
	record
	takenBack
	finding
	updates
	announced
	step
)

func (f fields) String() string {
	var names []string
	for i, name := range []string{"operation", "target", "reason", "secret", "adoption", "landing", "record", "landing taken back", "finding", "updates", "announcement", "step"} {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// rules says which fields an event of kind k must and may have.
func rules(k Kind) (must, may fields, err error) {
	switch k {
	case Adopt:
		return 0, adoption | reason, nil
	case Acquire:
		return operation, 0, nil
	case Release, Abort:
		return operation | secret, reason, nil
	case Land:
		return operation | landing, secret, nil
	case Void:
		return operation, reason | takenBack, nil
	case Break, Recover:
		return operation | target | reason, 0, nil
	case Intent:
		return operation | landing | record, 0, nil
	case Repair:
		return operation | reason | finding, landing, nil
	case Freeze:
		return operation | reason, 0, nil
	case Thaw:
		return operation, reason, nil
	case Override:
		return operation | reason | updates, announced, nil
	case Step:
		return operation | step, reason | secret, nil
	}
	return 0, 0, fmt.Errorf("kind %q is not known", clip(string(k)))
}

func (b *By) fields() fields {
	var f fields
	set := func(bit fields, present bool) {
		if present {
			f |= bit
		}
	}
	set(operation, !b.Operation.IsZero())
	set(target, !b.Target.IsZero())
	set(reason, b.Reason != "")
	set(secret, b.Secret != "")
	set(adoption, b.Adopt != nil)
	set(landing, b.Land != nil)
	set(record, b.Record != "")
	set(finding, b.Finding != nil)
	set(takenBack, !b.TakenBack.IsZero())
	set(updates, b.Updates != nil)
	set(announced, b.Announced)
	set(step, b.Step != nil)
	return f
}

func (b *By) validate(k Kind) error {
	must, may, err := rules(k)
	if err != nil {
		return err
	}
	has := b.fields()
	if missing := must &^ has; missing != 0 {
		return fmt.Errorf("%s without %s", k, missing)
	}
	if extra := has &^ (must | may); extra != 0 {
		return fmt.Errorf("%s with %s", k, extra)
	}
	if err := cmp.Or(validText("host", b.Host), validText("reason", b.Reason)); err != nil {
		return err
	}
	if b.Secret != "" {
		if err := validHex("secret", b.Secret); err != nil {
			return err
		}
	}
	if b.Record != CleanText(b.Record, MaxRecord) {
		return fmt.Errorf("record %q is not clean text of at most %d bytes", clip(b.Record), MaxRecord)
	}
	if k == Adopt {
		return b.validateAdopt()
	}
	if b.Finding != nil {
		if err := b.Finding.validate(); err != nil {
			return err
		}
	}
	if b.Land != nil {
		if k == Repair && b.Land.Steps != "" {
			return errors.New("a repair that begins steps")
		}
		return b.Land.validate()
	}
	if b.Step != nil {
		if (b.Step.Outcome == Declared) != (b.Reason != "") {
			return errors.New("a step has a reason if and only if somebody declared it done")
		}
		return b.Step.validate()
	}
	return validUpdates(b.Updates)
}

func validUpdates(updates []Update) error {
	for i, u := range updates {
		if err := validRef("ref", u.Ref); err != nil {
			return err
		}
		if u.Old == u.New {
			return fmt.Errorf("the update of %q changes nothing", u.Ref)
		}
		if slices.ContainsFunc(updates[:i], func(o Update) bool { return o.Ref == u.Ref }) {
			return fmt.Errorf("%q is updated twice", u.Ref)
		}
	}
	if size := len(appendText(nil, &updates)); size > maxUpdates {
		return fmt.Errorf("the updates take more than %d bytes", maxUpdates)
	}
	return nil
}

func (f Finding) validate() error {
	if f.Code == "" || len(f.Code) > 64 || strings.Trim(f.Code, "abcdefghijklmnopqrstuvwxyz-") != "" {
		return fmt.Errorf("finding %q is not a code of lower-case words", clip(f.Code))
	}
	if f.Object == "" {
		return errors.New("a finding about no object")
	}
	return nil
}

func (b *By) validateAdopt() error {
	var a Adoption
	if b.Adopt != nil {
		a = *b.Adopt
	}
	switch {
	case (a.Over == "") != (b.Reason == ""):
		return errors.New("an adopt has a reason if and only if it goes over something")
	case a.Branch == "" && a.Tip != "":
		return errors.New("an adopt of no branch has a tip")
	case a.Branch == "":
		return nil // a lease that protects no branch
	}
	return validRef("branch", a.Branch)
}

func (l Landing) validate() error {
	switch {
	case l.ID.IsZero():
		return errors.New("landing without an id")
	case l.Unit == "":
		return errors.New("landing without a unit")
	case l.Commit == "" || l.Tree == "":
		return errors.New("landing without commit and tree")
	case (l.Unverified == "") != (l.Reason == ""):
		return errors.New("a landing has a reason if and only if it is unverified")
	}
	return cmp.Or(validRef("branch", l.Branch), validText("unit", l.Unit),
		validText("unverified", l.Unverified), validText("reason", l.Reason), validSteps(l.Steps))
}

// oids yields all object ids that e names, which have one length in one
// repository.
func (e *Event) oids(yield func(object.OID) bool) {
	for _, p := range e.Parents {
		if p != "" && !yield(p) {
			return
		}
	}
	more := [...]object.OID{e.Chain, "", "", "", "", "", ""}
	if a := e.By.Adopt; a != nil {
		more[1], more[2] = a.Tip, a.Over
	}
	if l := e.By.Land; l != nil {
		more[3], more[4], more[5] = l.Base, l.Commit, l.Tree
	}
	if f := e.By.Finding; f != nil {
		more[6] = f.Object
	}
	for _, oid := range more {
		if oid != "" && !yield(oid) {
			return
		}
	}
	for _, u := range e.By.Updates {
		if u.Old != "" && !yield(u.Old) || u.New != "" && !yield(u.New) {
			return
		}
	}
}

// otherLength is an object id of e that has not so many digits, if one has not.
func (e *Event) otherLength(digits int) (object.OID, bool) {
	for oid := range e.oids {
		if len(oid) != digits {
			return oid, true
		}
	}
	return "", false
}

func validText(what, s string) error {
	if s != CleanText(s, MaxText) {
		return fmt.Errorf("%s %q is not clean text of at most %d bytes", what, clip(s), MaxText)
	}
	return nil
}

func validRef(what string, ref object.Ref) error {
	if _, err := object.ParseRef(string(ref)); err != nil {
		return err
	}
	// git takes bytes in a ref name that are not text.
	return validText(what, string(ref))
}

func validHex(what, s string) error {
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return fmt.Errorf("%s is not 64 lower-case hexadecimal digits", what)
	}
	return nil
}

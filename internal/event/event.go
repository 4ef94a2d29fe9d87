// Package event owns one link of a lease's chain: what an event says, and the
// one spelling in which it stands in git.
//
// An event is a commit with the empty tree, whose message carries the data as
// trailers (docs/format.md). The package promises that an event has exactly
// one encoding, so that parsing a commit and encoding the result gives back
// the same bytes, and that an event which parsed is complete in itself. It
// refuses everything else, with the object's id and the reason; a commit of a
// newer format is told apart from a malformed one before its payload is read.
//
// Whether one event may follow another is package chain's to say. This
// package does no input or output.
package event

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/object"
)

// Format is the number of the event format that this package reads and writes.
const Format = 1

// MaxSeq bounds the fencing number, so that shells and every JSON reader hold
// it exactly.
const MaxSeq = 1<<53 - 1

// A Kind is what an event's author did.
type Kind string

// The kinds of event.
const (
	Adopt    Kind = "adopt"    // put a branch under the lease; the first one begins the chain
	Acquire  Kind = "acquire"  // take the free lease
	Release  Kind = "release"  // give it back
	Land     Kind = "land"     // move a branch; under a free lease, or one's own
	Void     Kind = "void"     // advance the chain past a push that may still arrive
	Abort    Kind = "abort"    // give up an operation, and the lease with it
	Break    Kind = "break"    // take the lease off its holder, maybe for oneself
	Recover  Kind = "recover"  // the same, after proof that the holder is gone
	Intent   Kind = "intent"   // announce a landing whose refs cannot move together
	Repair   Kind = "repair"   // settle a disagreement that reconcile found
	Freeze   Kind = "freeze"   // keep everybody from taking the lease and from landing
	Thaw     Kind = "thaw"     // end that
	Override Kind = "override" // move refs past the lease, on the record
	Step     Kind = "step"     // say how a step of a motion went
)

// A Phase is where a lease stands after an event.
type Phase string

// The phases of a lease.
const (
	Free   Phase = "free"
	Held   Phase = "held"
	Frozen Phase = "frozen"
)

// An Event is one link of a chain.
type Event struct {
	OID     object.OID   // the commit; empty until it was encoded and hashed
	Parents []object.OID // the previous event; after it what an adopt goes over, if that is a commit

	Actor string    // the commit's author, "Name <email>"
	Time  time.Time // and its date, in the author's zone

	Name  string     // the lease's name as people write it, "release/1.x"
	Kind  Kind       // what was done
	ID    ulid.ULID  // makes the event unique
	Seq   uint64     // the fencing number: 1 for the first event, and only growing
	Chain object.OID // the first event of the chain; empty in that event itself

	State State // after this event
	By    By    // what this event's author did
}

// First reports whether e begins a chain. Walking a chain by first parents
// ends there, whether or not e has a parent: an adopt over a chain without any
// good event has the bad tip for its only one.
func (e Event) First() bool { return e.Chain == "" }

// Root is the id of the first event of e's chain.
func (e Event) Root() object.OID {
	if e.First() {
		return e.OID
	}
	return e.Chain
}

// A State is what holds after an event. Every event carries it whole, so that
// the tip alone tells it.
type State struct {
	Phase    Phase
	Branches []object.Ref // under this lease, in the order of their adoption; may be none
	Hold     *Hold        // non-nil if and only if held
}

// Equal reports whether s and t say the same.
func (s State) Equal(t State) bool {
	if s.Phase != t.Phase || !slices.Equal(s.Branches, t.Branches) || (s.Hold == nil) != (t.Hold == nil) {
		return false
	}
	return s.Hold == nil || s.Hold.equal(*t.Hold)
}

// A Hold says who holds the lease, and since when.
type Hold struct {
	Operation ulid.ULID // the operation that holds; what break has to name
	Holder    string    // "Name <email>"
	Host      string    // the holder's label for its machine; may be empty
	Purpose   string    // may be empty
	Digest    string    // of the secret that only the holder has, see Digest
	TakenBy   ulid.ULID // the event that took it
	Fence     uint64    // that event's sequence
	Since     time.Time // that event's time, UTC, whole seconds
	Intent    ulid.ULID // the landing that was announced and has not ended; mostly zero

	Motion ulid.ULID // whose steps are under way: a landing, or an operation; mostly zero
	Steps  string    // their names that are to come, in their order, separated by spaces
	Stuck  Outcome   // how the first of them went last: failed or unknown; mostly empty
}

// Pending are the steps that are to come.
func (h *Hold) Pending() []string {
	if h == nil {
		return nil
	}
	return strings.Fields(h.Steps)
}

// equal compares times as instants: == would compare their locations.
func (h Hold) equal(o Hold) bool {
	same := h.Since.Equal(o.Since)
	h.Since, o.Since = time.Time{}, time.Time{}
	return same && h == o
}

// By is what the author of an event did; see rules for which kind has what.
type By struct {
	Operation ulid.ULID // the acting operation; zero for adopt
	Host      string    // may be empty
	Target    ulid.ULID // break, recover: the operation that was taken off
	Reason    string
	Secret    string      // revealed by the event that ends a hold
	Adopt     *Adoption   // adopt; nil where a chain begins that has no branch
	Land      *Landing    // land, intent; repair, where it stands for a landing
	Record    string      // intent: the line of the landing's record, as in package note
	TakenBack ulid.ULID   // void: the announced landing of which its own process has nothing on its way; may be zero
	Finding   *Finding    // repair
	Step      *StepResult // step
	Updates   []Update    // override
	Announced bool        // override: the refs were still to move, each in another push
}

// An Adoption puts a branch under the lease.
type Adoption struct {
	Branch object.Ref // empty only with Over
	Tip    object.OID // the branch's; empty for an unborn branch
	Over   object.OID // the bad tip that this adopt leads out of; mostly empty
}

// A Landing is one move of a branch.
type Landing struct {
	ID         ulid.ULID
	Unit       string
	Branch     object.Ref
	Base       object.OID // the branch before; empty for an unborn branch
	Commit     object.OID // the branch after
	Tree       object.OID // that commit's
	Unverified string     // the missing checks, separated by spaces, or "any"; empty when verified
	Reason     string     // of the override; set if and only if Unverified is
	Steps      string     // names of those that follow it, in their order, separated by spaces; mostly empty
}

// A StepResult is how one step of a motion went, or did not.
type StepResult struct {
	Motion  ulid.ULID // the landing's id, or that of the operation which lands nothing
	Name    string
	Outcome Outcome
	Took    uint64 // milliseconds; 0 where it did not run, too
}

// An Outcome is how a step went.
type Outcome string

// The outcomes. The first three end a step.
const (
	Done     Outcome = "done"     // its command succeeded
	Already  Outcome = "already"  // its check found it done
	Declared Outcome = "declared" // a person said that it is
	Failed   Outcome = "failed"   // its command, or with it the check, says no
	Unknown  Outcome = "unknown"  // neither says
)

// Known reports whether o is one of the outcomes.
func (o Outcome) Known() bool { return o.Ends() || o == Failed || o == Unknown }

// Ends reports whether nothing of the step is to come after that.
func (o Outcome) Ends() bool { return o == Done || o == Already || o == Declared }

// An Update is one move of a ref past the lease.
type Update struct {
	Ref object.Ref `json:"ref"`
	Old object.OID `json:"old,omitempty"` // empty where there was none
	New object.OID `json:"new,omitempty"` // empty where it is deleted
}

// A Finding is a disagreement between branch, records and chain.
type Finding struct {
	Code   string     // what kind of disagreement; stable words, see docs/format.md
	Object object.OID // that it is about: a commit, an event or a tree
}

// A NewerError says that an event has a format which this version cannot read.
type NewerError struct {
	OID    object.OID
	Format int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("event %s has format %d, and this version reads up to %d", e.OID, e.Format, Format)
}

// A MalformedError says that an object is no event.
type MalformedError struct {
	OID  object.OID
	What string
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("event %s is malformed: %s", e.OID, e.What)
}

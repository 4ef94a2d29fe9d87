// Package note owns what stands in this project's git notes: the record of a
// landing, on the landed commit, and the verifications of a tree, on that
// tree; and how verifications are judged.
//
// A note is text with one JSON object a line, so that lines can be appended by
// anyone and read by anything. The package promises that a record or
// verification has exactly one encoding, that one bad line never hides another,
// and that a line of a newer format is read as far as it is understood. It
// refuses to write a newer format, a line that is too long, and text that is
// not UTF-8. It does not clean text: whoever prints it does. It does no input
// or output.
package note

import (
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/object"
)

// Format is the number of the format that this package reads and writes.
const Format = 1

// MaxLine is the most bytes of one line, without its line feed.
const MaxLine = 64 << 10

// A Verdict is what a check found.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
)

// A Verification says what one run of a check found on one tree.
type Verification struct {
	Format   int
	ID       ulid.ULID
	Check    string
	Verdict  Verdict
	Command  string // what was run; empty when another system found it
	Exit     int
	Duration time.Duration // on the wire in milliseconds
	Tree     object.OID
	Base     object.OID // of the target when the tree was built; may be empty
	Unit     string
	Actor    string // "Name <email>"
	Host     string
	Time     time.Time // UTC, whole seconds
}

// A Record says what one landing put on a branch, and on what grounds.
type Record struct {
	Format           int            `json:"format"`
	ID               ulid.ULID      `json:"id"` // the landing's
	Unit             string         `json:"unit"`
	Operation        ulid.ULID      `json:"operation"` // the lease's
	Lease            string         `json:"lease"`
	Branch           object.Ref     `json:"branch"`
	Base             object.OID     `json:"base"` // empty for a branch that was unborn
	Commit           object.OID     `json:"commit"`
	Tree             object.OID     `json:"tree"`
	Commits          int            `json:"commits"`            // in base..commit
	Squashed         object.OID     `json:"squashed,omitempty"` // the commit whose stack landed as one
	Note             string         `json:"note,omitempty"`     // -m, where commits land as they are
	Verifications    []Verification `json:"verifications"`
	VerificationRef  object.OID     `json:"verification_ref,omitempty"` // the tip that was judged by
	MergedUnverified bool           `json:"merged_unverified,omitempty"`
	Flaky            []string       `json:"flaky,omitempty"`     // checks that passed after the same command had failed on the same tree
	NoVerify         bool           `json:"no_verify,omitempty"` // hooks of the commit were skipped
	Allowed          []string       `json:"allowed,omitempty"`   // guards that would have refused, but for --allow
	Steps            []Step         `json:"steps,omitempty"`     // that follow the landing, in their order
	End              *End           `json:"end,omitempty"`       // how they ended: this is the landing's record once more, after that
	Override         *Override      `json:"override,omitempty"`
	Actor            string         `json:"actor"`
	Host             string         `json:"host"`
	Time             time.Time      `json:"time"` // UTC, whole seconds
}

// A Step is one that follows a landing. In the record that the landing writes it has a
// name alone.
type Step struct {
	Name       string        `json:"name"`
	Outcome    event.Outcome `json:"outcome,omitempty"` // how it went last; empty where it was not tried
	DurationMS uint64        `json:"duration_ms,omitempty"`
}

// An End says how the steps of a landing ended: Reason is why they were given up, and
// empty where all of them are done.
type End struct {
	Reason string    `json:"reason,omitempty"`
	Actor  string    `json:"actor"`
	Time   time.Time `json:"time"` // UTC, whole seconds
}

// An Override says why a landing went past its gate.
type Override struct {
	Reason  string   `json:"reason"`
	Actor   string   `json:"actor"`
	Missing []string `json:"missing"` // the checks that had not passed
}

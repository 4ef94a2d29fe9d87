// Package land owns the landing: what would land, whether it may, and the one
// motion in which branch, record and lease event move together.
//
// It promises that a landing is either whole at the authority or not there at
// all, that "it did not land" is said only when it can no longer arrive, that
// what lands is exactly what was chosen, merged onto the target as the
// authority has it, and that nothing else of the working tree is touched. It
// refuses what has no recorded passing verification, unless it is told to on
// the record.
package land

import (
	"context"
	"io"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/session"
	"gitland/internal/step"
	"gitland/internal/verify"
)

// A Selection says what is to land, and where.
type Selection struct {
	Want ledger.Want // lease name and target branch, where chosen
	// Paths are git pathspecs, relative to the repository's Dir; nil means
	// that none were given.
	Paths []string
	// Unit names what the landing is about; "" is the branch's name when it is
	// not the target's, else the landing's own id.
	Unit string
	// Messages are the paragraphs of the commit message (of a note in the
	// record, where commits land as they are).
	Messages []string
	Allow    []Guard // that do not refuse
	NoVerify bool    // skip the hooks pre-commit and commit-msg
	// Mode is how commits land; "" leaves it to the policy.
	Mode policy.Mode
	// Head names the commit whose commits land; "" is HEAD, and leaves it open whether
	// commits do.
	Head string
	// ExpectBase and ExpectHead are the commits that the target, and HEAD or Head, have
	// to be at when the change lands: an object id, or its first digits. All zeros is a
	// target that there is not.
	ExpectBase, ExpectHead string

	check, command, reason string        // as in Request, for hints
	steps                  []policy.Step // likewise
	// words begin the command line that was given, where it is none of git land itself.
	words []string
}

// A Request asks for a landing.
type Request struct {
	Selection
	Session session.Source
	Waiting lease.Waiting

	// Check and Command are what -x gave: the gate asks for this very pair,
	// and runs it when it has not passed. Check without Command is not used.
	Check, Command string
	// Force lands without a passing verification; Reason says why, and must
	// not be empty then.
	Force  bool
	Reason string

	// Steps follow the landing, behind those of the policy, and Setting is what all of
	// them run in.
	Steps   []policy.Step
	Setting step.Setting

	// Edit has the user edit a message that was composed, in a file; nil takes it as it is.
	Edit    func(ctx context.Context, file string) error
	DryRun  bool
	Warn    func(text string)       // told of each of Result.Warnings, when it comes up; may be nil
	Tell    func(what, text string) // told of what is done: verified, hooked, leased, based, committed, pushed; and "again", why they are taken anew
	Stderr  io.Writer               // where the output of checks and of a commit's hooks goes
	Environ []string                // a check's environment, before what verify takes away
}

// A Result is a landing, or what would be one.
type Result struct {
	Status    Status      `json:"status"`
	Remote    string      `json:"remote"`
	Lease     string      `json:"lease"`
	Branch    object.Ref  `json:"branch"`
	ID        ulid.ULID   `json:"landing"`
	Operation ulid.ULID   `json:"operation"`
	Unit      string      `json:"unit"`
	Base      object.OID  `json:"base"`
	Commit    object.OID  `json:"commit"`
	Tree      object.OID  `json:"tree"`
	Commits   int         `json:"commits"`
	Mode      policy.Mode `json:"mode,omitempty"` // where commits land
	// Note is what -m gave where no commit is made whose message it would be.
	Note   string      `json:"note,omitempty"`
	Event  object.OID  `json:"event,omitempty"`
	Paths  []string    `json:"paths,omitempty"` // that the landing changes
	Record note.Record `json:"record"`
	// Local says what became of the local branch: "moved", or why not.
	Local string `json:"local,omitempty"`
	// Steps are those that follow the landing, with how they went.
	Steps []step.Step `json:"steps,omitempty"`
	// Hint is the command that brings the local side along where we could not.
	Hint string `json:"hint,omitempty"`
	// Kept says why the local branch of the target's name, where it is another one, stays
	// where it is: another worktree works on it.
	Kept string `json:"kept,omitempty"`
	// Warnings did not keep the landing from happening.
	Warnings []string `json:"warnings,omitempty"`
}

// A Status says how a landing ended.
type Status string

// The ways in which Land ends without an error.
const (
	Landed  Status = "landed"
	Already Status = "already-landed" // the target has the change: Result.Commit
	Planned Status = "planned"        // --dry-run
)

// An Outlook is what "git land status" tells: what would land now.
type Outlook struct {
	Remote      string
	Lease       string
	Branch      object.Ref
	Base        object.OID
	Head        string // whose commits are looked at: HEAD, or what was named
	Kind        string // "paths", "staged", "commits" or "nothing"
	Paths       []string
	Commits     []object.OID
	Mode        policy.Mode // in which the commits would land
	Tree        object.OID  // that would land
	Already     object.OID  // the commit of the target that has the change, where nothing would land
	Verified    bool
	Merged      bool // land.require=unit: the change's own tree is what was verified
	Judgement   note.Judgement
	Outputs     []verify.Output // of those that failed, where this clone has them still
	Steps       []step.Step     // that would follow
	Hold        *event.Hold
	OwnHold     bool
	Frost       *lease.Frost // who froze the lease; nil unless frozen
	Ambiguous   bool         // the chain cannot be trusted, so it is not known who holds the lease
	Unfinished  []Unfinished
	Lost        *fault.Error // the session's hold was taken off it, by whom, when and why; nil otherwise
	Next        string       // the one thing to do next; empty where there is nothing to land
	Rewound     string       // that the target no longer has its newest landing, and what to do; "" where it has
	Unpublished int          // verifications that wait to be published
	Problem     error        // why it could not land: a conflict, an ambiguous choice, an ambiguous chain
	VerifyWith  string       // the whole command that would verify it

	runs     bool         // "git land" itself runs the checks that lack a pass
	chain    *fault.Error // why it is ambiguous
	inTheWay string       // how somebody else's lease is freed
}

// An Unfinished operation of this clone has a journal.
type Unfinished struct {
	Operation ulid.ULID
	Since     time.Time
	Branch    object.Ref
	Alive     bool
	Override  bool // it is no landing
	Motion    bool // nor is it, but steps alone
	Stepping  bool // it has come to its steps
	Over      bool // which others have ended; only Look says so
	Lease     string
	Doubt     string // why it is not known to have died, though nobody here is at work on it; "" where it is
	Next      string // the command that ends it, unless it is alive

	gitDir string
	hold   ulid.ULID // under which it lands, where the session brought that

	landing ulid.ULID // or the motion, where it is none
	unit    string

	checking bool // it came no further than its check
}

// Under reports whether the landing took the lease that operation op holds, or
// lands under it.
func (u Unfinished) Under(op ulid.ULID) bool { return u.Operation == op || u.hold == op }

// An Entry is one landing of the log, or one override.
type Entry struct {
	Event   event.Event  // of kind Land, a Repair that stands for one, or an Override
	Record  *note.Record // nil when there is none for the event
	Subject string       // of the landed commit; empty when this clone lacks it
	Author  string       // of the landed commit, "Name <email>"; likewise
	// Steps are those that follow it, with how they went by the chain.
	Steps []note.Step
	// Gone means that the branch does not have the landing now, and Removed that it was
	// an override which took it off.
	Gone, Removed bool
	// Others are what checks found on the landed tree and the record does not have: that
	// they had failed before, mostly, or have since.
	Others []note.Verification
	// Unseen means that it is an override which was announced before its push, and
	// that the branch does not show it.
	Unseen bool
}

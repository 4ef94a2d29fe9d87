// Package reconcile owns the comparison of what tells the story of a branch:
// its commits, the landing records in the notes, and the events of the lease's
// chain; and the repairs by which a disagreement is settled.
//
// It promises that looking changes nothing and needs no lease, that a finding
// is reported only when two readings of the authority have it, that what could
// not be read is said to be unreadable and never to be missing, and that a
// repair only appends: one event for each finding, together with the record
// that was missing. It refuses to repair a chain, to repair under somebody
// else's lease, and to look at what was on a branch before it came under the
// lease.
package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

// A Request says what to compare.
type Request struct {
	Want  ledger.Want // lease name and branch, where chosen
	Since object.OID  // commits that this one has are passed over; empty for none
	// Progress is told how far a reading is, by several at once; may be nil.
	Progress func(what string, done, all int)

	// Fix settles what can be settled. Reason says why: what cannot be mended
	// but only acknowledged is settled with one alone. Session may hold the lease.
	Fix     bool
	Reason  string
	Session session.Source
}

// A Finding is one disagreement.
type Finding struct {
	Code Code `json:"code"`
	// Object is what the finding is about, and what a repair names: a commit,
	// an event, or a tip. It is empty for an operation of this clone.
	Object object.OID `json:"object,omitempty"`
	// Others are further objects that disagree.
	Others []object.OID `json:"others,omitempty"`
	// Commit is the commit that it is about, or the event where it is about
	// none, and Author and Subject are that commit's: one line each, cleaned, at
	// most MaxSubject bytes of the subject. Where it is not in this clone, they are
	// who landed it and the landing's unit, or all three are empty where it has none.
	Commit    object.OID `json:"commit,omitempty"`
	Author    string     `json:"author,omitempty"`
	Subject   string     `json:"subject,omitempty"`
	Landing   string     `json:"landing,omitempty"`
	Operation string     `json:"operation,omitempty"`
	// Text is one sentence: what disagrees, and what a reader would conclude.
	Text string `json:"text"`
	// Command settles it, and Otherwise are further ways, each losing more than the
	// one before.
	Command   string `json:"command"`
	Otherwise []Way  `json:"otherwise,omitempty"`

	subject  any     // what the repair is made from
	landed   *landed // stands in for a commit that is not here
	likewise []pair  // of the same fact under another code
	held     bool    // the lease is held for it: it is for the holder to settle
}

// A Way is a command, and when to take it or what it costs, in a few words.
type Way struct {
	Command string `json:"command"`
	When    string `json:"when"`
}

// A landed says who landed a commit, and for which unit.
type landed struct{ by, unit string }

// MaxSubject bounds the subject in a Finding, in bytes.
const MaxSubject = 120

// same reports whether two readings have found the same.
func (f Finding) same(other Finding) bool {
	return f.Code == other.Code && f.Object == other.Object && f.Landing == other.Landing && f.Operation == other.Operation
}

// A Notice is something that a reader should know and that is no fault: an
// override, a break, a recovery, a repair, a freeze, an operation under way.
type Notice struct {
	Kind      string     `json:"kind"`
	Object    object.OID `json:"object,omitempty"` // the commit, or the event
	Sequence  uint64     `json:"sequence,omitempty"`
	Operation string     `json:"operation,omitempty"`
	Actor     string     `json:"actor,omitempty"`
	Host      string     `json:"host,omitempty"`
	Time      time.Time  `json:"time,omitzero"`
	Text      string     `json:"text"`
}

// A Report is what a comparison found.
type Report struct {
	Remote string     `json:"remote"`
	Lease  string     `json:"lease"`
	Branch object.Ref `json:"branch"`
	Base   object.OID `json:"base,omitempty"`  // where the branch is
	Event  object.OID `json:"event,omitempty"` // the newest
	// Landings are those of the branch that were looked at; Commits its commits.
	Landings int `json:"landings"`
	Commits  int `json:"commits"`
	// Records and Events are all of the lease: some are of no landing of the branch.
	Records int `json:"records"`
	Events  int `json:"events"`

	Findings []Finding `json:"findings"`
	// Settled are what this run has settled.
	Settled []Finding `json:"settled"`
	// Published counts the verifications that waited in this clone, and that this run
	// has published.
	Published int `json:"published,omitempty"`
	// Acknowledged are findings that an earlier repair names: they stand, and
	// are no longer faults.
	Acknowledged []Finding `json:"acknowledged"`
	// Notices begin with what is under way; then they are newest first, by their
	// place on the chain.
	Notices []Notice `json:"notices"`
}

// again is how long to wait before what was found is looked for once more: one
// reading is no snapshot, and a push may have been in the middle.
const again = 300 * time.Millisecond

// Run compares, and with Request.Fix settles what it can. Disagreements are no
// error. It returns faults of class Unreachable and Usage as ledger.Fetch does,
// and with Fix of class Held where something is to be settled and somebody else
// holds the lease, or it is frozen.
func Run(ctx context.Context, l *ledger.Ledger, r Request) (Report, error) {
	if r.Fix {
		return fix(ctx, l, r)
	}
	s, err := look(ctx, l, r)
	if err != nil {
		return Report{}, err
	}
	return s.report, nil
}

// look compares, twice where it finds anything, and reports what is there both
// times.
func look(ctx context.Context, l *ledger.Ledger, r Request) (*state, error) {
	first, err := read(ctx, l, r)
	if err != nil {
		return nil, err
	}
	first.compare()
	if len(first.report.Findings) == 0 {
		return first, first.describe()
	}
	if err := ledger.Pause(ctx, again); err != nil {
		return nil, err
	}
	r.Want.Name, r.Want.Branch = first.view.Name, first.view.Branch
	v, err := l.Fetch(ctx, r.Want)
	if err != nil {
		return nil, err
	}
	second := first
	if v.Base != first.view.Base || v.TipOID() != first.view.TipOID() || v.BadTip != first.view.BadTip || v.Records != first.view.Records {
		if second, err = readView(ctx, l, r, v); err != nil {
			return nil, err
		}
	} else if err := errors.Join(second.readOperations(), second.readKeepers()); err != nil {
		return nil, err
	}
	before := first.report.Findings
	second.compare()
	second.report.Findings = slices.DeleteFunc(second.report.Findings, func(f Finding) bool {
		return !slices.ContainsFunc(before, f.same)
	})
	return second, second.describe()
}

// describe adds to the findings whose commit it is, and what it is called.
func (s *state) describe() error {
	var about []*Finding
	var ids []object.OID
	for _, list := range [][]Finding{s.report.Findings, s.report.Acknowledged} {
		for i := range list {
			if f := &list[i]; f.Object != "" {
				f.Commit = cmp.Or(f.Commit, f.Object)
				about, ids = append(about, f), append(ids, f.Commit)
			}
		}
	}
	return s.l.Repo.Contents(s.ctx, ids, func(i int, o object.Object, err error) error {
		f := about[i]
		c, parseErr := object.ReadCommit(o.Data)
		if err != nil || o.Kind != object.Commit || parseErr != nil {
			if f.Commit = ""; f.landed != nil {
				f.Author, f.Subject = event.CleanText(f.landed.by, event.MaxText), event.CleanText("unit "+f.landed.unit, MaxSubject)
			}
			return nil
		}
		who, _, _ := strings.Cut(c.Author, "> ")
		f.Author = event.CleanText(strings.TrimSuffix(who, ">")+">", event.MaxText)
		subject, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n")
		f.Subject = event.CleanText(subject, MaxSubject)
		return nil
	})
}

// An operation of this clone that has not ended, as its journal tells.
type operation struct {
	id    ulid.ULID
	alive bool
	// motions are the ids that its steps may have on the chain.
	motions []ulid.ULID
}

// sort orders findings: by code, then by where they are in history, oldest first.
func (s *state) sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Code), rank(b.Code)), cmp.Compare(s.history.place(b.Object), s.history.place(a.Object)))
	})
}

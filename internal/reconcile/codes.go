package reconcile

import (
	"slices"

	"gitland/internal/chain"
)

// A Code says what kind of disagreement a finding is. The words are stable: they
// stand in repair events and in --json. docs/format.md lists them.
type Code string

// The codes.
const (
	CommitWithoutRecord Code = "commit-without-record"
	EventWithoutRecord  Code = "event-without-record"
	RecordWithoutEvent  Code = "record-without-event"
	IntentWithoutLand   Code = "intent-without-land"
	RecordsNotFetched   Code = "records-not-fetched"
	ChecksNotFetched    Code = "verifications-not-fetched"
	StepsWithoutRecord  Code = "steps-without-record"

	RecordCommitGone Code = "record-commit-gone"
	EventCommitGone  Code = "event-commit-gone"
	AdoptedTipGone   Code = "adopted-tip-gone"

	UnitDiffers     Code = "unit-differs"
	BranchDiffers   Code = "branch-differs"
	BaseDiffers     Code = "base-differs"
	CommitDiffers   Code = "commit-differs"
	TreeDiffers     Code = "tree-differs"
	OverrideDiffers Code = "override-differs"

	WithoutVerification Code = "landing-without-verification"
	OtherTreeVerified   Code = "verification-of-other-tree"
	RecordMalformed     Code = "record-malformed"
	RecordMisplaced     Code = "record-misplaced"
	RecordDoubled       Code = "record-doubled"
	EventDoubled        Code = "event-doubled"

	RecordsUnreadable Code = "records-unreadable"
	RecordNewer       Code = "record-newer-format"
	HistoryNotFetched Code = "history-not-fetched"
	OperationOpen     Code = "operation-unfinished"
	StepsUnfinished   Code = chain.StepsUnfinished
	HeldByDone        Code = "lease-held-by-done-operation"
	TwoLeases         Code = "branch-under-two-leases"

	ChainMalformed  Code = "chain-malformed"
	ChainRewritten  Code = "chain-rewritten"
	ChainDeleted    Code = "chain-deleted"
	ChainLostEvents Code = "chain-lost-events"
	ChainNewer      Code = "chain-newer-format"
	ChainUnreadable Code = "chain-unreadable"
)

// Codes are all codes, in the order in which findings are reported: what keeps
// others from being looked for comes first.
func Codes() []Code {
	return []Code{ChainNewer, ChainDeleted, ChainRewritten, ChainLostEvents, ChainMalformed, ChainUnreadable,
		HistoryNotFetched, RecordsUnreadable, RecordsNotFetched, ChecksNotFetched, RecordNewer, OperationOpen, StepsUnfinished, TwoLeases, HeldByDone, IntentWithoutLand, AdoptedTipGone,
		EventCommitGone, RecordCommitGone, EventWithoutRecord, RecordWithoutEvent, StepsWithoutRecord, CommitWithoutRecord,
		CommitDiffers, TreeDiffers, BranchDiffers, BaseDiffers, UnitDiffers, OverrideDiffers,
		EventDoubled, RecordDoubled, RecordMisplaced, RecordMalformed, OtherTreeVerified, WithoutVerification}
}

func rank(c Code) int { return slices.Index(Codes(), c) }

// mended are the codes of what --fix mends: afterwards the disagreement is gone,
// whether or not a repair names it.
var mended = []Code{CommitWithoutRecord, EventWithoutRecord, RecordWithoutEvent, StepsWithoutRecord}

// acknowledged are the codes of what stays as it is: it is settled by a repair
// event that names it, with the reason that somebody gave.
var acknowledged = []Code{RecordCommitGone, EventCommitGone, AdoptedTipGone,
	UnitDiffers, BranchDiffers, BaseDiffers, CommitDiffers, TreeDiffers, OverrideDiffers,
	WithoutVerification, OtherTreeVerified, ChecksNotFetched, RecordMalformed, RecordMisplaced, RecordDoubled, EventDoubled}

// Fixable reports whether --fix settles the finding, and whether it needs a reason for
// it. Steps for which the lease is held are its holder's.
func (f Finding) Fixable() (fixable, reason bool) {
	if f.held {
		return false, false
	}
	return f.Code.Fixable()
}

// Fixable reports whether --fix settles findings of the code, and whether it
// needs a reason for it.
func (c Code) Fixable() (fixable, reason bool) {
	switch {
	case slices.Contains(mended, c), c == IntentWithoutLand:
		return true, false
	case slices.Contains(acknowledged, c), c == RecordsNotFetched, c == StepsUnfinished:
		return true, true
	}
	return false, false
}

// lasts reports whether a repair that names a finding settles it: of the others
// a repair makes the cause go away, and what comes back is a new finding.
func (c Code) lasts() bool { return slices.Contains(acknowledged, c) || c == IntentWithoutLand }

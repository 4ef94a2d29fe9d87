package land

import (
	"cmp"
	"context"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/policy"
	"gitland/internal/session"
	"gitland/internal/step"
)

// An Ending asks for the end of landings that did not come to it.
type Ending struct {
	// Want is the lease, and the branch, on whose chain an operation is looked for
	// of which this clone has no journal.
	Want      ledger.Want
	Operation ulid.ULID
	Session   session.Source // that asks
	Reason    string         // why it is given up
	// Word is what a person says of the next step, Steps are commands for those of which
	// none is known here, and Setting is what they run in.
	Word    step.Word
	Steps   []policy.Step
	Setting step.Setting
	// Dead says that the process of Operation is known to be dead, where this
	// clone cannot prove it: it was moved, or restored.
	Dead bool
}

// Resume brings landings that did not end to their end: what reached the
// authority is finished, the rest is made unable to arrive. The zero operation
// means all those that this worktree began. A named one may be of another
// worktree of the clone; one of which this clone has no journal is looked for on
// the chain, where its announced landing is finished under this session's
// lease (git lease break --acquire) or while the lease is free.
//
// It returns what it has concluded also with an error. The error is of class
// Held while the operation lives, or may live, or holds the lease elsewhere; of
// class Usage when nobody knows the operation; of class Unreachable when nothing
// is known yet.
func Resume(ctx context.Context, l *ledger.Ledger, e Ending) ([]Conclusion, error) {
	e.Reason = ""
	if err := ownIndex(l); err != nil {
		return nil, err
	}
	if e.Operation.IsZero() && (e.Word != step.Word{} || len(e.Steps) > 0) { // which are about one
		var err error
		if e.Operation, err = onlyUnfinished(l, "resume", append(e.Word.Words(), stepWords(e.Steps)...)...); err != nil {
			return nil, err
		}
	}
	if !e.Operation.IsZero() {
		c, err := endOne(ctx, l, e)
		if c == nil {
			return nil, err
		}
		return []Conclusion{*c}, err
	}
	sweep(l)
	list, err := ListUnfinished(l.Dir)
	if err != nil {
		return nil, err
	}
	var done []Conclusion
	for _, u := range list {
		if u.gitDir != l.Repo.Place() {
			continue
		}
		e.Operation = u.Operation
		c, err := concludeOne(ctx, l, e)
		if c != nil {
			done = append(done, *c)
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// ownIndex refuses to work on an index that is not the user's, but that of a commit which
// another command is making, such as in one of its hooks: the branch would go on, and the
// user's index stay behind, as if all that landed were staged to be taken back.
func ownIndex(l *ledger.Ledger) error {
	borrowed := l.Repo.BorrowedIndex()
	if borrowed == "" {
		return nil
	}
	return fault.New(fault.Conflict, "GIT_INDEX_FILE is %s, the index of a commit that another command is making here", borrowed).
		WithHint("run git land when that is done: after it, or from a post-commit hook of git commit")
}

// Abort gives a landing up, on the record, unless it has landed: then it is
// finished, as by Resume. The zero operation means the only one of this worktree
// that did not end. The errors are those of Resume; Usage also for an empty
// reason, and where there is none or more than one to choose from.
func Abort(ctx context.Context, l *ledger.Ledger, e Ending) (Conclusion, error) {
	var err error
	if e.Reason, err = lease.Reason(e.Reason, "a landing is given up", "why it is not wanted any more"); err != nil {
		return Conclusion{}, err
	}
	if err := ownIndex(l); err != nil {
		return Conclusion{}, err
	}
	if e.Operation.IsZero() {
		if e.Operation, err = onlyUnfinished(l, "abort", "--reason", e.Reason); err != nil {
			return Conclusion{}, err
		}
	}
	c, err := endOne(ctx, l, e)
	if c == nil {
		return Conclusion{}, err
	}
	return *c, err
}

// onlyUnfinished is the one operation of this worktree that did not end; how is what was to
// be done with it, and with which options.
func onlyUnfinished(l *ledger.Ledger, how string, options ...string) (ulid.ULID, error) {
	list, err := ListUnfinished(l.Dir)
	if err != nil {
		return ulid.Zero, err
	}
	var mine []string
	for _, u := range list {
		if u.gitDir == l.Repo.Place() {
			mine = append(mine, u.Operation.String())
		}
	}
	switch len(mine) {
	case 0:
		return ulid.Zero, fault.New(fault.Usage, "no landing of this worktree is unfinished").WithHint("git land status")
	case 1:
		return ulid.ParseStrict(mine[0])
	}
	return ulid.Zero, fault.New(fault.Usage, "%d landings are unfinished: %s", len(mine), strings.Join(mine, " ")).
		WithHint("%s", l.Command(append([]string{"git", "land", how, mine[0]}, options...)...))
}

// endOne ends one operation: by its journal, by those of the landings under its
// hold, or by what the chain has of it.
func endOne(ctx context.Context, l *ledger.Ledger, e Ending) (*Conclusion, error) {
	list, unreadable := ListUnfinished(l.Dir)
	var last *Conclusion
	for _, u := range list {
		if !u.Under(e.Operation) {
			continue
		}
		mine := e
		mine.Operation = u.Operation
		c, err := concludeOne(ctx, l, mine)
		if err != nil {
			return c, err
		}
		last = cmp.Or(c, last)
	}
	if last != nil || unreadable != nil {
		return last, unreadable
	}
	return endForeign(ctx, l, e)
}

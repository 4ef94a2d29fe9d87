package land

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

// complete makes sure that a landing whose event stands on the chain is whole:
// a server that died between two refs, or that hides one of them, can have left
// the record out.
func complete(ctx context.Context, l *ledger.Ledger, want ledger.Want, v ledger.View, a attempt) error {
	v, err := completeRecord(ctx, l, want, v, a)
	if err != nil {
		// Its journal stays, and with it the way to complete it later.
		return &openError{fault.New(fault.Unreachable, "%s landed, but it is not known whether its record is there: %w", a.Commit.Short(), err).
			WithHint("git land resume   (it completes the record)")}
	}
	in, err := isIn(ctx, l, a.Commit, v.Base)
	if err == nil && !in {
		err = fmt.Errorf("the chain and the record say that %s landed on %s, but the branch does not have it", a.Commit.Short(), v.Branch.Branch())
	}
	if err != nil {
		return &openError{fault.New(fault.Unreachable, "%w", err).
			WithHint("%s", fault.Command("git", "ls-remote", l.Remote, string(v.Branch)))}
	}
	return nil
}

// completeRecord writes the record where it is missing, and returns what was
// last seen of the authority. That others write notes at the same time is
// progress of theirs, and bounded only against a server that answers nonsense.
func completeRecord(ctx context.Context, l *ledger.Ledger, want ledger.Want, v ledger.View, a attempt) (ledger.View, error) {
	var said error
	for losses, refusals := 0, 0; refusals < maxRepeats && losses < maxLosses; {
		has, err := hasRecord(ctx, l, v, a)
		if err != nil || has {
			return v, err
		}
		if v.Phase() == event.Frozen {
			return v, frozenHalf(ctx, l, v, a)
		}
		done, what, err := writeRecord(ctx, l, v, a)
		if err != nil || done {
			return v, err
		}
		said = what
		if err := ledger.Pause(ctx, ledger.Backoff(losses+refusals, time.Second)); err != nil {
			return v, err
		}
		before := v.Records
		if v, err = l.Fetch(ctx, want); err != nil {
			return v, err
		}
		if v.Records == before {
			refusals++
		} else {
			losses++
		}
	}
	return v, fault.New(fault.Unreachable, "%s refused the record of %s: %w", l.Remote, a.Commit.Short(), said).
		WithHint("git land resume   (when %s takes pushes to its notes again)", l.Remote)
}

// maxLosses bounds how often others may be faster.
const maxLosses = 100

func writeRecord(ctx context.Context, l *ledger.Ledger, v ledger.View, a attempt) (done bool, said, err error) {
	notes, err := l.AppendNotes(ctx, v.Records, "landing "+a.Commit.Short()+" on "+v.Branch.Branch(), []ledger.NoteLine{{On: a.Commit, Text: a.Record}})
	if err != nil {
		return false, nil, err
	}
	if err := l.Repo.Write(ctx, notes.Objects...); err != nil {
		return false, nil, err
	}
	records, err := l.RecordsRef(v.Name)
	if err != nil {
		return false, nil, err
	}
	moves := []git.Move{{Ref: records, New: notes.Tip, Old: git.Was(v.Records)}}
	out, err := l.Publish(ctx, ledger.Publication{Message: "land: record", Moves: moves})
	if err == nil && out.Done {
		l.Moved(v, moves)
	}
	return out.Done, out.Said, err
}

func isIn(ctx context.Context, l *ledger.Ledger, commit, tip object.OID) (bool, error) {
	if tip == "" {
		return false, nil
	}
	return l.Repo.IsAncestor(ctx, commit, tip)
}

// hasRecord reports whether the note on the landed commit has the landing's line.
func hasRecord(ctx context.Context, l *ledger.Ledger, v ledger.View, a attempt) (bool, error) {
	blob, err := l.Note(ctx, v.Records, a.Commit)
	if err != nil {
		return false, fmt.Errorf("read the record: %w", err)
	}
	own := note.ParseRecords([]byte(a.Record))
	return slices.ContainsFunc(note.ParseRecords(blob), func(line note.Line[note.Record]) bool {
		// Whoever finished the landing may have written another line for it.
		return line.Raw == a.Record || line.Err == nil && len(own) == 1 && line.Value.ID == own[0].Value.ID
	}), nil
}

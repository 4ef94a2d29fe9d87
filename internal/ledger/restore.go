package ledger

import (
	"context"
	"maps"
	"slices"
	"strings"

	"gitland/internal/git"
	"gitland/internal/note"
	"gitland/internal/object"
)

// Lost notes are those that this clone saw at the authority, and in whose place others
// were begun. They stay below "lost/" in the mirror until they are merged: this may be
// the only clone that has them.

// A loss is the tips of lost notes that the present ones do not have.
type loss struct {
	ref   object.Ref // at the authority
	now   object.OID // its tip
	tips  []object.OID
	local []git.Move // that forget the tips, and those that were merged before
}

// LostVerifications are the tips of lost verifications that those of v do not have.
func (l *Ledger) LostVerifications(ctx context.Context, v View) ([]object.OID, error) {
	lost, err := l.loss(ctx, seenVerifications, l.VerificationsRef(), v.Verifications)
	return lost.tips, err
}

// losses are those of the records and verifications of v.
func (l *Ledger) losses(ctx context.Context, v View) ([]loss, error) {
	ref, err := l.RecordsRef(v.Name)
	if err != nil {
		return nil, err
	}
	records, err := l.loss(ctx, seenRecords+component(v.Name), ref, v.Records)
	if err != nil {
		return nil, err
	}
	checks, err := l.loss(ctx, seenVerifications, l.VerificationsRef(), v.Verifications)
	return []loss{records, checks}, err
}

func (l *Ledger) loss(ctx context.Context, rest string, ref object.Ref, now object.OID) (loss, error) {
	found := loss{ref: ref, now: now}
	if now.IsZero() {
		return found, nil // they are put back by a push
	}
	refs, err := l.Repo.Refs(ctx, l.mirror("lost/"+rest))
	if err != nil {
		return found, err
	}
	l.mu.Lock()
	for ref, m := range l.pending { // seen by this very run
		if strings.HasPrefix(string(ref), l.mirror("lost/"+rest+"/")) {
			refs[ref] = m.New
		}
	}
	l.mu.Unlock()
	for _, kept := range slices.Sorted(maps.Keys(refs)) {
		tip := refs[kept]
		grown, err := l.Grown(ctx, now, tip)
		if err != nil {
			return found, err
		}
		if !grown {
			found.tips = append(found.tips, tip)
		}
		found.local = append(found.local, git.Move{Ref: kept, Old: git.MustBe(tip)})
	}
	return found, nil
}

// HasLost reports whether this clone has lost notes that Restore would merge.
func (l *Ledger) HasLost(ctx context.Context, v View) (bool, error) {
	losses, err := l.losses(ctx, v)
	return slices.ContainsFunc(losses, func(lost loss) bool { return len(lost.tips) > 0 }), err
}

// Restore merges the lost notes that this clone has into those of v: what they say of an
// object comes before what was said since, so that the newest goes on to count, and of
// one landing one record stays. The merge descends from both. said is not nil where it
// is not known to have arrived: look again, and restore what is left.
func (l *Ledger) Restore(ctx context.Context, v View) (said, err error) {
	if err := l.Flush(ctx, "land: fetch"); err != nil {
		return nil, err
	}
	losses, err := l.losses(ctx, v)
	if err != nil {
		return nil, err
	}
	for _, lost := range losses {
		if len(lost.tips) > 0 {
			d, err := l.merged(ctx, lost)
			if err != nil {
				return nil, err
			}
			if err := l.Repo.Write(ctx, d.Objects...); err != nil {
				return nil, err
			}
			out, err := l.Publish(ctx, Publication{Moves: []git.Move{{Ref: lost.ref, New: d.Tip, Old: git.MustBe(lost.now)}}, Message: "land: notes restored"})
			if err != nil || !out.Done {
				return out.Said, err
			}
		}
		if err := l.Repo.MoveRefs(ctx, "land: notes restored", lost.local...); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// merged builds the notes commit that has the lost lines too.
func (l *Ledger) merged(ctx context.Context, lost loss) (NoteDraft, error) {
	var lines []NoteLine
	for _, tip := range lost.tips {
		notes, err := l.WholeRecords(ctx, tip, nil, nil)
		if err != nil {
			return NoteDraft{}, err
		}
		for _, n := range notes {
			if n.Err != nil {
				return NoteDraft{}, n.Err
			}
			now, err := l.Note(ctx, lost.now, n.On)
			if err != nil {
				return NoteDraft{}, err
			}
			if text := missing(n.Lines, note.ParseRecords(now)); text != "" {
				lines = append(lines, NoteLine{On: n.On, Text: text})
			}
		}
	}
	return l.writeNotes(ctx, lost.now, lost.tips, "land: notes that were lost, and are back", lines, true)
}

// missing are the lines of old that now has not: neither as they stand nor, of a
// record, in another wording. How the steps of a landing ended is a line of its own.
func missing(old, now []note.Line[note.Record]) string {
	var text []string
	for _, line := range old {
		if strings.TrimSpace(line.Raw) == "" || slices.ContainsFunc(now, func(o note.Line[note.Record]) bool {
			return o.Raw == line.Raw || o.Err == nil && line.Err == nil && o.Value.ID == line.Value.ID && (o.Value.End == nil) == (line.Value.End == nil)
		}) {
			continue
		}
		text = append(text, line.Raw)
	}
	return strings.Join(text, "\n")
}

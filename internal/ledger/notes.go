package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/note"
	"gitland/internal/object"
)

// fanoutAt is how many notes may stand side by side in one tree before new
// ones go a level deeper. Git reads any mixture of levels (load_subtree in its
// notes.c); a flat tree would be rewritten whole by every landing.
const fanoutAt = 256

// Note reads the note of an object at a tip of a notes ref. It returns nil when
// there is none.
func (l *Ledger) Note(ctx context.Context, tip, on object.OID) ([]byte, error) {
	if tip.IsZero() {
		return nil, nil
	}
	for _, path := range notePaths(on) {
		o, err := l.Repo.Object(ctx, string(tip)+":"+path)
		if errors.Is(err, git.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if o.Kind == object.Blob {
			return o.Data, nil
		}
	}
	return nil, nil
}

// notePaths are the names under which a note can stand: flat, and at each
// level of fan-out.
func notePaths(on object.OID) []string {
	s := string(on)
	return []string{s, s[:2] + "/" + s[2:], s[:2] + "/" + s[2:4] + "/" + s[4:],
		s[:2] + "/" + s[2:4] + "/" + s[4:6] + "/" + s[6:]}
}

// isNotePath reports whether a path in a notes tree that spells an object id is
// one of its notePaths.
func isNotePath(path string) bool {
	dirs := strings.Count(path, "/")
	for i := range min(dirs, 4) {
		if path[3*i+2] != '/' {
			return false
		}
	}
	return dirs <= 3
}

// A NoteDraft is a line appended to notes, built and not yet published.
type NoteDraft struct {
	Objects []object.Object
	Tip     object.OID
}

// AppendNotes builds on tip the notes commit in which each of the lines is
// appended to the note of its object. It never uses "git notes", whose
// concurrent writers lose each other's lines in silence. It returns a fault of
// class Ambiguous where a note has lines of a newer format.
func (l *Ledger) AppendNotes(ctx context.Context, tip object.OID, subject string, lines []NoteLine) (NoteDraft, error) {
	return l.writeNotes(ctx, tip, nil, subject, lines, false)
}

// writeNotes is AppendNotes with further parents of the notes commit; before puts the
// lines above what is in the notes.
func (l *Ledger) writeNotes(ctx context.Context, tip object.OID, further []object.OID, subject string, lines []NoteLine, before bool) (NoteDraft, error) {
	var d NoteDraft
	stamp, err := l.Repo.Stamp(l.Now())
	if err != nil {
		return d, err
	}
	var root object.OID
	commit := object.CommitData{Author: stamp, Committer: stamp, Message: subject + "\n"}
	if !tip.IsZero() {
		o, err := l.Repo.Lookup(ctx, string(tip))
		if err != nil {
			return d, fmt.Errorf("read notes: %w", err)
		}
		if o.Kind != object.Commit {
			return d, fault.New(fault.Ambiguous, "a notes ref of %s is at %s, which is a %s and no commit", l.Remote, tip, o.Kind).
				WithHint("%s   (and have it put back to the last notes commit, by whoever may)", fault.Command("git", "ls-remote", l.Remote, l.spaces.probes[2]+"*"))
		}
		c, err := l.Repo.Commit(ctx, tip)
		if err != nil {
			return d, fmt.Errorf("read notes: %w", err)
		}
		root = c.Tree
		commit.Parents = append([]object.OID{tip}, further...)
	}
	w := noteWriter{ledger: l, made: map[object.OID]object.Object{}, before: before}
	for _, line := range lines {
		w.on = line.On
		if root, err = w.insert(ctx, root, string(line.On), []byte(line.Text+"\n")); err != nil {
			return d, fmt.Errorf("write a note on %s: %w", line.On.Short(), err)
		}
	}
	commit.Tree = root
	if d.Objects, err = w.reachable(root, nil); err != nil {
		return d, err
	}
	made, err := l.commit(ctx, "the notes commit", commit.Encode(), d.Objects...)
	if err != nil {
		return d, err
	}
	d.Tip = made.OID
	if made.written {
		d.Objects = nil
	} else {
		d.Objects = append(d.Objects, made.Object)
	}
	return d, nil
}

// A NoteLine is one line to append to the note of an object.
type NoteLine struct {
	On   object.OID
	Text string // without a line break
}

// A noteWriter rebuilds the trees on the way to a note.
type noteWriter struct {
	ledger *Ledger
	made   map[object.OID]object.Object
	on     object.OID // whose note is written
	before bool       // lines go above what is there
}

func (w noteWriter) add(k object.Kind, data []byte) object.OID {
	o := w.ledger.Repo.Format.New(k, data)
	w.made[o.OID] = o
	return o.OID
}

// reachable gathers what was made and is still part of the result: the trees
// of earlier lines are not.
func (w noteWriter) reachable(oid object.OID, found []object.Object) ([]object.Object, error) {
	o, ok := w.made[oid]
	if !ok {
		return found, nil
	}
	found = append(found, o)
	if o.Kind != object.Tree {
		return found, nil
	}
	entries, err := w.ledger.Repo.Format.ParseTree(o.Data)
	for _, e := range entries {
		if err == nil {
			found, err = w.reachable(e.OID, found)
		}
	}
	return found, err
}

func (w noteWriter) read(ctx context.Context, oid object.OID) (object.Object, error) {
	if o, ok := w.made[oid]; ok {
		return o, nil
	}
	return w.ledger.Repo.Object(ctx, string(oid))
}

// insert appends text to the note whose name below tree is rest, and returns
// the new tree.
func (w noteWriter) insert(ctx context.Context, tree object.OID, rest string, text []byte) (object.OID, error) {
	format := w.ledger.Repo.Format
	var entries []object.TreeEntry
	if tree != "" {
		o, err := w.read(ctx, tree)
		if err != nil {
			return "", err
		}
		if entries, err = format.ParseTree(o.Data); err != nil {
			return "", err
		}
	}
	at := func(name string, isTree bool) int {
		return slices.IndexFunc(entries, func(e object.TreeEntry) bool { return e.Name == name && e.IsTree() == isTree })
	}
	entry := object.TreeEntry{Mode: "100644", Name: rest}
	// No deeper than notePaths looks. Git never goes there, but whoever may push
	// can make a tree as deep as an id is long.
	i, deeper, room := at(rest, false), -1, len(rest) > 2*format.Size()-6
	if room {
		deeper = at(rest[:2], true)
	}
	switch {
	case i >= 0:
		var err error
		if entry.OID, err = w.appended(ctx, entries[i].OID, text); err != nil {
			return "", err
		}
	case deeper >= 0 || room && len(entries) >= fanoutAt:
		var below object.OID
		if i = deeper; i >= 0 {
			below = entries[i].OID
		}
		oid, err := w.insert(ctx, below, rest[2:], text)
		if err != nil {
			return "", err
		}
		entry = object.TreeEntry{Mode: "40000", Name: rest[:2], OID: oid}
	default:
		entry.OID = w.add(object.Blob, text)
	}
	if i >= 0 {
		entries[i] = entry
	} else {
		i, _ = slices.BinarySearchFunc(entries, entry, compareEntries)
		entries = slices.Insert(entries, i, entry)
	}
	data, err := object.EncodeTree(entries)
	if err != nil {
		return "", err
	}
	return w.add(object.Tree, data), nil
}

// appended is a note with text behind what it has, or before it.
func (w noteWriter) appended(ctx context.Context, note object.OID, text []byte) (object.OID, error) {
	old, err := w.read(ctx, note)
	if err != nil {
		return "", err
	}
	if old.Kind != object.Blob {
		return "", fmt.Errorf("%s is a %s", old.OID.Short(), old.Kind)
	}
	if format, newer := newerIn(old.Data); newer {
		return "", newerNotes(w.on, format)
	}
	if w.before {
		return w.add(object.Blob, append(slices.Clip(text), old.Data...)), nil
	}
	if n := len(old.Data); n > 0 && old.Data[n-1] != '\n' {
		old.Data = append(old.Data, '\n')
	}
	return w.add(object.Blob, append(slices.Clip(old.Data), text...)), nil
}

func compareEntries(a, b object.TreeEntry) int {
	switch {
	case object.TreeLess(a, b):
		return -1
	case object.TreeLess(b, a):
		return 1
	}
	return 0
}

// Verified lists the verifications of a tree: those published at v, then
// those that this clone made and could not publish yet.
func (l *Ledger) Verified(ctx context.Context, v View, tree object.OID) ([]note.Verification, error) {
	blob, err := l.Note(ctx, v.Verifications, tree)
	if err != nil {
		return nil, err
	}
	var list []note.Verification
	for _, line := range note.ParseVerifications(blob) {
		if line.Newer {
			return nil, newerNotes(tree, line.Value.Format)
		}
		if line.Err == nil {
			list = append(list, line.Value)
		}
	}
	kept, err := l.unpublished()
	if err != nil {
		return nil, err
	}
	for _, k := range kept {
		known := slices.ContainsFunc(list, func(v note.Verification) bool { return v.ID == k.ID })
		if k.Tree == tree && !known {
			list = append(list, k)
		}
	}
	return list, nil
}

// newerNotes is the fault of lines that a newer version wrote: they are read as
// far as that goes, and nothing is decided by them or added to them.
func newerNotes(on object.OID, format int) *fault.Error {
	knows := fmt.Sprintf("format %d", format)
	if format <= note.Format { // the line could not be read any further
		knows = "it"
	}
	return fault.New(fault.Ambiguous, "the note on %s has lines of a newer format than %d, which is what this version knows", on.Short(), note.Format).
		WithHint("install a newer gitland, one that knows %s; reading goes on", knows).
		WithFacts(map[string]any{"object": on, "format": format, "knows": note.Format})
}

// newerIn looks for a line that a newer version wrote; the format number comes
// before the payload, so it does not matter of what.
func newerIn(blob []byte) (format int, newer bool) {
	for _, line := range note.ParseRecords(blob) {
		if line.Newer {
			return line.Value.Format, true
		}
	}
	return 0, false
}

// Keep keeps a verification in this clone until PublishVerifications has published
// it.
func (l *Ledger) Keep(v note.Verification) error {
	if _, err := note.EncodeLine(v); err != nil {
		return err
	}
	if err := l.Dir.Outbox().Write(v.ID, v); err != nil {
		return fmt.Errorf("keep the verification: %w", err)
	}
	return nil
}

// unpublished are the verifications in the outbox, oldest first.
func (l *Ledger) unpublished() ([]note.Verification, error) {
	outbox := l.Dir.Outbox()
	ids, err := outbox.List()
	if err != nil {
		return nil, err
	}
	var list []note.Verification
	for _, id := range ids {
		var v note.Verification
		err := outbox.Load(id, &v)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another session has just published it
		}
		if err == nil {
			_, err = note.EncodeLine(v)
		}
		if err != nil { // it must not keep the others, nor a landing, from going on
			l.once("a verification that was kept here cannot be read and is passed over (%v); to be rid of it: %s",
				err, fault.Command("rm", outbox.Path(id)))
			continue
		}
		list = append(list, v)
	}
	return list, nil
}

// PublishVerifications publishes what waits in the outbox. Those that are at
// the authority already, because only the answer was lost, are not doubled.
func (l *Ledger) PublishVerifications(ctx context.Context, w Want) error {
	var out Outcome
	var last object.OID // that it is about
	for loss, refusals := 0, 0; loss < maxLosses; loss++ {
		waiting, err := l.unpublished()
		if err != nil || len(waiting) == 0 {
			return err
		}
		if err := l.Ready(ctx); err != nil {
			return err
		}
		v, err := l.Fetch(ctx, w)
		if err != nil {
			return err
		}
		if out.Said != nil && v.Verifications == last { // nobody was faster
			if refusals++; refusals == maxRepeats || out.Declined {
				return l.refused(out.Said, l.VerificationsRef())
			}
		}
		last = v.Verifications
		if out, err = l.publishOnto(ctx, last, waiting); err != nil || out.Done {
			return err
		}
		if err := Pause(ctx, Backoff(loss, 2*time.Second)); err != nil {
			return err
		}
	}
	return fault.New(fault.Unreachable, "%s did not take the verifications in %d tries", l.Remote, maxLosses)
}

// publishOnto makes one try on the given tip.
func (l *Ledger) publishOnto(ctx context.Context, tip object.OID, waiting []note.Verification) (Outcome, error) {
	var lines []NoteLine
	for _, v := range waiting {
		text, err := note.EncodeLine(v)
		if err != nil {
			return Outcome{}, err
		}
		blob, err := l.Note(ctx, tip, v.Tree)
		if err != nil {
			return Outcome{}, err
		}
		published := note.ParseVerifications(blob)
		if !slices.ContainsFunc(published, func(line note.Line[note.Verification]) bool { return line.Value.ID == v.ID }) {
			lines = append(lines, NoteLine{On: v.Tree, Text: text})
		}
	}
	if len(lines) > 0 {
		subject := fmt.Sprintf("verification: %s %s on %s", waiting[0].Check, waiting[0].Verdict, waiting[0].Tree.Short())
		d, err := l.AppendNotes(ctx, tip, strings.ToValidUTF8(subject, "?"), lines)
		if err != nil {
			return Outcome{}, err
		}
		if err := l.Repo.Write(ctx, d.Objects...); err != nil {
			return Outcome{}, err
		}
		out, err := l.Publish(ctx, Publication{Moves: []git.Move{{Ref: l.VerificationsRef(), New: d.Tip, Old: git.Was(tip)}},
			Message: "land: verification"})
		if err != nil || !out.Done {
			return out, err
		}
		if !l.IsLocal() { // so that the landing that follows can be planned from the mirror
			l.note("verification", tip, d.Tip)
		}
	}
	for _, v := range waiting {
		if err := l.Dir.Outbox().Remove(v.ID); err != nil {
			return Outcome{}, err
		}
	}
	return Outcome{Done: true}, nil
}

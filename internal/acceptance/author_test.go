package acceptance

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/session"
)

// An author writes events, records and branches as a tool would, or as one that
// is wrong would: through the project's own packages, in one push.
type author struct {
	t      *testing.T
	l      *ledger.Ledger
	s      seat
	remote string
}

func newAuthor(t *testing.T, remote string) author {
	t.Helper()
	return authorAt(t, clone(t, remote), remote)
}

func authorAt(t *testing.T, s seat, remote string) author {
	t.Helper()
	repo, err := git.Open(t.Context(), git.Options{Dir: s.dir, Environ: s.env, Unattended: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repo.Close)
	l, err := ledger.Open(repo, ledger.Options{Now: time.Now, Notice: func(string, ...any) {}})
	if err != nil {
		t.Fatal(err)
	}
	return author{t, l, s, remote}
}

func (a author) ok(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a author) view() ledger.View {
	a.t.Helper()
	v, err := a.l.Fetch(a.t.Context(), ledger.Want{Branch: "refs/heads/main"})
	a.ok(err)
	return v
}

// commit makes a commit on base, and gives the landing that would bring it.
func (a author) commit(base object.OID) *event.Landing {
	a.t.Helper()
	id, f := a.l.NewID(), a.l.Repo.Format
	blob := f.New(object.Blob, []byte(id.String()))
	data, err := object.EncodeTree([]object.TreeEntry{{Mode: "100644", Name: "work", OID: blob.OID}})
	a.ok(err)
	tree := f.New(object.Tree, data)
	ident := gittest.Identity + " 1700000000 +0000"
	c := object.CommitData{Tree: tree.OID, Author: ident, Committer: ident, Message: "work of " + id.String() + "\n"}
	if base != "" {
		c.Parents = []object.OID{base}
	}
	commit := f.New(object.Commit, c.Encode())
	a.ok(a.l.Repo.Write(a.t.Context(), blob, tree, commit))
	return &event.Landing{ID: id, Unit: id.String(), Branch: "refs/heads/main", Base: base, Commit: commit.OID, Tree: tree.OID}
}

// record is the record of a landing, as git land writes it.
func (a author) record(land *event.Landing) note.Record {
	a.t.Helper()
	now := time.Now()
	return note.Record{ID: land.ID, Unit: land.Unit, Operation: land.ID, Lease: "main", Branch: land.Branch, Base: land.Base,
		Commit: land.Commit, Tree: land.Tree, Commits: 1, Actor: gittest.Identity, Host: "h", Time: now,
		Verifications: []note.Verification{{Format: 1, ID: a.l.NewID(), Check: "default", Verdict: note.Pass, Command: "true", Tree: land.Tree, Time: now}}}
}

// A telling is what is written in one push.
type telling struct {
	acts   []event.Event
	lines  []ledger.NoteLine
	branch object.OID // moves main there; "" leaves it
}

func (a author) line(r note.Record) ledger.NoteLine {
	a.t.Helper()
	text, err := note.EncodeLine(r)
	a.ok(err)
	return ledger.NoteLine{On: r.Commit, Text: text}
}

func (a author) tell(w telling) []event.Event {
	a.t.Helper()
	ctx, v := a.t.Context(), a.view()
	d, err := a.l.Draft(v)
	a.ok(err)
	a.ok(d.Adopt(ctx, v.Branch, v.Base))
	for _, act := range w.acts {
		_, err := d.Add(ctx, act)
		a.ok(err)
	}
	var moves []git.Move
	objects := d.Objects()
	if len(d.Events) > 0 {
		moves = append(moves, d.Move())
	}
	if w.branch != "" {
		moves = append(moves, git.Move{Ref: v.Branch, New: w.branch, Old: git.Was(v.Base)})
	}
	if len(w.lines) > 0 {
		notes, err := a.l.AppendNotes(ctx, v.Records, "records", w.lines)
		a.ok(err)
		objects = append(objects, notes.Objects...)
		ref, err := a.l.RecordsRef("main")
		a.ok(err)
		moves = append(moves, git.Move{Ref: ref, New: notes.Tip, Old: git.Was(v.Records)})
	}
	a.ok(a.l.Repo.Write(ctx, objects...))
	out, err := a.l.Publish(ctx, ledger.Publication{Moves: moves})
	a.ok(err)
	if !out.Done {
		a.t.Fatal(out.Said)
	}
	return d.Events
}

func landedEvent(land *event.Landing) event.Event {
	return event.Event{Kind: event.Land, By: event.By{Operation: land.ID, Land: land}}
}

// lands brings a commit, its record and its event to the authority.
func (a author) lands() *event.Landing {
	a.t.Helper()
	land := a.commit(a.view().Base)
	a.tell(telling{acts: []event.Event{landedEvent(land)}, lines: []ledger.NoteLine{a.line(a.record(land))}, branch: land.Commit})
	return land
}

// takes acquires the lease under an operation, with a root of its own.
func (a author) takes(op ulid.ULID) event.Event {
	id := a.l.NewID()
	return event.Event{Kind: event.Acquire, ID: id, By: event.By{Operation: op}, State: event.State{Hold: &event.Hold{
		Operation: op, Holder: gittest.Identity, Digest: event.Digest(event.Secret(session.NewRoot().Bytes(), id, "x"))}}}
}

// announces is a landing that was announced and whose lease was then broken,
// before or after it came to the branch.
func (a author) announces(arrived bool) {
	a.t.Helper()
	land := a.commit(a.view().Base)
	op := a.l.NewID()
	r := a.record(land)
	r.Operation = op
	w := telling{acts: []event.Event{a.takes(op),
		{Kind: event.Intent, By: event.By{Operation: op, Land: land, Record: a.line(r).Text}},
		{Kind: event.Break, By: event.By{Operation: a.l.NewID(), Target: op, Reason: "laptop in the river"}}}}
	if arrived {
		w.branch = land.Commit
	}
	a.tell(w)
}

// adopts puts main under a lease of another name, which the tools refuse.
func (a author) adopts(name string) {
	a.t.Helper()
	v, err := a.l.Fetch(a.t.Context(), ledger.Want{Name: name, Branch: "refs/heads/main"})
	a.ok(err)
	d, err := a.l.Draft(v)
	a.ok(err)
	_, err = d.Add(a.t.Context(), event.Event{Kind: event.Adopt, By: event.By{Adopt: &event.Adoption{Branch: v.Branch, Tip: v.Base}}})
	a.ok(err)
	a.ok(d.Write(a.t.Context()))
	out, err := a.l.Publish(a.t.Context(), ledger.Publication{Moves: []git.Move{d.Move()}})
	a.ok(err)
	if !out.Done {
		a.t.Fatal(out.Said)
	}
}

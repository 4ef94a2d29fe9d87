package acceptance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/chain"
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
	id := a.l.NewID()
	tree := a.s.write
	tree(map[string]string{"work": id.String()})
	blob := a.s.git("hash-object", "-w", "work")
	r := gittest.Run(a.t, func() *exec.Cmd {
		cmd := a.s.cmd("git", "mktree")
		cmd.Stdin = strings.NewReader("100644 blob " + blob + "\twork\n")
		return cmd
	}())
	treeOID := object.OID(strings.TrimSpace(r.Stdout))
	args := []string{"commit-tree", "-m", "work", string(treeOID)}
	if base != "" {
		args = append(args, "-p", string(base))
	}
	return &event.Landing{ID: id, Unit: id.String(), Branch: "refs/heads/main", Base: base,
		Commit: object.OID(a.s.git(args...)), Tree: treeOID}
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
		_, err := d.Add(act)
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

// A reconciliation is what reconcile --json prints.
type reconciliation struct {
	Report struct {
		Commits, Records, Events        int
		Findings, Settled, Acknowledged []struct {
			Code, Object, Text, Command string
			Operation                   string
		}
		Notices []struct{ Kind, Object, Text string }
	}
}

func (r reconciliation) codes() string {
	var codes []string
	for _, f := range r.Report.Findings {
		codes = append(codes, f.Code)
	}
	return strings.Join(codes, " ")
}

func (s seat) reconciles(code int, args ...string) reconciliation {
	s.t.Helper()
	return decode[reconciliation](s.t, s.exits(code, "git-land", append([]string{"reconcile", "--json"}, args...)...))
}

// A seeded disagreement: what is done to a remote with two sound landings, and
// the code that it must be found under, by s: a clone that has seen the chain.
type seeded struct {
	code string
	seed func(a author, s seat)
	// bare is what --fix settles without a reason; reason with one. Neither: it
	// is settled by another command.
	bare, reason bool
}

// altered seeds a landing whose record says something else than its event.
func altered(change func(a author, r *note.Record)) func(author, seat) {
	return func(a author, _ seat) {
		land := a.commit(a.view().Base)
		r := a.record(land)
		change(a, &r)
		a.tell(telling{acts: []event.Event{landedEvent(land)}, lines: []ledger.NoteLine{a.line(r)}, branch: land.Commit})
	}
}

func (a author) remoteGit(args ...string) string { return gittest.Git(a.t, a.remote, args...) }

func disagreements() []seeded { return append(betweenStories(), aboutTheChain()...) }

func betweenStories() []seeded {
	return []seeded{
		{code: "commit-without-record", bare: true, seed: func(a author, _ seat) {
			land := a.commit(a.commit(a.view().Base).Commit)
			a.tell(telling{branch: land.Commit})
		}},
		{code: "event-without-record", bare: true, seed: func(a author, _ seat) {
			land := a.commit(a.view().Base)
			land.Unverified, land.Reason = "any", "seeded"
			a.tell(telling{acts: []event.Event{landedEvent(land)}, branch: land.Commit})
		}},
		{code: "record-without-event", bare: true, seed: func(a author, _ seat) {
			land := a.commit(a.view().Base)
			a.tell(telling{lines: []ledger.NoteLine{a.line(a.record(land))}, branch: land.Commit})
		}},
		{code: "record-commit-gone", reason: true, seed: func(a author, _ seat) {
			a.lands()
			a.remoteGit("update-ref", "refs/heads/main", "main~")
		}},
		{code: "event-commit-gone", reason: true, seed: func(a author, _ seat) {
			a.tell(telling{acts: []event.Event{landedEvent(a.commit(a.view().Base))}})
		}},
		{code: "tree-differs branch-differs base-differs unit-differs override-differs", reason: true, seed: altered(func(a author, r *note.Record) {
			r.Unit, r.Branch, r.Base, r.Tree = "another", "refs/heads/other", a.commit("").Commit, a.l.Repo.Format.EmptyTree()
			r.Verifications[0].Tree = r.Tree
			r.Override = &note.Override{Reason: "r", Actor: "a", Missing: []string{"any"}}
		})},
		{code: "commit-differs", reason: true, seed: func(a author, _ seat) {
			land := a.commit(a.view().Base)
			r := a.record(land)
			r.Commit = a.view().Base
			a.tell(telling{acts: []event.Event{landedEvent(land)}, lines: []ledger.NoteLine{a.line(r)}, branch: land.Commit})
		}},
		{code: "tree-differs", reason: true, seed: func(a author, _ seat) { // of the commit itself
			land := a.commit(a.view().Base)
			land.Tree = a.l.Repo.Format.EmptyTree()
			a.tell(telling{acts: []event.Event{landedEvent(land)}, lines: []ledger.NoteLine{a.line(a.record(land))}, branch: land.Commit})
		}},
		{code: "landing-without-verification", reason: true, seed: altered(func(_ author, r *note.Record) { r.Verifications = nil })},
		{code: "landing-without-verification", reason: true, seed: altered(func(_ author, r *note.Record) { r.Verifications[0].Verdict = note.Fail })},
		{code: "verification-of-other-tree", reason: true, seed: altered(func(a author, r *note.Record) {
			r.Verifications[0].Tree = a.l.Repo.Format.EmptyTree()
		})},
		{code: "event-doubled record-doubled record-misplaced record-malformed", reason: true, seed: func(a author, _ seat) {
			land := a.lands()
			again, misplaced := a.line(a.record(land)), a.line(a.record(land))
			misplaced.On = land.Base
			a.tell(telling{acts: []event.Event{landedEvent(land)}, lines: []ledger.NoteLine{again, misplaced, {On: land.Commit, Text: "no record"}}})
		}},
		{code: "record-newer-format", seed: func(a author, _ seat) {
			a.tell(telling{lines: []ledger.NoteLine{{On: a.view().Base, Text: `{"format":2,"id":"later"}`}}})
		}},
		{code: "intent-without-land", bare: true, seed: func(a author, _ seat) { a.announces(false) }},
		{code: "intent-without-land", bare: true, seed: func(a author, _ seat) { a.announces(true) }},
		{code: "adopted-tip-gone record-commit-gone record-commit-gone commit-without-record", reason: true, seed: func(a author, _ seat) {
			a.tell(telling{branch: a.commit("").Commit})
		}},
	}
}

func aboutTheChain() []seeded {
	return []seeded{
		{code: "lease-held-by-done-operation", seed: func(a author, _ seat) { a.tell(telling{acts: []event.Event{a.takes(a.lands().ID)}}) }},
		{code: "operation-unfinished", seed: func(a author, s seat) {
			s.write(map[string]string{"new": "content\n"})
			s.dies(a.remote, "pre-receive", "--", "new")
		}},
		{code: "chain-malformed", seed: func(a author, _ seat) {
			a.remoteGit("update-ref", "refs/lease/main", a.remoteGit("commit-tree", "-m", "no event", "-p", "refs/lease/main", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"))
		}},
		{code: "chain-malformed", seed: func(a author, _ seat) { a.remoteGit("update-ref", "refs/lease/main", "main:work") }},
		{code: "chain-newer-format", seed: func(a author, _ seat) {
			a.remoteGit("update-ref", "refs/lease/main", a.remoteGit("commit-tree", "-m", "later\n\nLease-Format: 2", "-p", "refs/lease/main", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"))
		}},
		{code: "chain-rewritten", seed: func(a author, _ seat) {
			a.remoteGit("update-ref", "-d", "refs/lease/main")
			a.remoteGit("update-ref", "-d", "refs/notes/landing/main")
			newAuthor(a.t, a.remote).lands()
		}},
		{code: "chain-deleted", seed: func(a author, _ seat) { a.remoteGit("update-ref", "-d", "refs/lease/main") }},
		{code: "chain-lost-events", seed: func(a author, _ seat) { a.remoteGit("update-ref", "refs/lease/main", "refs/lease/main~") }},
		{code: "records-unreadable", seed: func(a author, _ seat) { a.remoteGit("update-ref", "refs/notes/landing/main", "main:work") }},
		{code: "records-not-fetched", seed: func(a author, _ seat) { a.remoteGit("config", "transfer.hideRefs", "refs/notes") }},
		{code: "history-not-fetched", seed: func(_ author, s seat) {
			s.git("fetch", "-q", "--depth=1", "origin", "main")
			s.git("reflog", "expire", "--expire=now", "--all")
			s.git("update-ref", "refs/heads/main", "FETCH_HEAD")
			s.git("update-ref", "-d", "refs/lease-remote/origin/heads/main")
			s.git("remote", "set-head", "--delete", "origin")
			s.git("update-ref", "-d", "refs/remotes/origin/main")
			s.git("update-ref", "-d", "refs/lease-remote/origin/HEAD")
			s.git("prune", "--expire=now")
			s.git("repack", "-adq")
		}},
	}
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

// twice is a remote with two sound landings, an author's clone, and another one
// that has seen the chain, side by side: they name the remote by where it is from
// there, so that copies of all three know one another.
func twice(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Rename(gittest.Remote(t), filepath.Join(dir, "origin.git")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"author", "clone"} {
		gittest.Git(t, dir, "clone", "--quiet", "origin.git", name)
		gittest.Git(t, filepath.Join(dir, name), "config", "remote.origin.url", "../origin.git")
	}
	a := authorAt(t, newSeat(t, filepath.Join(dir, "author")), filepath.Join(dir, "origin.git"))
	a.lands()
	a.lands()
	a.ok(a.l.Ready(t.Context()))
	s := newSeat(t, filepath.Join(dir, "clone"))
	s.exits(0, "git-lease", "run", "other", "--", "true") // the remote is tried once
	if got := s.reconciles(0); got.Report.Commits != 2 || got.Report.Events != 3 || got.Report.Records != 2 {
		t.Fatalf("looked at %+v", got)
	}
	return dir
}

// Every disagreement is found under its own code and no other; --fix settles it,
// where it can, by appending alone; and then there is silence.
func TestEveryDisagreementIsFound(t *testing.T) {
	t.Parallel()
	chosen := seed(t) % 2
	scene := twice(t)
	t.Run("each", func(t *testing.T) {
		for i, c := range disagreements() {
			code, _, _ := strings.Cut(c.code, " ")
			if loops(100) < 100 && uint64(i)%2 != chosen {
				continue // the others with another seed, and all in a campaign
			}
			t.Run(fmt.Sprint(i, "-", code), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "scene")
				if err := os.CopyFS(dir, os.DirFS(scene)); err != nil {
					t.Fatal(err)
				}
				c.try(t, authorAt(t, newSeat(t, filepath.Join(dir, "author")), filepath.Join(dir, "origin.git")), newSeat(t, filepath.Join(dir, "clone")))
			})
		}
	})
}

func (c seeded) try(t *testing.T, a author, s seat) {
	t.Helper()
	c.seed(a, s)
	before := gittest.Refs(t, a.remote)
	found := s.reconciles(7)
	if found.codes() != c.code {
		t.Fatalf("found %q, want %q: %+v", found.codes(), c.code, found.Report.Findings)
	}
	for _, f := range found.Report.Findings {
		if !strings.Contains(f.Text, "a reader") || f.Command == "" || f.Object == "" && f.Operation == "" {
			t.Errorf("finding %+v", f)
		}
	}
	sameRefs(t, "looking", before, gittest.Refs(t, a.remote))
	if c.code == "record-commit-gone" || !c.reason && !c.bare {
		s.reconciles(7, "--fix") // there is something that it may not do without a reason
	}
	switch {
	case c.bare:
		s.reconciles(0, "--fix")
	case c.reason:
		s.reconciles(0, "--fix", "--reason", "seeded by a test")
	case c.code == "records-not-fetched":
		s.exits(9, "git-land", "reconcile", "--fix", "--reason", "but it is hidden")
		sameRefs(t, "refused", before, gittest.Refs(t, a.remote)) // also of what the server would have taken
		return
	default:
		sameRefs(t, "--fix", before, gittest.Refs(t, a.remote))
		return
	}
	settled := gittest.Refs(t, a.remote)
	for _, ref := range []string{"refs/heads/main", "refs/lease/main", "refs/notes/landing/main"} { // it only appends
		gittest.Git(t, a.remote, "merge-base", "--is-ancestor", before[ref], settled[ref])
	}
	// Another clone finds nothing, and has nothing to settle.
	if again := a.s.reconciles(0, "--fix", "--reason", "again"); len(again.Report.Settled) != 0 {
		t.Errorf("a second run settled %+v", again.Report.Settled)
	}
	sameRefs(t, "a second --fix", settled, gittest.Refs(t, a.remote))
	a.lands() // and the chain goes on
	s.reconciles(0)
}

// A lease that somebody else holds is in nobody's way to look, and in the way of
// --fix alone.
func TestReconcileUnderAHeldLease(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	a := newAuthor(t, remote)
	a.lands()
	a.tell(telling{branch: a.commit(a.view().Base).Commit})
	holder := clone(t, remote).with("GIT_LEASE_SESSION=holder")
	holder.exits(0, "git-lease", "acquire")
	s := clone(t, remote)
	before := gittest.Refs(t, remote)
	if got := s.reconciles(7).codes(); got != "commit-without-record" {
		t.Errorf("found %q", got)
	}
	r := decode[refusal](t, s.exits(3, "git-land", "reconcile", "--fix", "--json"))
	if r.Error.Code != "held" {
		t.Errorf("refused with %+v", r)
	}
	sameRefs(t, "refused", before, gittest.Refs(t, remote))
	holder.reconciles(0, "--fix") // under its own hold, which it keeps
	holder.exits(0, "git-lease", "release")
	s.reconciles(0)
}

// A landing that was announced and whose operation holds the lease is under way,
// at each of its stops.
func TestALandingUnderWayIsNoFinding(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	a.lands()
	s := clone(t, a.remote)
	land, op := a.commit(a.view().Base), a.l.NewID()
	r := a.record(land)
	r.Operation = op
	a.tell(telling{acts: []event.Event{a.takes(op), {Kind: event.Intent, By: event.By{Operation: op, Land: land, Record: a.line(r).Text}}}})
	s.reconciles(0)
	a.tell(telling{branch: land.Commit})
	s.reconciles(0)
	a.tell(telling{lines: []ledger.NoteLine{a.line(r)}})
	if got := s.reconciles(0); !slices.ContainsFunc(got.Report.Notices, func(n struct{ Kind, Object, Text string }) bool { return n.Kind == "under-way" }) {
		t.Errorf("it is not listed: %+v", got.Report.Notices)
	}
	a.tell(telling{acts: []event.Event{{Kind: event.Land, By: event.By{Operation: op, Land: land}}}})
	s.reconciles(0)
}

// --fix that is killed by any of its pushes, and run again, doubles nothing.
func TestFixThatDied(t *testing.T) {
	t.Parallel()
	for _, hook := range []string{"pre-receive", "post-receive"} {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			a := newAuthor(t, gittest.Remote(t))
			a.lands()
			a.tell(telling{branch: a.commit(a.view().Base).Commit})
			land := a.commit(a.view().Base)
			land.Unverified, land.Reason = "any", "seeded"
			a.tell(telling{acts: []event.Event{landedEvent(land)}, branch: land.Commit})
			s := clone(t, a.remote)
			s.exits(0, "git-lease", "run", "--", "true") // the probe is not what is killed
			dir := t.TempDir()
			path := filepath.Join(a.remote, "hooks", hook)
			gittest.Script(t, path, fmt.Sprintf("#!/bin/sh\ngrep -q refs/notes || exit 0\nkill -9 $(cat '%s/pid')\n[ %s = post-receive ]\n", dir, hook))
			s.exits(137, "sh", "-c", `echo $$ >"$0/pid"; exec git-land reconcile --fix`, dir)
			a.ok(os.Remove(path))
			s.reconciles(0, "--fix")
			count := func(ref, what string) int {
				return strings.Count(gittest.Git(t, a.remote, "log", "--format=%B", ref), what)
			}
			if n := count("refs/lease/main", "Lease-Event: repair"); n != 2 {
				t.Errorf("%d repairs, want 2", n)
			}
			if n := len(strings.Fields(gittest.Git(t, a.remote, "notes", "--ref=refs/notes/landing/main", "list"))); n != 3*2 {
				t.Errorf("%d words of notes, want 3 notes", n)
			}
			s.reconciles(0)
		})
	}
}

// While others land as fast as they can, looking never finds anything.
func TestReconcileBesideLandings(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	a.lands()
	s := clone(t, a.remote)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			a.lands()
		}
	}()
	looks := loops(60)
	for range looks {
		if r := s.try("git-land", "reconcile", "--json"); r.Code != 0 {
			t.Errorf("exit %d: %s%s", r.Code, r.Stdout, r.Stderr)
		}
	}
	stop()
	<-done
	t.Logf("%d looks beside %s landings: no finding", looks, gittest.Git(t, a.remote, "rev-list", "--count", "main"))
}

// A chain that is unsound below a tip that looks sound is found by who looks at
// all of it, and led over by the command that is named.
func TestUnsoundBelowTheTip(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	a.lands()
	tip := *a.view().Tip
	good := tip.OID
	var objects []object.Object
	for i := range 2 {
		e, err := chain.Next(&tip, event.Event{Name: "main", Kind: event.Void, ID: a.l.NewID(), Actor: gittest.Identity, Time: tip.Time, By: event.By{Operation: a.l.NewID()}})
		a.ok(err)
		if i == 0 {
			e.Seq += 5
		}
		raw, err := e.Encode(object.SHA1, e.Ident())
		a.ok(err)
		o := object.SHA1.New(object.Commit, raw)
		e.OID = o.OID
		objects, tip = append(objects, o), e
	}
	a.ok(a.l.Repo.Write(t.Context(), objects...))
	a.s.git("push", "-q", "origin", string(tip.OID)+":refs/lease/main")
	s := clone(t, a.remote)
	got := s.reconciles(7)
	if got.codes() != "chain-malformed" || got.Report.Findings[0].Object != string(tip.OID) {
		t.Fatalf("found %+v", got.Report.Findings)
	}
	s.exits(0, "sh", "-c", "git-"+strings.TrimPrefix(got.Report.Findings[0].Command, "git "))
	s.reconciles(0)
	if parents := gittest.Git(t, a.remote, "log", "-1", "--format=%P", "refs/lease/main"); parents != string(good)+" "+string(tip.OID) {
		t.Errorf("it was led over to %s", parents)
	}
}

// What came before --since is nobody's business.
func TestReconcileSince(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	a.lands()
	a.tell(telling{branch: a.commit(a.view().Base).Commit})
	mid := a.lands()
	s := clone(t, a.remote)
	if got := s.reconciles(7).codes(); got != "commit-without-record" {
		t.Errorf("found %q", got)
	}
	if got := s.reconciles(0, "--since", "origin/main~").codes(); got != "" {
		t.Errorf("found %q since then", got)
	}
	a.tell(telling{branch: a.commit(mid.Commit).Commit})
	if got := s.reconciles(7, "--since", string(mid.Commit)); len(got.Report.Findings) != 1 || got.Report.Commits != 1 {
		t.Errorf("since: %+v", got)
	}
	s.exits(129, "git-land", "reconcile", "--since", "no-such-thing")
}

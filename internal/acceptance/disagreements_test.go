package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gitland/internal/event"
	"gitland/internal/gittest"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/reconcile"
)

// A seeded disagreement: what is done to a remote with two sound landings, and
// the code that it must be found under, by s: a clone that has seen the chain.
type seeded struct {
	code string
	seed func(a author, s seat)
	// bare is what --fix settles without a reason; reason with one. Neither: it
	// is settled by another command.
	bare, reason bool
	// alone is what leaves nothing for others to be seeded on.
	alone bool
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
		{code: "adopted-tip-gone record-commit-gone record-commit-gone commit-without-record", reason: true, alone: true, seed: func(a author, _ seat) {
			a.tell(telling{branch: a.commit("").Commit})
		}},
	}
}

func aboutTheChain() []seeded {
	return []seeded{
		{code: "lease-held-by-done-operation", seed: func(a author, _ seat) { a.tell(telling{acts: []event.Event{a.takes(a.lands().ID)}}) }},
		{code: "steps-unfinished", reason: true, seed: func(a author, _ seat) { a.steps(byLanding, breaks) }},
		{code: "steps-unfinished", reason: true, seed: func(a author, _ seat) { a.steps(byItself, done, breaks) }},
		{code: "steps-unfinished", reason: true, seed: func(a author, _ seat) { // announced under a free lease
			a.landsWithSteps(a.l.NewID())
		}},
		{code: "steps-unfinished", reason: true, seed: altered(func(_ author, r *note.Record) { r.Steps = []note.Step{{Name: "upload"}} })},
		{code: "steps-unfinished", seed: func(a author, _ seat) { a.steps(byLanding, fails) }},
		{code: "steps-unfinished", seed: func(a author, _ seat) { a.steps(byItself, done, unknown, takesOver) }},
		{code: "steps-without-record", bare: true, seed: func(a author, _ seat) { a.steps(byLanding, done, done, releases) }},
		{code: "steps-without-record", bare: true, seed: func(a author, _ seat) { a.steps(byLanding, fails, aborts) }},
		{code: "steps-without-record", bare: true, seed: func(a author, _ seat) { a.steps(byLanding, done, recordsEnd, aborts) }},
		{code: "branch-under-two-leases", seed: func(a author, _ seat) { a.adopts("second") }},
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
		{code: "verifications-not-fetched", reason: true, alone: true, seed: func(a author, s seat) {
			land := a.commit(a.view().Base)
			r := a.record(land)
			r.VerificationRef = a.commit("").Commit // nobody has that
			a.tell(telling{acts: []event.Event{landedEvent(land)}, lines: []ledger.NoteLine{a.line(r)}, branch: land.Commit})
		}},
		{code: "chain-unreadable", seed: func(_ author, s seat) {
			s.git("fetch", "-q", "--depth=1", "origin", "+refs/lease/main:refs/lease-remote/origin/lease/main")
			s.git("update-ref", "refs/lease-remote/origin/seen/main", "refs/lease-remote/origin/lease/main")
			s.git("prune", "--expire=now")
			s.git("repack", "-adq")
		}},
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

// Every code is documented, and seeded here, and there is no other.
func TestEveryCodeIsSeeded(t *testing.T) {
	t.Parallel()
	var want, seeded, documented []string
	for _, c := range reconcile.Codes() {
		want = append(want, string(c))
	}
	for _, c := range disagreements() {
		seeded = append(seeded, strings.Fields(c.code)...)
	}
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "## What reconcile finds")
	code := regexp.MustCompile("`([a-z-]+)`")
	for row := range strings.Lines(section) {
		if cells := strings.Split(row, "|"); len(cells) > 4 {
			for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
				documented = append(documented, m[1])
			}
		}
	}
	slices.Sort(want)
	slices.Sort(seeded)
	slices.Sort(documented)
	if seeded = slices.Compact(seeded); !slices.Equal(seeded, want) {
		t.Errorf("seeded are\n%q, and the codes\n%q", seeded, want)
	}
	if !slices.Equal(documented, want) {
		t.Errorf("documented are\n%q, and the codes\n%q", documented, want)
	}
}

// Every disagreement is found under its own code and no other; --fix settles it,
// where it can, by appending alone; and then there is silence. Each has a remote
// of its own in a campaign. In the ordinary tests those that --fix settles share
// two, and of the others half are tried, another half with another seed.
func TestEveryDisagreementIsFound(t *testing.T) {
	t.Parallel()
	chosen := seed(t) % 2
	scene := twice(t)
	cases := disagreements()
	if loops(100) < 100 {
		cases = together(cases, chosen)
	}
	t.Run("each", func(t *testing.T) {
		for i, c := range cases {
			code, _, _ := strings.Cut(c.code, " ")
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

// together makes one case of those that --fix settles with a reason, and one of
// those that need none, and takes every other one of the rest.
func together(cases []seeded, chosen uint64) []seeded {
	var list []seeded
	merged := map[bool]*seeded{true: {bare: true}, false: {reason: true}}
	rest := uint64(0)
	for _, c := range cases {
		switch {
		case c.alone || !c.bare && !c.reason:
			if rest++; rest%2 == chosen || c.alone {
				list = append(list, c)
			}
		default:
			m := merged[c.bare]
			m.code = strings.TrimSpace(m.code + " " + c.code)
			before := m.seed
			m.seed = func(a author, s seat) {
				if before != nil {
					before(a, s)
				}
				c.seed(a, s)
			}
		}
	}
	return append(list, *merged[true], *merged[false])
}

// sorted are the words of a text, in an order.
func sorted(words string) string {
	list := strings.Fields(words)
	slices.Sort(list)
	return strings.Join(list, " ")
}

func (c seeded) try(t *testing.T, a author, s seat) {
	t.Helper()
	c.seed(a, s)
	before := gittest.Refs(t, a.remote)
	look := []string{"--fix"} // which may do nothing of its own here
	if c.bare || c.alone {
		look = nil
	}
	found := s.reconciles(7, look...)
	if sorted(found.codes()) != sorted(c.code) {
		t.Fatalf("found %q, want %q: %+v", found.codes(), c.code, found.Report.Findings)
	}
	for _, f := range found.Report.Findings {
		if !strings.Contains(f.Text, "a reader") || f.Command == "" || f.Object == "" && f.Operation == "" {
			t.Errorf("finding %+v", f)
		}
		if f.Commit != "" && (f.Subject == "" || !strings.Contains(f.Author, "@")) || f.Code == "commit-without-record" && f.Commit != f.Object {
			t.Errorf("finding about the commit %q by %q: %q", f.Commit, f.Author, f.Subject)
		}
	}
	sameRefs(t, "looking", before, gittest.Refs(t, a.remote))
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
		return
	}
	settled := gittest.Refs(t, a.remote)
	var args []string
	for _, ref := range []string{"refs/heads/main", "refs/lease/main", "refs/notes/landing/main"} {
		args = append(args, before[ref], "^"+settled[ref])
	}
	if lost := gittest.Git(t, a.remote, append([]string{"rev-list"}, args...)...); lost != "" {
		t.Errorf("it did not only append: %s is lost", lost)
	}
	// Another clone finds nothing, and has nothing to settle.
	if again := a.s.reconciles(0, "--fix", "--reason", "again"); len(again.Report.Settled) != 0 {
		t.Errorf("a second run settled %+v", again.Report.Settled)
	}
	sameRefs(t, "a second --fix", settled, gittest.Refs(t, a.remote))
	if c.alone {
		return
	}
	a.lands() // and the chain goes on
	s.reconciles(0)
}

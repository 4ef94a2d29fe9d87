package acceptance

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/gittest"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/session"
)

// An importer writes a stream for "git fast-import".
type importer struct {
	*bufio.Writer
	f object.Format
}

// commit writes a commit, which git will give the id that it has for us.
func (w importer) commit(ref string, c object.CommitData, files string) object.OID {
	fmt.Fprintf(w, "commit %s\nauthor %s\ncommitter %s\ndata %d\n%s\n", ref, c.Author, c.Committer, len(c.Message), c.Message)
	w.WriteString(files + "\n") // its parent is the tip of ref, as of every commit here
	return w.f.Hash(object.Commit, c.Encode())
}

// work is a commit of one file on parent, and its tree.
func (w importer) work(ident, content string, parent object.OID) (commit, tree object.OID) {
	data, err := object.EncodeTree([]object.TreeEntry{{Mode: "100644", Name: "work", OID: w.f.Hash(object.Blob, []byte(content))}})
	if err != nil {
		panic(err)
	}
	tree = w.f.Hash(object.Tree, data)
	c := object.CommitData{Tree: tree, Author: ident, Committer: ident, Message: "work\n"}
	if parent != "" {
		c.Parents = []object.OID{parent}
	}
	return w.commit("refs/heads/main", c, fmt.Sprintf("M 100644 inline work\ndata %d\n%s\n", len(content), content)), tree
}

// write writes n sound landings, every seventh of three commits.
func (w importer) write(n int) error {
	when := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var tip *event.Event
	add := func(act event.Event) error {
		act.Name, act.ID, act.Actor, act.Time = "main", session.NewID(when), gittest.Identity, when
		e, err := chain.Next(tip, act)
		if err != nil {
			return err
		}
		raw, err := e.Encode(w.f, e.Ident())
		if err != nil {
			return err
		}
		c, err := object.ParseCommit(raw)
		e.OID = w.commit("refs/lease/main", c, "")
		tip = &e
		return err
	}
	ident := fmt.Sprintf("%s %d +0000", gittest.Identity, when.Unix())
	base, _ := w.work(ident, "begin", "")
	if err := add(event.Event{Kind: event.Adopt, By: event.By{Adopt: &event.Adoption{Branch: "refs/heads/main", Tip: base}}}); err != nil {
		return err
	}
	var notes strings.Builder
	for i := range n {
		id := session.NewID(when)
		land := &event.Landing{ID: id, Unit: fmt.Sprintf("unit %d", i), Branch: "refs/heads/main", Base: base, Commit: base}
		commits := 1
		if i%7 == 6 {
			commits = 3
		}
		for j := range commits {
			land.Commit, land.Tree = w.work(ident, fmt.Sprintf("%d.%d", i, j), land.Commit)
		}
		if err := add(landedEvent(land)); err != nil {
			return err
		}
		line, err := note.EncodeLine(note.Record{ID: id, Unit: land.Unit, Operation: id, Lease: "main", Branch: land.Branch, Base: base,
			Commit: land.Commit, Tree: land.Tree, Commits: commits, Actor: gittest.Identity, Host: "h", Time: when,
			Verifications: []note.Verification{{Format: 1, ID: id, Check: "default", Verdict: note.Pass, Command: "make test", Tree: land.Tree,
				Actor: gittest.Identity, Time: when}}})
		if err != nil {
			return err
		}
		fmt.Fprintf(&notes, "M 100644 inline %s/%s\ndata %d\n%s\n\n", land.Commit[:2], land.Commit[2:], len(line)+1, line)
		base = land.Commit
	}
	w.commit("refs/notes/landing/main", object.CommitData{Author: ident, Committer: ident, Message: "records\n"}, notes.String())
	return w.Flush()
}

// long makes a remote with n sound landings.
func long(t *testing.T, n int) string {
	t.Helper()
	remote := gittest.Bare(t)
	env, _ := gittest.Env(t)
	cmd := gittest.Command(t, env, remote, "git", "fast-import", "--quiet", "--date-format=raw")
	in, out := io.Pipe()
	cmd.Stdin = in
	written := make(chan error, 1)
	go func() {
		err := importer{bufio.NewWriterSize(out, 1<<20), object.SHA1}.write(n)
		out.CloseWithError(err)
		written <- err
	}()
	r := gittest.Run(t, cmd)
	in.Close()
	if err := <-written; err != nil || r.Code != 0 {
		t.Fatalf("fast-import: exit %d, %v\n%s", r.Code, err, r.Stderr)
	}
	return remote
}

// A clean history is silent, however long, and one commit past the tool in the
// midst of a long one is found. In a campaign it is of 100,000 landings.
func TestReconcileALongHistory(t *testing.T) {
	t.Parallel()
	n := 1000
	if loops(100) >= 100 {
		n = 100_000
	}
	remote := long(t, n)
	s := clone(t, remote)
	s.reconciles(0) // it fetches the chain and the records
	begun := time.Now()
	r := s.reconciles(0)
	took := time.Since(begun)
	want := n + n/7*2
	if r.Report.Events != n+1 || r.Report.Records != n || r.Report.Commits != want {
		t.Errorf("looked at %d events, %d records, %d commits; want %d, %d, %d", r.Report.Events, r.Report.Records, r.Report.Commits, n+1, n, want)
	}
	t.Logf("%d commits, %d records and %d events compared in %v", r.Report.Commits, r.Report.Records, r.Report.Events, took.Round(time.Millisecond))
	counter := gittest.CountGit(t)
	counted := s
	counted.env = counter.Env(s.env)
	counted.reconciles(0)
	if calls := len(counter.Calls()); calls > 20 {
		t.Errorf("%d git processes", calls)
	}
	tree := gittest.Git(t, remote, "rev-parse", "main:")
	past := gittest.Git(t, remote, "commit-tree", "-m", "past the tool", "-p", "main", tree)
	gittest.Git(t, remote, "update-ref", "refs/heads/main", past)
	if got := s.reconciles(7); got.codes() != "commit-without-record" || got.Report.Findings[0].Object != past {
		t.Errorf("found %+v", got.Report.Findings)
	}
}

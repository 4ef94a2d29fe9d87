package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitland/internal/chain"
	"gitland/internal/event"
	"gitland/internal/gittest"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

// A reconciliation is what reconcile --json prints.
type reconciliation struct {
	Report struct {
		Commits, Records, Events        int
		Findings, Settled, Acknowledged []struct {
			Code, Object, Text, Command      string
			Operation                        string
			Commit, Author, Subject, Landing string
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
	log := decode[struct {
		Landings []struct{ Repaired, Unverified, Why string }
	}](t, s.exits(0, "git-land", "log", "--json"))
	if got := log.Landings; len(got) != 2 || got[0].Repaired != "commit-without-record" || got[0].Unverified != "any" || got[0].Why == "" || got[1].Repaired != "" {
		t.Errorf("the log has %+v", got)
	}
	if out := s.exits(0, "git-land", "log").Stdout; strings.Count(out, "REPAIRED (commit-without-record)") != 1 {
		t.Errorf("the log is %s", out)
	}
}

// What is no fault does not bury a finding: it is counted after it, and shown in
// part, unless all is asked for.
func TestNoticesComeLast(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	const overrides = 9
	var told telling
	for i := range overrides {
		land := a.commit(a.view().Base)
		if i > 0 {
			land = a.commit(told.branch)
		}
		land.Unverified, land.Reason = "any", fmt.Sprint("reason ", i)
		r := a.record(land)
		r.Override = &note.Override{Reason: land.Reason, Actor: r.Actor, Missing: []string{"any"}}
		told.acts, told.lines, told.branch = append(told.acts, landedEvent(land)), append(told.lines, a.line(r)), land.Commit
	}
	a.tell(told)
	past := a.commit(told.branch).Commit
	a.tell(telling{branch: past})
	s := clone(t, a.remote)
	r := s.exits(7, "git-land", "reconcile")
	if lines := strings.Split(r.Stdout, "\n"); lines[0] != "commit-without-record  "+string(past) ||
		!strings.Contains(lines[1], gittest.Identity+": work of ") || !strings.Contains(r.Stdout, "\nno faults  9 unverified-landings\n") {
		t.Errorf("stdout\n%s", r.Stdout)
	}
	if n := strings.Count(r.Stdout, "reason "); n != 3 || !strings.Contains(r.Stdout, "reason 8") || !strings.Contains(r.Stderr, "git land reconcile --all") {
		t.Errorf("%d of the newest overrides:\n%s%s", n, r.Stdout, r.Stderr)
	}
	if out := s.exits(7, "git-land", "reconcile", "--all"); strings.Count(out.Stdout, "reason ") != overrides || strings.Contains(out.Stderr, "--all") {
		t.Errorf("all:\n%s%s", out.Stdout, out.Stderr)
	}
	if got := s.reconciles(7).Report.Notices; len(got) != overrides || got[0].Text != "reason 8" {
		t.Errorf("--json has %+v", got)
	}
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
	s.exits(0, "sh", "-c", "git-"+strings.Replace(strings.TrimPrefix(got.Report.Findings[0].Command, "git "), "WHY", "seen", 1))
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

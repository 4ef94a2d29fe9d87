package session_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gitland/internal/session"
)

// An operation of this very process, from its beginning to its end. It locks and
// unlocks here, so it is not parallel (see above).
func TestBegin(t *testing.T) {
	common := t.TempDir()
	d := session.Open(common)
	op, work := session.NewID(time.Now()), session.Work{Lease: session.LeaseAt{Remote: "origin", Lease: "main"}}
	w, err := d.Begin(op, work)
	if err != nil {
		t.Fatal(err)
	}
	judge := func(want session.Verdict, why string) {
		t.Helper()
		e, err := d.Evidence(op)
		if err != nil {
			t.Fatal(err)
		}
		if j := e.Judge(); j.Verdict != want || !strings.Contains(j.Why, why) {
			t.Errorf("got %s: %s; want %s: %s", j.Verdict, j.Why, want, why)
		}
	}
	judge(session.Alive, "its witness is locked by")
	if _, err := d.Begin(op, work); !errors.Is(err, session.ErrAlive) {
		t.Errorf("begun twice: %v", err)
	}
	if err := d.Forget(op, session.LeaseAt{Remote: "origin", Lease: "main"}); err != nil || !d.Recorded(op) {
		t.Errorf("a live operation is forgotten: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	judge(session.Alive, "is running") // this process, whoever has the lock
	path := d.Path("witness", op.String()+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Evidence(op); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged record: %v", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Forget(op, session.LeaseAt{Remote: "origin", Lease: "main"}); err != nil || d.Recorded(op) {
		t.Errorf("forget: %v", err)
	}
	judge(session.Unknown, "no record of it")
	if paths := tree(t, common); len(paths) != 4 { // with lease, witness and its guard
		t.Errorf("left %q", paths)
	}
}

// Whoever takes a lease knows that all other operations on it have ended.
func TestSweep(t *testing.T) {
	d := session.Open(t.TempDir())
	begin := func(remote, lease string) (*session.Witness, func() bool) {
		t.Helper()
		op := session.NewID(time.Now())
		w, err := d.Begin(op, session.Work{Lease: session.LeaseAt{Remote: remote, Lease: lease}})
		if err != nil {
			t.Fatal(err)
		}
		return w, func() bool { return d.Recorded(op) }
	}
	op := session.NewID(time.Now())
	holder, err := d.Begin(op, session.Work{Lease: session.LeaseAt{Remote: "origin", Lease: "main"}})
	if err != nil {
		t.Fatal(err)
	}
	live, hasLive := begin("origin", "main")
	ended, hasEnded := begin("origin", "main")
	elsewhere, hasElsewhere := begin("fork", "main")
	docs, hasDocs := begin("origin", "docs")
	for _, w := range []*session.Witness{holder, ended, elsewhere, docs} {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Sweep(session.LeaseAt{Remote: "origin", Lease: "main"}, op); err != nil {
		t.Error(err)
	}
	if hasEnded() || !hasLive() || !hasElsewhere() || !hasDocs() || !d.Recorded(op) {
		t.Errorf("ended %v, live %v, elsewhere %v, docs %v, holder %v", hasEnded(), hasLive(), hasElsewhere(), hasDocs(), d.Recorded(op))
	}
	if err := live.Close(); err != nil {
		t.Error(err)
	}
}

func TestTie(t *testing.T) {
	d := session.Open(t.TempDir())
	op := session.NewID(time.Now())
	if _, err := d.Begin(op, session.Work{Tie: 1 << 30}); !errors.Is(err, session.ErrNoProcess) || d.Recorded(op) {
		t.Errorf("tied to no process: %v", err)
	}
	if err := session.CanTie(1 << 30); !errors.Is(err, session.ErrNoProcess) {
		t.Errorf("no process: %v", err)
	}
	w, err := d.Begin(op, session.Work{Tie: os.Getppid()})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := d.Evidence(op)
	if err != nil {
		t.Fatal(err)
	}
	if j := e.Judge(); j.Verdict != session.Alive || !e.Record.Tied || e.Record.PID != os.Getppid() {
		t.Errorf("%+v of %+v", j, e.Record)
	}
}

// An operation that takes several leases is on record for each until the last has ended.
func TestRecordOfSeveral(t *testing.T) {
	d := session.Open(t.TempDir())
	main, docs := session.LeaseAt{Remote: "origin", Lease: "main"}, session.LeaseAt{Remote: "fork", Lease: "docs"}
	op := session.NewID(time.Now())
	w, err := d.Begin(op, session.Work{Lease: main})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Takes(docs), d.Sweep(main, session.NewID(time.Now())), w.Close()); err != nil || !d.Recorded(op) {
		t.Fatalf("while it lives: %v", err)
	}
	if err := d.Sweep(session.LeaseAt{Remote: "origin", Lease: "docs"}, session.NewID(time.Now())); err != nil || !d.Recorded(op) {
		t.Errorf("with another lease: %v", err)
	}
	if err := d.Forget(op, main); err != nil || !d.Recorded(op) {
		t.Errorf("with one ended: %v", err)
	}
	if left := d.Left(op); !slices.Equal(left, []session.LeaseAt{docs}) {
		t.Errorf("left: %v", left)
	}
	if e, err := d.Evidence(op); err != nil || e.Witness != session.Free || e.Record.LeaseAt != docs || e.Record.Further != nil {
		t.Errorf("%+v, %v", e.Record, err)
	}
	if err := d.Sweep(docs, session.NewID(time.Now())); err != nil || d.Recorded(op) || d.Left(op) != nil {
		t.Errorf("with both ended: %v", err)
	}
}

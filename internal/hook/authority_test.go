package hook_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/hook"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

const (
	mainRef  = object.Ref("refs/heads/main")
	chainRef = object.Ref("refs/lease/main")
	records  = object.Ref("refs/notes/landing/main")
)

// An authority is a bare repository in which transactions are made up and judged.
type authority struct {
	t   *testing.T
	dir string
	l   *ledger.Ledger
	// base is where main is, next a commit on top, other one beside that.
	base, next, other object.OID
}

// newAuthority is a copy of a template: making one costs a dozen processes.
func newAuthority(t *testing.T, template *authority) *authority {
	t.Helper()
	a := *template
	a.t, a.dir = t, t.TempDir()
	if err := os.CopyFS(a.dir, os.DirFS(template.dir)); err != nil {
		t.Fatal(err)
	}
	a.open()
	return &a
}

func template(t *testing.T, format object.Format) *authority {
	t.Helper()
	a := &authority{t: t, dir: gittest.Bare(t, "--object-format="+string(format))}
	a.base = a.commit("base")
	a.next, a.other = a.commit("next", a.base), a.commit("other", a.base)
	a.set(mainRef, a.base)
	return a
}

// open reads the configuration anew.
func (a *authority) open() {
	a.t.Helper()
	env, _ := gittest.Env(a.t)
	repo, err := git.Open(a.t.Context(), git.Options{Dir: a.dir, Environ: env, Unattended: true})
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(repo.Close)
	if a.l, err = ledger.Open(repo, ledger.Options{Remote: ledger.Local, Now: time.Now, Notice: a.t.Logf}); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) git(args ...string) string {
	a.t.Helper()
	return gittest.Git(a.t, a.dir, args...)
}

func (a *authority) commit(message string, parents ...object.OID) object.OID {
	a.t.Helper()
	args := []string{"commit-tree", "-m", message}
	for _, p := range parents {
		args = append(args, "-p", string(p))
	}
	return object.OID(a.git(append(args, a.git("hash-object", "-t", "tree", "-w", "/dev/null"))...))
}

func (a *authority) set(ref object.Ref, oid object.OID) {
	a.t.Helper()
	a.git("update-ref", string(ref), string(oid))
}

// at is where a ref is; "" for nowhere.
func (a *authority) at(ref object.Ref) object.OID {
	a.t.Helper()
	return object.OID(gittest.Refs(a.t, a.dir)[string(ref)])
}

// chain drafts events on the chain of a lease, and returns the update that would
// publish them.
func (a *authority) chain(name string, branch object.Ref, acts ...event.Event) event.Update {
	a.t.Helper()
	v, err := a.l.Fetch(a.t.Context(), ledger.Want{Name: name, Branch: branch})
	if err != nil {
		a.t.Fatal(err)
	}
	d, err := a.l.Draft(v)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, act := range acts {
		if _, err := d.Add(a.t.Context(), act); err != nil {
			a.t.Fatal(err)
		}
	}
	if err := d.Write(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	return event.Update{Ref: d.Move().Ref, Old: v.TipOID(), New: d.Tip().OID}
}

// main is chain for the lease and branch main.
func (a *authority) main(acts ...event.Event) event.Update {
	a.t.Helper()
	return a.chain("main", mainRef, acts...)
}

// begun is a chain on which acts have happened, after main was adopted.
func (a *authority) begun(acts ...event.Event) {
	a.t.Helper()
	u := a.main(append([]event.Event{adopt(mainRef, a.base)}, acts...)...)
	a.set(u.Ref, u.New)
}

func adopt(branch object.Ref, tip object.OID) event.Event {
	return event.Event{Kind: event.Adopt, By: event.By{Adopt: &event.Adoption{Branch: branch, Tip: tip}}}
}

// op is the n-th operation, landing or event.
func op(n byte) (id ulid.ULID) {
	id[0], id[15] = 1, n
	return id
}

var secret = strings.Repeat("5", 64)

func acquire(n byte) event.Event {
	return event.Event{Kind: event.Acquire, By: event.By{Operation: op(n)}, State: event.State{
		Hold: &event.Hold{Operation: op(n), Holder: gittest.Identity, Digest: event.Digest(secret)}}}
}

func freeze() event.Event {
	return event.Event{Kind: event.Freeze, By: event.By{Operation: op(9), Reason: "we move"}}
}

func (a *authority) land(n byte, branch object.Ref, base, commit object.OID) event.Event {
	return event.Event{Kind: event.Land, By: event.By{Operation: op(n), Land: &event.Landing{
		ID: a.l.NewID(), Unit: "u", Branch: branch, Base: base, Commit: commit, Tree: a.l.Repo.Format.EmptyTree()}}}
}

// lands is the ordinary landing of next.
func (a *authority) lands(n byte) event.Event { return a.land(n, mainRef, a.base, a.next) }

// withStep is a landing that the step upload follows.
func withStep(e event.Event) event.Event {
	e.By.Land.Steps = "upload"
	return e
}

func step(n byte, motion ulid.ULID, o event.Outcome) event.Event {
	return event.Event{Kind: event.Step, By: event.By{Operation: op(n), Step: &event.StepResult{Motion: motion, Name: "upload", Outcome: o}}}
}

func override(updates ...event.Update) event.Event {
	return event.Event{Kind: event.Override, By: event.By{Operation: op(8), Reason: "it burns", Updates: updates}}
}

func move(ref object.Ref, old, new object.OID) event.Update {
	return event.Update{Ref: ref, Old: old, New: new}
}

// begin puts events on the chain as it is.
func (a *authority) begin(acts ...event.Event) {
	a.t.Helper()
	u := a.main(acts...)
	a.set(u.Ref, u.New)
}

// over is an adopt that leads over the tip, as from the event before it.
func (a *authority) over(tip object.OID) event.Update {
	a.t.Helper()
	return a.overFrom(object.OID(a.git("rev-parse", string(tip)+"^")), tip)
}

func (a *authority) overFrom(good, bad object.OID) event.Update {
	a.t.Helper()
	a.set(chainRef, good)
	u := a.main(event.Event{Kind: event.Adopt, By: event.By{Reason: "led out", Adopt: &event.Adoption{Over: bad}}})
	a.set(chainRef, bad)
	return move(chainRef, bad, u.New)
}

// judge asks the fence, which is to say something that has want in it, or nothing.
func (a *authority) judge(stage hook.Stage, want string, updates ...event.Update) {
	a.t.Helper()
	err := hook.Fence(a.t.Context(), a.l, stage, updates)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		a.t.Errorf("stage %d: %v, want %q", stage, err, want)
	}
}

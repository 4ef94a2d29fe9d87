package hook_test

import (
	"fmt"
	"os"
	"slices"
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
		if _, err := d.Add(act); err != nil {
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

func override(updates ...event.Update) event.Event {
	return event.Event{Kind: event.Override, By: event.By{Operation: op(8), Reason: "it burns", Updates: updates}}
}

func move(ref object.Ref, old, new object.OID) event.Update {
	return event.Update{Ref: ref, Old: old, New: new}
}

// A fencing is one transaction, and what the fence says to it: "" lets it pass.
type fencing struct {
	name string
	make func(a *authority) []event.Update
	want string
}

func landings() []fencing {
	return []fencing{
		{"a first landing", func(a *authority) []event.Update {
			return []event.Update{move(mainRef, a.base, a.next), a.main(adopt(mainRef, a.base), a.lands(1))}
		}, ""},
		{"a landing", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{a.main(a.lands(1)), move(mainRef, a.base, a.next)}
		}, ""},
		{"a landing that begins the branch", func(a *authority) []event.Update {
			a.git("update-ref", "-d", string(mainRef))
			return []event.Update{a.main(adopt(mainRef, ""), a.land(1, mainRef, "", a.base)), move(mainRef, "", a.base)}
		}, ""},
		{"under one's own hold", func(a *authority) []event.Update {
			a.begun(acquire(1))
			return []event.Update{a.main(a.lands(1)), move(mainRef, a.base, a.next)}
		}, ""},
		{"and giving it back", func(a *authority) []event.Update {
			a.begun(acquire(1))
			e := a.lands(1)
			e.By.Secret = secret
			return []event.Update{a.main(e), move(mainRef, a.base, a.next)}
		}, ""},
		{"the branch alone", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{move(mainRef, a.base, a.next)}
		}, "no event of it that names main from"},
		{"the branch alone, before its first landing", func(a *authority) []event.Update {
			return []event.Update{move(mainRef, a.base, a.next)}
		}, "kept under a lease"},
		{"the branch of another lease's event", func(a *authority) []event.Update {
			a.begun()
			u := a.chain("docs", "refs/heads/docs", adopt("refs/heads/docs", ""), a.land(1, "refs/heads/docs", "", a.base))
			return []event.Update{u, move("refs/heads/docs", "", a.base), move(mainRef, a.base, a.next)}
		}, "no event of it that names main from"},
		{"another commit than the event's", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{a.main(a.lands(1)), move(mainRef, a.base, a.other)}
		}, "and the push moves main from"},
		{"another base than the event's", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{a.main(a.land(1, mainRef, a.other, a.next)), move(mainRef, a.base, a.next)}
		}, "and the push moves main from"},
		{"two events for one move", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{a.main(a.lands(1), a.lands(2)), move(mainRef, a.base, a.next)}
		}, "2 events say why main moves"},
		{"a landing that drops commits", func(a *authority) []event.Update {
			a.set(mainRef, a.next)
			u := a.main(adopt(mainRef, a.next), a.land(1, mainRef, a.next, a.other))
			return []event.Update{u, move(mainRef, a.next, a.other)}
		}, "would drop commits"},
		{"an event without its move", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{a.main(a.lands(1))}
		}, "which the branch does not have"},
		{"the event of a branch that has moved", func(a *authority) []event.Update {
			a.begun()
			a.set(mainRef, a.commit("on top", a.next))
			return []event.Update{a.main(a.lands(1))}
		}, ""},
		{"a branch that no lease keeps", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{move("refs/heads/topic", "", a.next), move("refs/tags/v1", "", a.next)}
		}, ""},
	}
}

func adoptions() []fencing {
	release := object.Ref("refs/heads/release/1")
	return []fencing{
		{"a branch comes under a lease", func(a *authority) []event.Update {
			a.begun()
			a.set(release, a.next)
			return []event.Update{a.main(adopt(release, a.next))}
		}, ""},
		{"not where it is", func(a *authority) []event.Update {
			a.begun()
			a.set(release, a.next)
			return []event.Update{a.main(adopt(release, a.base))}
		}, "comes under the lease main at"},
		{"not under a second one", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{a.chain("docs", mainRef, adopt(mainRef, a.base))}
		}, "kept under the lease main, and cannot be under docs"},
		{"not under two at once", func(a *authority) []event.Update {
			return []event.Update{a.main(adopt(mainRef, a.base)), a.chain("docs", mainRef, adopt(mainRef, a.base))}
		}, "cannot be under"},
		{"a protected branch that no lease has", func(a *authority) []event.Update {
			a.git("config", "lease.protect", "release/*")
			a.open()
			return []event.Update{move(release, "", a.next)}
		}, "release/1 is kept under a lease"},
		{"its first landing", func(a *authority) []event.Update {
			a.git("config", "lease.protect", "release/*")
			a.open()
			a.set(release, a.base)
			u := a.chain("rel", release, adopt(release, a.base), a.land(1, release, a.base, a.next))
			return []event.Update{u, move(release, a.base, a.next)}
		}, ""},
		{"what the patterns leave out", func(a *authority) []event.Update {
			a.git("config", "lease.protect", "release/*")
			a.open()
			return []event.Update{move(mainRef, a.base, a.next), move("refs/heads/release/1/fix", "", a.next)}
		}, ""},
		{"what a lease keeps whatever the patterns say", func(a *authority) []event.Update {
			a.git("config", "lease.protect", "release/*")
			a.open()
			a.begun()
			return []event.Update{move(mainRef, a.base, a.next)}
		}, "kept under the lease main"},
	}
}

func overrides() []fencing {
	return []fencing{
		{"an override", func(a *authority) []event.Update {
			a.begun()
			u := move(mainRef, a.base, a.other)
			return []event.Update{u, a.main(override(u))}
		}, ""},
		{"that rewrites, under somebody's hold", func(a *authority) []event.Update {
			a.begun(acquire(1))
			a.set(mainRef, a.next)
			u := move(mainRef, a.next, a.other)
			return []event.Update{u, a.main(override(u))}
		}, ""},
		{"under a freeze", func(a *authority) []event.Update {
			a.begun(freeze())
			u := move(mainRef, a.base, a.other)
			return []event.Update{u, a.main(override(u))}
		}, ""},
		{"on the chain of another lease", func(a *authority) []event.Update {
			a.begun()
			u := move(mainRef, a.base, a.other)
			return []event.Update{u, a.chain("docs", "refs/heads/docs", adopt("refs/heads/docs", ""), override(u))}
		}, "is not under the lease docs"},
		{"of a protected branch that no lease has", func(a *authority) []event.Update {
			a.git("config", "lease.protect", "release/*")
			a.open()
			a.begun()
			u := move("refs/heads/release/1", "", a.next)
			return []event.Update{u, a.main(override(u))}
		}, ""},
		{"of records, on another chain", func(a *authority) []event.Update {
			a.begun()
			a.set(records, a.next)
			u := move(records, a.next, a.other)
			return []event.Update{u, a.chain("docs", "refs/heads/docs", adopt("refs/heads/docs", ""), override(u))}
		}, "only grows, and"},
		{"of what is no lease's ref", func(a *authority) []event.Update {
			a.begun()
			u := move("refs/lease/MAIN", "", a.next)
			return []event.Update{u, a.main(override(u))}
		}, "is no lease's ref"},
		{"that names another commit", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{move(mainRef, a.base, a.next), a.main(override(move(mainRef, a.base, a.other)))}
		}, "not what moves with it"},
		{"that names more", func(a *authority) []event.Update {
			a.begun()
			u := move(mainRef, a.base, a.next)
			return []event.Update{u, a.main(override(u, move("refs/tags/v1", "", a.next)))}
		}, "not what moves with it"},
		{"beside a land of the same move", func(a *authority) []event.Update {
			a.begun()
			u := move(mainRef, a.base, a.next)
			return []event.Update{u, a.main(override(u), a.lands(1))}
		}, "2 events say why main moves"},
	}
}

func histories() []fencing {
	return []fencing{
		{"an acquire", func(a *authority) []event.Update { a.begun(); return []event.Update{a.main(acquire(1))} }, ""},
		{"a landing by another than the holder", func(a *authority) []event.Update {
			a.begun()
			u := a.main(a.lands(2))
			a.begin(acquire(1))
			return []event.Update{move(chainRef, a.at(chainRef), u.New), move(mainRef, a.base, a.next)}
		}, "does not descend from"},
		{"a chain that is put back", func(a *authority) []event.Update {
			a.begun()
			old := a.at(chainRef)
			a.begin(acquire(1))
			return []event.Update{move(chainRef, a.at(chainRef), old)}
		}, "only grows"},
		{"a chain that begins anew", func(a *authority) []event.Update {
			u := a.main(adopt(mainRef, a.base))
			a.begun(acquire(1))
			return []event.Update{move(chainRef, a.at(chainRef), u.New)}
		}, "does not descend from"},
		{"what is no event", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{move(chainRef, a.at(chainRef), a.commit("no event", a.at(chainRef)))}
		}, "malformed"},
		{"an event of another lease", func(a *authority) []event.Update {
			return []event.Update{move(chainRef, "", a.chain("docs", "refs/heads/docs", adopt("refs/heads/docs", "")).New)}
		}, "event of the lease"},
		{"a newer format", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{move(chainRef, a.at(chainRef), a.commit("lease main: odd\n\nLease-Format: 2", a.at(chainRef)))}
		}, "format 2"},
		{"an adopt over a sound tip", func(a *authority) []event.Update {
			a.begun(acquire(1))
			return []event.Update{a.over(a.at(chainRef))}
		}, "which is sound"},
		{"an adopt over a bad one", func(a *authority) []event.Update {
			a.begun()
			good := a.at(chainRef)
			a.set(chainRef, a.commit("no event", good))
			return []event.Update{a.overFrom(good, a.at(chainRef))}
		}, ""},
		{"a ref of no lease", func(a *authority) []event.Update {
			return []event.Update{move("refs/lease/UPPER", "", a.next)}
		}, "is no lease's ref"},
		{"a probe", func(a *authority) []event.Update {
			return []event.Update{move("refs/lease/%probe-01-0", "", a.next), move("refs/notes/landing/%probe-01-1", a.next, a.other)}
		}, ""},
		{"notes that grow", func(a *authority) []event.Update {
			a.begun()
			a.set(records, a.base)
			return []event.Update{move(records, a.base, a.next), move("refs/notes/verification", "", a.next)}
		}, ""},
		{"notes that are rewritten", func(a *authority) []event.Update {
			a.begun()
			a.set(records, a.next)
			return []event.Update{move(records, a.next, a.other)}
		}, "only grows, and"},
		{"records before their chain", func(a *authority) []event.Update {
			return []event.Update{move(records, "", a.next)}
		}, "a lease that there is not"},
		{"records in the way of records", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{move(records+"/x", "", a.next)}
		}, "is no lease's ref"},
		{"notes that are none", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{move("refs/notes/verification", "", object.OID(a.git("hash-object", "-t", "blob", "-w", "/dev/null")))}
		}, "takes commits"},
		{"an adopt over what was never there", func(a *authority) []event.Update {
			a.begun()
			return []event.Update{a.main(event.Event{Kind: event.Adopt, Seq: event.MaxSeq - 1,
				By: event.By{Reason: "led astray", Adopt: &event.Adoption{Over: a.other}}})}
		}, "which is not the tip"},
		{"a branch whose chain cannot be read", func(a *authority) []event.Update {
			a.git("config", "lease.protect", "release/*")
			a.open()
			a.begun()
			a.set(chainRef, a.commit("lease main: odd\n\nLease-Format: 2", a.at(chainRef)))
			return []event.Update{move(mainRef, a.base, a.next)}
		}, "kept under the lease main"},
		{"a branch under two leases", func(a *authority) []event.Update {
			a.begun()
			two := a.chain("docs", mainRef, adopt(mainRef, a.base))
			a.set(two.Ref, two.New)
			return []event.Update{a.main(a.lands(1)), move(mainRef, a.base, a.next)}
		}, "under the leases docs and main"},
		{"somebody's own notes", func(a *authority) []event.Update {
			a.set("refs/notes/commits", a.next)
			return []event.Update{move("refs/notes/commits", a.next, a.other)}
		}, ""},
	}
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

func TestFence(t *testing.T) {
	t.Parallel()
	for format, cases := range map[object.Format][]fencing{
		object.SHA1:   slices.Concat(landings(), adoptions(), overrides(), histories()),
		object.SHA256: landings()[1:3],
	} {
		made := template(t, format)
		for _, tt := range cases {
			t.Run(string(format)+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				a := newAuthority(t, made)
				updates := tt.make(a)
				for _, stage := range []hook.Stage{hook.Received, hook.Prepared} {
					a.judge(stage, tt.want, updates...)
				}
			})
		}
	}
}

// judge asks the fence, which is to say something that has want in it, or nothing.
func (a *authority) judge(stage hook.Stage, want string, updates ...event.Update) {
	a.t.Helper()
	err := hook.Fence(a.t.Context(), a.l, stage, updates)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		a.t.Errorf("stage %d: %v, want %q", stage, err, want)
	}
}

// Deletions are refused where they are pushed. What git lists with its locks
// taken has those by which it packs refs.
func TestFenceAgainstDeletions(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, template(t, object.SHA1))
	a.begun()
	a.set(records, a.next)
	for ref, want := range map[object.Ref]string{mainRef: "the deletion of main", chainRef: "never deleted", records: "never deleted"} {
		u := move(ref, a.at(ref), "")
		a.judge(hook.Received, want, u)
		a.judge(hook.Prepared, "", u)
	}
	u := move(mainRef, a.base, "")
	chain := a.main(override(u))
	a.judge(hook.Received, "", u, chain)
	a.judge(hook.Prepared, "", u, chain)
	a.judge(hook.Prepared, "not what moves with it", chain)
	// What is not there yet may be by the time that it is deleted.
	a.judge(hook.Received, "never deleted", move("refs/lease/later", "", ""))
	a.judge(hook.Received, "", move(records+"/junk", a.next, ""))
}

// Git runs the lines of a push one by one, so the last is not all that happens.
func TestFenceRefusesARefNamedTwice(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, template(t, object.SHA1))
	a.begun()
	a.judge(hook.Received, "named twice", move(chainRef, a.at(chainRef), ""), a.main(acquire(1)))
}

// A symbolic ref stands for a branch: what is pushed to it happens there.
func TestFenceSeesThroughAnAlias(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, template(t, object.SHA1))
	a.begun()
	a.git("symbolic-ref", "refs/heads/master", string(mainRef))
	a.judge(hook.Received, "the deletion of main", move("refs/heads/master", a.base, ""))
	a.judge(hook.Received, "names main from", move("refs/heads/master", a.base, a.next))
	a.judge(hook.Received, "", move("refs/heads/topic", "", a.next))
}

// Packing refs writes each as it is, from whatever it was.
func TestFenceLetsRefsBePacked(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, template(t, object.SHA1))
	a.begun()
	var updates []event.Update
	for ref, oid := range gittest.Refs(t, a.dir) {
		if ref != "HEAD" {
			updates = append(updates, move(object.Ref(ref), "", object.OID(oid)))
		}
	}
	a.judge(hook.Prepared, "", updates...)
	a.judge(hook.Prepared, "no event of it", move(mainRef, "", a.next)) // a move from whatever it was
}

// Git 2.51 and newer list refs whose old value is wrong, and refuse them one by
// one: an event whose branch will not move must not come alone.
func TestFenceLooksAtTheOldValue(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, template(t, object.SHA1))
	a.begun()
	chain := a.main(a.lands(1))
	a.set(mainRef, a.other) // by somebody with the fence down
	a.judge(hook.Prepared, "which the branch does not have", chain, move(mainRef, a.base, a.next))
	a.judge(hook.Prepared, "", move(mainRef, a.base, a.next)) // it will be refused anyway
}

// More refs than fit a command line, as a mirror's push has them.
func TestFenceWithManyRefs(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, template(t, object.SHA1))
	a.begun()
	var updates []event.Update
	for i := range 3000 {
		updates = append(updates, move(object.Ref(fmt.Sprintf("refs/remotes/%0*d", 200, i)), "", a.next))
	}
	a.judge(hook.Received, "", updates...)
	a.judge(hook.Received, "no event of it", append(updates, move(mainRef, a.base, a.next))...)
}

func TestReadUpdates(t *testing.T) {
	t.Parallel()
	one, two, none := strings.Repeat("1", 40), strings.Repeat("2", 64), strings.Repeat("0", 40)
	got, err := hook.ReadUpdates(strings.NewReader(none + " " + one + " refs/heads/a b\n" +
		one + " " + none + " HEAD\nref:refs/heads/x ref:refs/heads/y HEAD\n" +
		none + " ref:refs/remotes/origin/main refs/remotes/origin/HEAD\n" +
		strings.Repeat("0", 64) + " " + two + " refs/tags/t\n" + one + " " + none + " refs/x"))
	want := []event.Update{{Ref: "refs/heads/a b", New: object.OID(one)}, {Ref: "refs/tags/t", New: object.OID(two)}, {Ref: "refs/x", Old: object.OID(one)}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, bad := range map[string]string{
		"symbolic": none + " ref:refs/heads/x refs/heads/main\n",
		"short id": "12 34 refs/heads/main\n",
		"long":     none + " " + one + " refs/heads/" + strings.Repeat("x", 20<<10) + "\n",
	} {
		if got, err := hook.ReadUpdates(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: read %+v", name, got)
		}
	}
}

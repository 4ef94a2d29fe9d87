package event_test

import (
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/object"
)

const (
	ada   = "Ada Lovelace <ada@example.com>"
	grace = "Grace Hopper <grace@example.com>"
)

// id makes the n-th event, operation or landing id of the samples.
func id(n byte) ulid.ULID {
	var u ulid.ULID
	_ = u.SetTime(1785585600000)
	u[15] = n
	return u
}

// oid makes an object id of the format from one digit.
func oid(f object.Format, digit string) object.OID {
	return object.OID(strings.Repeat(digit, 2*f.Size()))
}

// at is n minutes after the samples begin, in a zone of its own.
func at(n int) time.Time {
	zone := time.FixedZone("", 2*60*60+30*60)
	return time.Date(2026, 8, 1, 14, 30+n, 0, 0, zone)
}

func root() (r [32]byte) {
	for i := range r {
		r[i] = byte(i)
	}
	return r
}

// A sample is an event that stands in testdata/v1 under its name.
type sample struct {
	name  string
	event event.Event
}

// samples are events of each kind and of every field.
func samples(f object.Format) []sample {
	first := oid(f, "1")
	secret := event.Secret(root(), id(2), first)
	branches := []object.Ref{"refs/heads/main", "refs/heads/release/1.x"}
	hold := event.Hold{
		Operation: id(40), Holder: ada, Host: "lab-1", Purpose: "cut the 1.0 release – ünïcode, too",
		Digest: event.Digest(secret), TakenBy: id(2), Fence: 2, Since: at(2).UTC(),
	}
	taken := hold
	taken.Operation, taken.Holder, taken.TakenBy, taken.Fence, taken.Since = id(41), grace, id(7), 7, at(7).UTC()
	taken.Host, taken.Purpose = "", ""
	free := event.State{Phase: event.Free, Branches: branches}
	held := event.State{Phase: event.Held, Branches: branches, Hold: &hold}
	land := event.Landing{
		ID: id(80), Unit: "fix-42", Branch: "refs/heads/main",
		Base: oid(f, "a"), Commit: oid(f, "b"), Tree: oid(f, "c"),
	}
	own, forced := land, land
	own.ID, own.Unit, own.Base = id(81), id(81).String(), ""
	forced.Unverified, forced.Reason = "lint test", "the runner is down"
	by := event.By{Operation: id(40), Host: "lab-1"}
	announced, finding := hold, event.Finding{Code: "commit-without-record", Object: oid(f, "b")}
	announced.Intent = land.ID
	// What is to come of the steps of a motion, and of a landing.
	begun, stuck, half, withSteps := hold, hold, hold, land
	begun.Motion, begun.Steps = begun.Operation, "upload-cli announce.2 tag_it"
	stuck.Motion, stuck.Steps, stuck.Stuck = land.ID, "announce.2 tag_it", event.Failed
	half.Motion, half.Steps = land.ID, "tag_it"
	takenOver := taken
	takenOver.Motion, takenOver.Steps, takenOver.Stuck = land.ID, "announce.2 tag_it", event.Unknown
	withSteps.Steps = "announce.2 tag_it"
	step := func(name string, o event.Outcome, took uint64) *event.StepResult {
		return &event.StepResult{Motion: land.ID, Name: name, Outcome: o, Took: took}
	}
	under := func(h *event.Hold) event.State { return event.State{Phase: event.Held, Branches: branches, Hold: h} }
	later := func(n byte, k event.Kind, s event.State, b event.By) event.Event {
		return event.Event{
			Parents: []object.OID{oid(f, "2")}, Actor: ada, Time: at(int(n)), Name: "release/1.x",
			Kind: k, ID: id(n), Seq: uint64(n), Chain: first, State: s, By: b,
		}
	}
	with := func(change func(*event.By)) event.By {
		b := by
		change(&b)
		return b
	}
	begin := func(e event.Event, parents ...object.OID) event.Event {
		e.Parents, e.Chain = parents, ""
		e.State = event.State{Phase: event.Free, Branches: branches[:1]}
		return e
	}
	adoption := event.Adoption{Branch: "refs/heads/main", Tip: oid(f, "d")}
	unborn := event.Adoption{Branch: "refs/heads/release/1.x"}
	over := event.Adoption{Branch: "refs/heads/main", Tip: oid(f, "d"), Over: oid(f, "e")}
	why := "somebody pushed by hand"
	updates := []event.Update{
		{Ref: "refs/heads/main", Old: oid(f, "a"), New: oid(f, "b")},
		{Ref: "refs/tags/v1", New: oid(f, "b")},
		{Ref: "refs/heads/old", Old: oid(f, "a")},
	}
	overBy := event.By{Host: "lab-1", Reason: why, Adopt: &over}
	two := later(9, event.Adopt, held, overBy)
	two.Parents = append(two.Parents, over.Over)
	return []sample{
		{"adopt-first", begin(later(1, event.Adopt, free, event.By{Host: "lab-1", Adopt: &adoption}))},
		{"adopt-first-over", begin(later(9, event.Adopt, free, overBy), over.Over)},
		{"adopt-first-over-no-commit", begin(later(9, event.Adopt, free, overBy))},
		{"adopt-further", later(3, event.Adopt, held, event.By{Adopt: &unborn})},
		{"adopt-over", two},
		{"adopt-over-no-commit", later(9, event.Adopt, free, overBy)},
		{"acquire", later(2, event.Acquire, held, by)},
		{"release", later(6, event.Release, free, with(func(b *event.By) { b.Secret = secret }))},
		{"land", later(6, event.Land, free, with(func(b *event.By) { b.Land = &land }))},
		{"land-unborn", later(6, event.Land, free, with(func(b *event.By) { b.Land = &own }))},
		{"land-forced", later(6, event.Land, free, with(func(b *event.By) { b.Land = &forced }))},
		{"land-held", later(6, event.Land, held, with(func(b *event.By) { b.Land = &land }))},
		{"land-releases", later(6, event.Land, free, with(func(b *event.By) { b.Land, b.Secret = &land, secret }))},
		{"void", later(6, event.Void, free, with(func(b *event.By) { b.Host, b.Reason = "", "the push was lost" }))},
		{"abort", later(6, event.Abort, free, with(func(b *event.By) { b.Secret, b.Reason = secret, "interrupted" }))},
		{"break", later(7, event.Break, free, event.By{
			Operation: id(41), Target: id(40), Reason: "on holiday", Host: strings.Repeat("h", event.MaxText),
		})},
		{"recover", later(7, event.Recover, free, event.By{
			Operation: id(41), Target: id(40), Reason: "its witness is free", Host: "lab-1",
		})},
		{"recover-takes", later(7, event.Recover, event.State{Phase: event.Held, Branches: branches, Hold: &taken},
			event.By{Operation: id(41), Target: id(40), Reason: "the machine was started again"})},
		{"intent", later(6, event.Intent, event.State{Phase: event.Held, Branches: branches, Hold: &announced},
			with(func(b *event.By) { b.Land, b.Record = &land, `{"format":1,"unit":"fix-42"}` }))},
		{"repair", later(6, event.Repair, free, with(func(b *event.By) { b.Reason, b.Finding = "seen and accepted", &finding }))},
		{"repair-lands", later(6, event.Repair, held, with(func(b *event.By) {
			b.Reason, b.Finding, b.Land = "pushed by hand", &finding, &forced
		}))},
		{"freeze", later(6, event.Freeze, event.State{Phase: event.Frozen, Branches: branches},
			with(func(b *event.By) { b.Reason = "the repository moves" }))},
		{"thaw", later(6, event.Thaw, free, with(func(b *event.By) { b.Reason = "it has moved" }))},
		{"override", later(6, event.Override, free, with(func(b *event.By) { b.Reason, b.Updates = why, updates[:1] }))},
		{"override-held", later(6, event.Override, held, event.By{Operation: id(41), Reason: why, Updates: updates})},
		{"override-announced", later(6, event.Override, free, with(func(b *event.By) {
			b.Reason, b.Updates, b.Announced = why, updates[:1], true
		}))},
		{"void-takes-back", later(6, event.Void, held, with(func(b *event.By) {
			b.Reason, b.TakenBack = "the branch has moved", announced.Intent
		}))},
		{"break-takes", later(7, event.Break, event.State{Phase: event.Held, Branches: branches, Hold: &taken},
			event.By{Operation: id(41), Target: id(40), Reason: "on holiday"})},
		{"acquire-steps", later(2, event.Acquire, under(&begun), by)},
		{"land-steps", later(6, event.Land, under(&half), with(func(b *event.By) { b.Land = &withSteps }))},
		{"intent-steps", later(6, event.Intent, under(&announced), with(func(b *event.By) {
			b.Land, b.Record = &withSteps, `{"format":1,"unit":"fix-42"}`
		}))},
		{"step", later(6, event.Step, under(&half), with(func(b *event.By) { b.Step = step("announce.2", event.Done, 83_250) }))},
		{"step-failed", later(6, event.Step, under(&stuck), with(func(b *event.By) { b.Step = step("announce.2", event.Failed, 1) }))},
		{"step-declared", later(6, event.Step, under(&half), with(func(b *event.By) {
			b.Step, b.Reason = step("announce.2", event.Declared, 0), "the list has it"
		}))},
		{"step-releases", later(6, event.Step, free, with(func(b *event.By) { b.Step, b.Secret = step("tag_it", event.Already, 12), secret }))},
		{"break-takes-steps", later(7, event.Break, under(&takenOver),
			event.By{Operation: id(41), Target: id(40), Reason: "on holiday"})},
	}
}

// encode gives the commit of an event that has to be good.
func encode(t testing.TB, f object.Format, e event.Event) object.Object {
	t.Helper()
	raw, err := e.Encode(f, e.Ident())
	if err != nil {
		t.Fatal(err)
	}
	return f.New(object.Commit, raw)
}

// find gives the sample of that name.
func find(t testing.TB, f object.Format, name string) event.Event {
	t.Helper()
	for _, s := range samples(f) {
		if s.name == name {
			return s.event
		}
	}
	t.Fatalf("no sample %q", name)
	return event.Event{}
}

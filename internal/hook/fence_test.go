package hook_test

import (
	"slices"
	"testing"

	"gitland/internal/event"
	"gitland/internal/hook"
	"gitland/internal/object"
)

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
		{"a landing that steps follow", func(a *authority) []event.Update {
			a.begun(acquire(1))
			return []event.Update{a.main(withStep(a.lands(1))), move(mainRef, a.base, a.next)}
		}, ""},
		{"a step, which gives the lease back", func(a *authority) []event.Update {
			a.begun(acquire(1))
			e := withStep(a.lands(1))
			a.begin(e)
			failed, done := step(1, e.By.Land.ID, event.Failed), step(1, e.By.Land.ID, event.Done)
			done.By.Secret = secret
			return []event.Update{a.main(failed, done)}
		}, ""},
		{"a step of another than the holder", func(a *authority) []event.Update {
			a.begun(acquire(1))
			e := withStep(a.lands(1))
			a.begin(e)
			u := a.main(step(1, e.By.Land.ID, event.Done))
			a.begin(event.Event{Kind: event.Break, By: event.By{Operation: op(2), Target: op(1), Reason: "gone"}})
			return []event.Update{move(chainRef, a.at(chainRef), u.New)}
		}, "does not descend from"},
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

package hook_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gitland/internal/event"
	"gitland/internal/gittest"
	"gitland/internal/hook"
	"gitland/internal/object"
)

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

package land_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gitland/internal/fault"
	"gitland/internal/gittest"
	"gitland/internal/land"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

// Clocks that are wrong by three days change nothing, neither those of who acts
// nor those of a file system: what two clones do between them comes to the same
// as with the right time.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	const days = 72 * time.Hour
	right := clockStory(t, 0, 0)
	for _, c := range []struct{ clock, files time.Duration }{{days, -days}, {-days, days}} {
		got := clockStory(t, c.clock, c.files)
		if !slices.Equal(got, right) {
			t.Errorf("clock wrong by %s, file times by %s:\n%s\nand with the right time:\n%s", c.clock, c.files,
				strings.Join(got, "\n"), strings.Join(right, "\n"))
		}
	}
	t.Logf("the same both ways:\n%s", strings.Join(right, "\n"))
}

// A play is two clones between which something happens. The clock of the first,
// and the times of its files, are wrong.
type play struct {
	t            *testing.T
	remote       string
	clones       [2]clone
	roots        [2]session.Root
	clock, files time.Duration
	held         lease.Grant
	story        []string
}

// clockStory plays acquire, land, break and adopt between two clones in turns,
// and tells how it went.
func clockStory(t *testing.T, clock, files time.Duration) (story []string) {
	t.Helper()
	remote := gittest.Remote(t)
	p := &play{t: t, remote: remote, clock: clock, files: files,
		clones: [2]clone{newClone(t, remote), newClone(t, remote)}, roots: [2]session.Root{session.NewRoot(), session.NewRoot()}}
	p.lands(0, "a")
	p.lands(1, "b")
	p.lands(0, "c")
	p.acquires(0)
	p.acquires(1)
	p.lands(1, "d") // it does not wait
	p.releases(0)
	p.acquires(1)
	p.breaks(0)
	p.releases(1)
	p.acquires(0)
	p.breaks(1)
	p.releases(0)
	p.lands(1, "d")
	p.adopts(0)
	p.lands(0, "e")
	p.adopts(1)
	p.lands(1, "f")
	p.lands(0, "g")
	log := gittest.Git(t, remote, "log", "--reverse", "--first-parent", "--format=%(trailers:key=Lease-Event,valueonly,separator=) "+
		"%(trailers:key=Lease-Sequence,valueonly,separator=) %(trailers:key=Lease-State,valueonly,separator=) "+
		"%(trailers:key=Landing-Unit,valueonly,separator=)", "refs/lease/main")
	tree := gittest.Git(t, remote, "rev-parse", "main^{tree}")
	subjects := gittest.Git(t, remote, "log", "--reverse", "--format=%s", "main")
	return append(p.story, log, tree, subjects)
}

func (p *play) tell(who int, what string, err error) {
	p.t.Helper()
	class := "done"
	if err != nil {
		if class = string(fault.ClassOf(err)); class == "" {
			p.t.Error(err)
		}
	}
	p.story = append(p.story, fmt.Sprintf("%d %s: %s", who, what, class))
}

// open opens a clone as a process of its own would, by its clock.
func (p *play) open(who int) *ledger.Ledger {
	p.t.Helper()
	c := p.clones[who]
	l := c.open()
	if who == 1 {
		return l
	}
	l.Now = func() time.Time { return time.Now().Add(p.clock) }
	if locks, _ := filepath.Glob(filepath.Join(c.dir, ".git/lease/mirror/*.lock")); p.files != 0 && len(locks) == 1 {
		at := time.Now().Add(p.files)
		if err := os.Chtimes(locks[0], at, at); err != nil {
			p.t.Fatal(err)
		}
	}
	return l
}

func (p *play) lands(who int, file string) {
	p.t.Helper()
	l := p.open(who)
	gittest.Write(p.t, p.clones[who].dir, map[string]string{file: file + "\n"})
	r, err := land.Land(p.t.Context(), l, land.Request{Selection: land.Selection{Paths: []string{file}, Messages: []string{file}, Unit: file},
		Force: true, Reason: "a test", Environ: p.clones[who].env})
	p.tell(who, "land "+file+" "+string(r.Status), err)
	if err := l.Flush(p.t.Context(), "test"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *play) acquires(who int) {
	p.t.Helper()
	g, err := lease.Acquire(p.t.Context(), p.open(who), lease.Acquisition{Root: p.roots[who], Purpose: "clocks"})
	if err == nil {
		p.held = g
	}
	p.tell(who, "acquire", err)
}

func (p *play) releases(who int) {
	p.t.Helper()
	_, err := lease.Release(p.t.Context(), p.open(who), ledger.Want{}, p.roots[who])
	p.tell(who, "release", err)
}

func (p *play) breaks(who int) {
	p.t.Helper()
	_, err := lease.Break(p.t.Context(), p.open(who), lease.Breaking{Operation: p.held.Operation, Reason: "does not answer"})
	p.tell(who, "break", err)
}

// adopts leads over garbage, which the other one has met before.
func (p *play) adopts(who int) {
	p.t.Helper()
	bad := gittest.Git(p.t, p.remote, "commit-tree", "-p", "refs/lease/main", "-m", "garbage", "main^{tree}")
	gittest.Git(p.t, p.remote, "update-ref", "refs/lease/main", bad)
	p.acquires(1 - who)
	_, err := lease.Adopt(p.t.Context(), p.open(who), lease.Adoption{Over: object.OID(bad), Reason: "garbage"})
	p.tell(who, "adopt", err)
}

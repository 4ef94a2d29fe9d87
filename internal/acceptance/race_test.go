package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gitland/internal/gittest"
)

// Two processes are let go at one instant: exactly one acquires, and the other
// is told whose it is. Their user, host, message and clock are the same.
func TestOneOfTwoAcquires(t *testing.T) {
	t.Parallel()
	same := []string{"GIT_COMMITTER_DATE=1700000000 +0000", "GIT_AUTHOR_DATE=1700000000 +0000"}
	for _, place := range []string{"file", "local"} {
		for _, twins := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/identical=%v", place, twins), func(t *testing.T) {
				t.Parallel()
				remote := gittest.Remote(t)
				one, two := clone(t, remote), clone(t, remote)
				if place == "local" {
					one.git("config", "lease.remote", ".")
					two = one
				}
				if twins {
					one, two = one.with(same...), two.with(same...)
				}
				// The probe is once for a clone; it would blur the start.
				for _, s := range []seat{one, two} {
					g := decode[grant](t, s.exits(0, "git-lease", "acquire", "--format=json"))
					s.with("GIT_LEASE_TOKEN="+g.Token).exits(0, "git-lease", "release")
				}
				n := loops(200)
				if n < 200 {
					n /= 2 // one takes half a second
				}
				for range n {
					raceOnce(t, one, two)
				}
				t.Logf("%d rounds, one winner each", n)
			})
		}
	}
}

func raceOnce(t *testing.T, one, two seat) {
	t.Helper()
	args := []string{"acquire", "-m", "the same purpose", "--format=json"}
	results := gittest.Together(t, one.cmd("git-lease", args...), two.cmd("git-lease", args...))
	winner := -1
	for i, r := range results {
		if r.Code == 0 {
			if winner >= 0 {
				t.Fatalf("both acquired:\n%s\n%s", results[0].Stdout, results[1].Stdout)
			}
			winner = i
		}
	}
	if winner < 0 {
		t.Fatalf("nobody acquired:\n%+v\n%+v", results[0], results[1])
	}
	won, lost := decode[grant](t, results[winner]), decode[refusal](t, results[1-winner])
	if results[1-winner].Code != 3 || lost.Error.Operation != won.Operation {
		t.Fatalf("winner %s, loser exits %d and names %q: %s", won.Operation, results[1-winner].Code, lost.Error.Operation, lost.Error.Message)
	}
	[]seat{one, two}[winner].with("GIT_LEASE_TOKEN="+won.Token).exits(0, "git-lease", "release", won.Name)
}

// Eight clones land ten units each at the same time. Every commit, record and
// event agree; none is lost, none is doubled.
func TestEightClonesLandTogether(t *testing.T) {
	t.Parallel()
	const clones = 8
	units := max(2, loops(10))
	remote := gittest.Remote(t)
	seats := make([]seat, clones)
	for i := range seats {
		seats[i] = newcomer(t, remote)
	}
	var wg sync.WaitGroup
	for i, s := range seats {
		wg.Go(func() {
			for u := range units {
				name := fmt.Sprintf("unit-%d-%d", i, u)
				gittest.Write(t, s.dir, map[string]string{name: name + "\n"})
				r := gittest.Run(t, s.cmd("git-land", "-m", "land "+name, "--unit", name, "--timeout", "10m",
					"--force-unverified", "--reason", "a race is what is tested", "--", name))
				if r.Code != 0 {
					t.Errorf("%s: exit %d: %s", name, r.Code, r.Stderr)
				}
			}
		})
	}
	wg.Wait()
	agree(t, seats[0], remote, clones*units)
}

// A landing as the chain's event or the record tells it.
type landing struct{ ID, Unit, Base, Commit, Tree string }

// agree checks that branch, records and chain tell the same n landings, and says so.
func agree(t *testing.T, s seat, remote string, n int) {
	t.Helper()
	oneStory(t, remote, n)
	t.Logf("%d commits, events and records", n)
}

// oneStory checks that branch, records and chain of a repository tell the same n
// landings of units: one commit, one record and one event each.
func oneStory(t *testing.T, remote string, n int) {
	t.Helper()
	trees, notes, byCommit := map[string]string{}, map[string]string{}, 0
	for entry := range strings.SplitSeq(gittest.Git(t, remote, "log", "--first-parent", "--notes=refs/notes/landing/main",
		"--format=%H %T %s%n%N%x00", "main"), "\x00") {
		head, note, _ := strings.Cut(strings.TrimSpace(entry), "\n")
		if f := strings.SplitN(head, " ", 3); len(f) == 3 {
			trees[f[0]], notes[f[0]] = f[1], strings.TrimSpace(note)
			if strings.HasPrefix(f[2], "land unit-") {
				byCommit++
			}
		}
	}
	var events []landing
	for line := range strings.Lines(gittest.Git(t, remote, "log", "--reverse", "--grep=^Lease-Event: land$", "--format="+
		"%(trailers:key=Landing-Id,valueonly,separator=)|%(trailers:key=Landing-Unit,valueonly,separator=)|"+
		"%(trailers:key=Landing-Base,valueonly,separator=)|%(trailers:key=Landing-Commit,valueonly,separator=)|"+
		"%(trailers:key=Landing-Tree,valueonly,separator=)", "refs/lease/main")) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if f[0] != "" {
			events = append(events, landing{f[0], f[1], f[2], f[3], f[4]})
		}
	}
	units, ended, records := map[string]bool{}, map[string]bool{}, 0
	for i, e := range events {
		if got, ok := trees[e.Commit]; !ok || got != e.Tree {
			t.Errorf("event %s names %s with the tree %s; the branch has it: %v, with %s", e.ID, e.Commit, e.Tree, ok, got)
		}
		if i > 0 && e.Base != events[i-1].Commit {
			t.Errorf("event %s stands on %s, and the landing before it was %s", e.ID, e.Base, events[i-1].Commit)
		}
		if units[e.Unit] {
			t.Errorf("unit %s landed twice", e.Unit)
		}
		units[e.Unit] = true
		for line := range strings.Lines(notes[e.Commit]) {
			var r struct {
				ID                       string `json:"id"`
				Unit, Base, Commit, Tree string
				End                      *struct{} // of its steps: the record once more
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			switch {
			case r.End == nil:
				records++
			case ended[r.ID]:
				t.Errorf("the steps of %s ended twice", r.ID)
			default:
				ended[r.ID] = true
			}
			if (landing{r.ID, r.Unit, r.Base, r.Commit, r.Tree}) != e {
				t.Errorf("record %+v and event %+v differ", r, e)
			}
		}
	}
	if byCommit != n || len(events) != n || records != n || len(units) != n {
		t.Errorf("%d commits, %d events, %d records, %d units; want %d of each", byCommit, len(events), records, len(units), n)
	}
}

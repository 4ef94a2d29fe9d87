package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// holdUp makes a hook that holds up the first push to main, and lets all others
// through. Where the push is that of a landing, it was sent, and has not arrived.
func holdUp(t *testing.T, remote string) gate {
	t.Helper()
	g := gateFor(t)
	gittest.Script(t, filepath.Join(remote, "hooks", "pre-receive"), fmt.Sprintf(`#!/bin/sh
grep -q ' refs/heads/main$' || exit 0
cd '%s' && mkdir first 2>/dev/null || exit 0
exec >/dev/null 2>&1
trap '' PIPE
: >arrived
%s
exit 0
`, g.dir, atGate))
	return g
}

// A delay is a way to land, and how another clone brings a landing to its end
// whose client is dead and whose push is still on its way.
type delay struct {
	name   string
	atomic bool
	lease  bool // the session brings its lease
}

var delays = []delay{
	{name: "one push", atomic: true},
	{name: "under a lease", atomic: true, lease: true},
	{name: "without atomic"},
}

// The push of a landing is held up by a hook of the server, and its client is
// killed. Another clone concludes it: it breaks the lease, where one is held, and
// lands something of its own; where the landing was announced, it is told that it
// did not land. Then the push is let go. What did not land never does.
func TestDelayedPushOfAKilledClient(t *testing.T) {
	t.Parallel()
	for i, d := range delays {
		t.Run(strings.ReplaceAll(d.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			rounds := loops(200)
			if rounds < 200 {
				rounds /= 4 // each takes seconds
			}
			n := max(1, (rounds+i)/len(delays))
			remote := gittest.Remote(t)
			if !d.atomic {
				remote = notAtomic(t)
			}
			s, other := clone(t, remote), clone(t, remote)
			s.t, other.t = t, t
			for run := range n {
				delayOnce(t, remote, s, other, d, fmt.Sprint(run))
				if t.Failed() {
					t.Fatalf("in run %d", run)
				}
			}
			agree(t, other, remote, n)
			t.Logf("%d pushes came after their end was told, and none of them landed", n)
		})
	}
}

// Where refs cannot move together, nothing but the branch itself keeps a push of
// it out. Asked while it is where that push expects it, the tool does not say
// that the landing has not happened: it may happen yet, and is finished then.
func TestDelayedPushThatCannotBeOutrun(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s, other := clone(t, remote), clone(t, remote)
	s.write(map[string]string{"mine": "mine\n"})
	g := holdUp(t, remote)
	ended := s.sendsAndDies(g, "mine")
	op := holder(t, remote)
	taken := other.with("GIT_LEASE_SESSION=theirs")
	taken.exits(0, "git-lease", "break", "--operation", op, "--reason", "killed", "--acquire")
	r := taken.try("git-land", "resume", op)
	if said := r.Stdout + r.Stderr; r.Code == 0 || strings.Contains(said, "no longer arrive") || strings.Contains(said, "did not land") {
		t.Errorf("it may arrive yet, and this is said: exit %d\n%s", r.Code, said)
	}
	g.open()
	ended()
	if n := count(t, remote, "mine"); n != 1 {
		t.Fatalf("landed %d times: the push was not let go", n)
	}
	other.exits(7, "git-land", "reconcile")
	taken.exits(0, "git-lease", "release")
	if r := s.exits(0, "git-land", "resume"); !strings.Contains(r.Stdout, "finished it") {
		t.Errorf("resume: %s%s", r.Stdout, r.Stderr)
	}
	other.exits(0, "git-land", "reconcile")
	agree(t, s, remote, 1)
}

// sendsAndDies starts a landing of a file whose push is held up, and kills it
// alone. ended waits until all that it had started is gone.
func (s seat) sendsAndDies(g gate, file string) (ended func()) {
	s.t.Helper()
	client := s.cmd("git-land", "--force-unverified", "--reason", "test", "-m", "land unit-"+file, "--unit", "unit-"+file, "--", file)
	all, hold, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { all.Close() })
	client.ExtraFiles = []*os.File{hold}
	if err := client.Start(); err != nil {
		s.t.Fatal(err)
	}
	hold.Close()
	g.arrived()
	if err := client.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	client.Wait()
	return func() { all.Read(make([]byte, 1)) }
}

func delayOnce(t *testing.T, remote string, s, other seat, d delay, run string) {
	t.Helper()
	mine, theirs := "mine-"+run, "theirs-"+run
	s.write(map[string]string{mine: mine + "\n"})
	other.write(map[string]string{theirs: theirs + "\n"})
	if d.lease {
		s = s.with("GIT_LEASE_SESSION=mine")
		s.exits(0, "git-lease", "acquire")
	}
	g := holdUp(t, remote)
	ended := s.sendsAndDies(g, mine)
	taken, op := other.with("GIT_LEASE_SESSION=theirs"), ""
	if d.lease || !d.atomic {
		op = gittest.Git(t, remote, "log", "-1", "--format=%(trailers:key=Lease-Operation,valueonly,separator=)", "refs/lease/main")
	}
	if op == "" {
		other.landUnit(theirs)
	} else {
		taken.exits(0, "git-lease", "break", "--operation", op, "--reason", "killed", "--acquire")
		taken.landUnit(theirs)
		if !d.atomic {
			if r := taken.exits(1, "git-land", "resume", op); !strings.Contains(r.Stderr, "did not land") {
				t.Errorf("resume elsewhere: %s%s", r.Stdout, r.Stderr)
			}
		}
		taken.exits(0, "git-lease", "release")
	}
	before := gittest.Refs(t, remote)
	g.open()
	ended()
	sameRefs(t, "after the delayed push", before, gittest.Refs(t, remote))
	if d.lease {
		s.exits(6, "git-lease", "release")
	}
	r := s.try("git-land", "resume")
	if r.Code != 1 || !strings.Contains(r.Stderr, "did not land") {
		t.Errorf("resume: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	after := gittest.Refs(t, remote)
	after["refs/lease/main"] = before["refs/lease/main"] // it may make sure by a void
	sameRefs(t, "after resume", before, after)
	if err := os.Remove(filepath.Join(s.dir, mine)); err != nil {
		t.Fatal(err)
	}
}

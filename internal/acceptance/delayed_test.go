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
	g := gate{t: t, dir: t.TempDir()}
	gittest.Script(t, filepath.Join(remote, "hooks", "pre-receive"), fmt.Sprintf(`#!/bin/sh
grep -q ' refs/heads/main$' || exit 0
cd '%s' && mkdir first 2>/dev/null || exit 0
exec >/dev/null 2>&1
trap '' PIPE
: >arrived
i=0
while [ ! -e open ] && [ $i -lt 2400 ]; do sleep 0.05; i=$((i+1)); done
exit 0
`, g.dir))
	// It is passed when its refs have moved or were refused: the last that a
	// server does of a push that was refused is to end, which the pipe shows.
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
			n := (loops(200) + i) / len(delays)
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
	client := s.cmd("git-land", "--force-unverified", "--reason", "test", "-m", "land unit-"+mine, "--unit", "unit-"+mine, "--", mine)
	all, hold, err := os.Pipe() // until all that the landing started is gone
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	client.ExtraFiles = []*os.File{hold}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	hold.Close()
	g.arrived()
	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	client.Wait()
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
	all.Read(make([]byte, 1)) // its end
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

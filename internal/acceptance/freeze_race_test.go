package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gitland/internal/event"
	"gitland/internal/gittest"
)

// A freeze (a thaw) and a landing that were planned on the same tip reach the
// server at once: one wins, and the other is told so or goes on after it.
func TestFreezeAgainstLanding(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	other.exits(0, "git-lease", "adopt")
	signals := t.TempDir()
	hook := filepath.Join(remote, "hooks", "pre-receive")
	// Each waits for the other; then the one named in "first" goes first.
	gittest.Script(t, hook, fmt.Sprintf(`#!/bin/sh
who=freeze lease=
while read -r old new ref; do
	case $ref in refs/heads/main) who=land ;; refs/lease/main) lease=yes ;; esac
done
[ "$lease" ] || exit 0
cd '%s' || exit 1
: >"$who"
i=0
until [ -e freeze ] && [ -e land ] || [ $i -gt 600 ]; do sleep 0.05; i=$((i+1)); done
case $(cat first) in $who|both) exit 0 ;; esac
until [ "$(git --git-dir='%s' rev-parse refs/lease/main)" != "$(cat tip)" ] || [ $i -gt 600 ]; do sleep 0.05; i=$((i+1)); done
`, signals, remote))
	won := map[string]int{}
	n := max(4, loops(60))
	for i := range n {
		for _, f := range []string{"freeze", "land"} {
			os.Remove(filepath.Join(signals, f)) // an error only means that it is not there
		}
		file := fmt.Sprintf("f%d", i)
		tip, base := gittest.Git(t, remote, "rev-parse", "refs/lease/main"), gittest.Git(t, remote, "rev-parse", "main")
		first := []string{"freeze", "land", "both"}[min(i, 2)]
		gittest.Write(t, signals, map[string]string{"first": first + "\n", "tip": tip + "\n"})
		s.write(map[string]string{file: "n\n"})
		got := gittest.Together(t, s.cmd("git-land", "--json", "--force-unverified", "--reason", "r", "-m", file, "--", file),
			other.cmd("git-lease", "freeze", "--json", "--reason", "race"))
		landed, froze := got[0], got[1]
		events := gittest.Git(t, remote, "log", "--reverse", "--format=%(trailers:key=Lease-Event,valueonly,separator=)", tip+"..refs/lease/main")
		moved := gittest.Git(t, remote, "rev-parse", "main") != base
		switch {
		case froze.Code != 0:
			t.Fatalf("freeze exits %d: %s", froze.Code, froze.Stderr)
		case events == "freeze" && landed.Code == 3 && !moved && first != "land":
			decode[frozen](t, landed).check(t, "race")
			s.leftBehind()
			won["freeze"]++
		case events == "land\nfreeze" && landed.Code == 0 && moved && first != "freeze":
			won["land"]++
		default:
			t.Fatalf("%s first: events %q, main moved: %v, the landing exits %d: %s", first, events, moved, landed.Code, landed.Stderr)
		}
		gittest.Write(t, signals, map[string]string{"freeze": "", "land": ""})
		other.exits(0, "git-lease", "thaw")
	}
	if won["freeze"] == 0 || won["land"] == 0 {
		t.Errorf("won: %v", won)
	}
	t.Logf("%d rounds: %v", n, won)
}

// Landings and freezes that come as they like: nothing lands while frozen, and
// whoever says that it landed has.
func TestFreezesAmongLandings(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	other.exits(0, "git-lease", "adopt")
	landed := 0
	for i := range loops(60) {
		file := fmt.Sprintf("f%d", i)
		s.write(map[string]string{file: "n\n"})
		got := gittest.Together(t, s.cmd("git-land", "--force-unverified", "--reason", "r", "-m", file, "--", file),
			other.cmd("sh", "-c", "git-lease freeze --reason race && git-lease thaw"))
		if got[1].Code != 0 || got[0].Code != 0 && got[0].Code != 3 {
			t.Fatalf("%+v", got)
		}
		if got[0].Code == 0 {
			landed++
		}
	}
	frozen := false
	for _, kind := range strings.Fields(kinds(t, remote)) {
		if frozen && kind != "thaw" {
			t.Errorf("%s under a freeze", kind)
		}
		frozen = kind == "freeze"
	}
	if got := strings.Count(kinds(t, remote), "land"); got != landed {
		t.Errorf("%d land events, and %d landings said that they landed", got, landed)
	}
	if got := gittest.Git(t, remote, "rev-list", "--count", "main"); got != fmt.Sprint(landed+1) {
		t.Errorf("%s commits, want %d", got, landed+1)
	}
}

// Whoever waits for a holder stops when the lease is frozen instead: that is not
// waited for.
func TestFrozenWhileWaitedFor(t *testing.T) {
	t.Parallel()
	a := newAuthor(t, gittest.Remote(t))
	op := a.l.NewID()
	a.tell(telling{acts: []event.Event{a.takes(op)}})
	acquirer, lander := clone(t, a.remote), clone(t, a.remote)
	lander.write(map[string]string{"new": "n\n"})
	results := make(chan gittest.Result)
	for _, cmd := range []*exec.Cmd{
		acquirer.cmd("git-lease", "acquire", "--json", "--wait"),
		lander.cmd("git-land", "--json", "--timeout", "10m", "--force-unverified", "--reason", "r", "-m", "new", "--", "new"),
	} {
		waits := &waiting{seen: make(chan struct{})}
		cmd.Stderr = waits
		go func() { results <- gittest.Run(t, cmd) }()
		<-waits.seen
	}
	a.tell(telling{acts: []event.Event{
		{Kind: event.Break, By: event.By{Operation: a.l.NewID(), Target: op, Reason: "gone"}},
		{Kind: event.Freeze, By: event.By{Operation: a.l.NewID(), Reason: "no more"}}}})
	for range 2 {
		r := <-results
		if r.Code != 3 {
			t.Errorf("exit %d: %s", r.Code, r.Stdout)
		}
		decode[frozen](t, r).check(t, "no more")
	}
	lander.leftBehind()
}

// waiting is the standard error of a process, which tells when it waits.
type waiting struct {
	text strings.Builder
	seen chan struct{} // closed then
	told bool
}

func (w *waiting) Write(p []byte) (int, error) {
	w.text.Write(p)
	if !w.told && strings.Contains(w.text.String(), "waiting") {
		w.told = true
		close(w.seen)
	}
	return len(p), nil
}

// A freeze whose sender is told to stop while the server thinks about it either
// stands, or cannot arrive any more.
func TestFreezeInterrupted(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.exits(0, "git-lease", "adopt")
	g := gateFor(t)
	gittest.Script(t, filepath.Join(remote, "hooks", "pre-receive"), fmt.Sprintf(`#!/bin/sh
cd '%s' || exit 1
[ -e arrived ] && exit 0
: >arrived
%s
`, g.dir, atGate))
	cmd := s.cmd("git-lease", "freeze", "--reason", "r")
	var told strings.Builder
	cmd.Stderr = &told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.arrived()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its code is looked at below
	g.open()
	events := kinds(t, remote)
	if code := gittest.ExitCode(cmd); code != 143 || events != "adopt void" {
		t.Errorf("exit %d, and the events are %q: %s", code, events, told.String())
	}
	s.write(map[string]string{"new": "n\n"})
	s.force("--", "new")
}

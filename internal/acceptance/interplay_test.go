package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// session is s in a session of the given name.
func (s seat) session(name string) seat {
	s.env = append(append([]string{}, s.env...), "GIT_LEASE_SESSION="+name)
	return s
}

// begins is a landing of a path that runs; what it prints comes when it ends.
func (s seat) begins(path string) <-chan gittest.Result {
	cmd := s.cmd("git-land", "--force-unverified", "--reason", "test", "-m", "land unit-"+path, "--", path)
	done := make(chan gittest.Result, 1)
	go func() { done <- gittest.Run(s.t, cmd) }()
	return done
}

// A pre-push hook that refuses the repetition of a push whose answer was lost:
// the first one was sent, so nothing is said before it can no longer arrive.
func TestHookRefusesARepetition(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprint("apart=", apart), func(t *testing.T) {
			t.Parallel()
			remote := gittest.Remote(t)
			gittest.Git(t, remote, "config", "receive.advertiseAtomic", fmt.Sprint(!apart))
			server := gittest.Daemon(t, remote)
			s := newSeat(t, gittest.Clone(t, server.URL(remote)))
			s.write(map[string]string{"zero": "0\n", "one": "1\n"})
			s.landUnit("zero")
			g := gateFor(t)
			gittest.Script(t, filepath.Join(s.dir, ".git/hooks/pre-push"),
				fmt.Sprintf("#!/bin/sh\ncd '%s'; [ -e pid ] && exit 1; echo $PPID >pid; exit 0\n", g.dir))
			gittest.Script(t, filepath.Join(remote, "hooks/pre-receive"), fmt.Sprintf(`#!/bin/sh
grep -q refs/heads/main || exit 0
cd '%s'
kill -9 $(cat pid)
%s
exec >/dev/null 2>&1
trap '' PIPE
exit 0
`, g.dir, atGate))
			r := s.try("git-land", "--force-unverified", "--reason", "test", "-m", "land unit-one", "--", "one")
			g.open()
			if apart { // nothing but the landing's end is sure
				if r.Code != 9 || strings.Contains(r.Stderr, "nothing landed") {
					t.Errorf("exit %d: %s", r.Code, r.Stderr)
				}
				until(t, "the push arrives", func() bool { return count(t, remote, "one") == 1 })
				told(t, s.try("git-land", "resume"), 0, "finished it")
				agree(t, s, remote, 2)
				return
			}
			told(t, r, 9, "nothing landed")
			until(t, "the server is through", func() bool { return !exists(filepath.Join(remote, "refs/heads/main.lock")) })
			agree(t, s, remote, 1)
		})
	}
}

// The remote refuses a push, by a rule, of which an earlier try was never answered
// and is still on its way: that one has to be outrun all the same.
func TestRemoteRefusesARepetition(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	server := gittest.Daemon(t, remote)
	s := newSeat(t, gittest.Clone(t, server.URL(remote)))
	s.write(map[string]string{"zero": "0\n", "one": "1\n"})
	s.landUnit("zero")
	dir := t.TempDir()
	gittest.Script(t, filepath.Join(s.dir, ".git/hooks/pre-push"), fmt.Sprintf("#!/bin/sh\necho $PPID >'%s/pid'\n", dir))
	gittest.Script(t, filepath.Join(remote, "hooks/pre-receive"), fmt.Sprintf(`#!/bin/sh
grep -q refs/heads/main || exit 0
cd '%s'
[ -e asked ] && exit 1
: >asked
kill -9 $(cat pid)
i=0
while [ ! -e open ] && [ $i -lt 1200 ]; do sleep 0.05; i=$((i+1)); done
exec >/dev/null 2>&1
trap '' PIPE
: >through
`, dir))
	told(t, s.try("git-land", "--force-unverified", "--reason", "test", "-m", "land unit-one", "--", "one"), 9, "nothing landed")
	if got := kinds(t, remote); !strings.HasSuffix(got, "land void") {
		t.Errorf("events %q", got)
	}
	gittest.Write(t, dir, map[string]string{"open": ""})
	waitFor(t, filepath.Join(dir, "through"))
	agree(t, s, remote, 1)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// What one worktree concludes leaves alone what another one, which lives, has
// announced under the session's lease.
func TestConcludingBesideALivingLanding(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	a := clone(t, remote)
	a.write(map[string]string{"zero": "0\n"})
	a.landUnit("zero")
	a.write(map[string]string{"dead": "0\n"})
	a.diesAtEvent(remote, "pre-receive", "refs/lease/main", "acquire", "--", "dead")
	a.git("worktree", "add", "-q", "../b", "origin/main")
	own := a.session("own")
	own.exits(0, "git-lease", "acquire")
	b := own.at("../b")
	b.write(map[string]string{"one": "1\n"})
	g := newGate(t, remote)
	done := b.begins("one")
	g.arrived()
	told(t, own.try("git-land", "resume"), 1, "no longer arrive")
	told(t, own.try("git-land", "resume", holder(t, remote)), 3, "under way")
	told(t, own.try("git-land", "abort", holder(t, remote), "--reason", "x"), 3, "under way")
	g.open()
	told(t, <-done, 0, "landed")
	agree(t, a, remote, 2)
}

// A landing that died before it had its lease is in nobody's way, whoever holds
// that now.
func TestDeadBeforeItsLease(t *testing.T) {
	t.Parallel()
	remote, s, other := zeroLanded(t, true)
	other = other.session("other")
	s.write(map[string]string{"one": "1\n"})
	s.diesAtEvent(remote, "post-receive", "refs/lease/main", "acquire", "--", "one")
	other.exits(0, "git-lease", "break", "main", "--operation", holder(t, remote), "--reason", "x", "--acquire")
	told(t, s.try("git-land", "resume"), 1, "no longer arrive")
}

// The lease is taken off a landing while its record is refused once.
func TestLeaseGoneBesideTheRecord(t *testing.T) {
	t.Parallel()
	for _, take := range []string{"", "--acquire"} {
		t.Run("break "+take, func(t *testing.T) {
			t.Parallel()
			remote, s, other := zeroLanded(t, true)
			other = other.session("other")
			s.write(map[string]string{"one": "1\n"})
			g := gateFor(t)
			gittest.Script(t, filepath.Join(remote, "hooks/pre-receive"), fmt.Sprintf(`#!/bin/sh
grep -q refs/notes/landing || exit 0
cd '%s'
[ -e arrived ] && exit 0
: >arrived
%s
exit 1
`, g.dir, atGate))
			done := s.begins("one")
			g.arrived()
			args := []string{"break", "main", "--operation", holder(t, remote), "--reason", "it takes long"}
			if take != "" {
				args = append(args, take)
			}
			other.exits(0, "git-lease", args...)
			g.open()
			if r := <-done; r.Code != 6 || !strings.Contains(r.Stderr, "the lease was lost") || !strings.Contains(r.Stderr, "broken by "+gittest.Identity) {
				t.Errorf("exit %d: %s", r.Code, r.Stderr)
			}
			if got := kinds(t, remote); !strings.HasSuffix(got, "intent break") {
				t.Errorf("events %q", got)
			}
			if take != "" {
				told(t, s.try("git-land", "resume"), 3, "is held by")
				other.exits(0, "git-lease", "release")
			}
			told(t, s.try("git-land", "resume"), 0, "finished it")
			agree(t, s, remote, 2)
		})
	}
}

// An event that the journal names was never written.
func TestEventOfTheJournalIsMissing(t *testing.T) {
	t.Parallel()
	remote, s, _ := zeroLanded(t, true)
	s.write(map[string]string{"one": "1\n"})
	before := s.objects()
	s.diesAtEvent(remote, "pre-receive", "refs/lease/main", "land", "--", "one")
	for path := range s.objects() {
		if !before[path] && strings.Contains(s.git("cat-file", "-p", filepath.Base(filepath.Dir(path))+filepath.Base(path)), "Lease-Event: land") {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	told(t, s.try("git-land", "resume"), 0, "finished it")
	agree(t, s, remote, 2)
}

// What needs no end gets none.
func TestResumeOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote).session("own")
	s.write(map[string]string{"zero": "0\n"})
	s.landUnit("zero")
	s.exits(0, "git-lease", "acquire")
	op := holder(t, remote)
	told(t, s.try("git-land", "resume", op), 3, "git lease release")
	told(t, s.try("git-land", "abort", op, "--reason", "x"), 3, "git lease release")
	s.exits(0, "git-lease", "release")
	told(t, s.try("git-land", "resume", op), 129, "has ended by itself: release")
	if got := kinds(t, remote); got != "adopt land acquire release" {
		t.Errorf("events %q", got)
	}
}

// The session of git lease run is gone with it; what died announced under it is
// finished all the same.
func TestRunWhoseLandingDied(t *testing.T) {
	t.Parallel()
	remote, s, _ := zeroLanded(t, true)
	s.write(map[string]string{"one": "1\n"})
	dir := t.TempDir()
	hook := filepath.Join(remote, "hooks/pre-receive")
	gittest.Script(t, hook, "#!/bin/sh\ngrep -q refs/heads/main || exit 0\nkill -9 $(cat '"+dir+"/pid')\nexit 1\n")
	r := s.try("git-lease", "run", "main", "--", "sh", "-c",
		`sh -c 'echo $$ >"$0/pid"; exec git-land --force-unverified --reason test -m "land unit-one" -- one' "$0"; exit 0`, dir)
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	op := holder(t, remote)
	told(t, r, 3, "git land resume "+op)
	told(t, s.try("git-land", "resume", op), 0, "finished it")
	agree(t, s, remote, 2)
	s.exits(0, "git-lease", "recover", "main")
	nothingOpen(t, s, remote)
}

// A hook that refuses what resume sends says so, with a way on.
func TestHookRefusesInResume(t *testing.T) {
	t.Parallel()
	remote, s, _ := zeroLanded(t, true)
	s.write(map[string]string{"one": "1\n"})
	s.diesAt(remote, "pre-receive", "refs/heads/main", "--", "one")
	hook := filepath.Join(s.dir, ".git/hooks/pre-push")
	gittest.Script(t, hook, "#!/bin/sh\nexit 1\n")
	told(t, s.try("git-land", "resume"), 9, "git land abort")
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	told(t, s.try("git-land", "resume"), 0, "finished it")
	agree(t, s, remote, 2)
}

// Others write records all the time: that ends no landing.
func TestNotesContentionWithoutAtomic(t *testing.T) {
	t.Parallel()
	remote, s, _ := zeroLanded(t, true)
	s.write(map[string]string{"one": "1\n"})
	gittest.Script(t, filepath.Join(remote, "hooks/pre-receive"), `#!/bin/sh
grep -q refs/notes/landing || exit 0
n=$(cat n 2>/dev/null || echo 0)
[ "$n" -lt 5 ] || exit 0
echo $((n+1)) >n
unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
export GIT_AUTHOR_NAME=b GIT_AUTHOR_EMAIL=b@b GIT_COMMITTER_NAME=b GIT_COMMITTER_EMAIL=b@b
git update-ref refs/notes/landing/main $(git commit-tree -p refs/notes/landing/main -m n$n 'refs/notes/landing/main^{tree}')
exit 0
`)
	s.landUnit("one")
	agree(t, s, remote, 2)
}

// A record that an intent cannot carry is refused before anything is pushed.
func TestNoteThatNoIntentCarries(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s := clone(t, remote)
	gittest.Commit(t, s.dir, "land unit-one", map[string]string{"one": "1\n"})
	told(t, s.try("git-land", "--force-unverified", "--reason", "test", "-m", "a \u202e note"), 5, "control characters")
	if got := kinds(t, remote); got != "adopt acquire release" {
		t.Errorf("events %q", got)
	}
}

// A server that takes no verifications says so once or twice, and is not asked a
// hundred times: a refusal is no race that others have won.
func TestVerificationsRefused(t *testing.T) {
	t.Parallel()
	remote, s, _ := zeroLanded(t, false)
	s.write(map[string]string{"one": "1\n"})
	gittest.Script(t, filepath.Join(remote, "hooks/pre-receive"), "#!/bin/sh\necho asked >>asked\necho 'no pushes today' >&2\nexit 1\n")
	r := s.try("git-land", "verify", "--record", "pass", "--check", "test", "--", "one")
	if !strings.Contains(r.Stderr, "no pushes today") {
		t.Errorf("exit %d: %s", r.Code, r.Stderr)
	}
	if n := strings.Count(gittest.Read(t, remote, "asked"), "\n"); n > 6 {
		t.Errorf("asked %d times", n)
	}
}

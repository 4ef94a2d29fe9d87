package acceptance

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// notAtomic is a remote whose server does not say that it moves refs together.
func notAtomic(t *testing.T) string {
	t.Helper()
	remote := gittest.Remote(t)
	gittest.Git(t, remote, "config", "receive.advertiseAtomic", "false")
	return remote
}

// landUnit lands one path under a message that agree knows.
func (s seat) landUnit(path string) gittest.Result {
	s.t.Helper()
	return s.exits(0, "git-land", "--force-unverified", "--reason", "test", "-m", "land unit-"+path, "--", path)
}

// kinds are the kinds of the events on the chain of main, oldest first.
func kinds(t *testing.T, remote string) string {
	t.Helper()
	return strings.Join(strings.Fields(gittest.Git(t, remote, "log", "--reverse", "--first-parent",
		"--format=%(trailers:key=Lease-Event,valueonly,separator=)", "refs/lease/main")), " ")
}

// Where refs cannot move together the lease is taken, the landing announced, and
// branch, record and event follow; the user is told once.
func TestLandingWithoutAtomic(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s := newcomer(t, remote)
	s.write(map[string]string{"one": "1\n"})
	if r := s.landUnit("one"); strings.Count(r.Stderr, "one ref after the other") != 1 {
		t.Errorf("told: %q", r.Stderr)
	}
	if got, want := kinds(t, remote), "adopt acquire intent land"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	if got := s.git("log", "-1", "--format=%N"); !strings.Contains(got, `"unit"`) {
		t.Errorf("git log does not show the record: %q", got)
	}
	s.write(map[string]string{"two": "2\n"})
	if r := s.landUnit("two"); strings.Contains(r.Stderr, "one ref after the other") {
		t.Errorf("told again: %q", r.Stderr)
	}
	agree(t, s, remote, 2)
	s.write(map[string]string{"three": "3\n"})
	s.exits(0, "git-lease", "run", "main", "--", "git-land", "--force-unverified", "--reason", "test", "-m", "land unit-three", "--", "three")
	if got, want := kinds(t, remote), "adopt acquire intent land acquire intent land acquire intent land release"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	agree(t, s, remote, 3)
}

// A stop is a push of a landing without --atomic at which the process dies: before
// the authority has it, in "pre-receive", or after.
type stop struct {
	ref   string
	event string // that the push carries, for two of one ref
	hook  string
	lands bool // resume finds that it landed, or finishes it
}

var stops = []stop{
	{"refs/lease/main", "acquire", "pre-receive", false},
	{"refs/lease/main", "acquire", "post-receive", false},
	{"refs/lease/main", "intent", "pre-receive", false},
	{"refs/lease/main", "intent", "post-receive", true},
	{"refs/heads/main", "", "pre-receive", true},
	{"refs/heads/main", "", "post-receive", true},
	{"refs/notes/landing/main", "", "pre-receive", true},
	{"refs/notes/landing/main", "", "post-receive", true},
	{"refs/lease/main", "land", "pre-receive", true},
	{"refs/lease/main", "land", "post-receive", true},
}

// chosenStops are all stops in a campaign, and else every other one, by the seed: of
// two tests that differ in their number no stop is left out by both.
func chosenStops(t *testing.T, number uint64) []stop {
	t.Helper()
	from := seed(t) + number
	if loops(100) >= 100 {
		return stops
	}
	var some []stop
	for i, s := range stops {
		if (uint64(i/2)+uint64(i))%2 == from%2 { // of each push one hook, and not always the same
			some = append(some, s)
		}
	}
	return some
}

// Whichever push it died at, resume ends it: the four tell one story, or nothing
// of it is there, and that was said.
func TestStoppedWithoutAtomic(t *testing.T) {
	t.Parallel()
	for _, stop := range chosenStops(t, 0) {
		t.Run(strings.ReplaceAll(stop.ref+" "+stop.event+" "+stop.hook, "/", "-"), func(t *testing.T) {
			t.Parallel()
			remote, s, _ := zeroLanded(t, true)
			s.write(map[string]string{"one": "1\n"})
			s.diesAtEvent(remote, stop.hook, stop.ref, stop.event, "--", "one")
			if r := s.exits(0, "git-land", "status"); !strings.Contains(r.Stdout, "unfinished") {
				t.Errorf("status does not name it: %q", r.Stdout)
			}
			code, landed := 1, 1
			if stop.lands {
				code, landed = 0, 2
			}
			r := s.exits(code, "git-land", "resume")
			if said := strings.Contains(r.Stdout, "no longer arrive"); said == stop.lands {
				t.Errorf("said %q", r.Stdout)
			}
			agree(t, s, remote, landed)
			nothingOpen(t, s, remote)
			s.landUnit("one") // lands it, or finds that it has
			agree(t, s, remote, 2)
		})
	}
}

// The clone is gone: another one takes the lease over and finishes what reached
// the authority, or gives up what did not.
func TestTakenOverWithoutAtomic(t *testing.T) {
	t.Parallel()
	for _, stop := range chosenStops(t, 1) {
		if stop.event == "acquire" && stop.hook == "pre-receive" || stop.event == "land" && stop.hook == "post-receive" {
			continue // then it does not hold the lease
		}
		t.Run(strings.ReplaceAll(stop.ref+" "+stop.event+" "+stop.hook, "/", "-"), func(t *testing.T) {
			t.Parallel()
			remote, s, other := zeroLanded(t, true)
			other.env = append(other.env, "GIT_LEASE_SESSION=other")
			s.write(map[string]string{"one": "1\n"})
			s.diesAtEvent(remote, stop.hook, stop.ref, stop.event, "--", "one")
			op := holder(t, remote)
			r := other.exits(3, "git-land", "resume", op)
			if !strings.Contains(r.Stderr, "break main --operation "+op) {
				t.Errorf("hint: %q", r.Stderr)
			}
			other.exits(0, "git-lease", "break", "main", "--operation", op, "--reason", "laptop is gone", "--acquire")
			branch := gittest.Git(t, remote, "log", "-1", "--format=%s", "main") == "land unit-change" && gittest.Git(t, remote, "rev-list", "--count", "main") == "3"
			if branch {
				other.exits(0, "git-land", "resume", op)
			} else {
				other.exits(1, "git-land", "resume", op)
				other.exits(0, "git-land", "abort", op, "--reason", "its objects are gone")
			}
			other.exits(0, "git-lease", "release", "main")
			nothingOpen(t, other, remote)
			landed := 1
			if branch {
				landed = 2
			}
			agree(t, other, remote, landed)
			other.reconciles(0)
		})
	}
}

// diesAtEvent is diesAt for the push of one kind of event, among those that move
// the chain.
func (s seat) diesAtEvent(remote, hook, ref, event string, args ...string) {
	s.t.Helper()
	if event == "" {
		s.diesAt(remote, hook, ref, args...)
		return
	}
	path := filepath.Join(remote, "hooks", "is-event")
	gittest.Script(s.t, path, fmt.Sprintf("#!/bin/sh\n"+
		`while read -r old new ref; do [ "$ref" = '%s' ] && git log -1 --format=%%B "$new" | grep -q '^Lease-Event: %s$' && echo found; done`+"\n", ref, event))
	s.diesWhen(remote, hook, "'"+path+"' | grep -q found", args...)
}

// holder is the operation that holds the lease main.
func holder(t *testing.T, remote string) string {
	t.Helper()
	return gittest.Git(t, remote, "log", "-1", "--format=%(trailers:key=Lease-Operation,valueonly,separator=)", "refs/lease/main")
}

// nothingOpen fails the test where a lease is held, or a journal or a temporary
// file is left in the clone.
func nothingOpen(t *testing.T, s seat, remote string) {
	t.Helper()
	if op := holder(t, remote); op != "" {
		t.Errorf("operation %s holds the lease", op)
	}
	for _, pattern := range []string{"lease/journal/*", "lease-index-*"} {
		if left, err := filepath.Glob(filepath.Join(s.dir, ".git", pattern)); len(left) > 0 || err != nil {
			t.Errorf("left behind: %q, %v", left, err)
		}
	}
}

// A pre-push hook that refuses: the announcement is taken back, and the lease
// given back.
func TestHookRefusesWithoutAtomic(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s := clone(t, remote)
	s.write(map[string]string{"one": "1\n"})
	gittest.Script(t, filepath.Join(s.dir, ".git/hooks/pre-push"), "#!/bin/sh\nexit 1\n")
	if r := s.exits(9, "git-land", "--force-unverified", "--reason", "test", "-m", "one", "--", "one"); !strings.Contains(r.Stderr, "nothing landed") {
		t.Errorf("stderr %q", r.Stderr)
	}
	if got, want := kinds(t, remote), "adopt acquire intent void release"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	nothingOpen(t, s, remote)
	// The void says in a field of its own that nothing of the landing is on its way.
	if said := strings.Fields(gittest.Git(t, remote, "log", "--format=%(trailers:key=Landing-Id,key=Void-Landing,valueonly)", "refs/lease/main")); len(said) != 2 || said[0] != said[1] {
		t.Errorf("taken back, and announced: %q", said)
	}
	op := gittest.Git(t, remote, "log", "-1", "--format=%(trailers:key=By-Operation,valueonly,separator=)", "refs/lease/main")
	if r := clone(t, remote).exits(1, "git-land", "resume", op); !strings.Contains(r.Stderr, "did not land") {
		t.Errorf("resumed elsewhere: %s%s", r.Stdout, r.Stderr)
	}
}

// Somebody moves the branch without the lease, between announcement and push.
func TestBranchMovedWithoutAtomic(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s := clone(t, remote)
	s.write(map[string]string{"one": "1\n"})
	gittest.Script(t, filepath.Join(s.dir, ".git/hooks/pre-push"), `#!/bin/sh
cd '`+remote+`' && [ ! -e moved ] && touch moved &&
GIT_AUTHOR_NAME=b GIT_AUTHOR_EMAIL=b@b GIT_COMMITTER_NAME=b GIT_COMMITTER_EMAIL=b@b git --git-dir=. update-ref refs/heads/main \
	"$(GIT_AUTHOR_NAME=b GIT_AUTHOR_EMAIL=b@b GIT_COMMITTER_NAME=b GIT_COMMITTER_EMAIL=b@b git --git-dir=. commit-tree -p main -m around 'main^{tree}')"
exit 0
`)
	s.landUnit("one")
	if got, want := kinds(t, remote), "adopt acquire intent void intent land"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	if got := gittest.Git(t, remote, "log", "--format=%s", "main"); got != "land unit-one\naround\nbegin" {
		t.Errorf("branch %q", got)
	}
}

// Anybody may push an intent. What it carries is written only if it is the record
// of the landing that it announces.
func TestForgedIntentWithoutAtomic(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s, other := clone(t, remote), clone(t, remote)
	other.env = append(other.env, "GIT_LEASE_SESSION=other")
	s.write(map[string]string{"one": "1\n"})
	s.diesAt(remote, "post-receive", "refs/heads/main", "--", "one")
	raw := gittest.Git(t, remote, "cat-file", "commit", "refs/lease/main") + "\n"
	forged := strings.Replace(raw, `"unit":"`, `"unit":"x`, 1)
	if forged == raw {
		t.Fatalf("no record in\n%s", raw)
	}
	gittest.Write(t, remote, map[string]string{"forged": forged})
	gittest.Git(t, remote, "update-ref", "refs/lease/main", gittest.Git(t, remote, "hash-object", "-t", "commit", "-w", "forged"))
	op := holder(t, remote)
	other.exits(0, "git-lease", "break", "main", "--operation", op, "--reason", "its laptop is gone", "--acquire")
	if r := other.exits(8, "git-land", "resume", op); !strings.Contains(r.Stderr, "no record of its landing") {
		t.Errorf("stderr %q", r.Stderr)
	}
	if refs := gittest.Refs(t, remote); refs["refs/notes/landing/main"] != "" {
		t.Error("the record was written")
	}
}

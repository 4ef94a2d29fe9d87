package acceptance

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// frozen is what a refusal by a freeze prints with --json.
type frozen struct {
	Error struct {
		Code     string `json:"code"`
		State    string `json:"state"`
		FrozenBy string `json:"frozen_by"`
		Reason   string `json:"reason"`
		Hint     string `json:"hint"`
	} `json:"error"`
}

func (f frozen) check(t *testing.T, reason string) {
	t.Helper()
	e := f.Error
	if e.Code != "held" || e.State != "frozen" || !strings.Contains(e.FrozenBy, "Ada") || e.Reason != reason ||
		e.Hint != "when that is over: git lease thaw main" {
		t.Errorf("refused with %+v", e)
	}
}

// leftBehind fails when a clone has anything of an operation that is over.
func (s seat) leftBehind() {
	s.t.Helper()
	for _, pattern := range []string{"lease/journal/*", "lease/witness/0*", "lease-index-*"} {
		if left, err := filepath.Glob(filepath.Join(s.dir, ".git", pattern)); len(left) > 0 || err != nil {
			s.t.Errorf("left behind: %q, %v", left, err)
		}
	}
}

// A landing is refused by a freeze wherever it meets it, and leaves nothing.
func TestFrozenRefusesEveryLanding(t *testing.T) {
	t.Parallel()
	const reason = "moving to the new server"
	freeze := func(s seat) { s.exits(0, "git-lease", "freeze", "--reason", reason) }
	for name, prepare := range map[string]func(s, other seat){
		"seen by its fetch":             func(s, other seat) { s.verify("new"); s.old(); freeze(other) },
		"behind a fresh mirror":         func(s, other seat) { s.verify("new"); freeze(other) },
		"in a fresh mirror":             func(s, other seat) { freeze(other); s.verify("new") },
		"while it pushes":               func(s, other seat) { s.verify("new"); s.old(); s.whilePushing(other, reason) },
		"while it pushes from a mirror": func(s, other seat) { s.verify("new"); s.whilePushing(other, reason) },
		"by this very session's freeze": func(s, other seat) { s.verify("new"); freeze(s) },
		"with a branch adopted since":   func(s, other seat) { s.verify("new"); freeze(other); other.adopt("side") },
		"after a landing, of a new name": func(s, other seat) {
			s.verify("new")
			other.write(map[string]string{"x": "x"})
			other.force("--", "x")
			freeze(other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote := gittest.Remote(t)
			s, other := clone(t, remote), clone(t, remote)
			s.write(map[string]string{"new": "n\n"})
			prepare(s, other)
			before, local := gittest.Refs(t, remote), localRefs(t, s.dir)
			args := []string{"--json", "-m", "new", "--", "new"}
			if strings.HasPrefix(name, "after") {
				args = append([]string{"--force-unverified", "--reason", "r"}, args...)
			}
			decode[frozen](t, s.exits(3, "git-land", args...)).check(t, reason)
			if strings.HasPrefix(name, "while") {
				before["refs/lease/main"] = gittest.Git(t, remote, "rev-parse", "refs/lease/main")
			}
			sameRefs(t, "remote", before, gittest.Refs(t, remote))
			sameRefs(t, "local", local, localRefs(t, s.dir))
			s.leftBehind()
			if got := s.exits(0, "git-land", "status", "--", "new").Stdout; !strings.Contains(got, "main is frozen by Ada") {
				t.Errorf("status %q", got)
			}
			other.exits(0, "git-lease", "thaw")
			s.exits(0, "git-land", append([]string{"--force-unverified", "--reason", "r"}, args...)...)
		})
	}
}

// old makes the mirror older than what is planned from.
func (s seat) old() {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, ".git/lease/mirror/*"))
	if err != nil || len(files) == 0 {
		s.t.Fatal(files, err)
	}
	for _, path := range files {
		s.exits(0, "touch", "-d", "2020-01-01", path)
	}
}

// whilePushing has other freeze when s has planned its landing.
func (s seat) whilePushing(other seat, reason string) {
	s.t.Helper()
	s.beforeFirstPush(fmt.Sprintf(`cd '%s' && unset $(git rev-parse --local-env-vars) && git-lease freeze --reason '%s' >&2`, other.dir, reason))
}

// adopt puts another branch under the lease main, which may be frozen.
func (s seat) adopt(branch string) {
	s.t.Helper()
	s.git("push", "-q", "origin", "HEAD:refs/heads/"+branch)
	s.exits(0, "git", "-c", "land.onto="+branch, "lease", "adopt", "main")
}

// A mirror shows a freeze that is over by now: it refuses nothing.
func TestThawedBehindAFreshMirror(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	other.exits(0, "git-lease", "freeze", "--reason", "r")
	s.write(map[string]string{"new": "n\n"})
	s.verify("new")
	other.exits(0, "git-lease", "thaw")
	s.exits(0, "git-land", "-m", "new", "--", "new")
	if got := kinds(t, remote); got != "adopt freeze thaw land" {
		t.Errorf("events %s", got)
	}
}

// Where a clone is its own authority, a freeze holds for its worktrees.
func TestFrozenLocally(t *testing.T) {
	t.Parallel()
	s := newSeat(t, t.TempDir())
	s.git("init", "-q", "-b", "main", ".")
	gittest.Commit(t, s.dir, "begin", map[string]string{"README": "r\n"})
	side := s
	side.dir = filepath.Join(t.TempDir(), "side")
	s.git("worktree", "add", "-q", "-b", "side", side.dir)
	s.exits(0, "git-lease", "freeze", "main", "--reason", "r")
	side.write(map[string]string{"new": "n\n"})
	before := gittest.Refs(t, s.dir)
	decode[frozen](t, side.exits(3, "git-land", "--json", "--force-unverified", "--reason", "r", "--onto", "main", "-m", "new", "--", "new")).check(t, "r")
	sameRefs(t, "local", before, gittest.Refs(t, s.dir))
	s.leftBehind()
	s.exits(0, "git-lease", "thaw", "main")
	side.force("--onto", "main", "--", "new")
}

// Under a lease that is held nothing can be frozen, and its holder lands on.
func TestHeldIsNotFrozen(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote).with("GIT_LEASE_SESSION=one"), clone(t, remote)
	s.exits(0, "git-lease", "acquire", "-m", "release 2")
	before := gittest.Refs(t, remote)
	r := decode[refusal](t, other.exits(3, "git-lease", "freeze", "--json", "--reason", "r"))
	if !strings.Contains(r.Error.Holder, "Ada") || r.Error.Operation == "" ||
		!strings.Contains(r.Error.Hint, "git lease break main --operation "+r.Error.Operation) {
		t.Errorf("refused with %+v", r.Error)
	}
	sameRefs(t, "remote", before, gittest.Refs(t, remote))
	s.write(map[string]string{"new": "n\n"})
	s.force("--", "new")
	s.exits(0, "git-lease", "release")
	other.exits(0, "git-lease", "freeze", "--reason", "r")
}

// Whoever was broken is told that first, whatever was frozen since.
func TestBrokenThenFrozen(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote).with("GIT_LEASE_SESSION=one"), clone(t, remote)
	op := decode[grant](t, s.exits(0, "git-lease", "acquire", "--format=json")).Operation
	other.exits(0, "git-lease", "break", "--operation", op, "--reason", "gone")
	other.exits(0, "git-lease", "freeze", "--reason", "r")
	s.write(map[string]string{"new": "n\n"})
	s.exits(6, "git-land", "--force-unverified", "--reason", "r", "-m", "new", "--", "new")
	s.leftBehind()
	s.exits(6, "git-lease", "release")
	decode[frozen](t, s.exits(3, "git-land", "--json", "--force-unverified", "--reason", "r", "-m", "new", "--", "new")).check(t, "r")
}

// A deadUnderFreeze is a landing that died, and what becomes of it under a freeze.
type deadUnderFreeze struct {
	hook  string
	after func(t *testing.T, remote string) // what the server lost
	code  int                               // of the landing under the freeze
	says  string
	then  string // of the landing after the thaw
	ended bool   // under the freeze already
}

func deadUnderFreezes() map[string]deadUnderFreeze {
	return map[string]deadUnderFreeze{
		"not arrived": {"pre-receive", nil, 3, "it can no longer arrive", "", true},
		"arrived":     {"post-receive", nil, 0, "finished it", "", true},
		"without its record": {"post-receive", func(t *testing.T, remote string) {
			gittest.Git(t, remote, "update-ref", "-d", "refs/notes/landing/main")
		}, 3, "lacks the record or the event", "finished it", false},
		"without its event": {"post-receive", func(t *testing.T, remote string) {
			gittest.Git(t, remote, "update-ref", "-d", "refs/notes/landing/main")
			gittest.Git(t, remote, "update-ref", "refs/lease/main", "refs/lease/main^")
		}, 3, "lacks the record or the event", "finished it", false},
	}
}

// A landing that died is concluded under a freeze as far as nothing has to be
// written for it; what has to, waits for the thaw.
func TestDeadLandingUnderAFreeze(t *testing.T) {
	t.Parallel()
	land := []string{"--json", "--force-unverified", "--reason", "r", "-m", "change", "--", "new"}
	for name, c := range deadUnderFreezes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote := gittest.Remote(t)
			s, other := clone(t, remote), clone(t, remote)
			other.exits(0, "git-lease", "adopt")
			s.write(map[string]string{"new": "n\n"})
			s.dies(remote, c.hook, "--", "new")
			if c.after != nil {
				c.after(t, remote)
			}
			other.exits(0, "git-lease", "freeze", "--reason", "r")
			before := gittest.Refs(t, remote)
			r := s.exits(c.code, "git-land", land...)
			if !strings.Contains(r.Stderr, c.says) {
				t.Errorf("stderr %q lacks %q", r.Stderr, c.says)
			}
			if c.code == 3 && !strings.Contains(r.Stderr, "frozen, by Ada") {
				t.Errorf("stderr %q", r.Stderr)
			}
			if c.ended {
				s.leftBehind()
			} else { // nor does anything else write it
				s.exits(3, "git-land", "resume")
				s.exits(3, "git-land", "abort", "--reason", "r")
				s.exits(7, "git-land", "reconcile")
				s.exits(3, "git-land", "reconcile", "--fix", "--reason", "r")
			}
			sameRefs(t, "remote", before, gittest.Refs(t, remote))
			other.exits(0, "git-lease", "thaw")
			r = s.exits(0, "git-land", land...)
			if !strings.Contains(r.Stderr, c.then) {
				t.Errorf("after the thaw: stderr %q lacks %q", r.Stderr, c.then)
			}
			s.leftBehind()
			if got := gittest.Git(t, remote, "rev-list", "--count", "main"); got != "2" {
				t.Errorf("%s commits, want 2", got)
			}
			if got := strings.Count(kinds(t, remote), "land"); got != 1 {
				t.Errorf("%d land events: %s", got, kinds(t, remote))
			}
			if got := gittest.Git(t, remote, "notes", "--ref", "landing/main", "list"); strings.Count(got, "\n") != 0 || got == "" {
				t.Errorf("records: %q", got)
			}
		})
	}
}

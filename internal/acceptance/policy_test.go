package acceptance

import (
	"encoding/json"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// agrees puts a policy onto a branch of the remote, past the tool.
func agrees(t *testing.T, remote, branch, policy string) {
	t.Helper()
	other := gittest.Clone(t, gittest.URL(remote))
	gittest.Git(t, other, "checkout", "-q", branch)
	gittest.Commit(t, other, "agree", map[string]string{".gitland": policy})
	gittest.Git(t, other, "push", "-q", "origin", branch)
}

type expectation struct {
	Branch, Lease string
	Paths         []string
}

// expects is what git land status says would land where.
func (s seat) expects(args ...string) expectation {
	s.t.Helper()
	return decode[expectation](s.t, s.exits(0, "git-land", append([]string{"status", "--json"}, args...)...))
}

// What .gitland says of target, lease and paths counts before the user's own
// configuration, and what is said on the command line before both. The target is the
// one that the authority's HEAD names, all else is the target's own.
func TestPolicyChooses(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	gittest.Git(t, remote, "branch", "develop", "main")
	gittest.Git(t, remote, "branch", "release/1", "main")
	s := clone(t, remote)
	s.write(map[string]string{"src/a": "a\n", "docs/b": "b\n"})
	s.git("config", "land.onto", "release/1")
	s.git("config", "lease.name", "own")
	s.git("config", "land.paths", "docs")
	if got := s.expects(); got.Branch != "refs/heads/release/1" || got.Lease != "own" || strings.Join(got.Paths, " ") != "docs/b" {
		t.Errorf("without a policy %+v", got)
	}
	agrees(t, remote, "main", "[land]\n\tonto = develop\n\tpaths = nothing\n[lease]\n\tname = not-this\n")
	agrees(t, remote, "develop", "[land]\n\tonto = release/1\n\tpaths = src\n[lease]\n\tname = team/Lease\n")
	if got := s.expects(); got.Branch != "refs/heads/develop" || got.Lease != "team/Lease" || strings.Join(got.Paths, " ") != "src/a" {
		t.Errorf("with one %+v", got)
	}
	if got := s.expects("--onto", "main"); got.Branch != "refs/heads/main" || got.Lease != "not-this" {
		t.Errorf("with --onto %+v", got)
	}
	// The lease is the same for git lease; a name that is given stays.
	s = s.session("one")
	if r := s.exits(0, "git-lease", "acquire", "-m", "by policy"); !strings.Contains(r.Stderr, "team/Lease") {
		t.Errorf("acquired %q", r.Stderr)
	}
	s.exits(0, "git-lease", "release")
	s.force("--json")
	var landing struct{ Lease, Branch string }
	note := gittest.Git(t, remote, "notes", "--ref=refs/notes/landing/team%2f%4cease", "show", "develop")
	if err := json.Unmarshal([]byte(note), &landing); err != nil || landing.Lease != "team/Lease" || landing.Branch != "refs/heads/develop" {
		t.Errorf("recorded %q: %v", note, err)
	}
	if got := gittest.Git(t, remote, "ls-tree", "-r", "--name-only", "develop"); got != ".gitland\nREADME\nsrc/a" {
		t.Errorf("landed %q", got)
	}
}

// A policy that changes while a clone is not looking is the one that counts, for the paths
// and the checks of the very next landing, and for where it goes.
func TestPolicyChangesMeanwhile(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	agrees(t, remote, "main", "[land]\n\tpaths = src\n")
	s := clone(t, remote)
	s.write(map[string]string{"src/a": "a\n", "docs/b": "b\n"})
	s.force()
	agrees(t, remote, "main", "[land]\n\tpaths = docs\n[land \"check.c\"]\n\tcommand = exit 3\n")
	s.write(map[string]string{"src/a": "again\n"})
	// The mirror is fresh and knows nothing of it.
	if r := s.exits(4, "git-land", "-m", "docs"); !strings.Contains(r.Stderr, "land.check.c.command = exit 3") {
		t.Error(r.Stderr)
	}
	s.exits(0, "git-land", "init", "--accept")
	if r := s.exits(4, "git-land", "-m", "docs"); !strings.Contains(r.Stderr, "exit 3 exited with 3") {
		t.Error(r.Stderr)
	}
	s.force()
	if got := gittest.Git(t, remote, "diff", "--name-only", "main~", "main"); got != "docs/b" {
		t.Errorf("landed %q", got)
	}
	gittest.Git(t, remote, "branch", "next", "main")
	agrees(t, remote, "main", "[land]\n\tonto = next\n")
	s.force("--allow", "paths", "--", "src/a") // of which a mirror that is fresh knows nothing
	if got := gittest.Git(t, remote, "diff", "--name-only", "next~", "next"); got != "src/a" {
		t.Errorf("landed %q on next", got)
	}
}

// A change that the check of one policy let pass is judged by the policy that somebody
// lands meanwhile.
func TestPolicyMovesUnderTheCheck(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	agrees(t, remote, "main", "[land \"check.c\"]\n\tcommand = \"$MOVES\"\n")
	s := clone(t, remote)
	s.exits(0, "git-land", "init", "--accept")
	s.write(map[string]string{"a": "a\n"})
	other := gittest.Clone(t, gittest.URL(remote))
	gittest.Commit(t, other, "stricter", map[string]string{".gitland": "[land \"check.c\"]\n\tcommand = false\n"})
	r := s.with("MOVES=git -C "+other+" push -q origin HEAD:main").exits(4, "git-land", "-m", "a", "--", "a")
	if !strings.Contains(r.Stderr, "land.check.c.command = false") {
		t.Error(r.Stderr)
	}
	s.exits(0, "git-land", "init", "--accept")
	if r := s.exits(4, "git-land", "-m", "a", "--", "a"); !strings.Contains(r.Stderr, "false exited with 1") {
		t.Error(r.Stderr)
	}
}

// A target that the remote does not have is named, by each command that wants it, and
// the way on goes.
func TestPolicyOfATargetThatThereIsNot(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"a": "a\n", "b": "b\n"})
	s.force("--", "a")
	agrees(t, remote, "main", "[land]\n\tonto = develop\n")
	for range 2 { // the second has a mirror that knows of it
		if r := s.exits(129, "git-land", "-x", "true", "-m", "b", "--", "b"); !strings.Contains(r.Stderr, "origin has no branch develop\nhint: git land -x true -m b --onto main -- b ") {
			t.Error(r.Stderr)
		}
	}
	if got := s.expects(); got.Branch != "refs/heads/develop" {
		t.Errorf("status %+v", got)
	}
	if _, done := s.inits(); done["lease"] != "later" {
		t.Errorf("init %v", done)
	}
	if got := s.examined(1); !strings.Contains(got["target"], "COMMIT:refs/heads/develop") {
		t.Errorf("doctor %v", got)
	}
	s.exits(0, "git-land", "-x", "true", "-m", "b", "--onto", "main", "--", "b")
	s.exits(0, "git-land", "override", "--reason", "to begin it", "origin/main:refs/heads/develop")
	s.write(map[string]string{"c": "c\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "c", "--", "c")
	if got := gittest.Git(t, remote, "ls-tree", "-r", "--name-only", "develop"); !strings.HasSuffix(got, "\nc") {
		t.Errorf("landed %q", got)
	}
}

// A target is not chosen by what the authority's HEAD was when this clone last asked for
// that: a look at a branch that was named does not make it fresh, and a landing onto
// HEAD's own branch is seen by the next.
func TestPolicyTargetOfAStaleHead(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"others", "this clone"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			remote := gittest.Remote(t)
			gittest.Git(t, remote, "branch", "next", "main")
			s := clone(t, remote)
			s.write(map[string]string{"a": "a\n", "z": "z\n"})
			s.force("--", "z")
			if by == "others" {
				s.old()
				agrees(t, remote, "main", "[land]\n\tonto = next\n")
			} else {
				s.write(map[string]string{".gitland": "[land]\n\tonto = next\n"})
				s.force("--", ".gitland")
			}
			s.exits(0, "git-land", "verify", "--onto", "main", "-x", "true", "--", "a")
			s.try("git-land", "-m", "a", "--", "a")
			if got := gittest.Git(t, remote, "log", "-1", "--format=%s", "main"); got == "a" {
				t.Error("landed on main, whose policy has landings go onto next")
			}
			s.exits(0, "git-land", "-x", "true", "-m", "a", "--", "a")
			if got := gittest.Git(t, remote, "log", "-1", "--format=%s", "next"); got != "a" {
				t.Errorf("landed %q on next", got)
			}
		})
	}
}

// Paths that the policy chooses are those of the policy that judges, also where that came
// while the landing lost its race.
func TestPolicyPathsMoveUnderThePush(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	agrees(t, remote, "main", "[land]\n\tpaths = src\n")
	s := clone(t, remote)
	s.write(map[string]string{"src/a": "a\n", "docs/b": "b\n"})
	other := gittest.Clone(t, gittest.URL(remote))
	gittest.Commit(t, other, "docs alone", map[string]string{".gitland": "[land]\n\tpaths = docs\n"})
	s.beforeFirstPush("git -C '" + other + "' push -q origin HEAD:main")
	s.force()
	if got := gittest.Git(t, remote, "diff", "--name-only", "main~", "main"); got != "docs/b" {
		t.Errorf("landed %q", got)
	}
	if got := s.git("status", "--porcelain"); got != "?? src/" || s.git("rev-parse", "HEAD") != gittest.Git(t, remote, "rev-parse", "main") {
		t.Errorf("here: %q", got)
	}
}

// The local authority has a policy as well.
func TestPolicyOfThisRepository(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	s.git("remote", "remove", "origin")
	gittest.Commit(t, s.dir, "agree", map[string]string{".gitland": "[lease]\n\tname = here\n[land \"check.c\"]\n\tcommand = test -e a\n"})
	s.exits(0, "git-land", "init", "--accept")
	s.write(map[string]string{"b": "b\n"})
	s.exits(4, "git-land", "-m", "b", "--", "b")
	s.write(map[string]string{"a": "a\n"})
	s.exits(0, "git-land", "-m", "a", "--", "a")
	if got := s.expects("--", "b"); got.Lease != "here" {
		t.Errorf("expects %+v", got)
	}
}

// A policy that would put its branch under another lease than it lands under would lock
// everybody out: it does not land. One that got there past the tool is named, with the
// way on.
func TestPolicyOfAnotherLease(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{".gitland": "[lease]\n\tname = team\n", "a": "a\n"})
	r := s.exits(5, "git-land", "-x", "true", "-m", "agree", "--", ".gitland")
	if !strings.Contains(r.Stderr, "would put main under the lease team, and it lands under main") || !strings.Contains(r.Stderr, "hint: git config lease.name team") {
		t.Error(r.Stderr)
	}
	s.git("config", "lease.name", "team")
	s.exits(0, "git-land", "-x", "true", "-m", "agree", "--", ".gitland")
	s.git("config", "--unset", "lease.name")
	s.force("--", "a")
	for _, name := range []string{"other", ""} { // a new name, and none
		s.write(map[string]string{".gitland": "[lease]\n\tname = " + name + "\n"})
		if name == "" {
			s.write(map[string]string{".gitland": "# no name\n"})
		}
		r = s.exits(5, "git-land", "-x", "true", "-m", "rename", "--", ".gitland")
		if !strings.Contains(r.Stderr, "hint: have lease.name in .gitland be team") {
			t.Error(r.Stderr)
		}
	}
	agrees(t, remote, "main", "[lease]\n\tname = other\n")
	s.write(map[string]string{"b": "b\n"})
	r = s.exits(5, "git-land", "-x", "true", "-m", "b", "--", "b")
	if !strings.Contains(r.Stderr, "the branch main is kept under the lease team at origin, and cannot be under other as well") ||
		!strings.Contains(r.Stderr, "git land override --reason WHY HEAD:main") {
		t.Error(r.Stderr)
	}
	s.git("checkout", "-q", "--", ".gitland")
	s.git("pull", "-q", "--rebase", "origin", "main")
	gittest.Commit(t, s.dir, "the name that it has", map[string]string{".gitland": "[lease]\n\tname = team\n"})
	s.exits(0, "git-land", "override", "--reason", "lease.name", "HEAD:main")
	s.exits(0, "git-land", "-x", "true", "-m", "b", "--", "b")
}

// The branches that the team protects are kept by the hook of each clone, which asks nobody
// for that, and by the server's; those that a clone's user adds as well.
func TestPolicyProtects(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	agrees(t, h.remote, "main", "[lease]\n\tprotect = main\n\tprotect = release/*\n")
	c := h.commit() // and what git fetched is known to the hook
	h.pushes(h.seat, 1, "release/1 is protected", "origin", c+":refs/heads/release/1")
	h.git("config", "lease.protect", "own/**")
	h.pushes(h.seat, 1, "own/a/b is protected", "origin", c+":refs/heads/own/a/b")
	h.pushes(h.seat, 1, "main is protected", "origin", c+":main")
	if n := h.pushes(h.seat, 0, "", "origin", c+":refs/heads/topic"); n != 1 {
		t.Errorf("a branch that nobody protects took %d connections, want 1", n)
	}
	newSeat(t, h.remote).exits(0, "git-lease", "hook", "install", "--server")
	h.pushes(h.seat, 1, "remote: git lease: ", "--no-verify", "origin", c+":refs/heads/release/1")
	h.pushes(h.seat, 0, "", "--no-verify", "origin", c+":refs/heads/own/a")
	h.write(map[string]string{"second": "2\n"})
	h.exits(0, "git-land", "-x", "true", "-m", "second", "--", "second")
}

// The policy of a branch that is not the usual target has commands of its own. They are
// accepted there, and the usual target stays.
func TestPolicyOfAnotherTarget(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	gittest.Git(t, remote, "branch", "rel", "main")
	agrees(t, remote, "main", "[land]\n\tonto = main\n")
	agrees(t, remote, "rel", "[land \"check.c\"]\n\tcommand = test -e one\n[land \"verify\"]\n\tsetup = true\n")
	s := clone(t, remote)
	s.inits()
	s.git("switch", "-q", "--detach", "origin/rel")
	s.write(map[string]string{"one": "1\n"})
	r := s.exits(4, "git-land", "--onto", "rel", "-m", "one", "--", "one")
	if !strings.Contains(r.Stderr, "hint: git land verify --accept --onto rel -- one ") {
		t.Error(r.Stderr)
	}
	if r := s.exits(0, "git-land", "verify", "--accept", "--onto", "rel", "--", "one"); !strings.Contains(r.Stderr, "accepted  land.verify.setup = true\n") {
		t.Error(r.Stderr)
	}
	s.exits(0, "git-land", "--onto", "rel", "-m", "one", "--", "one")
	if got, _ := s.inits(); got.Branch != "refs/heads/main" {
		t.Errorf("%+v", got)
	}
}

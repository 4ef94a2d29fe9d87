package acceptance

import (
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// What is chosen is as HEAD has it, and HEAD is not on the target: "already
// landed" would be a lie.
func TestChosenPathThatOnlyAnUnlandedCommitHas(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	gittest.Commit(t, s.dir, "local", map[string]string{"p": "p\n"})
	r := s.exits(5, "git-land", "-x", "true", "-m", "p", "--", "p")
	if !strings.Contains(r.Stderr, "p is as HEAD has it, and HEAD has 1 commit that main lacks") || !strings.Contains(r.Stderr, "hint: git land -x true\n") {
		t.Errorf("stderr %q", r.Stderr)
	}
	s.exits(0, "git-land", "-x", "true")
	if r := s.exits(0, "git-land", "-x", "true", "-m", "p", "--", "p"); r.Stdout != "already landed as "+s.git("rev-parse", "HEAD")[:12]+"\n" {
		t.Errorf("stdout %q", r.Stdout)
	}
}

// What is staged outside of land.paths is not chosen, and not taken for landed.
func TestStagedOutsideOfLandPaths(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	s.git("config", "land.paths", "docs")
	s.write(map[string]string{"code": "code\n"})
	s.git("add", "code")
	r := s.exits(5, "git-land", "-x", "true", "-m", "code")
	if !strings.Contains(r.Stderr, "(code) is outside of land.paths") || !strings.Contains(r.Stderr, "hint: git land -x true -m code -- code\n") {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// Landing a fix on a release must not bring the release to main.
func TestLandingElsewhereLeavesTheCurrentBranch(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.git("push", "-q", "origin", "main:release/9")
	main := s.git("rev-parse", "main")
	s.write(map[string]string{"fix": "fix\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "fix", "--onto", "release/9", "--", "fix")
	if got := s.git("rev-parse", "main"); got != main {
		t.Errorf("main moved to %s", got)
	}
	if got := s.git("status", "--porcelain"); got != "?? fix" {
		t.Errorf("status %q", got)
	}
	if got := gittest.Git(t, remote, "rev-parse", "main"); got != main {
		t.Error("the remote's main moved")
	}
}

// Where there is no remote, the branch that is checked out is the target.
func TestLandWithoutARemote(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	s.git("remote", "remove", "origin")
	s.write(map[string]string{"a": "a\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "a", "--", "a")
	if got := s.git("log", "-1", "--format=%s", "main") + s.git("status", "--porcelain"); got != "a" {
		t.Errorf("log and status %q", got)
	}
}

// A branch is under one lease, whatever a clone's configuration says.
func TestOneBranchHasOneLease(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	one, two := clone(t, remote), clone(t, remote)
	one.write(map[string]string{"a": "a\n"})
	one.exits(0, "git-land", "-x", "true", "-m", "a", "--", "a")
	two.git("config", "lease.name", "special")
	two.write(map[string]string{"b": "b\n"})
	r := two.exits(5, "git-land", "-x", "true", "-m", "b", "--", "b")
	if !strings.Contains(r.Stderr, "main is kept under the lease main") || !strings.Contains(r.Stderr, "git config lease.name main") {
		t.Errorf("stderr %q", r.Stderr)
	}
	two.exits(0, "git-lease", "acquire", "docs", "--format=json") // other leases go on
}

// A landing that could not bring the local side along does so when it is run
// again.
func TestLandAgainCatchesUp(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, other := clone(t, remote), clone(t, remote)
	gittest.Commit(t, other.dir, "other", map[string]string{"README": "theirs\n"})
	other.git("push", "-q", "origin", "main")
	s.write(map[string]string{"mine": "mine\n", "README": "dirty\n"})
	r := s.exits(0, "git-land", "-x", "true", "-m", "mine", "--", "mine")
	if !strings.Contains(r.Stderr, "README") || !strings.Contains(r.Stderr, "hint: git add -- mine && git pull --rebase --autostash origin main\n") {
		t.Errorf("stderr %q", r.Stderr)
	}
	s.git("checkout", "README")
	if r = s.exits(0, "git-land", "-m", "mine", "--", "mine"); !strings.HasPrefix(r.Stdout, "already landed as ") {
		t.Errorf("stdout %q", r.Stdout)
	}
	if got, want := s.git("rev-parse", "HEAD"), gittest.Git(t, remote, "rev-parse", "main"); got != want || s.git("status", "--porcelain") != "" {
		t.Errorf("HEAD %s, want %s; status %q", got, want, s.git("status", "--porcelain"))
	}
}

// The namespaces are configurable, for hosts that take only branches.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.git("config", "lease.namespace", "refs/heads/_lease")
	s.git("config", "lease.notesNamespace", "refs/heads/_notes")
	s.write(map[string]string{"a": "a\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "a", "--", "a")
	for ref := range gittest.Refs(t, remote) {
		if ref != "HEAD" && !strings.HasPrefix(ref, "refs/heads/") {
			t.Errorf("%s is no branch", ref)
		}
	}
}

// A target that was set back behind its newest landing is told.
func TestRewoundTargetIsTold(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"a": "a\n"})
	s.exits(0, "git-land", "-x", "true", "-m", "a", "--", "a")
	lost := gittest.Git(t, remote, "rev-parse", "main")
	gittest.Git(t, remote, "update-ref", "refs/heads/main", "main~1")
	push := "this puts it back: git land override --reason WHY " + lost + ":main"
	if r := s.exits(0, "git-land", "status"); !strings.Contains(r.Stdout, "rewound") || !strings.Contains(r.Stdout, push) {
		t.Errorf("status: %s", r.Stdout)
	}
	s = clone(t, remote)
	if r := s.exits(0, "git-land", "status"); !strings.Contains(r.Stdout, "rewound") || strings.Contains(r.Stdout, push) {
		t.Errorf("status where the commit is not: %s", r.Stdout)
	}
	s.write(map[string]string{"b": "b\n"})
	if r := s.exits(0, "git-land", "-x", "true", "-m", "b", "--", "b"); !strings.Contains(r.Stderr, "main no longer has "+lost[:12]) {
		t.Errorf("stderr %q", r.Stderr)
	} else if warned, pushed := strings.Index(r.Stderr, "warning: "), strings.Index(r.Stderr, "pushed"); pushed >= 0 && pushed < warned {
		t.Errorf("it is told only after the push: %s", r.Stderr)
	}
}

func TestIgnoredPathIsRefused(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	s.write(map[string]string{".gitignore": "*.log\n", "x.log": "x\n"})
	r := s.exits(5, "git-land", "-x", "true", "-m", "x", "--", "x.log")
	if !strings.Contains(r.Stderr, "git ignores x.log, so it does not land\nhint: git add --force -- x.log && git land -x true -m x -- x.log\n") {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// A topic stays where it is when its change lands on another branch than usual: it
// would bring that one's commits to main the next time.
func TestTopicStaysOffAnotherTarget(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.git("push", "-q", "origin", "HEAD:refs/heads/release")
	other := clone(t, remote)
	other.write(map[string]string{"of-release": "only there\n"})
	other.force("--onto", "release", "--", "of-release")
	s.git("switch", "-q", "-c", "fix", "--no-track")
	before := s.git("rev-parse", "HEAD")
	s.write(map[string]string{"rf": "for the release\n"})
	if r := s.force("--onto", "release", "--", "rf"); !strings.Contains(r.Stderr, "fix does not follow release") {
		t.Errorf("told %q", r.Stderr)
	}
	if got := s.git("rev-parse", "HEAD"); got != before {
		t.Errorf("fix moved from %s to %s", before, got)
	}
	s.write(map[string]string{"mf": "for main\n"})
	s.force("--", "mf")
	if got := gittest.Git(t, remote, "ls-tree", "--name-only", "main"); got != "README\nmf" {
		t.Errorf("main has %q", got)
	}
}

// What brings a branch along by hand works with a new file that has landed, of which
// git knows nothing here.
func TestHintAfterANewFileHasLanded(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	gittest.Commit(t, s.dir, "not landed", map[string]string{"local": "mine\n"})
	s.write(map[string]string{"a new file": "landed\n"})
	r := s.force("--", "a new file")
	_, hint, _ := strings.Cut(r.Stderr, "hint: ")
	s.exits(0, "sh", "-c", strings.TrimSpace(hint))
	if got := s.git("status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
}

package acceptance

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// A hooked is a clone with the pre-push hook, beside a remote whose connections
// are counted. main was landed on once.
type hooked struct {
	seat
	t      *testing.T
	remote string
	proxy  *gittest.Proxy
}

func newHooked(t *testing.T, initArgs ...string) hooked {
	t.Helper()
	remote := gittest.Remote(t, initArgs...)
	server := gittest.Daemon(t, remote)
	u, err := url.Parse(server.URL(remote))
	if err != nil {
		t.Fatal(err)
	}
	h := hooked{t: t, remote: remote, proxy: gittest.DelayProxy(t, u.Host, 0)}
	h.seat = newSeat(t, gittest.Clone(t, server.Behind(h.proxy).URL(remote)))
	h.exits(0, "git-lease", "hook", "install")
	h.write(map[string]string{"first": "landed\n"})
	h.exits(0, "git-land", "-x", "true", "-m", "first", "--", "first")
	return h
}

// commit makes a commit on what main is at the remote, and returns its id.
func (h hooked) commit() string {
	h.t.Helper()
	h.git("fetch", "-q", "origin")
	return h.git("commit-tree", "-p", "origin/main", "-m", "by hand", "origin/main^{tree}")
}

// pushes runs git push as s, which ends with the code and tells want, and returns
// how many connections it took. main moves if and only if it went well and is named.
func (h hooked) pushes(s seat, code int, want string, args ...string) int {
	h.t.Helper()
	before, connections := gittest.Refs(h.t, h.remote), h.proxy.Connections()
	r := s.exits(code, "git", append([]string{"push"}, args...)...)
	if !strings.Contains(r.Stderr, want) {
		h.t.Errorf("push %q: told %q, want %q", args, r.Stderr, want)
	}
	if code != 0 {
		sameRefs(h.t, strings.Join(args, " "), before, gittest.Refs(h.t, h.remote))
	}
	return h.proxy.Connections() - connections
}

func (h hooked) kinds() string { h.t.Helper(); return kinds(h.t, h.remote) }

// Who may push to a protected branch: the holder, and nobody else; a free lease is
// no permission.
func TestPrePushAsksForTheLease(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t, "--object-format="+format)
			to := h.commit() + ":refs/heads/main"
			if n := h.pushes(h.seat, 1, "nobody holds it, which is no permission", "origin", to); n != 2 {
				t.Errorf("a refusal took %d connections, want the push's and one look", n)
			}
			mine, other := h.session("mine"), h.session("other")
			mine.exits(0, "git-lease", "acquire", "-m", "by hand")
			op := holder(t, h.remote)
			h.pushes(other, 1, "(by hand)", "origin", to)
			h.pushes(h.seat, 1, op, "origin", to)
			h.pushes(other, 1, "hint: git land", "origin", to)
			h.pushes(mine, 0, "", "--dry-run", "origin", to)
			if n := h.pushes(mine, 0, "", "origin", to); n != 2 {
				t.Errorf("a holder's push took %d connections, want the push's and one look", n)
			}
			h.pushes(mine, 0, "", "origin", to) // up to date
			h.pushes(h.seat, 0, "up-to-date", "origin", to)
			other.exits(0, "git-lease", "break", "--operation", op, "--reason", "gone")
			h.pushes(mine, 1, "broken by ", "origin", h.commit()+":main")
		})
	}
}

// What is not protected costs no connection, and neither does a landing.
func TestPrePushCostsNothingElsewhere(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	c := h.commit()
	for name, args := range map[string][]string{
		"a branch":       {"origin", c + ":refs/heads/topic"},
		"a tag":          {"origin", c + ":refs/tags/v1"},
		"its deletion":   {"origin", ":refs/tags/v1"},
		"several":        {"origin", c + ":refs/heads/a", c + ":refs/heads/b", c + ":refs/tags/c"},
		"main elsewhere": {gittest.URL(gittest.Bare(t)), c + ":refs/heads/main"},
	} {
		want := 1
		if strings.HasSuffix(name, "elsewhere") {
			want = 0
		}
		if n := h.pushes(h.seat, 0, "", args...); n != want {
			t.Errorf("%s: %d connections, want %d", name, n, want)
		}
	}
	h.write(map[string]string{"second": "landed\n"})
	h.verify("second")
	before := h.proxy.Connections()
	h.exits(0, "git-land", "-m", "second", "--", "second")
	if n := h.proxy.Connections() - before; n != 1 {
		t.Errorf("a landing took %d connections, want 1", n)
	}
}

// An override passes, on the record; where that cannot be written nothing passes.
func TestPrePushOverride(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	c := h.commit()
	h.pushes(h.with("GIT_LEASE_OVERRIDE="), 1, "GIT_LEASE_OVERRIDE is empty", "origin", c+":main")
	h.pushes(h.with("GIT_LEASE_OVERRIDE=  "), 1, "GIT_LEASE_OVERRIDE is empty", "origin", c+":main")
	for _, copied := range []string{"WHY", "why", "...", "why it cannot go by git land"} {
		h.pushes(h.with("GIT_LEASE_OVERRIDE="+copied), 1, "only stands for the reason", "origin", c+":main")
	}
	over := h.with("GIT_LEASE_OVERRIDE=the site is down")
	h.pushes(over, 0, "goes past the lease main", "origin", c+":main", c+":refs/heads/topic")
	if got := h.kinds(); got != "adopt land override" {
		t.Errorf("events %q", got)
	}
	said := gittest.Git(t, h.remote, "log", "-1", "--format=%B", "refs/lease/main")
	if !strings.Contains(said, "By-Reason: the site is down\n") || !strings.Contains(said, "Override-Updates: refs/heads/main ") ||
		!strings.Contains(said, c) || strings.Contains(said, "topic") {
		t.Errorf("the event says %s", said)
	}
	h.pushes(over, 0, "", "origin", c+":refs/heads/other") // needs none, and writes none
	h.session("holder").exits(0, "git-lease", "acquire")
	h.pushes(h.session("holder").with("GIT_LEASE_OVERRIDE=why not"), 0, "", "origin", h.commit()+":main")
	h.pushes(over, 0, "goes past", "origin", h.commit()+":main")
	h.write(map[string]string{"more": "by the holder\n"})
	h.session("holder").exits(0, "git-land", "-x", "true", "-m", "more", "--", "more")
	if got := h.kinds(); got != "adopt land override acquire override land" {
		t.Errorf("events %q", got)
	}
	newSeat(t, h.remote).exits(0, "git-lease", "hook", "install", "--server")
	h.pushes(over, 1, "git land override --reason 'the site is down' ", "origin", h.commit()+":main")
	gittest.Git(t, h.remote, "config", "receive.hideRefs", "refs/lease")
	h.pushes(over, 1, "nothing is pushed", "origin", h.commit()+":main")
}

// A push that is tried again, and one of which two hooks are asked, is announced once.
func TestPrePushOverrideIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	c := h.commit()
	over := h.with("GIT_LEASE_OVERRIDE=the site is down")
	h.pushes(over, 0, "", "--dry-run", "origin", c+":main")
	h.pushes(over, 0, "", "origin", c+":main")
	if got := h.kinds(); got != "adopt land override" {
		t.Errorf("events %q", got)
	}
	h.pushes(over, 0, "", "--dry-run", "origin", h.commit()+":main")
	h.pushes(h.with("GIT_LEASE_OVERRIDE=it is down again"), 0, "", "origin", h.commit()+":main")
	if got := h.kinds(); got != "adopt land override override override" {
		t.Errorf("events %q", got)
	}
}

// What is ours is neither deleted nor rewritten through a push.
func TestPrePushKeepsOurRefs(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.git("fetch", "-q", "origin", "refs/lease/main:refs/kept/chain", "refs/notes/landing/main:refs/kept/notes")
	h.pushes(h.seat, 1, "never deleted", "origin", ":refs/lease/main")
	h.pushes(h.seat, 1, "never deleted", "origin", ":refs/notes/landing/main")
	h.pushes(h.seat, 1, "only grows", "--force", "origin", "refs/kept/chain~1:refs/lease/main")
	h.pushes(h.seat, 1, "only grows", "--force", "origin", "HEAD:refs/notes/verification")
	h.pushes(h.seat, 1, "protected by the lease main", "--force", "origin", "HEAD~1:main")
	h.pushes(h.session("holds nothing"), 1, "protected by the lease main", "origin", ":main")
}

// From wherever git runs the hook, and however the remote is named.
func TestPrePushFromEverywhere(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	to := h.commit() + ":refs/heads/main"
	const refused = "protected by the lease main"
	linked := filepath.Join(t.TempDir(), "linked")
	h.git("worktree", "add", "-q", "--detach", linked)
	s := h.seat
	s.dir = linked
	h.pushes(s, 1, refused, "origin", to)
	h.pushes(h.seat, 1, refused, h.git("config", "remote.origin.url"), to)
	h.git("remote", "add", "same", h.git("config", "remote.origin.url"))
	h.git("config", "lease.remote", "origin")
	h.pushes(h.seat, 1, refused, "same", to)
	h.git("remote", "remove", "same")
	// As from another hook, which has git's variables in its environment.
	h.pushes(h.with("GIT_DIR="+h.git("rev-parse", "--absolute-git-dir"), "GIT_INDEX_FILE=.git/index", "GIT_PREFIX="), 1, refused, "origin", to)
	h.pushes(h.seat, 1, refused, "origin", h.commit()+":refs/heads/topic", to)
	h.git("config", "--add", "lease.protect", "odd/*")
	h.pushes(h.seat, 1, "odd/naïve,branch;name is protected", "origin", h.commit()+":refs/heads/odd/naïve,branch;name")
	h.pushes(h.seat, 0, "", "origin", to) // the patterns stand for the target
	h.git("remote", "set-url", "--add", "--push", "origin", h.git("config", "remote.origin.url"))
	h.git("remote", "set-url", "--add", "--push", "origin", gittest.URL(gittest.Bare(t)))
	h.pushes(h.seat, 1, "push", "origin", h.commit()+":refs/heads/odd/second") // two URLs are no authority
}

// Where the authority cannot be asked, what is protected waits, and all else goes.
func TestPrePushWhenTheRemoteCannotBeAsked(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	// A remote that takes pushes and answers nothing else.
	h.git("config", "remote.origin.uploadpack", "false")
	h.git("remote", "set-url", "origin", gittest.URL(h.remote))
	c := h.unfetched()
	h.pushes(h.seat, 1, "is not known", "origin", c+":main")
	h.pushes(h.seat, 0, "", "origin", c+":refs/heads/topic")
}

// unfetched is commit on what this clone has, from a remote that cannot be read.
func (h hooked) unfetched() string {
	h.t.Helper()
	return h.git("commit-tree", "-p", "HEAD", "-m", "by hand", "HEAD^{tree}")
}

// A hook that cannot find its executable says so, and keeps what it would keep.
func TestPrePushWithoutItsExecutable(t *testing.T) {
	t.Parallel()
	onlyFiles(t)
	h := newHooked(t)
	path := filepath.Join(h.dir, ".git/hooks/pre-push")
	text := strings.Replace(gittest.Read(t, h.dir, ".git/hooks/pre-push"), "\ntool='", "\ntool='/nowhere", 1)
	gittest.Script(t, path, text)
	c := h.commit()
	h.pushes(h.seat, 1, "is gone: install gitland again", "origin", c+":main")
	h.git("config", "lease.protect", "main")
	h.git("config", "--add", "lease.protect", "release/*")
	h.pushes(h.seat, 1, "refs/heads/main", "origin", c+":main")
	h.pushes(h.seat, 1, "refs/heads/release/1", "origin", c+":refs/heads/release/1")
	h.pushes(h.seat, 0, "", "origin", c+":refs/heads/topic")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	h.exits(0, "git-lease", "hook", "uninstall") // nothing to do
}

// A hook that was there goes on running, with its arguments, its input and its
// exit code, and is put back byte for byte.
func TestHookKeepsTheOneBefore(t *testing.T) {
	t.Parallel()
	onlyFiles(t)
	h := newHooked(t)
	h.exits(0, "git-lease", "hook", "uninstall")
	path := filepath.Join(h.dir, ".git/hooks/pre-push")
	const theirs = "#!/bin/sh\necho \"$@\" >.git/told; cat >>.git/told; exit ${THEIRS:-0}\n"
	gittest.Script(t, path, theirs)
	for range 2 {
		h.exits(0, "git-lease", "hook", "install")
	}
	c := h.commit()
	h.pushes(h.seat, 0, "", "origin", c+":refs/heads/topic")
	want := "origin " + h.git("config", "remote.origin.url") + "\n" + c + " " + c + " refs/heads/topic " + strings.Repeat("0", 40) + "\n"
	if got := gittest.Read(t, h.dir, ".git/told"); got != want {
		t.Errorf("the hook before was told %q, want %q", got, want)
	}
	h.pushes(h.with("THEIRS=3"), 1, "", "origin", c+":refs/heads/second")
	os.Remove(filepath.Join(h.dir, ".git/told"))
	h.pushes(h.seat, 1, "protected by", "origin", c+":main")
	if exists(filepath.Join(h.dir, ".git/told")) {
		t.Error("the hook before ran for a push that was refused")
	}
	h.exits(0, "git-lease", "hook", "uninstall")
	if got := gittest.Read(t, h.dir, ".git/hooks/pre-push"); got != theirs || exists(filepath.Join(h.dir, ".git/hooks.before-git-lease")) {
		t.Errorf("put back %q", got)
	}
	h.pushes(h.seat, 0, "", "origin", c+":main")
}

// Status says what git runs in each worktree: a relative core.hooksPath is another
// directory in each of them, and an empty one runs nothing, silently.
func TestHookStatusInEachWorktree(t *testing.T) {
	t.Parallel()
	onlyFiles(t)
	h := newHooked(t)
	linked := filepath.Join(t.TempDir(), "linked")
	h.git("worktree", "add", "-q", "--detach", linked)
	states := func() string {
		t.Helper()
		var said []string
		for _, s := range decode[struct {
			Hooks []struct{ State, Worktree, Before string }
		}](t, h.exits(0, "git-lease", "hook", "status", "--json")).Hooks {
			if s.Before != "" {
				s.State += "+"
			}
			said = append(said, filepath.Base(s.Worktree)+" "+s.State)
		}
		return strings.Join(said, ", ")
	}
	main := filepath.Base(h.dir)
	if got := states(); got != main+" active, linked active" {
		t.Errorf("states %q", got)
	}
	h.git("config", "extensions.worktreeConfig", "true")
	h.exits(0, "git", "-C", linked, "config", "--worktree", "core.hooksPath", t.TempDir())
	if got := states(); got != main+" active, linked absent" {
		t.Errorf("states %q", got)
	}
	h.exits(0, "git", "-C", linked, "config", "--worktree", "--unset", "core.hooksPath")
	h.git("config", "core.hooksPath", "own")
	if got := states(); got != main+" absent, linked absent" {
		t.Errorf("states %q", got)
	}
	if err := os.Mkdir(filepath.Join(h.dir, "own"), 0o777); err != nil {
		t.Fatal(err)
	}
	gittest.Script(t, filepath.Join(h.dir, "own/pre-push"), "#!/bin/sh\n")
	if got := states(); got != main+" other, linked absent" {
		t.Errorf("states %q", got)
	}
	h.exits(0, "git-lease", "hook", "install")
	if got := states(); got != main+" active+, linked absent" {
		t.Errorf("states %q", got)
	}
	if err := os.Chmod(filepath.Join(h.dir, "own/pre-push"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := h.exits(0, "git-lease", "hook", "status"); !strings.Contains(r.Stdout, "not executable") || !strings.Contains(r.Stderr, "hint: git lease hook install\n") {
		t.Errorf("told %q, %q", r.Stdout, r.Stderr)
	}
}

// What an override brought, and what it took off the branch, is on the record: no
// disagreement, whatever else reconcile finds.
func TestOverrideIsNoDisagreement(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.write(map[string]string{"second": "landed\n"})
	h.exits(0, "git-land", "-x", "true", "-m", "second", "--", "second")
	h.exits(0, "git-land", "override", "--reason", "second was wrong", "+origin/main~1:main")
	h.exits(5, "git-land", "override", "--reason", "not a rewind", "origin/main~1:main")
	h.exits(0, "git-land", "reconcile")
	h.exits(0, "git-land", "override", "--reason", "by hand, in a hurry", h.commit()+":main")
	if r := h.exits(0, "git-land", "reconcile", "--all"); !strings.Contains(r.Stdout, "past the lease, main: second was wrong") {
		t.Errorf("told %q", r.Stdout)
	}
	h.exits(0, "git-land", "override", "--reason", "another history", "+"+h.git("commit-tree", "-m", "anew", "origin/main^{tree}")+":main")
	h.exits(0, "git-land", "reconcile")
	h.pushes(h.seat, 0, "", "--no-verify", "origin", h.commit()+":main")
	h.exits(7, "git-land", "reconcile")
	h.exits(0, "git-land", "reconcile", "--fix", "--reason", "seen")
	h.write(map[string]string{"third": "landed\n"})
	h.exits(0, "git-land", "-x", "true", "-m", "third", "--", "third")
	h.exits(0, "git-land", "reconcile")
}

// Where nobody has said which of several remotes decides, what nobody would protect
// goes through.
func TestPrePushWithoutAnAuthority(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.git("remote", "add", "fork", gittest.URL(gittest.Bare(t)))
	c := h.commit()
	h.pushes(h.seat, 0, "", "origin", c+":refs/heads/topic", c+":refs/tags/v1")
	h.pushes(h.seat, 1, "none is chosen", "origin", c+":main")
	h.pushes(h.with("GIT_LEASE_TOKEN=none"), 0, "", "origin", c+":refs/heads/other")
	h.git("config", "lease.remote", "origin")
	h.pushes(h.seat, 0, "", "fork", c+":refs/heads/main")
	h.pushes(h.with("GIT_LEASE_TOKEN=none"), 1, "GIT_LEASE_TOKEN", "origin", c+":main")
}

// The lease that keeps a branch counts, and not the one that is called like it.
func TestPrePushAsksForTheLeaseThatKeepsTheBranch(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.git("config", "lease.protect", "*")
	h.exits(0, "git", "push", "-q", "--no-verify", "origin", h.commit()+":refs/heads/rel")
	h.git("config", "lease.name", "main")
	h.write(map[string]string{"second": "landed\n"})
	h.exits(0, "git-land", "--onto", "rel", "-x", "true", "-m", "second", "--", "second")
	h.git("config", "--unset", "lease.name")
	to := h.git("commit-tree", "-p", h.commit(), "-m", "by hand", "origin/main^{tree}") + ":rel"
	namesake := h.session("namesake")
	namesake.exits(0, "git-lease", "acquire", "rel")
	h.pushes(namesake, 1, "protected by the lease main", "--force", "origin", to)
	keeper := h.session("keeper")
	keeper.exits(0, "git-lease", "acquire", "main")
	h.pushes(keeper, 0, "", "--force", "origin", to)
	h.exits(0, "git-land", "override", "--reason", "back again", "+origin/main:rel")
	if got := h.kinds(); got != "adopt land adopt land acquire override" {
		t.Errorf("events of main %q", got)
	}
}

// Refspecs mean what they do in git push, and nothing is dropped but on purpose.
func TestOverrideRefspecs(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	c := h.commit()
	h.git("tag", "v1", c)
	h.git("tag", "main", "HEAD~")
	for _, bad := range [][]string{{"HEAD"}, {"HEAD:@"}, {"nothing"}, {"main:x", "main:x"}, {"refs/*:refs/*"}, {":"}} {
		h.exits(129, "git-land", append([]string{"override", "--reason", "by hand", "--"}, bad...)...)
	}
	h.exits(5, "git-land", "override", "--reason", "by hand", "HEAD~:main")
	if r := h.exits(129, "git-land", "override", "--reason", "by hand", ":refs/lease/main"); !strings.Contains(r.Stderr, "on its own log") {
		t.Errorf("told %q", r.Stderr)
	}
	h.exits(0, "git-land", "override", "--reason", "by hand", "v1", c+":heads/topic", "v1:v2")
	refs := gittest.Refs(t, h.remote)
	for _, ref := range []string{"refs/tags/v1", "refs/heads/topic", "refs/tags/v2"} {
		if refs[ref] != c {
			t.Errorf("%s is at %q", ref, refs[ref])
		}
	}
	h.exits(5, "git-land", "override", "--reason", "by hand", "HEAD:refs/tags/v1")
	h.exits(129, "git-land", "override", "--reason", "by hand", "main") // the branch, which is there already
	h.exits(0, "git-land", "override", "--reason", "by hand", ":topic", ":refs/tags/v2")
	// Somebody lands while it is under way: what it decided on is not there any more.
	other := clone(t, h.remote)
	other.write(map[string]string{"between": "landed\n"})
	gittest.Script(t, filepath.Join(h.dir, ".git/hooks/pre-push"), `#!/bin/sh
mkdir .git/once 2>/dev/null || exit 0
cd '`+other.dir+`' && unset GIT_DIR && '`+bin+`/git-land' --force-unverified --reason r -m between -- between
`)
	h.exits(5, "git-land", "override", "--reason", "by hand", "+HEAD~:main")
	if got := gittest.Git(t, h.remote, "show", "main:between"); got != "landed" {
		t.Errorf("main has %q", got)
	}
	h.git("switch", "-q", "main")
	if r := h.exits(5, "git-land", "override", "--remote", ".", "--reason", "by hand", "+HEAD~:main"); !strings.Contains(r.Stderr, "is checked out in") {
		t.Errorf("told %q", r.Stderr)
	}
}

// A directory of hooks that other repositories use is not ours to write to.
func TestHookInstallKeepsOutOfSharedDirectories(t *testing.T) {
	t.Parallel()
	onlyFiles(t)
	s := clone(t, gittest.Remote(t))
	shared := t.TempDir()
	s.git("config", "core.hooksPath", shared)
	if r := s.exits(5, "git-lease", "hook", "install"); !strings.Contains(r.Stderr, "not of this repository alone") {
		t.Errorf("told %q", r.Stderr)
	}
	if left, _ := os.ReadDir(shared); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// What nobody chose to protect is where the remote's HEAD is and what is under a lease
// that this clone has seen. A HEAD that was moved is heard of as soon as the remote is asked.
func TestPrePushAfterTheDefaultBranchWasRenamed(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	gittest.Git(t, h.remote, "branch", "rel", "main")
	h.write(map[string]string{"second": "landed\n"})
	h.exits(0, "git-land", "--onto", "rel", "-x", "true", "-m", "second", "--", "second")
	onRel := func() string {
		return h.git("commit-tree", "-p", "refs/lease-remote/origin/heads/rel", "-m", "by hand", "HEAD^{tree}")
	}
	h.pushes(h.seat, 1, "rel is protected by the lease rel", "origin", onRel()+":refs/heads/rel")
	c := h.commit()
	gittest.Git(t, h.remote, "branch", "-m", "main", "trunk")
	child := func() string { return h.git("commit-tree", "-p", c, "-m", "by hand", "HEAD^{tree}") }
	// Nothing here knows of it.
	if n := h.pushes(h.seat, 0, "", "origin", c+":refs/heads/trunk"); n != 1 {
		t.Errorf("%d connections", n)
	}
	h.pushes(h.seat, 1, "trunk is protected", "origin", child()+":refs/heads/trunk", child()+":refs/heads/main")
	h.pushes(h.seat, 1, "trunk is protected", "origin", child()+":refs/heads/trunk")
	h.pushes(h.seat, 1, "main is protected by the lease main", "origin", child()+":refs/heads/main") // which lists it
	// What git knows counts, too.
	other := clone(t, h.remote)
	other.exits(0, "git-lease", "hook", "install")
	if got := other.git("symbolic-ref", "refs/remotes/origin/HEAD"); got != "refs/remotes/origin/trunk" {
		t.Fatal(got)
	}
	h.pushes(other, 1, "trunk is protected", "origin", other.git("commit-tree", "-p", "origin/trunk", "-m", "by hand", "HEAD^{tree}")+":refs/heads/trunk")
}

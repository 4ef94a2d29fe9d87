package acceptance

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// atLeast reports whether a git is 2.minor or newer.
func atLeast(t *testing.T, git string, minor int) bool {
	t.Helper()
	out, err := exec.Command(git, "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	version := strings.SplitN(strings.TrimPrefix(string(out), "git version "), ".", 3)
	has, _ := strconv.Atoi(version[1])
	return version[0] > "2" || has >= minor
}

// configures reports whether a git runs the hooks of its configuration.
func configures(t *testing.T, git string) bool { t.Helper(); return atLeast(t, git, 54) }

// onlyFiles skips what is about a git that has hooks in directories alone.
func onlyFiles(t *testing.T) {
	t.Helper()
	if configures(t, "git") {
		t.Skip("this git has the hook in its configuration")
	}
}

// newer is s with a git that runs configured hooks: the one at hand, else that of
// GITLAND_GIT, a directory to be searched before PATH.
func (s seat) newer() seat {
	s.t.Helper()
	if configures(s.t, "git") {
		return s
	}
	dir := os.Getenv("GITLAND_GIT")
	if dir == "" || !configures(s.t, filepath.Join(dir, "git")) {
		s.t.Skip("no git 2.54 or newer at hand, or named by GITLAND_GIT")
	}
	s.env = gittest.WithPath(s.env, dir)
	return s
}

// A hookState is what git lease hook status says of one worktree.
type hookState struct {
	State, Worktree, Path, Before, Off string
	Ignored                            bool
	Runs                               []struct {
		Config, Command string
		Ours            bool
	}
}

func (s seat) hookStates() []hookState {
	s.t.Helper()
	return decode[struct{ Hooks []hookState }](s.t, s.exits(0, "git-lease", "hook", "status", "--json")).Hooks
}

// gitRuns is what git runs in the worktree of the seat, in its order, by name.
func (s seat) gitRuns() string {
	s.t.Helper()
	var names []string
	for _, r := range s.hookStates()[0].Runs {
		name := r.Config
		if name == "" {
			name = filepath.Join(filepath.Base(filepath.Dir(r.Command)), filepath.Base(r.Command))
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// says runs git lease hook with a verb, which must say done of each hook.
func (s seat) says(verb string, done ...string) {
	s.t.Helper()
	var got []string
	for _, c := range decode[struct{ Hooks []struct{ Done string } }](s.t, s.exits(0, "git-lease", "hook", verb, "--json")).Hooks {
		got = append(got, c.Done)
	}
	if strings.Join(got, " ") != strings.Join(done, " ") {
		s.t.Errorf("hook %s: %q, want %q", verb, got, done)
	}
}

// newConfigured is newHooked with a git that has the hook in its configuration.
func newConfigured(t *testing.T) hooked {
	t.Helper()
	(seat{t: t}).newer() // or skip
	h := newHooked(t)
	h.exits(0, "git-lease", "hook", "uninstall")
	h.seat = h.newer()
	return h
}

// With git 2.54 and newer the hook is in the configuration: beside whatever is in the
// hooks directory, in every worktree, wherever the clone is moved to. What was there is
// there again afterwards, byte for byte.
func TestConfiguredHook(t *testing.T) {
	t.Parallel()
	h := newConfigured(t)
	const theirs = "#!/bin/sh\necho \"$@\" >>\"$(git rev-parse --git-common-dir)/told\"; cat >>\"$(git rev-parse --git-common-dir)/told\"\n"
	gittest.Script(t, filepath.Join(h.dir, ".git/hooks/pre-push"), theirs)
	config, hooks := gittest.Read(t, h.dir, ".git/config"), gittest.Files(t, filepath.Join(h.dir, ".git/hooks"))
	h.says("install", "installed")
	after := gittest.Read(t, h.dir, ".git/config")
	h.says("install", "unchanged")
	if got := gittest.Read(t, h.dir, ".git/config"); got != after {
		t.Errorf("a second install made %q of %q", got, after)
	}
	if got := h.gitRuns(); got != "hook.git-lease, hooks/pre-push" {
		t.Errorf("git runs %q", got)
	}
	const refused = "protected by the lease main"
	c := h.commit()
	if n := h.pushes(h.seat, 1, refused, "origin", c+":main"); n != 2 {
		t.Errorf("a refusal took %d connections, want 2", n)
	}
	if n := h.pushes(h.seat, 0, "", "origin", c+":refs/heads/topic"); n != 1 {
		t.Errorf("a push took %d connections, want 1", n)
	}
	// Git runs all of them, whatever one of them says.
	zero, url := strings.Repeat("0", 40), h.git("config", "remote.origin.url")
	want := "origin " + url + "\n" + c + " " + c + " refs/heads/main " + h.git("rev-parse", "origin/main") + "\n" +
		"origin " + url + "\n" + c + " " + c + " refs/heads/topic " + zero + "\n"
	if got := gittest.Read(t, h.dir, ".git/told"); got != want {
		t.Errorf("the other hook was told %q, want %q", got, want)
	}
	h.write(map[string]string{"second": "landed\n"})
	h.verify("second")
	before := h.proxy.Connections()
	h.exits(0, "git-land", "-m", "second", "--", "second")
	if n := h.proxy.Connections() - before; n != 1 {
		t.Errorf("a landing took %d connections, want 1", n)
	}
	c = h.commit()
	linked := h.seat
	linked.dir = filepath.Join(t.TempDir(), "linked")
	h.git("worktree", "add", "-q", "--detach", linked.dir)
	h.pushes(linked, 1, refused, "origin", c+":main")
	h.git("config", "core.hooksPath", "/dev/null")
	h.pushes(linked, 1, refused, "origin", c+":main")
	h.git("config", "--unset", "core.hooksPath")
	h.git("worktree", "remove", linked.dir)
	moved := filepath.Join(t.TempDir(), "an odd 'place'")
	if err := os.Rename(h.dir, moved); err != nil {
		t.Fatal(err)
	}
	h.dir = moved
	h.pushes(h.seat, 1, refused, "origin", h.commit()+":main")
	h.says("uninstall", "removed")
	h.says("uninstall", "absent")
	if got := gittest.Read(t, h.dir, ".git/config"); got != config {
		t.Errorf("the configuration was %q and is %q", config, got)
	}
	if got := gittest.Files(t, filepath.Join(h.dir, ".git/hooks")); len(got) != len(hooks) || got["pre-push"] != hooks["pre-push"] {
		t.Errorf("the hooks were %v and are %v", hooks, got)
	}
	if exists(filepath.Join(h.dir, ".git/lease/hooks")) {
		t.Error("the stub is left")
	}
}

// What switches a configured hook off is seen, with the command that switches it on.
func TestConfiguredHookIsSwitchedOff(t *testing.T) {
	t.Parallel()
	h := newConfigured(t)
	h.says("install", "installed")
	h.git("config", "extensions.worktreeConfig", "true")
	h.git("worktree", "add", "-q", "--detach", filepath.Join(t.TempDir(), "linked"))
	for _, off := range [][]string{
		{"--local", "hook.git-lease.enabled"}, {"--worktree", "hook.git-lease.enabled"}, {"--global", "hook.git-lease.enabled"},
		{"--local", "hook.pre-push.enabled"},
	} {
		h.git("config", off[0], off[1], "false")
		s := h.hookStates()[0]
		if s.State == "active" && off[1] == "hook.pre-push.enabled" {
			continue // 2.54 has no such switch
		}
		if s.State != "disabled" || s.Off != off[1] {
			t.Errorf("%q: %+v", off, s)
		}
		r := h.exits(0, "git-lease", "hook", "status")
		if !strings.Contains(r.Stdout, "switched off by "+off[1]+": nothing is refused here") {
			t.Errorf("%q: told %q", off, r.Stdout)
		}
		mend := h.examined(1)["hook"]
		if !strings.Contains(r.Stderr, "hint: "+mend+"\n") {
			t.Errorf("%q: %q, and doctor says %q", off, r.Stderr, mend)
		}
		h.exits(0, "sh", "-c", mend)
		if s := h.hookStates()[0]; s.State != "active" {
			t.Errorf("%q, after %q: %+v", off, mend, s)
		}
		h.try("git", "config", "--local", "--unset-all", off[1])
		h.try("git", "config", "--global", "--unset-all", off[1])
	}
	// Git dies of an event without a command, and so does not ask.
	h.git("config", "hook.half.event", "pre-push")
	mend := h.examined(1)["hook"]
	if !strings.Contains(mend, "config --unset-all hook.half.event   (") {
		t.Errorf("doctor says %q", mend)
	}
	mend, _, _ = strings.Cut(mend, "   (")
	h.exits(0, "sh", "-c", mend)
	h.examined(0)
}

// Our configured hook that cannot find its executable, or its own stub, refuses.
func TestConfiguredHookWithoutItsExecutable(t *testing.T) {
	t.Parallel()
	h := newConfigured(t)
	h.says("install", "installed")
	stub := h.hookStates()[0].Path
	text := gittest.Read(t, filepath.Dir(stub), "pre-push")
	gittest.Script(t, stub, strings.Replace(text, "\ntool='", "\ntool='/nowhere", 1))
	c := h.commit()
	h.git("config", "lease.protect", "main")
	h.pushes(h.seat, 1, "is gone: install gitland again", "origin", c+":main")
	h.pushes(h.seat, 0, "", "origin", c+":refs/heads/topic")
	if s := h.hookStates()[0]; s.State != "outdated" {
		t.Errorf("%+v", s)
	}
	if err := os.Remove(stub); err != nil {
		t.Fatal(err)
	}
	h.pushes(h.seat, 1, "", "origin", c+":main")
	if s := h.hookStates()[0]; s.State != "gone" {
		t.Errorf("%+v", s)
	}
	h.says("install", "installed")
	h.pushes(h.seat, 1, "protected by the lease main", "origin", c+":main")
}

// Two gits, of which one has no configured hooks: the older one says that it does not
// run ours, and installs the file; the newer one takes the file away again. Both at
// once are no harm.
func TestConfiguredHookAndAnOlderGit(t *testing.T) {
	t.Parallel()
	onlyFiles(t)
	h := newConfigured(t)
	older := newSeat(t, h.dir)
	const theirs = "#!/bin/sh\n: by hand\n"
	path := filepath.Join(h.dir, ".git/hooks/pre-push")
	gittest.Script(t, path, theirs)
	older.says("install", "installed")
	h.says("install", "installed", "removed")
	if got := gittest.Read(t, h.dir, ".git/hooks/pre-push"); got != theirs || exists(filepath.Join(h.dir, ".git/hooks.before-git-lease")) {
		t.Errorf("put back %q", got)
	}
	c := h.commit()
	h.pushes(older, 0, "", "--dry-run", "origin", c+":main") // nobody asks
	if r := older.exits(0, "git-lease", "hook", "status"); !strings.Contains(r.Stdout, "for git 2.54 and newer, and this one is older") {
		t.Errorf("told %q", r.Stdout)
	}
	if mend := older.examined(1)["hook"]; !strings.HasSuffix(mend, "lease hook install") {
		t.Errorf("doctor says %q", mend)
	}
	older.says("install", "installed")
	older.examined(0)
	h.examined(0)
	if got := h.gitRuns(); got != "hook.git-lease, hooks/pre-push, hooks.before-git-lease/pre-push" {
		t.Errorf("git runs %q", got)
	}
	h.pushes(older, 1, "protected by", "origin", c+":main")
	h.pushes(h.seat, 1, "protected by", "origin", c+":main")
	h.pushes(h.with("GIT_LEASE_OVERRIDE=the site is down"), 0, "goes past", "origin", c+":main")
	if got := h.kinds(); got != "adopt land override" {
		t.Errorf("events %q", got)
	}
	h.write(map[string]string{"second": "landed\n"})
	h.exits(0, "git-land", "-x", "true", "-m", "second", "--", "second")
	older.says("uninstall", "removed", "removed")
	if got := gittest.Read(t, h.dir, ".git/hooks/pre-push"); got != theirs {
		t.Errorf("put back %q", got)
	}
}

// A git that is too old to run what is in its configuration says so, and has a file.
func TestConfiguredHookIsNotForThisGit(t *testing.T) {
	t.Parallel()
	onlyFiles(t)
	h := newHooked(t)
	h.says("uninstall", "removed")
	h.git("config", "hook.git-lease.command", "true")
	h.git("config", "hook.git-lease.event", "pre-push")
	r := h.exits(0, "git-lease", "hook", "status")
	if !strings.Contains(r.Stdout, "for git 2.54 and newer, and this one is older") || !strings.Contains(r.Stderr, "hint: git lease hook install\n") {
		t.Errorf("told %q, %q", r.Stdout, r.Stderr)
	}
	if r := h.exits(1, "git-lease", "doctor"); !strings.Contains(r.Stdout+r.Stderr, "git before 2.54 does not run the one in its configuration") {
		t.Errorf("told %q, %q", r.Stdout, r.Stderr)
	}
	h.says("install", "installed")
	h.examined(0)
	h.pushes(h.seat, 1, "protected by", "origin", h.commit()+":main")
	h.says("uninstall", "removed", "removed")
	h.says("uninstall", "absent")
}

// Nobody's configured hooks run for what is ours alone.
func TestConfiguredHooksAndOurOwnPushes(t *testing.T) {
	t.Parallel()
	(seat{t: t}).newer()
	s := newcomer(t, gittest.Remote(t)).newer()
	told := filepath.Join(t.TempDir(), "told")
	for _, event := range []string{"pre-push", "post-checkout"} {
		s.git("config", "hook."+event+"-told.command", "echo "+event+" >>'"+told+"'; cat >/dev/null; :")
		s.git("config", "hook."+event+"-told.event", event)
	}
	holder := s.session("holder")
	holder.exits(0, "git-lease", "acquire") // with the probe, and its race
	holder.exits(0, "git-lease", "release")
	s.write(map[string]string{"first": "landed\n"})
	s.exits(0, "git-land", "verify", "-x", "true", "--", "first")
	if got, _ := os.ReadFile(told); len(got) > 0 {
		t.Errorf("ran %q", got)
	}
	s.exits(0, "git-land", "-m", "first", "--", "first")
	if got, _ := os.ReadFile(told); !bytes.Contains(got, []byte("pre-push\n")) {
		t.Errorf("a landing ran %q", got)
	}
}

package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// examined is what git lease doctor says is wrong, by name, with its command.
func (s seat) examined(code int) map[string]string {
	s.t.Helper()
	wrong := map[string]string{}
	for _, c := range decode[struct {
		Checks []struct {
			Name, Text, Command string
			OK                  bool
		}
	}](s.t, s.exits(code, "git-lease", "doctor", "--json")).Checks {
		if !c.OK {
			wrong[c.Name] = c.Command
		} else if c.Command != "" || c.Text == "" {
			s.t.Errorf("check %+v", c)
		}
	}
	return wrong
}

// A clone of a first landing, with its hook, has nothing wrong; each of these has
// what was done to it, with a command, and nothing else.
func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		seed func(s seat, remote string)
		want string // "name: in the command"
	}{
		"nothing":          {func(seat, string) {}, ""},
		"behind the fence": {func(s seat, remote string) { newSeat(s.t, remote).exits(0, "git-lease", "hook", "install", "--server") }, ""},
		"no identity": {func(s seat, _ string) {
			s.git("config", "user.useConfigOnly", "true")
			s.git("config", "user.name", "")
		}, "identity: git config user.name"},
		"a key that is gone": {func(s seat, _ string) {
			s.git("config", "lease.sign", "true")
			s.git("config", "gpg.format", "ssh")
			s.git("config", "user.signingKey", "gone.pub")
		}, "signing: user.signingKey"},
		"a mirror": {func(s seat, _ string) {
			s.git("config", "remote.backup.url", "/nowhere")
			s.git("config", "remote.backup.mirror", "true")
			s.git("config", "lease.remote", "origin")
		}, "mirror: remote.backup.mirror"},
		"two push URLs": {func(s seat, _ string) {
			s.git("config", "--add", "remote.origin.pushurl", "/a")
			s.git("config", "--add", "remote.origin.pushurl", "/b")
		}, "authority: --delete --push"},
		"two remotes": {func(s seat, _ string) { s.git("remote", "add", "fork", "/nowhere") }, "authority: lease.remote origin"},
		"no answer":   {func(s seat, remote string) { os.Rename(remote, remote+".away") }, "reachable: git ls-remote origin"},
		"hidden refs": {func(s seat, remote string) { gittest.Git(s.t, remote, "config", "receive.hideRefs", "refs/lease") }, "writable: lease.namespace"},
		"no notes":    {func(s seat, remote string) { refuseRefs(s.t, remote, "refs/notes/*") }, "writable: lease.notesNamespace"},
		"a bad chain": {func(s seat, remote string) { badTip(s, remote) }, "chain: --over"},
		"a clock": {func(s seat, _ string) {
			s.with("GIT_COMMITTER_DATE=2030-01-01T00:00:00Z").exits(0, "git-lease", "freeze", "--reason", "early")
			s.exits(0, "git-lease", "show")
		}, "clock: date"},
		"a misspelt key":         {func(s seat, _ string) { s.git("config", "lease.protet", "main") }, "config: git config --unset-all lease.protet"},
		"commands of others":     {func(s seat, remote string) { agrees(s.t, remote, "main", "[land \"check.c\"]\n\tcommand = x\n") }, "policy: git land init"},
		"a policy of the future": {func(s seat, remote string) { agrees(s.t, remote, "main", "[land]\n\tquorum = 3\n") }, "policy: git land --force-unverified"},
		"no hook":                {func(s seat, _ string) { s.exits(0, "git-lease", "hook", "uninstall") }, "hook: lease hook install"},
		"a toothless hook": {func(s seat, _ string) {
			gittest.Script(s.t, s.hookStates()[0].Path, "#!/bin/sh\n")
		}, "hook: lease hook install"},
		"a hook off": {func(s seat, _ string) { os.Chmod(s.hookStates()[0].Path, 0o644) }, "hook: lease hook install"},
		"a second worktree": {func(s seat, _ string) {
			onlyFiles(s.t)
			s.git("config", "core.hooksPath", "hooks")
			s.exits(0, "git-lease", "hook", "install")
			s.git("worktree", "add", "-q", "--detach", filepath.Join(s.t.TempDir(), "linked"))
		}, "hook: linked lease hook install"},
		"a dead landing": {func(s seat, remote string) {
			s.write(map[string]string{"one": "1\n"})
			s.dies(remote, "pre-receive", "--", "one")
		}, "unfinished: git land resume"},
		"a kept verification": {func(s seat, remote string) {
			refuseRefs(s.t, remote, "refs/notes/verification")
			s.write(map[string]string{"one": "1\n"})
			s.try("git-land", "verify", "-x", "true", "--", "one")
			if err := os.Remove(filepath.Join(remote, "hooks/pre-receive")); err != nil {
				s.t.Fatal(err)
			}
		}, "unpublished: git land reconcile --fix"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := staged(t, "doctor", func(st *stage) {
				st.s.write(map[string]string{"first": "landed\n"})
				st.s.force("--", "first")
				st.s.exits(0, "git-lease", "hook", "install")
			})
			s, remote := st.s, st.remote()
			tt.seed(s, remote)
			code := 1
			if tt.want == "" {
				code = 0
			}
			wrong := s.examined(code)
			want, command, _ := strings.Cut(tt.want, ": ")
			if len(wrong) != min(1, len(want)) || !strings.Contains(wrong[want], command) {
				t.Errorf("wrong is %q, want %q", wrong, tt.want)
			}
			if want == "hook" {
				s.exits(0, "sh", "-c", wrong[want])
				s.examined(0)
			}
			refs := gittest.Refs(t, strings.TrimSuffix(remote, ".away")+map[bool]string{true: ".away"}[exists(remote+".away")])
			for ref := range refs {
				if strings.Contains(ref, "%") {
					t.Errorf("left behind: %s", ref)
				}
			}
		})
	}
}

// refuseRefs makes a server refuse pushes to refs that match a shell pattern.
func refuseRefs(t *testing.T, remote, pattern string) {
	t.Helper()
	gittest.Script(t, filepath.Join(remote, "hooks/pre-receive"),
		"#!/bin/sh\nwhile read -r old new ref; do case $ref in "+pattern+") exit 1;; esac; done\n")
}

// badTip puts what is no event on the tip of the chain.
func badTip(s seat, remote string) {
	s.t.Helper()
	tip := gittest.Git(s.t, remote, "rev-parse", "refs/lease/main")
	bad := gittest.Git(s.t, remote, "commit-tree", "-p", tip, "-m", "no event", "refs/heads/main^{tree}")
	gittest.Git(s.t, remote, "update-ref", "refs/lease/main", bad)
}

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// On a terminal the message of a squash is edited, by git's editor and by the rules of
// commit.cleanup; an editor that fails, or leaves nothing, lands nothing.
func TestSquashIsEditedOnATerminal(t *testing.T) {
	t.Parallel()
	environ, dir := scene(t)
	seen := filepath.Join(t.TempDir(), "seen")
	land := func(config, editor string, args ...string) (code int, stderr string) {
		t.Helper()
		key, value, _ := strings.Cut(config, "=")
		env := gittest.With(environ, "TERM=xterm", "GIT_EDITOR="+editor, "SEEN="+seen, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0="+key, "GIT_CONFIG_VALUE_0="+value)
		var out, errs bytes.Buffer
		code = GitLand(t.Context(), append([]string{"--squash", "-x", "true"}, args...), Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
			StdinTTY: true, StdoutTTY: true, StderrTTY: true, Environ: env, Dir: dir, Now: time.Now})
		return code, errs.String()
	}
	stack := func(n string) {
		gittest.Commit(t, dir, "One\n\nThe one.", map[string]string{"one": n})
		gittest.Commit(t, dir, "#two\n\nThe two.", map[string]string{"two": n})
	}
	for _, tt := range []struct{ config, add, draft, want string }{
		{"commit.cleanup=default", `# mine\nEnd  \n\n`, "\n# Commit 2 of 2, ", "One\n\nThe one.\n\nThe two.\n\nEnd\n"},
		{"core.commentChar=auto", `# mine\n; yours\n`, "\n; 2 commits land on main as one, of which this is the message.\n", "One\n\nThe one.\n\n#two\n\nThe two.\n\n# mine\n"},
		{"commit.cleanup=scissors", `more\n`, "\n# ------------------------ >8 ------------------------\n# Do not change", "One\n\nThe one.\n\n#two\n\nThe two.\n"},
		{"commit.cleanup=verbatim", `# all \n\n`, "The two.\n", "One\n\nThe one.\n\n#two\n\nThe two.\n# all \n\n"},
	} {
		stack(tt.config)
		code, stderr := land(tt.config, `f() { cat "$1" >"$SEEN"; printf '`+tt.add+`' >>"$1"; }; f`)
		if code != 0 {
			t.Fatalf("%s: exit code %d\n%s", tt.config, code, stderr)
		}
		draft, err := os.ReadFile(seen)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains("\n"+string(draft), tt.draft) || tt.config == "commit.cleanup=verbatim" && !strings.HasSuffix(string(draft), tt.draft) {
			t.Errorf("%s: the editor shows %q, which lacks %q", tt.config, draft, tt.draft)
		}
		// Whole, as no command of git's prints it.
		_, got, _ := strings.Cut(gittest.TryGit(t, dir, "cat-file", "commit", "HEAD").Stdout, "\n\n")
		if got != tt.want {
			t.Errorf("%s: landed with %q, want %q", tt.config, got, tt.want)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".git", "lease-message-*")); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
	target := func() string { return gittest.Git(t, dir, "ls-remote", "origin", "refs/heads/main") }
	was := target()
	stack("more")
	for _, tt := range []struct {
		config, editor, stderr string
		code                   int
		args                   []string
	}{
		{"commit.cleanup=default", "false", "the editor false ended with exit code 1, and nothing landed", 1, nil},
		{"commit.cleanup=default", "truncate -s 0", "the message is empty, and nothing landed", 129, nil},
		{"commit.cleanup=strict", "true", `config commit.cleanup: "strict" is none of`, 129, nil},
		{"commit.cleanup=default", "false", "landed", 0, []string{"-m", "Given"}}, // nothing to edit
	} {
		code, stderr := land(tt.config, tt.editor, tt.args...)
		if code != tt.code || code != 0 && !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%s %s: exit code %d, want %d, and %q: %s", tt.config, tt.editor, code, tt.code, tt.stderr, stderr)
		}
		if landed := target() != was; landed != (code == 0) {
			t.Errorf("%s: exit code %d, and landed: %v", tt.editor, code, landed)
		}
	}
}

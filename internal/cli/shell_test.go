package cli

import (
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// What is printed for a shell gives the shell exactly the value, whatever it
// has in it.
func TestAssignmentsInARealShell(t *testing.T) {
	t.Parallel()
	env, dir := gittest.Env(t)
	values := []string{"plain", "it's", `"double" $HOME $(false) ` + "`false`", `back\slash\`, "'", "''", "two\nlines", " spaces ", "*", "; exit 9", "日本", ""}
	for _, shell := range []struct{ name, format, print string }{
		{"sh", "sh", `printf %s "$GIT_LEASE_NAME"`},
		{"bash", "sh", `printf %s "$GIT_LEASE_NAME"`},
		{"zsh", "sh", `printf %s "$GIT_LEASE_NAME"`},
		{"fish", "fish", `printf %s $GIT_LEASE_NAME`},
	} {
		t.Run(shell.name, func(t *testing.T) {
			t.Parallel()
			if shell.name != "sh" && gittest.Run(t, gittest.Command(t, env, dir, "sh", "-c", "command -v "+shell.name)).Code != 0 {
				t.Skipf("no %s", shell.name)
			}
			for _, value := range values {
				script := assignments(shell.format, []string{"GIT_LEASE_NAME=" + value}) + shell.print
				r := gittest.Run(t, gittest.Command(t, env, dir, shell.name, "-c", script))
				if r.Code != 0 || r.Stdout != value {
					t.Errorf("%q became %q, exit %d: %s", value, r.Stdout, r.Code, r.Stderr)
				}
			}
		})
	}
}

func TestAssignmentsAreExported(t *testing.T) {
	t.Parallel()
	env, dir := gittest.Env(t)
	script := assignments("sh", []string{"GIT_LEASE_NAME=a", "GIT_LEASE_FENCE=7"}) + "env"
	r := gittest.Run(t, gittest.Command(t, env, dir, "sh", "-ec", script))
	for _, want := range []string{"GIT_LEASE_NAME=a\n", "GIT_LEASE_FENCE=7\n"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("%q is not in the environment:\n%s", want, r.Stdout)
		}
	}
}

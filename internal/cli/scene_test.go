package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// scene is a clone of a remote with one commit, and an environment.
func scene(t *testing.T) (environ []string, dir string) {
	t.Helper()
	environ, _ = gittest.Env(t)
	return environ, gittest.Clone(t, gittest.URL(gittest.Remote(t)))
}

// inProcess runs a tool as if on a terminal.
func inProcess(t *testing.T, tool func(context.Context, []string, Env) int, environ []string, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = tool(t.Context(), args, Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		StdoutTTY: true, StderrTTY: true, Environ: environ, Dir: dir, Now: time.Now})
	return code, out.String(), errs.String()
}

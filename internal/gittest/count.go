package gittest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Counter records the git processes that a program starts: a wrapper named
// git stands first in PATH, notes its arguments and becomes the real git.
//
// Processes that git starts on its own are not recorded, since git puts its
// own directory before everything else in PATH. For the same reason the
// program must be started as itself (git-land), not through git (git land).
type Counter struct {
	t   T
	dir string
	git string // the real one
}

// The wrapper writes a call in one go, so that calls at the same time do not
// mix: its arguments, each ended by US, and at last RS and US.
const wrapper = `#!/bin/sh
printf '%s\037' "$@" "$(printf '\036')" >>"${0%/*}/log"
exec "$GITTEST_GIT" "$@"
`

const callEnd = "\x1e\x1f"

// CountGit makes a counter.
func CountGit(t T) *Counter {
	t.Helper()
	c := &Counter{t: t, dir: t.TempDir()}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	git, err = filepath.Abs(git)
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	c.git = git
	Script(t, filepath.Join(c.dir, "git"), strings.Replace(wrapper, "$GITTEST_GIT", git, 1))
	return c
}

// Env returns env with the wrapper first in PATH.
func (c *Counter) Env(env []string) []string { return WithPath(env, c.dir) }

// Calls returns the arguments of every git process since the last Reset, in
// the order in which they started.
func (c *Counter) Calls() [][]string {
	c.t.Helper()
	log, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatalf("gittest: %v", err)
	}
	var calls [][]string
	for call := range strings.SplitSeq(strings.TrimSuffix(string(log), callEnd), callEnd) {
		if call != "" {
			calls = append(calls, strings.Split(strings.TrimSuffix(call, "\x1f"), "\x1f"))
		}
	}
	return calls
}

// Reset forgets all calls so far.
func (c *Counter) Reset() {
	c.t.Helper()
	if err := os.RemoveAll(filepath.Join(c.dir, "log")); err != nil {
		c.t.Fatalf("gittest: %v", err)
	}
}

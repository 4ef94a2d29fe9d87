package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A HookState says what git has for a hook of a commit.
type HookState int

// What there may be. Git warns of a file that is not executable, and so has to be asked
// about it.
const (
	NoHook HookState = iota
	IgnoredHook
	RunsHook
)

// HookState looks for a hook of a commit: a file, or a configured hook that is not
// switched off. It starts a process only where there is a configured hook, which older
// gits ignore, or where core.hooksPath is something that only git can read.
func (r *Repo) HookState(ctx context.Context, name string) (HookState, error) {
	if r.configuresHook(name) {
		if runs, err := r.RunsConfiguredHooks(ctx); err != nil || runs {
			return RunsHook, err
		}
	}
	dir := filepath.Join(r.CommonDir, "hooks")
	if len(r.Config.All("core.hooksPath")) > 0 {
		dir = r.Config.Get("core.hooksPath")
		switch {
		case dir == "", strings.ContainsRune("~%:", rune(dir[0])): // "~/hooks", "%(prefix)/hooks"
			var err error
			if dir, err = r.HooksDir(ctx); err != nil {
				return NoHook, err
			}
		case !filepath.IsAbs(dir):
			dir = filepath.Join(r.Top, dir) // githooks(5): from where hooks run
		}
	}
	switch err := unix.Access(filepath.Join(dir, name), unix.X_OK); err { // as git's find_hook asks
	case nil:
		return RunsHook, nil
	case unix.ENOENT, unix.ENOTDIR:
		return NoHook, nil
	}
	return IgnoredHook, nil
}

// configuresHook reports whether the configuration has a hook of that name, and it is on.
// One that is said to be neither on nor off is for git to refuse.
func (r *Repo) configuresHook(name string) bool {
	off := func(hook string) bool {
		on, err := r.Config.Bool(hook+".enabled", true)
		return err == nil && !on
	}
	if off("hook." + name) { // git 2.55
		return false
	}
	for key, events := range r.Config.values {
		hook, isEvent := strings.CutSuffix(key, ".event")
		if isEvent && strings.HasPrefix(hook, "hook.") && slices.Contains(events, name) && !off(hook) {
			return true
		}
	}
	return false
}

// A CommitHook is one run of a hook of a commit.
type CommitHook struct {
	Name   string
	Args   []string
	Author string // of the commit, "Name <email> seconds zone"
	Output io.Writer
}

// RunHook runs a hook as git commit would, on the copy as the index that is to be
// committed: all hooks of that name, in git's order, from the top of the work tree, with
// the environment that the user gave and none of our settings. refused is that it
// ended otherwise than with 0.
func (t *TempIndex) RunHook(ctx context.Context, h CommitHook) (refused bool, err error) {
	// Git 2.36 and newer. It sets GIT_DIR, GIT_PREFIX and the rest as git commit does, but
	// for what follows.
	args := append([]string{"hook", "run", "--ignore-missing", h.Name, "--"}, h.Args...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = t.repo.Dir
	cmd.Env = slices.Concat(t.repo.given, identEnv("AUTHOR", h.Author), []string{"GIT_INDEX_FILE=" + t.path, "GIT_EDITOR=:"})
	cmd.Stdout, cmd.Stderr = h.Output, h.Output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killDelay
	err = cmd.Run()
	var exited *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.As(err, &exited):
		return true, nil
	}
	return false, err
}

// CleanMessage is a commit message as git commit takes it from a file, by commit.cleanup,
// when there was no editor: without space at the ends of lines and empty lines at both
// ends, most often.
func (r *Repo) CleanMessage(ctx context.Context, text string) (string, error) {
	args := []string{"stripspace"}
	switch r.Config.Get("commit.cleanup") {
	case "verbatim":
		return text, nil
	case "strip":
		args = append(args, "--strip-comments")
	}
	return r.run(ctx, command{reading: true, args: args, stdin: []byte(text)})
}

// MessageFile writes a commit message for hooks and editors into the git directory. id is
// of whoever uses it, for SweepTemporary. Editors know it by its last component. It is not git's own of that
// name: others commit here at the same time.
func (r *Repo) MessageFile(id, text string) (path string, remove func(), err error) {
	dir := r.temporary(messagePrefix, id)
	remove = func() { os.RemoveAll(dir) }
	path = filepath.Join(dir, editMessage)
	if err = os.Mkdir(dir, 0o700); err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		remove()
	}
	return path, remove, err
}

// maxMessage bounds what a hook, or an editor, may make of a message.
const maxMessage = 1 << 20

// ReadMessage is the message that hooks or an editor left in a file. It refuses what is
// no regular file, which need have no end, or never be written; and, as git commit does,
// one with a NUL byte, at which git would take it to end.
func ReadMessage(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxMessage+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxMessage:
		return "", fmt.Errorf("%s has more than the %d bytes that are read", path, maxMessage)
	case bytes.IndexByte(text, 0) >= 0:
		return "", fmt.Errorf("%s has a NUL byte, which git takes in no message", path)
	}
	return string(text), nil
}

// LeaveMessage leaves a message that somebody has written where git commit leaves its last
// one, for who looks for it.
func (r *Repo) LeaveMessage(text string) error {
	return os.WriteFile(filepath.Join(r.GitDir, editMessage), []byte(text), 0o666)
}

const editMessage = "COMMIT_EDITMSG"

package hook

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"gitland/internal/git"
)

// Our pre-push hook as git 2.54 and newer have it: from the repository's configuration,
// for all its worktrees, beside whatever core.hooksPath says. Git dies of an event
// that has no command, whatever it was about to do: the command comes first and
// goes last.
const (
	configuredName = "hook.git-lease"
	commandKey     = configuredName + ".command"
	eventKey       = configuredName + ".event"
	// command is for a shell. A path would bind it to where the repository is now.
	command = `"$(git rev-parse --git-common-dir)/lease/hooks/` + PrePush + `"`
)

// stubPath is what command runs.
func stubPath(repo *git.Repo) string {
	return filepath.Join(repo.CommonDir, "lease", "hooks", PrePush)
}

func installConfigured(ctx context.Context, repo *git.Repo, tool string) (Change, error) {
	c := Change{Hook: PrePush, Path: stubPath(repo), Config: configuredName}
	want, err := stub(PrePush, tool)
	if err != nil {
		return c, err
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		return c, err
	}
	if c.Done, err = write(c.Path, want); err != nil {
		return c, err
	}
	commands, err := repo.OwnConfig(ctx, commandKey)
	if err != nil {
		return c, err
	}
	if !slices.Equal(commands, []string{command}) {
		if err := repo.PutConfig(ctx, commandKey, command); err != nil {
			return c, err
		}
		if c.Done == "unchanged" {
			c.Done = "updated"
		}
	}
	events, err := repo.OwnConfig(ctx, eventKey)
	if err != nil || slices.Contains(events, PrePush) {
		return c, err
	}
	c.Done = "installed"
	return c, repo.SetConfig(ctx, eventKey, PrePush)
}

// isConfigured reports whether the repository's configuration has our hook, whatever
// git makes of it.
func isConfigured(ctx context.Context, repo *git.Repo) (bool, error) {
	for _, key := range []string{eventKey, commandKey} {
		if values, err := repo.OwnConfig(ctx, key); len(values) > 0 || err != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// uninstallConfigured leaves what else somebody has written of our hook, such as
// hook.git-lease.enabled.
func uninstallConfigured(ctx context.Context, repo *git.Repo) (Change, error) {
	c := Change{Hook: PrePush, Path: stubPath(repo), Config: configuredName, Done: "removed"}
	for _, key := range []string{eventKey, commandKey} {
		if err := repo.UnsetConfig(ctx, key); err != nil {
			return c, err
		}
	}
	if err := os.Remove(c.Path); err != nil && !os.IsNotExist(err) {
		return c, err
	}
	os.Remove(filepath.Dir(c.Path)) // where it is empty
	return c, nil
}

package hook

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/git"
)

// The hooks, by git's names for them (githooks(5)).
const (
	PrePush              = "pre-push"
	PreReceive           = "pre-receive"
	ReferenceTransaction = "reference-transaction"
)

// Client and Server are what is installed where.
var (
	Client = []string{PrePush}
	Server = []string{PreReceive, ReferenceTransaction}
)

// A Change is what became of one hook.
type Change struct {
	Hook string `json:"hook"`
	Path string `json:"path"`
	// Config is the section of git's configuration by which git runs it; empty for one
	// in a directory of hooks.
	Config string `json:"config,omitempty"`
	// Done is "installed", "updated" (it was ours, of another version or place),
	// "unchanged", "removed" or "absent".
	Done string `json:"done"`
	// Before is the hook that was there: it runs after ours, or is back at its place. Empty for none.
	Before string `json:"before,omitempty"`
	// Left is a hook that was kept, and not put back: another one is in its place.
	Left string `json:"left,omitempty"`
}

// Install makes git run hooks. tool is the absolute path of git-lease. A pre-push hook
// goes into the configuration, where git runs it from there, and a file of ours goes: what was in its
// place is back then. All else is a file in the directory where
// git looks for hooks (git rev-parse --git-path hooks); what is there already stays, and is run after
// ours. Done twice it changes nothing. The error is a fault of class Conflict where two
// earlier hooks would have to be kept, and where the directory is not the repository's own.
func Install(ctx context.Context, repo *git.Repo, tool string, names []string) ([]Change, error) {
	if slices.Equal(names, Client) {
		configured, err := repo.RunsConfiguredHooks(ctx)
		if err != nil {
			return nil, err
		}
		if configured {
			return intoConfig(ctx, repo, tool)
		}
	}
	dir, err := repo.HooksDir(ctx)
	if err != nil {
		return nil, err
	}
	if !within(dir, repo.CommonDir) && !within(dir, repo.Top) {
		return nil, fault.New(fault.Conflict, "%s, where git looks for hooks by core.hooksPath, is not of this repository alone: others would get the hook as well", dir).
			WithHint("git config --local core.hooksPath %s   (then again)", fault.Command(filepath.Join(repo.CommonDir, "hooks")))
	}
	var changes []Change
	for _, name := range names {
		c, err := fileOf(repo, dir, name).install(tool)
		if err != nil {
			return changes, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// intoConfig installs by configuration, and then takes away the files of ours that
// any worktree has: both would be run.
func intoConfig(ctx context.Context, repo *git.Repo, tool string) ([]Change, error) {
	c, err := installConfigured(ctx, repo, tool)
	changes := []Change{c}
	if err != nil {
		return nil, err
	}
	places, err := worktrees(ctx, repo)
	if err != nil {
		return changes, err
	}
	for _, p := range places {
		f := fileOf(p.repo, p.dir, PrePush)
		if f.ours() == "" && !f.isOurs(displaced) {
			continue
		}
		c, err := f.uninstall()
		if err != nil {
			return changes, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// Uninstall takes our hooks out, and puts what was there before back as it was.
func Uninstall(ctx context.Context, repo *git.Repo, names []string) ([]Change, error) {
	var changes []Change
	if slices.Equal(names, Client) {
		configured, err := isConfigured(ctx, repo)
		if err != nil {
			return nil, err
		}
		if configured {
			c, err := uninstallConfigured(ctx, repo)
			if err != nil {
				return nil, err
			}
			changes = append(changes, c)
		}
	}
	dir, err := repo.HooksDir(ctx)
	if err != nil {
		return changes, err
	}
	for _, name := range names {
		c, err := fileOf(repo, dir, name).uninstall()
		if err != nil {
			return changes, err
		}
		if len(changes) == 0 || c.Done != "absent" || slices.Equal(names, Server) {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// fileOf is a hook in a directory where the repository has its hooks.
func fileOf(repo *git.Repo, dir, name string) file {
	return file{dir: dir, name: name, shown: within(dir, repo.Top) && !within(dir, repo.CommonDir)}
}

// within reports whether a directory lies below another one, and not at it.
func within(dir, top string) bool {
	rest, err := filepath.Rel(resolved(top), resolved(dir))
	return top != "" && err == nil && rest != "." && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}

// resolved is path without symbolic links, as far as it exists.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	return path
}

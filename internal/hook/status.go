package hook

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"gitland/internal/git"
)

// A State is what git would run as one hook in one worktree.
type State struct {
	Worktree string `json:"worktree"` // the repository's directory, where it is bare
	Hook     string `json:"hook"`
	Path     string `json:"path"`
	// State is "active", "outdated" (ours, of another version or place), "inactive"
	// (ours, and not executable), "other" (a hook that is not ours), "absent", or "gone"
	// (ours, and its executable is not there).
	State string `json:"state"`
	// Before is the hook that runs after ours; empty for none.
	Before string `json:"before,omitempty"`
}

// Status says what git would run for the hooks, in each worktree of the repository: a
// relative core.hooksPath is another directory in each. tool is as for Install.
func Status(ctx context.Context, repo *git.Repo, tool string, names []string) ([]State, error) {
	trees, err := repo.Worktrees(ctx)
	if err != nil {
		return nil, err
	}
	var states []State
	for _, w := range trees {
		if w.Gone {
			continue
		}
		there, err := repo.In(ctx, w.Path)
		if err != nil {
			return states, err
		}
		dir, err := there.HooksDir(ctx)
		if err != nil {
			return states, err
		}
		for _, name := range names {
			s := State{Worktree: w.Path, Hook: name, Path: filepath.Join(dir, name)}
			if s.State, err = stateOf(s.Path, name, tool); err != nil {
				return states, err
			}
			if s.State != "other" && s.State != "absent" && exists(s.Path+before) {
				s.Before = s.Path + before
			}
			states = append(states, s)
		}
	}
	return states, nil
}

func stateOf(path, name, tool string) (string, error) {
	has, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "absent", nil
	}
	if err != nil {
		return "", err
	}
	want, err := stub(name, tool)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !isOurs(has):
		return "other", nil
	case info.Mode()&0o111 == 0:
		return "inactive", nil
	case !bytes.Equal(has, want):
		return "outdated", nil
	case !exists(tool):
		return "gone", nil
	}
	return "active", nil
}

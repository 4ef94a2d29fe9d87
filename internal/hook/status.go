package hook

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/verify"
)

// A State is what git would run as one hook in one worktree.
type State struct {
	Worktree string `json:"worktree"` // the repository's directory, where it is bare
	Hook     string `json:"hook"`
	// Path is our hook, or where it would be.
	Path string `json:"path"`
	// State is "active", "outdated" (ours, of another version or place), "inactive"
	// (ours, and not executable), "disabled" (ours, and switched off in git's configuration),
	// "other" (a hook that is not ours), "absent", or "gone" (ours, and its executable is not there).
	State string `json:"state"`
	// Runs is all that git runs, in its order.
	Runs []Run `json:"runs"`
	// Before is the hook that was there before ours, which runs it; empty for none.
	Before string `json:"before,omitempty"`
	// Off is the key of git's configuration that switches ours off, and Scope where it stands.
	Off   string `json:"off,omitempty"`
	Scope string `json:"scope,omitempty"`
	// Ignored means that the configuration has our hook, and that this git is too old
	// to run it from there.
	Ignored bool `json:"ignored,omitempty"`
}

// A Run is one hook that git runs.
type Run struct {
	Config  string `json:"config,omitempty"` // the section of a configured hook
	Command string `json:"command"`          // for a shell where it is configured; else the path
	Ours    bool   `json:"ours"`
}

// Mend is the command by which our hook becomes active in that worktree.
func (s State) Mend() string {
	switch {
	case s.State == "active":
		return ""
	case s.State != "disabled":
		words := []string{"git", "-C", s.Worktree, "lease", "hook", "install"}
		if s.Hook != PrePush {
			words = append(words, "--server")
		}
		return fault.Command(words...)
	case s.Scope == "local" || s.Scope == "worktree":
		return fault.Command("git", "-C", s.Worktree, "config", "--"+s.Scope, "--unset-all", s.Off)
	}
	return fault.Command("git", "-C", s.Worktree, "config", "--local", s.Off, "true")
}

// Status says what git would run for the hooks, in each worktree of the repository: a
// relative core.hooksPath is another directory in each, and each can have a configuration of
// its own. tool is as for Install.
func Status(ctx context.Context, repo *git.Repo, tool string, names []string) ([]State, error) {
	configured, err := repo.RunsConfiguredHooks(ctx)
	if err != nil {
		return nil, err
	}
	places, err := worktrees(ctx, repo)
	if err != nil {
		return nil, err
	}
	var states []State
	for _, p := range places {
		for _, name := range names {
			s, err := p.state(name, tool)
			if err == nil && configured {
				err = p.configured(ctx, &s, tool)
			} else if err == nil && name == PrePush {
				s.Ignored, err = isConfigured(ctx, p.repo)
			}
			if err != nil {
				return states, err
			}
			states = append(states, s)
		}
	}
	return states, nil
}

// A place is a worktree, and the directory where git looks for hooks in it.
type place struct {
	repo      *git.Repo
	path, dir string
}

// worktrees are the places of a repository where somebody may push: the verification
// worktrees are left out.
func worktrees(ctx context.Context, repo *git.Repo) ([]place, error) {
	trees, err := repo.Worktrees(ctx)
	if err != nil {
		return nil, err
	}
	var places []place
	for _, w := range trees {
		if w.Gone || verify.IsWorktree(repo, w.Path) {
			continue
		}
		p := place{path: w.Path}
		if p.repo, err = repo.In(ctx, w.Path); err != nil {
			return nil, err
		}
		if p.dir, err = p.repo.HooksDir(ctx); err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	return places, nil
}

// state is what there is in the directory of hooks.
func (p place) state(name, tool string) (State, error) {
	f := fileOf(p.repo, p.dir, name)
	s := State{Worktree: p.path, Hook: name, Path: f.path(), State: "absent"}
	at := f.ours()
	if at == "" {
		if _, err := os.Stat(f.path()); err == nil {
			s.State = "other"
		} else if !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	} else {
		var err error
		if s.State, err = stubState(at, name, tool); err != nil {
			return s, err
		}
		s.Path, s.Before = at, f.next()
		if executable(at) {
			s.Runs = append(s.Runs, Run{Command: at, Ours: true})
			if executable(s.Before) {
				s.Runs = append(s.Runs, Run{Command: s.Before})
			}
		}
	}
	if at != f.path() && executable(f.path()) {
		s.Runs = append(s.Runs, Run{Command: f.path()})
	}
	return s, nil
}

// configured adds what git runs by its configuration, before all else.
func (p place) configured(ctx context.Context, s *State, tool string) error {
	list, err := p.repo.ConfiguredHooks(ctx, s.Hook)
	if half := p.repo.HooksWithoutCommand(); err != nil && len(half) > 0 {
		return fault.New(fault.Conflict, "git runs no hook in %s, and nothing that would run one: %w", p.path, err).
			WithHint("%s   (or say what it runs: hook.%s.command)", fault.Command("git", "-C", p.path, "config", "--unset-all", "hook."+half[0]+".event"), half[0])
	}
	if err != nil {
		return err
	}
	var runs []Run
	for _, h := range list {
		r := Run{Config: "hook." + h.Name, Command: h.Command}
		if r.Config == configuredName && s.Hook == PrePush {
			state, err := stubState(stubPath(p.repo), s.Hook, tool)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				state = "gone"
			case err != nil:
				return err
			case h.Command != command && state == "active":
				state = "outdated"
			}
			r.Ours = true
			if h.Off != "" {
				state = "disabled"
			}
			if s.State != "active" || state == "active" {
				s.State, s.Path = state, stubPath(p.repo)
				s.Off, s.Scope = h.Off, h.Scope
			}
		}
		if h.Off == "" {
			runs = append(runs, r)
		}
	}
	s.Runs = append(runs, s.Runs...)
	return nil
}

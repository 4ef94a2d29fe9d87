package cli

import (
	"context"

	"gitland/internal/child"
	"gitland/internal/fault"
	"gitland/internal/git"
)

// editor has the user edit a file, where somebody sits at a terminal; else it is nil.
func (c *call) editor(repo *git.Repo) func(ctx context.Context, file string) error {
	if !c.env.StdinTTY || !c.env.StdoutTTY || c.opts.Bool("json") {
		return nil
	}
	return func(ctx context.Context, file string) error {
		editor, err := repo.Editor(ctx)
		if err != nil {
			return fault.New(fault.Failed, "there is no editor for the message: %w", err).WithHint("add -m MESSAGE")
		}
		r, err := child.Run(ctx, child.Request{ // as git does: a shell may take it apart
			Argv: []string{"sh", "-c", editor + ` "$@"`, editor, file}, Dir: c.env.Dir,
			Env: c.env.Environ, Stdin: c.env.Stdin, Stdout: c.env.Stdout, Stderr: c.env.Stderr})
		if err == nil && r.Code != 0 {
			err = fault.New(fault.Failed, "the editor %s ended with exit code %d, and nothing landed", editor, r.Code).
				WithHint("run git land again, or add -m MESSAGE")
		}
		return err
	}
}

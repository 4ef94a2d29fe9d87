package cli

import (
	"context"
	"os"
	"path/filepath"

	"gitland/internal/child"
	"gitland/internal/fault"
	"gitland/internal/git"
)

// editor has the user edit a text, where somebody sits at a terminal; else it is nil.
func (c *call) editor(repo *git.Repo) func(context.Context, string) (string, error) {
	if !c.env.StdinTTY || !c.env.StdoutTTY || c.opts.Bool("json") {
		return nil
	}
	return func(ctx context.Context, text string) (string, error) {
		// Editors know that name, and who loses what was written finds it where git
		// commit leaves it.
		file := filepath.Join(repo.GitDir, "COMMIT_EDITMSG")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			return "", err
		}
		if err := c.edit(ctx, repo, file); err != nil {
			return "", err
		}
		edited, err := os.ReadFile(file)
		return string(edited), err
	}
}

// edit runs the user's editor on a file, as git does: a shell may take it apart.
func (c *call) edit(ctx context.Context, repo *git.Repo, file string) error {
	editor, err := repo.Editor(ctx)
	if err != nil {
		return fault.New(fault.Failed, "there is no editor for the message: %w", err).WithHint("add -m MESSAGE")
	}
	r, err := child.Run(ctx, child.Request{Argv: []string{"sh", "-c", editor + ` "$@"`, editor, file}, Dir: c.env.Dir,
		Env: c.env.Environ, Stdin: c.env.Stdin, Stdout: c.env.Stdout, Stderr: c.env.Stderr})
	if err == nil && r.Code != 0 {
		err = fault.New(fault.Failed, "the editor %s ended with exit code %d, and nothing landed", editor, r.Code).WithHint("add -m MESSAGE")
	}
	return err
}

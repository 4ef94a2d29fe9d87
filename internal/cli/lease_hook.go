package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/hook"
	"gitland/internal/ledger"
)

func hookCommand() *command {
	return &command{
		name:     "hook",
		synopsis: "install [--server] [--json]\nuninstall [--server] [--json]",
		summary:  "install hooks that keep branches under their lease",
		about: `
Installs git's hooks that keep branches under their lease, beside those that are
there already, which go on running. With --server, in the repository that others
push to: there a branch moves only together with the event that names the move,
whoever pushes, and with what. Installing twice changes nothing; uninstall puts
back what was there.`,
		examples: `
git lease hook install --server
git lease hook uninstall --server`,
		exits: []int{3, 5, 9},
		flags: []cli.Flag{boolean("server", "the hooks of a repository that others push to"), jsonFlag()},
		run:   hookAction,
	}
}

func hookAction(ctx context.Context, c *call) error {
	actions := map[string]func(context.Context, *call) error{
		"install": hookInstall, "uninstall": hookUninstall,
		// What the installed hooks call.
		hook.PreReceive:           func(ctx context.Context, c *call) error { return fence(ctx, c, hook.Received) },
		hook.ReferenceTransaction: func(ctx context.Context, c *call) error { return fence(ctx, c, hook.Prepared) },
	}
	if len(c.in.operands) == 1 {
		if act, known := actions[c.in.operands[0]]; known {
			return act(ctx, c)
		}
	}
	return fault.New(fault.Usage, "git lease hook wants to know what to do, and got %q", strings.Join(c.in.operands, " ")).
		WithHint("git lease hook install --server")
}

func hookInstall(ctx context.Context, c *call) error {
	names, err := c.hookNames()
	if err != nil {
		return err
	}
	repo, err := c.repo(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	if repo.Top != "" {
		return fault.New(fault.Usage, "%s has a work tree: the server's hooks are for the bare repository that others push to", repo.Top).
			WithHint("git -C /path/of/the/bare/repository.git lease hook install --server")
	}
	tool, err := ownPath()
	if err != nil {
		return err
	}
	changes, err := hook.Install(ctx, repo, tool, names)
	return c.hooksChanged(changes, err)
}

func hookUninstall(ctx context.Context, c *call) error {
	names, err := c.hookNames()
	if err != nil {
		return err
	}
	repo, err := c.repo(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	changes, err := hook.Uninstall(ctx, repo, names)
	return c.hooksChanged(changes, err)
}

func (c *call) hookNames() ([]string, error) {
	if !c.opts.Bool("server") {
		return nil, fault.New(fault.Usage, "only the server's hooks are built so far").WithHint("git lease hook install --server   (in the bare repository)")
	}
	return hook.Server, nil
}

func (c *call) hooksChanged(changes []hook.Change, err error) error {
	if c.opts.Bool("json") && err == nil {
		return c.out.json(map[string]any{"hooks": slices.Concat([]hook.Change{}, changes)})
	}
	for _, done := range changes {
		also := ""
		if done.Before != "" && done.Done != "removed" {
			also = ", runs " + done.Before + " after it"
		} else if done.Before != "" {
			also = ", and what was there before is back"
		}
		c.out.printf("%-9s %s%s\n", done.Done, done.Path, also)
	}
	return err
}

// ownPath is where git-lease is: what runs now may be called otherwise, as when
// git-land installs.
func ownPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(self), "git-lease"), nil
}

// fence answers git's question whether refs of this repository, to which others
// push, may move.
func fence(ctx context.Context, c *call, stage hook.Stage) error {
	updates, err := hook.ReadUpdates(c.env.Stdin)
	if err != nil || len(updates) == 0 {
		return err
	}
	repo, err := c.repo(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	l, err := ledger.Open(repo, ledger.Options{Remote: ledger.Local, Now: c.env.Now, Notice: c.note})
	if err != nil {
		return err
	}
	return hook.Fence(ctx, l, stage, updates)
}

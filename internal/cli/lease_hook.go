package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/hook"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

func hookCommand() *command {
	return &command{
		name:     "hook",
		synopsis: "install [--server] [--json]\nuninstall [--server] [--json]\nstatus [--server] [--json]",
		summary:  "install hooks that keep branches under their lease",
		about: `
Installs git's pre-push hook, by which a push from this clone to a protected
branch (lease.protect, else the target) is refused unless its session holds the
lease. With --server, in the repository that others push to: the hooks by which
a branch moves only together with the event that names the move, whoever pushes,
and with what. Git 2.54 and newer have the pre-push hook in their configuration;
else it is a file where git looks for hooks. A hook that is there already goes
on running, after ours. Installing twice changes nothing; uninstall puts back
what was there. Status says what git runs, and in what order, in each worktree;
in a bare repository it is of the server's hooks.`,
		examples: `
git lease hook install
git lease hook install --server
git lease hook status
git lease hook uninstall --server`,
		exits: []int{3, 5, 9},
		flags: []cli.Flag{boolean("server", "the hooks of a repository that others push to"), jsonFlag()},
		run:   hookAction,
	}
}

func hookAction(ctx context.Context, c *call) error {
	actions := map[string]func(context.Context, *call) error{
		"install": hookInstall, "uninstall": hookUninstall, "status": hookStatus,
		// What the installed hooks call.
		hook.PrePush:              guard,
		hook.PreReceive:           func(ctx context.Context, c *call) error { return fence(ctx, c, hook.Received) },
		hook.ReferenceTransaction: func(ctx context.Context, c *call) error { return fence(ctx, c, hook.Prepared) },
	}
	if len(c.in.operands) == 1 {
		if act, known := actions[c.in.operands[0]]; known {
			return act(ctx, c)
		}
	}
	where := ""
	if c.atServer(ctx) {
		where = " --server"
	}
	f := fault.New(fault.Usage, "git lease hook does not understand %q", strings.Join(c.in.operands, " "))
	if len(c.in.operands) == 0 {
		f = fault.New(fault.Usage, "git lease hook wants to know what to do")
	}
	return f.WithHint("git lease hook status%[1]s   (or: install%[1]s, uninstall%[1]s)", where)
}

// hooksOf opens what install, uninstall and status work on. Close the repository.
func (c *call) hooksOf(ctx context.Context) (repo *git.Repo, tool string, names []string, err error) {
	if names, err = c.hookNames(); err != nil {
		return nil, "", nil, err
	}
	if tool, err = ownPath(); err != nil {
		return nil, "", nil, err
	}
	repo, err = c.repo(ctx)
	return repo, tool, names, err
}

func hookInstall(ctx context.Context, c *call) error {
	repo, tool, names, err := c.hooksOf(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	if c.opts.Bool("server") && repo.Top != "" {
		return fault.New(fault.Usage, "%s has a work tree: the server's hooks are for the bare repository that others push to", repo.Top).
			WithHint("git -C /path/of/the/bare/repository.git lease hook install --server")
	}
	changes, err := hook.Install(ctx, repo, tool, names)
	return c.hooksChanged(changes, err)
}

func hookUninstall(ctx context.Context, c *call) error {
	repo, _, names, err := c.hooksOf(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	changes, err := hook.Uninstall(ctx, repo, names)
	return c.hooksChanged(changes, err)
}

func hookStatus(ctx context.Context, c *call) error {
	repo, tool, names, err := c.hooksOf(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	if repo.Top == "" && !c.opts.Bool("server") { // what it would have hooks for
		names = hook.Server
	}
	states, err := hook.Status(ctx, repo, tool, names)
	if err != nil {
		return err
	}
	if c.opts.Bool("json") {
		return c.out.json(map[string]any{"hooks": slices.Concat([]hook.State{}, states)})
	}
	var mend []string
	for _, s := range states {
		c.out.printf("%-8s  %s: %s\n", s.State, s.Worktree, hookState(s))
		here := s.Worktree == repo.Top || repo.Top == ""
		switch m := s.Mend(); {
		case m == "":
		case here && s.State != "disabled":
			mend = append(mend, c.hookInstallCommand(ctx))
		default:
			mend = append(mend, m)
		}
	}
	for i, m := range mend {
		if !slices.Contains(mend[:i], m) {
			c.err.printf("%s %s\n", paint(yellow, "hint:"), m)
		}
	}
	return nil
}

// hookState is what git runs, in its order, and what there is to say of ours.
func hookState(s hook.State) string {
	var runs []string
	for _, r := range s.Runs {
		words := r.Command
		if r.Ours && r.Config != "" {
			words = r.Config
		} else if r.Config != "" {
			words = r.Config + " (" + words + ")"
		}
		runs = append(runs, words)
	}
	chain := cmp.Or(strings.Join(runs, ", then "), "nothing")
	ignored := ""
	if s.Ignored && s.State != "active" {
		ignored = "; its configuration has our hook, for git 2.54 and newer, and this one is older"
	}
	switch s.State {
	case "absent", "other":
		return chain + ", and none of it is ours: nothing is refused here" + ignored
	case "inactive":
		return chain + "; " + s.Path + " is not executable: nothing is refused here" + ignored
	case "disabled":
		return chain + "; ours is switched off by " + s.Off + ": nothing is refused here"
	case "outdated":
		return chain + "; ours is of another version or place"
	case "gone":
		return chain + "; the executable of ours is gone"
	}
	return chain
}

// atServer reports whether the server's hooks are meant, or this is a repository
// that has no other use for hooks.
func (c *call) atServer(ctx context.Context) bool {
	if c.opts.Bool("server") {
		return true
	}
	repo, err := c.repo(ctx)
	if err != nil {
		return false
	}
	defer repo.Close()
	return repo.Top == ""
}

func (c *call) hookInstallCommand(ctx context.Context) string {
	if c.atServer(ctx) {
		return "git lease hook install --server"
	}
	return "git lease hook install"
}

func (c *call) hookNames() ([]string, error) {
	if c.opts.Bool("server") {
		return hook.Server, nil
	}
	return hook.Client, nil
}

func (c *call) hooksChanged(changes []hook.Change, err error) error {
	if c.opts.Bool("json") && err == nil {
		return c.out.json(map[string]any{"hooks": slices.Concat([]hook.Change{}, changes)})
	}
	for _, done := range changes {
		also := ""
		if done.Config != "" && done.Done != "removed" {
			also = ", which git runs as " + done.Config
		}
		if done.Before != "" && done.Done != "removed" {
			also += ", runs " + done.Before + " after it"
		} else if done.Before != "" {
			also += ", and what was there before is back"
		}
		if done.Left != "" {
			also += "; " + done.Left + " was there before, and is left, since another hook is in its place"
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

// guard answers git's question whether this push may be made.
func guard(ctx context.Context, c *call) error {
	p := hook.Push{Event: object.OID(c.env.Get("GIT_LEASE_EVENT")), Override: c.env.Get("GIT_LEASE_OVERRIDE"), Overriding: c.env.Has("GIT_LEASE_OVERRIDE")}
	if len(c.in.rest) != 2 {
		return fault.New(fault.Usage, "git calls its pre-push hook with a remote and a URL, and here it got %q", c.in.rest)
	}
	p.Remote, p.URL = c.in.rest[0], c.in.rest[1]
	var err error
	if p.Updates, err = hook.ReadPush(c.env.Stdin); err != nil || len(p.Updates) == 0 {
		return err
	}
	repo, err := c.repo(ctx)
	if err != nil {
		return err
	}
	l, err := c.authority(repo, "")
	if err != nil {
		defer repo.Close()
		return hook.Unchosen(ctx, repo, p.Updates, err)
	}
	defer closing(ctx, l)
	p.Want = c.want("")
	p.Session = func() (session.Source, error) { return l.Dir.FromEnv(c.env.Get) }
	return hook.Guard(ctx, l, p)
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

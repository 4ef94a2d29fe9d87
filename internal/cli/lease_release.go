package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/session"
)

func releaseCommand() *command {
	return &command{
		name:     "release",
		synopsis: "[NAME]",
		summary:  "give a lease back",
		about: `
Gives back the lease that this session holds. Only the session with the token
can: the shell that evaluated what acquire printed, or GIT_LEASE_SESSION. A
holder whose lease was broken, or recovered, meanwhile is told by whom, when and
why.`,
		examples: `
git lease release
GIT_LEASE_SESSION=job-42 git lease release docs`,
		exits: []int{3, 6, 8, 9},
		flags: []cli.Flag{jsonFlag(), remoteFlag()},
		run:   release,
	}
}

type releasedJSON struct {
	Lease     string    `json:"lease"`
	Remote    string    `json:"remote"`
	Operation ulid.ULID `json:"operation"`
	Already   bool      `json:"already"` // it had been given back before
}

func release(ctx context.Context, c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	repo, err := c.repo(ctx)
	if err != nil {
		return err
	}
	if err := c.atRemote(repo.Config, []string{name}); err != nil {
		return err
	}
	source, err := session.Open(repo.CommonDir).FromEnv(c.env.Get)
	if err != nil {
		return err
	}
	have, err := source.Load()
	if errors.Is(err, session.ErrNoToken) {
		return c.noToken(ctx, repo, name)
	}
	if err != nil {
		return err
	}
	hold, err := c.held(have, name)
	if err != nil {
		return err
	}
	l, err := c.authority(repo, hold.Remote)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want := c.want(hold.Name)
	done, err := lease.Release(ctx, l, want, have.Root)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Class == fault.Lost {
		f.Hint = "this session has forgotten the hold, and may go on   (what happened: " + f.Hint + ")"
		if source.Kind() == session.FromVar {
			f.Hint = "unset GIT_LEASE_TOKEN   (it proves nothing any more; then go on)"
		}
	}
	if !done.Operation.IsZero() && (err == nil || fault.ClassOf(err) == fault.Lost) {
		err = errors.Join(err, source.Forget(session.HoldNote{Remote: l.Remote, Name: done.Name, Operation: done.Operation}))
	}
	if err != nil {
		return err
	}
	how := "released"
	if done.Already {
		how = "released before:"
	}
	c.err.printf("%s %s at %s: operation %s\n", paint(green, how), done.Name, l.Remote, done.Operation)
	if c.opts.Bool("json") {
		return c.out.json(releasedJSON{done.Name, l.Remote, done.Operation, done.Already})
	}
	return nil
}

// noToken is the fault of a session that has nothing to release, and says who holds
// the lease, where that can be found out.
func (c *call) noToken(ctx context.Context, repo *git.Repo, name string) error {
	f := fault.New(fault.Held, "this session has no token, so it holds no lease")
	const where = "release it where it was acquired: the token is in that shell's GIT_LEASE_TOKEN, or kept for its GIT_LEASE_SESSION"
	f.WithHint("%s", where)
	l, err := c.authority(repo, "")
	if err != nil {
		return f
	}
	defer closing(ctx, l)
	want := c.want(name)
	v, err := l.Fetch(ctx, want)
	if err != nil || v.Problem != nil || v.Hold() == nil {
		return f
	}
	held := lease.Held(l, v, false)
	held.What = f.What + ": " + held.What
	return held.WithHint("%s   (or, %s)", where, held.Hint)
}

// held is the hold of this session that is meant: the one with the name and
// the remote, as far as they are given. What the session does not remember is
// for the chain to say.
func (c *call) held(have session.Session, name string) (session.HoldNote, error) {
	remote := c.opts.String("remote")
	holds := slices.DeleteFunc(have.Holds, func(h session.HoldNote) bool {
		return name != "" && h.Name != name || remote != "" && h.Remote != remote
	})
	switch {
	case len(holds) == 1:
		return holds[0], nil
	case len(holds) == 0 || name != "":
		return session.HoldNote{Name: name}, nil
	}
	var names []string
	for _, h := range holds {
		names = append(names, h.Name+" at "+h.Remote)
	}
	return session.HoldNote{}, fault.New(fault.Usage, "this session holds %d leases: which one? (%s)", len(holds), strings.Join(names, ", ")).
		WithHint("%s", fault.Command("git", "lease", "release", holds[0].Name, "--remote", holds[0].Remote))
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// open opens the repository and its authority: the remote given, else --remote, else the
// usual choice. Names are those of leases, as they were given as operands.
// Close it when done.
func (c *call) open(ctx context.Context, remote string, names ...string) (*ledger.Ledger, error) {
	repo, err := c.repo(ctx)
	if err != nil {
		return nil, err
	}
	var l *ledger.Ledger
	if err = c.atRemote(repo.Config, names); err == nil {
		l, err = c.authority(repo, remote)
	}
	if err != nil {
		repo.Close()
	}
	return l, err
}

func (c *call) repo(ctx context.Context) (*git.Repo, error) {
	return git.Open(ctx, git.Options{Dir: c.env.Dir, Environ: c.env.Environ, Unattended: !c.env.StderrTTY})
}

// atRemote refuses a name that has a remote before it, as only --name of git lease run
// takes it: the lease is hardly meant to have all of that for its name. Where the remote
// is given beside it, it is.
func (c *call) atRemote(config git.Config, names []string) error {
	for _, text := range names {
		remote, name, found := strings.Cut(text, ":")
		if !found || c.opts.String("remote") != "" || remote != ledger.Local && !slices.Contains(config.Remotes(), remote) {
			continue
		}
		args := []string{c.in.command.name, name}
		if len(names) == 1 {
			args = slices.Clone(c.args)
			args[slices.Index(args, text)] = name
		}
		return fault.New(fault.Usage, "%s is a remote, and %q would be the name of a lease", remote, text).
			WithHint("%s   (or, where a lease is called so, say at which remote it is: --remote REMOTE)", c.line(with(args, "--remote", remote)...))
	}
	return nil
}

func (c *call) authority(repo *git.Repo, remote string) (*ledger.Ledger, error) {
	return ledger.Open(repo, ledger.Options{Remote: cmp.Or(remote, c.opts.String("remote")), Now: c.env.Now, Notice: c.note})
}

// closing ends the use of a ledger: it writes down what was seen of the chains,
// which is a memory and not worth a failure.
func closing(ctx context.Context, l *ledger.Ledger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = l.Flush(ctx, "lease: seen")
	l.Repo.Close()
}

// want says which lease, and which branch, were given.
func (c *call) want(name string) ledger.Want {
	branch, _ := value[object.Ref](c, "onto")
	return ledger.Want{Name: name, Branch: branch}
}

// toWait has the refusal of a lease that somebody else holds begin with the command line that
// waits for it, or end with it where that is of little use: this call's own, with options
// unless they were given. A time that has run out is not asked for again, unless it is longer
// than that in options. form is how a shell takes it, "%s" as it is.
func (c *call) toWait(err error, form string, options ...string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Class != fault.Held || f.Facts["own"] != false {
		return err
	}
	args := slices.DeleteFunc(slices.Clone(c.args), func(a string) bool { return a == "--no-wait" })
	limit, limited := value[time.Duration](c, "timeout")
	if longer, err := time.ParseDuration(options[len(options)-1]); limited && (err != nil || limit < longer) {
		args = c.without(args, "timeout")
	} else if limited {
		options = nil
	}
	if c.opts.Bool("wait") {
		options = nil
	}
	again := fmt.Sprintf(form, c.line(with(args, options...)...))
	if stuck, _ := f.Facts["stuck"].(event.Outcome); stuck != "" { // to wait is to wait for a person
		f.Hint = fmt.Sprintf("%s   (or, to wait until somebody goes on with its steps: %s)", f.Hint, again)
	} else {
		f.Hint = fmt.Sprintf("%s   (or, %s)", again, f.Hint)
	}
	return err
}

// waiting is what --wait and --timeout ask for.
func (c *call) waiting() (lease.Waiting, error) {
	if f, ok := errors.AsType[*fault.Error](c.only("wait", "timeout")); ok {
		return lease.Waiting{}, f.WithHint("%s", c.line(c.with("--wait")...))
	}
	w := lease.Waiting{Tell: c.tellWaiting}
	limit, limited := value[time.Duration](c, "timeout")
	if i := slices.IndexFunc(c.args, isDuration); c.opts.Bool("wait") && !limited && i >= 0 && slices.Contains(c.in.operands, c.args[i]) {
		return w, fault.New(fault.Usage, "--wait takes no value, and %s would be the name of a lease", c.args[i]).
			WithHint("%s", c.line(slices.Insert(slices.Clone(c.args), i, "--timeout")...))
	}
	switch {
	case limited:
		w.Limit = limit
	case c.opts.Bool("wait"):
		w.Limit = lease.Forever
	}
	return w, nil
}

// isDuration reports whether a word is a length of time, which few leases are named
// by.
func isDuration(word string) bool {
	d, err := time.ParseDuration(word)
	return err == nil && d > 0
}

// with are the arguments of this call with more options.
func (c *call) with(options ...string) []string { return with(c.args, options...) }

func with(args []string, options ...string) []string {
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	return slices.Insert(slices.Clone(args), end, options...)
}

// without are args without a long option, and its value.
func (c *call) without(args []string, option string) []string {
	var left []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(left, args[i:]...)
		}
		end := i + 1
		if isOption(args[i]) && wantsNext(args[i], c.anyFlag) {
			end = min(end+1, len(args))
		}
		if args[i] != "--"+option && !strings.HasPrefix(args[i], "--"+option+"=") {
			left = append(left, args[i:end]...)
		}
		i = end - 1
	}
	return left
}

func (c *call) tellWaiting(l *ledger.Ledger, name string, h event.Hold) {
	coming := lease.Coming(h)
	if coming != "" {
		coming = ", " + coming
	}
	c.err.printf("%s for the lease %s at %s, held by %s%s\n", paint(yellow, "waiting"), name, l.Remote, lease.Describe(h, c.env.Now()), coming)
	if h.Stuck != "" {
		c.err.printf("hint: %s   (its steps go on when somebody does that)\n", l.Command("git", "lease", "show", name))
	}
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

// A keeping is how the token of a hold will reach this session: through its
// file, or through standard output.
type keeping struct {
	format string
	source session.Source
	root   session.Root
}

// keeping decides that before anything is changed. It refuses to print a token
// on a terminal, whose scrollback would keep it, and to guess which of two sessions this
// is: several that were started by one shell have its token, left over from a lease that
// has ended, and each would take the lease of the other for its own.
func (c *call) keeping(l *ledger.Ledger) (keeping, error) {
	k := keeping{format: c.format()}
	var err error
	if c.opts.Bool("json") {
		k.format = "json"
	}
	if k.source, err = l.Dir.FromEnv(c.env.Get); err != nil {
		return k, err
	}
	if c.env.Get("GIT_LEASE_TOKEN") != "" && c.env.Get("GIT_LEASE_SESSION") != "" {
		return k, fault.New(fault.Usage, "GIT_LEASE_TOKEN and GIT_LEASE_SESSION are both set, and are two sessions").
			WithHint("unset GIT_LEASE_TOKEN   (it stays in a shell when its lease has ended; or, to go on in that shell's session: unset GIT_LEASE_SESSION)")
	}
	if c.env.StdoutTTY && k.source.Kind() != session.FromFile {
		return k, fault.New(fault.Usage, "the token would be printed on the terminal").
			WithHint(ways[k.format]+"   (or name this session, and its token is kept for it: export GIT_LEASE_SESSION=NAME)",
				c.line(c.args...))
	}
	have, err := k.source.Ensure()
	if errors.Is(err, session.ErrNoToken) {
		have.Root, err = session.NewRoot(), nil
	}
	k.root = have.Root
	return k, err
}

// ways are how a shell, or a program, takes in what is printed in each format.
var ways = map[string]string{"sh": `eval "$(%s)"`, "fish": "%s | source", "json": "%s | PROGRAM"}

// form is how the shell has to be given the command line.
func (k keeping) form() string {
	if k.source.Kind() == session.FromFile {
		return "%s"
	}
	return ways[k.format]
}

// A granted is a hold as --json tells it.
type granted struct {
	Lease     string `json:"lease"`
	Remote    string `json:"remote"`
	Operation string `json:"operation"`
	Fence     uint64 `json:"fence"`
	Event     string `json:"event"`
	// Token is left out when the session's file has it.
	Token string `json:"token,omitempty"`
}

// keep gives a hold to the session. A hold that could not be kept is one that
// nobody could give back, so it is given back here.
func (c *call) keep(ctx context.Context, l *ledger.Ledger, k keeping, g lease.Grant) error {
	err := c.hand(k, g)
	if err == nil && c.out.failure != nil {
		// Not %w: this is no pipe whose reader has seen enough.
		err = fmt.Errorf("the token could not be handed over, and the lease is given back: %v", c.out.failure)
	}
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	_, undo := lease.GiveBack(ctx, l, ledger.Want{Name: g.Name}, k.root)
	return errors.Join(err, undo)
}

func (c *call) hand(k keeping, g lease.Grant) error {
	private := k.source.Kind() == session.FromFile
	if private {
		if err := k.source.Note(session.HoldNote{Remote: g.Remote, Name: g.Name, Operation: g.Operation}); err != nil {
			return err
		}
	}
	if k.format == "json" {
		shown := granted{Lease: g.Name, Remote: g.Remote, Operation: g.Operation.String(), Fence: g.Fence, Event: string(g.Event.OID)}
		if !private {
			shown.Token = k.root.Hex()
		}
		return c.out.json(shown)
	}
	if !private {
		c.out.write(assignments(k.format, g.Environ(k.root)))
	}
	return nil
}

// notKnown hands over the token of a hold that may have come to be, beside the failure:
// nobody else could give it back. It has no fence, by which the same command again
// knows that it is to find out.
func (c *call) notKnown(k keeping, g lease.Grant, err error) error {
	if k.source.Kind() != session.FromFile {
		if k.format == "json" {
			c.partial = map[string]any{"lease": g.Name, "remote": g.Remote, "operation": g.Operation.String(), "token": k.root.Hex()}
		} else {
			environ := slices.DeleteFunc(g.Environ(k.root), func(kv string) bool { return strings.HasPrefix(kv, "GIT_LEASE_FENCE=") })
			c.out.write(assignments(k.format, environ) + forgets(k.format, "GIT_LEASE_FENCE"))
		}
	}
	line := c.line(c.args...)
	if c.in.command.name != "acquire" { // what was taken off somebody cannot be taken off them again
		line = fault.Command("git", "lease", "acquire", g.Name)
	}
	return lease.NotKnown(g, err, fmt.Sprintf(k.form(), line)+"   (it finds out, and takes the lease if need be; git lease release gives it back then)")
}

// unknown is the operation of an earlier acquire of this shell of which it was not known
// whether it had taken the lease.
func (c *call) unknown(k keeping) ulid.ULID {
	if k.source.Kind() != session.FromVar || c.env.Get("GIT_LEASE_FENCE") != "" {
		return ulid.Zero
	}
	op, err := ulid.ParseStrict(c.env.Get("GIT_LEASE_OPERATION"))
	if err != nil {
		return ulid.Zero
	}
	return op
}

// takingToo is what --acquire asks for beside what a command does anyway: nil
// where it was not given.
func (c *call) takingToo(l *ledger.Ledger, want ledger.Want) (*lease.Acquisition, keeping, error) {
	if !c.opts.Bool("acquire") {
		return nil, keeping{}, nil
	}
	k, err := c.keeping(l)
	return &lease.Acquisition{Want: want, Purpose: c.opts.String("message"), Root: k.root}, k, err
}

// tookToo hands over what was taken so. Where nothing was, --json prints done.
func (c *call) tookToo(ctx context.Context, l *ledger.Ledger, k keeping, g *lease.Grant, done any) error {
	switch {
	case g != nil:
		if err := c.keep(ctx, l, k, *g); err != nil {
			return err
		}
		c.tellGrant(*g)
	case c.opts.Bool("json"):
		return c.out.json(done)
	}
	return nil
}

// tellGrant says on standard error what was taken.
func (c *call) tellGrant(g lease.Grant) {
	c.err.printf("%s %s at %s: operation %s, fence %d\n", paint(green, "acquired"), g.Name, g.Remote, g.Operation, g.Fence)
}

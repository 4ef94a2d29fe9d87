package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"gitland/internal/child"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

// A Running is a command to be run under a lease.
type Running struct {
	Acquisition // its Root is not used: every run makes its own
	Argv        []string
	Environ     []string // the command's environment, before the lease's variables
	Stdin       io.Reader
	Stdout      io.Writer
	Stderr      io.Writer
	Taken       func(Grant) // told once the lease is taken; may be nil
	// Close leaves the witness to us alone: should we be killed, what the
	// command goes on doing does not count as life of the operation.
	Close bool
}

// Run takes a lease, runs the command, and gives the lease back however the
// command ended. The code is the command's own, as a shell has it. The error is
// for the lease: a fault of class Held when it could not be taken, of class
// Lost when the command ran while the lease was broken, and of class Unreachable
// when it is not known that the lease was taken, or given back.
func Run(ctx context.Context, l *ledger.Ledger, r Running) (code int, err error) {
	return RunUnder(ctx, []Part{{l, r.Want}}, r)
}

// RunUnder is Run under all of several leases, whose command is told of the first as of
// its own and of all in session.HoldsVar; the Want of r is not used. They are taken in an
// order that is the same everywhere, so that those who want some of the same never wait
// for one another in a circle, and all or none: where one is not to be had, those that
// were taken are given back, and the error is that one's. It is of class Usage where two
// parts are one lease.
func RunUnder(ctx context.Context, parts []Part, r Running) (code int, err error) {
	r.Root = session.NewRoot()
	h, err := takeAll(ctx, parts, r.Acquisition)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, h.giveBack(ctx, ending{ran: true, code: code, failure: err})) }()
	if ctx.Err() != nil { // told to stop before there was a command to tell
		return 0, context.Cause(ctx)
	}
	for _, g := range h.grants() {
		if r.Taken != nil {
			r.Taken(g)
		}
	}
	// From here on signals are the command's: child passes them on, and we
	// wait for it whatever happens.
	req := child.Request{
		Argv:   r.Argv,
		Env:    append(withoutLease(r.Environ), h.environ()...),
		Stdin:  r.Stdin,
		Stdout: r.Stdout,
		Stderr: r.Stderr,
	}
	if !r.Close { // an orphan of ours works on under the lease
		req.Inherit = []*os.File{h.record.witness.File()}
		req.Started = func(pid int) {
			if err := h.record.witness.Runs(pid); err != nil {
				parts[0].Ledger.Notice("the command counts as alive by its witness alone: %v", err)
			}
		}
	}
	result, err := child.Run(context.WithoutCancel(ctx), req)
	return result.Code, err
}

// An ending is how a run came to where it gives its leases back.
type ending struct {
	ran     bool  // all were taken
	code    int   // of the command
	failure error // of starting it
}

func (e ending) String() string {
	switch {
	case !e.ran || e.failure != nil:
		return "the command did not run"
	case e.code != 0:
		return fmt.Sprintf("the command ended with exit code %d", e.code)
	}
	return "the command succeeded (exit code 0)"
}

// stillHeld says of a lease that was not given back how the command ended all the
// same, and how the lease is freed.
func stillHeld(l *ledger.Ledger, g Grant, how ending, ended error) error {
	f, ok := errors.AsType[*fault.Error](ended)
	if !ok || f.Class != fault.Unreachable {
		return ended
	}
	f.What = fmt.Sprintf("%s, but the lease %s at %s counts as held by operation %s still, since it is not known to be given back: %s", how, g.Name, g.Remote, g.Operation, f.What)
	return f.WithHint("when %s answers again: %s   (in this clone it needs nobody's word)", g.Remote, l.Command("git", "lease", "recover", g.Name))
}

// withoutLease drops what another hold has left in the environment. A session's
// name goes as well: the command has a token of its own, and must not find
// another.
func withoutLease(environ []string) []string {
	return slices.DeleteFunc(git.WithoutRepoEnv(environ), func(kv string) bool {
		return strings.HasPrefix(kv, "GIT_LEASE_")
	})
}

// patience is how often one tries to give a lease back when the authority cannot be
// reached: nobody else can, but by breaking it.
const patience = 6

// release gives the lease back after the command, trying so often at most.
func release(ctx context.Context, l *ledger.Ledger, w ledger.Want, root session.Root, tries int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for try := 1; ; try++ {
		_, err := GiveBack(ctx, l, w, root)
		if fault.ClassOf(err) != fault.Unreachable || ledger.IsRefusal(err) || try >= tries {
			return err
		}
		if ledger.Pause(ctx, ledger.Backoff(try+2, 5*time.Second)) != nil {
			return err
		}
	}
}

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
	root := session.NewRoot()
	r.Root = root
	grant, witness, err := acquire(ctx, l, r.Acquisition, true)
	if err != nil {
		return 0, err
	}
	want := ledger.Want{Name: grant.Name, Branch: r.Want.Branch}
	defer func() {
		ended := release(ctx, l, want, root)
		if ended == nil || fault.ClassOf(ended) == fault.Lost {
			tidy(l, witness.Remove())
		} else { // somebody has to free it, and this is the proof that we did not
			ended = errors.Join(stillHeld(l, grant, code, err, ended), witness.Close())
		}
		err = errors.Join(err, ended)
	}()
	if ctx.Err() != nil { // told to stop before there was a command to tell
		return 0, context.Cause(ctx)
	}
	if r.Taken != nil {
		r.Taken(grant)
	}
	// From here on signals are the command's: child passes them on, and we
	// wait for it whatever happens.
	req := child.Request{
		Argv:   r.Argv,
		Env:    append(withoutLease(r.Environ), grant.Environ(root)...),
		Stdin:  r.Stdin,
		Stdout: r.Stdout,
		Stderr: r.Stderr,
	}
	if !r.Close { // an orphan of ours works on under the lease
		req.Inherit = []*os.File{witness.File()}
		req.Started = func(pid int) {
			if err := witness.Runs(pid); err != nil {
				l.Notice("the command counts as alive by its witness alone: %v", err)
			}
		}
	}
	result, err := child.Run(context.WithoutCancel(ctx), req)
	return result.Code, err
}

// stillHeld says of a lease that was not given back how the command ended all the
// same, and how the lease is freed.
func stillHeld(l *ledger.Ledger, g Grant, code int, failure, ended error) error {
	f, ok := errors.AsType[*fault.Error](ended)
	if !ok || f.Class != fault.Unreachable {
		return ended
	}
	how := "the command succeeded (exit code 0)"
	if failure != nil {
		how = "the command did not run"
	} else if code != 0 {
		how = fmt.Sprintf("the command ended with exit code %d", code)
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

// release gives the lease back after the command, trying for a while when the
// authority cannot be reached: nobody else can, but by breaking it.
func release(ctx context.Context, l *ledger.Ledger, w ledger.Want, root session.Root) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for try := range 5 {
		_, err := GiveBack(ctx, l, w, root)
		if fault.ClassOf(err) != fault.Unreachable || ledger.IsRefusal(err) {
			return err
		}
		if ledger.Pause(ctx, ledger.Backoff(try+3, 5*time.Second)) != nil {
			return err
		}
	}
	_, err := GiveBack(ctx, l, w, root)
	return err
}

package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gitland/internal/git"
)

// An interrupt is the cause with which a signal ends a context.
type interrupt struct{ signal syscall.Signal }

func (i interrupt) Error() string { return fmt.Sprintf("ended by %s", unix.SignalName(i.signal)) }

// signals turns what asks us to end into the end of a context, once. They stay
// caught after that: "git land" gets Ctrl-C twice, from the terminal and from
// the git that started it (run-command.c, cleanup_children), and the second
// one must not cut the tidying up short.
type signals struct {
	ch     chan os.Signal
	pipe   chan os.Signal // of nobody's interest
	done   chan struct{}
	ctx    context.Context
	mu     sync.Mutex
	got    syscall.Signal
	cancel context.CancelCauseFunc
}

func catchSignals(ctx context.Context) (context.Context, *signals) {
	s := &signals{ch: make(chan os.Signal, 8), pipe: make(chan os.Signal, 1), done: make(chan struct{})}
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.ctx = ctx
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		if !signal.Ignored(sig) { // by nohup, say
			signal.Notify(s.ch, sig)
		}
	}
	// A reader that went away is an error to deal with (a token that nobody
	// got is a lease to give back), not the end of us in the middle.
	signal.Notify(s.pipe, syscall.SIGPIPE)
	go func() {
		for {
			select {
			case sig := <-s.ch:
				s.note(sig)
			case <-s.done:
				return
			}
		}
	}()
	return ctx, s
}

func (s *signals) note(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := sig.(syscall.Signal); ok && s.got == 0 {
		s.got = n
		s.cancel(interrupt{n})
	}
}

// patience is how long a signal may take to come to us when it has already
// ended a git process of ours.
const patience = time.Second

// behind is the signal that is behind err, or 0. The kernel tells the processes
// of a group one after the other: git may have died of it before we hear of it.
func (s *signals) behind(err error) syscall.Signal {
	wait := time.Duration(0)
	if git.Terminated(err) {
		wait = patience
	}
	select {
	case sig := <-s.ch:
		s.note(sig)
	case <-s.ctx.Done():
	case <-time.After(wait):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

func (s *signals) release() {
	signal.Stop(s.ch)
	signal.Stop(s.pipe)
	close(s.done)
	s.cancel(nil)
}

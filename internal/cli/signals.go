package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
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
	mu     sync.Mutex
	got    syscall.Signal
	cancel context.CancelCauseFunc
}

func catchSignals(ctx context.Context) (context.Context, *signals) {
	s := &signals{ch: make(chan os.Signal, 8), pipe: make(chan os.Signal, 1), done: make(chan struct{})}
	ctx, s.cancel = context.WithCancelCause(ctx)
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

// first is the signal that ended the context, or 0.
func (s *signals) first() syscall.Signal {
	select {
	case sig := <-s.ch: // it ended one of our git processes before it reached us
		s.note(sig)
	default:
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

package child

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// forwarded are the signals that are passed on to the command. Those of job
// control are left to the kernel, which stops and continues the whole group.
var forwarded = [...]os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// endings are the signals that ask a program to end.
var endings = [...]os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// signals are caught from before the start of a command until after its end.
type signals struct {
	ch      chan os.Signal
	caught  []os.Signal
	hadTTY  bool             // there was a controlling terminal at the start
	endSeen bool             // one of endings has come
	all     bool             // as Request.All
	late    <-chan time.Time // when all are told of a SIGINT; nil for never
}

func catch(all bool) *signals {
	s := &signals{ch: make(chan os.Signal, 16), all: all}
	for _, sig := range forwarded {
		// What we were started to ignore (nohup, & in a script) stays ignored,
		// by us and by the command.
		if !signal.Ignored(sig) {
			s.caught = append(s.caught, sig)
		}
	}
	_, s.hadTTY = foreground()
	if len(s.caught) > 0 { // without any, Notify would catch all there are
		signal.Notify(s.ch, s.caught...)
	}
	return s
}

func (s *signals) release() { signal.Stop(s.ch) }

// forward passes signals on until the command has ended, and returns what comes
// through exited.
func (s *signals) forward(ctx context.Context, p *os.Process, exited <-chan error) error {
	done := ctx.Done()
	for {
		select {
		case err := <-exited:
			return err
		case sig := <-s.ch:
			s.pass(p, sig)
		case <-s.late:
			signalAll(below(p.Pid), syscall.SIGINT)
		case <-done:
			done = nil
			s.drain(p)
			if !s.endSeen {
				s.tell(p, syscall.SIGTERM)
			}
		}
	}
}

// drain passes on what has come. If ctx ended because of a signal, that is one
// of them: os/signal gives a signal to all channels under one lock, which Notify
// takes too.
func (s *signals) drain(p *os.Process) {
	if len(s.caught) > 0 {
		signal.Notify(s.ch, s.caught...)
	}
	s.each(func(sig os.Signal) { s.pass(p, sig) })
}

// pendingEnd takes what came before there was a command, and returns the last
// signal that asks for the end, or 0.
func (s *signals) pendingEnd() (end syscall.Signal) {
	s.each(func(sig os.Signal) {
		if slices.Contains(endings[:], sig) {
			end, _ = sig.(syscall.Signal)
		}
	})
	return end
}

// catchUp sends the command what came while it was being started: the terminal
// may have sent it too early. Twice is better here than never.
func (s *signals) catchUp(p *os.Process) {
	s.each(func(sig os.Signal) {
		s.note(sig)
		s.tell(p, sig)
	})
}

// each calls do with the signals that have come.
func (s *signals) each(do func(os.Signal)) {
	for {
		select {
		case sig := <-s.ch:
			do(sig)
		default:
			return
		}
	}
}

// pass sends sig to the command, unless the command has it already. An error
// would mean that the command has just ended, or became another user.
func (s *signals) pass(p *os.Process, sig os.Signal) {
	s.note(sig)
	if !s.delivered(sig, p.Pid) {
		s.tell(p, sig)
	}
}

func (s *signals) note(sig os.Signal) {
	s.endSeen = s.endSeen || slices.Contains(endings[:], sig)
}

// delivered reports whether sig came from the terminal, which sends it to the
// whole foreground group and so to the command too. The sender of a signal
// cannot be known in Go; one that a person sends to us alone by kill -INT while
// our group is in the foreground is taken for the terminal's. SIGTERM never is.
func (s *signals) delivered(sig os.Signal, pid int) bool {
	hangup := sig == syscall.SIGHUP
	if !hangup && sig != syscall.SIGINT && sig != syscall.SIGQUIT {
		return false
	}
	own := unix.Getpgrp()
	if group, err := unix.Getpgid(pid); err != nil || group != own {
		return false
	}
	// When a terminal hangs up, the leader of its session is told alone; the
	// others hear of it, as a group, from that leader or at its death.
	if leader, err := unix.Getsid(0); hangup && err == nil && leader == os.Getpid() {
		return false
	}
	group, ok := foreground()
	if !ok {
		return hangup && s.hadTTY
	}
	return group == own
}

// foreground is the process group that has our controlling terminal; false if
// there is no terminal, or it is gone.
func foreground() (int, bool) {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return group, err == nil
}

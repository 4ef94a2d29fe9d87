package child

import (
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type process struct{ pid, parent, group int }

// below are the processes that a process has started, and those that these have, as
// far as they are in our group: a terminal's signal would come to them too.
func below(pid int) []int {
	all, own := processes(), unix.Getpgrp()
	found := []int{pid}
	for i := 0; i < len(found); i++ {
		for _, p := range all {
			if p.parent == found[i] && p.group == own && !slices.Contains(found, p.pid) {
				found = append(found, p.pid)
			}
		}
	}
	return found[1:]
}

// patience is how long a SIGINT has to end the command before what it has started is
// told, too. Most often somebody has sent it to the whole group, without a terminal, and
// programs take a second one for impatience.
const patience = time.Second

// tell sends sig to the command, and to all below it where that is asked for: a shell
// that waits for a command takes SIGINT for the terminal's, and leaves it to the command
// to end; SIGTERM ends the shell, and not the command.
func (s *signals) tell(p *os.Process, sig os.Signal) {
	var others []int
	n, known := sig.(syscall.Signal)
	switch {
	case !s.all || !known:
	case n != syscall.SIGINT:
		others = below(p.Pid) // before its end makes orphans of them
	case s.late == nil:
		s.late = time.After(patience)
	}
	p.Signal(sig)
	signalAll(others, n)
}

func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		syscall.Kill(pid, sig)
	}
}

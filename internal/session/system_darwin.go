package session

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// machineID is "": what identifies a Mac is not to be had without its tools. A
// reboot proves nothing here.
func machineID() string { return "" }

func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// namespace is a word: there is one for all PIDs.
func namespace() string { return "host" }

func isLocal(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.MNT_LOCAL != 0
}

const zombie = 5 // SZOMB in <sys/proc.h>

func look(pid int) Sighting {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return Sighting{Absent: true}
	}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Sighting{Absent: errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)}
	}
	if info.Proc.P_stat == zombie {
		return Sighting{Absent: true}
	}
	start := info.Proc.P_starttime
	return Sighting{Start: fmt.Sprintf("%d.%06d", start.Sec, start.Usec)}
}

// holders cannot be told without lsof(8).
func holders(string) []Holder { return nil }

package session

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// machineID is the id of the installed system, machine-id(5); "" in a container
// without one.
func machineID() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		data, err := os.ReadFile(path)
		id := strings.TrimSpace(string(data))
		if err == nil && len(id) == 32 { // "uninitialized" during the first boot
			return id
		}
	}
	return ""
}

// bootID is the id of this boot, random(4). Containers have that of their host.
func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// namespace is that of our PIDs and of the boot time that start times count
// from; "" where /proc shows the processes of another one.
func namespace() string {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return ""
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	times, _ := os.Readlink("/proc/self/ns/time") // Linux 5.6
	return pids + " " + times
}

// localTypes are file systems that one machine has for itself, by statfs(2).
// Others are network or shared ones, or cannot be told from such.
var localTypes = []uint32{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
	unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.REISERFS_SUPER_MAGIC,
	0x2fc12fc1, // ZFS
	0xca451a4e, // bcachefs
}

func isLocal(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && slices.Contains(localTypes, uint32(st.Type))
}

// look looks for the process with a PID. What /proc hides (hidepid in proc(5))
// is still there for kill(2).
func look(pid int) Sighting {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return Sighting{Absent: true}
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Sighting{Absent: errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)}
	}
	return parseStat(stat)
}

// parseStat reads proc_pid_stat(5), where the command, between parentheses, may
// have any character in it.
func parseStat(stat []byte) Sighting {
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 20 {
		return Sighting{}
	}
	state, threads, start := f[0], f[17], f[19]
	// A zombie with threads left is a process whose first thread has ended.
	if (state == "Z" || state == "X") && (threads == "0" || threads == "1") {
		return Sighting{Absent: true}
	}
	return Sighting{Start: start}
}

// holders are the processes that have the file at path open, as far as we may
// see them.
func holders(path string) []Holder {
	var want unix.Stat_t
	if unix.Stat(path, &want) != nil {
		return nil
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	var found []Holder
	for _, fd := range fds {
		// By its name first: to stat every file of everybody can take long.
		link, err := os.Readlink(fd)
		if err != nil || !strings.Contains(link, filepath.Base(path)) {
			continue
		}
		var have unix.Stat_t
		if unix.Stat(fd, &have) != nil || have.Dev != want.Dev || have.Ino != want.Ino {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(fd, "/")[2])
		if err != nil || pid == os.Getpid() || slices.ContainsFunc(found, func(h Holder) bool { return h.PID == pid }) {
			continue
		}
		found = append(found, Holder{pid, nameOf(pid)})
	}
	slices.SortFunc(found, func(a, b Holder) int { return a.PID - b.PID })
	return found
}

func nameOf(pid int) string {
	argv, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(argv) == 0 {
		return ""
	}
	return commandName(strings.Split(strings.TrimRight(string(argv), "\x00"), "\x00"))
}

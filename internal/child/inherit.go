package child

import (
	"os"

	"golang.org/x/sys/unix"
)

// firstFree is the lowest descriptor for a file that is handed down. Scripts
// choose theirs below 10, which is all that a shell must understand.
const firstFree = 10

// place makes the ExtraFiles of a command in which files have descriptors of
// their own, and every descriptor that we inherited ourselves keeps its number
// (a jobserver of make, or 3<file on our own command line): os/exec alone would
// put the first file over descriptor 3. The caller closes what it returns.
func place(files []*os.File) ([]*os.File, error) {
	var from []int // the descriptor for 3, 4, …; -1 leaves it closed
	for fd := 3; len(files) > 0; fd++ {
		switch {
		case inherited(fd):
			from = append(from, fd)
		case fd >= firstFree:
			from = append(from, int(files[0].Fd()))
			files = files[1:]
		default:
			from = append(from, -1)
		}
	}
	extra := make([]*os.File, len(from))
	for i, fd := range from {
		if fd < 0 {
			continue
		}
		// Copies above all the places: os/exec would move a lower one out of the
		// way first, to a number that it does not know to be free.
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3+len(from))
		if err != nil {
			closeAll(extra)
			return nil, os.NewSyscallError("dup", err)
		}
		extra[i] = os.NewFile(uintptr(copied), "inherited")
	}
	return extra, nil
}

// inherited reports whether fd is open and meant for children. Nothing that Go
// opens is.
func inherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

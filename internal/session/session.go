// Package session owns what a clone remembers on its own disk for the sessions
// that work in it, below "lease" in git's common directory:
//
//	session/   the token of a session that is named by GIT_LEASE_SESSION
//	journal/   what an operation is about to do, written before it does it
//	witness/   files that are locked for as long as an operation lives, and
//	           records of where it runs
//	output/    what checks printed that failed
//	outbox/    lines that could not be published yet
//	probe/     what was found out about a remote
//	probing/   a directory for each try of a remote that is under way, or was killed
//
// It promises that a file is either the old or the new one whole and that a
// write which returned is on the disk; that only the user can read it, whatever
// the umask; that reading never creates anything; and that a token is in no
// text that nobody asked for with Root.Hex.
//
// It refuses to decide: nothing here says who holds a lease, only the chain at
// the authority does. It does not look into journals, and a file that it cannot
// understand is named, never repaired or replaced.
package session

import (
	"crypto/rand"
	"path/filepath"
	"time"

	"github.com/oklog/ulid/v2"
)

// A Dir is the lease directory of one clone, which all its worktrees share. It
// need not exist; the first write creates it.
type Dir struct{ path string }

// Open names the lease directory inside commonDir, git's common directory (git
// rev-parse --git-common-dir, as an absolute path). It touches nothing.
func Open(commonDir string) Dir { return Dir{filepath.Join(commonDir, "lease")} }

// Path joins elements to the path of the lease directory.
func (d Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// NewID makes the id of an operation, an event or a landing. Ids of the same
// millisecond have no order among them.
func NewID(now time.Time) ulid.ULID {
	// A clock outside of what an id can hold is no reason to panic: the time in
	// an id is for people, its 80 random bits make it unique.
	ms := min(max(now.UnixMilli(), 0), int64(ulid.MaxTime()))
	return ulid.MustNew(uint64(ms), rand.Reader)
}

package session

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
)

// A Verdict says whether an operation is still at work. It rests on what was
// recorded and what can be seen, never on a clock or on the time that passed.
type Verdict string

// The verdicts.
const (
	Alive   Verdict = "alive"   // a process that belongs to it was seen
	Gone    Verdict = "gone"    // it is proved that none is left
	Unknown Verdict = "unknown" // neither
)

// A Judgement is a verdict and the comparison that decided it, as a sentence
// without a full stop. It names no machine, so that it may be published.
type Judgement struct {
	Verdict Verdict
	Why     string
}

// A Place is where a process runs, as far as that can be told: empty texts for
// what cannot.
type Place struct {
	Machine   string // the installed system
	Boot      string // this run of its kernel
	Namespace string // within which a PID and a start time mean something
	Clone     Clone
	Local     bool // the clone is on a file system that no other machine has
}

// A Clone is told from its copies by the places of two of its files on disk.
type Clone struct {
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`   // of git's common directory
	Witness uint64 `json:"witness"` // inode of the operation's witness
}

// A LeaseAt is one lease of one authority.
type LeaseAt struct {
	Remote string `json:"remote"` // the authority
	Lease  string `json:"lease"`
}

// A Record is what an operation leaves in its clone at its start. What tells
// about the machine is in salted digests: enough to compare, nothing to read.
type Record struct {
	Format    int       `json:"format"`
	Operation ulid.ULID `json:"operation"`
	LeaseAt
	Further []LeaseAt `json:"further,omitempty"` // leases that it took together with that one

	Salt      string `json:"salt"`
	Machine   string `json:"machine,omitempty"`
	Boot      string `json:"boot,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Clone     Clone  `json:"clone"`

	// PID and Start are of the operation's own process; or, where it is Tied,
	// of the process that it lasts as long as.
	PID   int    `json:"pid"`
	Start string `json:"start,omitempty"`
	Tied  bool   `json:"tied,omitempty"`
	// Command is the user's command, where there is one: some programs close
	// what they inherited, sudo for one.
	Command      int    `json:"command,omitempty"`
	CommandStart string `json:"command_start,omitempty"`
}

const recordFormat = 1

// leases are those that the operation took, or was about to, and is not known to have lost.
func (r Record) leases() []LeaseAt { return append([]LeaseAt{r.LeaseAt}, r.Further...) }

// newRecord fills in where and who.
func newRecord(r Record, at Place, start string) Record {
	r.Format, r.Salt, r.Clone = recordFormat, rand.Text(), at.Clone
	r.Machine = r.digest("machine", at.Machine)
	r.Boot = r.digest("boot", at.Boot)
	r.Namespace = r.digest("namespace", at.Namespace)
	r.Start = r.digest("start", start)
	return r
}

// digest is "" for what is not known, which is never the same as anything.
func (r Record) digest(kind, value string) string {
	if value == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(r.Salt))
	mac.Write([]byte(kind + "\x00" + value))
	return hex.EncodeToString(mac.Sum(nil))
}

// same reports whether a digest of the record is that of value.
func (r Record) same(digest, kind, value string) bool {
	return digest != "" && digest == r.digest(kind, value)
}

// A LockState is the state of a witness.
type LockState string

// The states of a witness.
const (
	NoWitness LockState = "none"
	Free      LockState = "free"
	Locked    LockState = "locked"
)

// A Sighting is what can be seen of the process with a certain PID. The zero
// Sighting is of one that is there and cannot be told from others.
type Sighting struct {
	Absent bool   // there is none, or it has ended and nobody took note yet
	Start  string // tells it from others that had its PID; "" if that cannot be read
}

// A Holder is a process that has a witness open.
type Holder struct {
	PID  int    `json:"pid"`
	Name string `json:"command,omitempty"` // without options; may be ""
}

func (h Holder) String() string {
	if h.Name == "" {
		return fmt.Sprintf("process %d", h.PID)
	}
	return fmt.Sprintf("process %d (%s)", h.PID, h.Name)
}

// Evidence is all that can be found out about an operation from one clone.
type Evidence struct {
	Record  *Record // nil where there is none
	Witness LockState
	Holders []Holder // of a locked witness; empty where they cannot be seen
	Here    Place    // where the evidence was taken
	Seen    Sighting // of the process with the record's PID
	Command Sighting // of that with the PID of its Command
}

// Judge weighs evidence. It frees nobody by doubt: whatever cannot be compared
// makes the verdict Unknown.
func (e Evidence) Judge() Judgement {
	r := e.Record
	switch {
	case e.Witness == Locked:
		return Judgement{Alive, "its witness is locked by " + e.lockedBy()}
	case r == nil && e.Witness == Free:
		return unknown("its witness is free, but there is no record of where it ran")
	case r == nil:
		return unknown("this clone has no record of it: it was taken in another clone, or without a process to watch")
	case r.Format != recordFormat:
		return unknown("its record has format %d, and this version knows %d", r.Format, recordFormat)
	case e.Witness != Free:
		return unknown("its witness was removed from this clone")
	case r.Machine != r.digest("machine", e.Here.Machine):
		return unknown("it ran on another machine")
	case r.Clone != e.Here.Clone:
		return unknown("it ran in another clone, of which this one is a copy")
	case r.Boot == "" || e.Here.Boot == "":
		return unknown("it cannot be told whether the machine was rebooted since")
	case !r.same(r.Boot, "boot", e.Here.Boot):
		return e.rebooted()
	case !r.same(r.Namespace, "namespace", e.Here.Namespace):
		return unknown("it ran in another PID namespace, such as a container's")
	}
	return e.process()
}

// rebooted weighs a record of another boot: of this machine and no other, which
// could have the clone's file system too, and could be running still.
func (e Evidence) rebooted() Judgement {
	switch {
	case e.Here.Machine == "":
		return unknown("it ran before a reboot, or on another machine: this one has no id")
	case !e.Here.Local:
		return unknown("it ran before a reboot, but this clone is on a file system that other machines may have, too")
	}
	return Judgement{Gone, "the machine was rebooted since: the same machine and clone, another boot"}
}

// process weighs a record of this machine, boot and PID namespace.
func (e Evidence) process() Judgement {
	r := e.Record
	name := fmt.Sprintf("its process %d", r.PID)
	if r.Tied {
		name = fmt.Sprintf("process %d, to which it is tied,", r.PID)
	}
	ended, done := r.ended(name, r.Start, e.Seen)
	if !done {
		return ended
	}
	if r.Command != 0 {
		command, done := r.ended(fmt.Sprintf("its command, process %d,", r.Command), r.CommandStart, e.Command)
		if !done {
			return command
		}
	}
	const place = "; same machine, boot, PID namespace and clone"
	switch {
	case r.Tied:
		return Judgement{Gone, ended.Why + place}
	case !e.Here.Local:
		return unknown("%s, but the lock of its witness proves nothing on a file system that other machines may have, too", ended.Why)
	}
	return Judgement{Gone, "its witness is free, and " + ended.Why + place}
}

// ended reports whether a process that was recorded has ended. Where it has not,
// or that cannot be told, the judgement is made.
func (r Record) ended(name, start string, seen Sighting) (Judgement, bool) {
	switch {
	case seen.Absent:
		return Judgement{Gone, name + " has ended"}, true
	case seen.Start == "" || start == "":
		return unknown("%s cannot be told from another one with that PID", name), false
	case r.same(start, "start", seen.Start):
		return Judgement{Alive, name + " is running"}, false
	}
	return Judgement{Gone, name + " has ended, and another one has its PID, by its start time"}, true
}

func (e Evidence) lockedBy() string {
	var names []string
	for _, h := range e.Holders {
		names = append(names, h.String())
	}
	switch n := len(names); n {
	case 0:
		return "a process that cannot be seen from here"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

func unknown(format string, args ...any) Judgement {
	return Judgement{Unknown, fmt.Sprintf(format, args...)}
}

package session

import (
	"crypto/rand"

	"github.com/oklog/ulid/v2"
)

// An Origin says where an operation has its witness, so that one who finds that
// free later can tell whether it is the same one: a copy of a clone has a copy of
// the witness, which nobody ever locked. What tells about the machine is in salted
// digests.
type Origin struct {
	Salt    string `json:"salt"`
	Machine string `json:"machine,omitempty"`
	Boot    string `json:"boot,omitempty"`
	Clone   Clone  `json:"clone"`
}

// Origin is that of an operation whose witness this process has.
func (d Dir) Origin(op ulid.ULID) (Origin, error) {
	here, err := d.here(op)
	r := Record{Salt: rand.Text()}
	return Origin{Salt: r.Salt, Machine: r.digest("machine", here.Machine), Boot: r.digest("boot", here.Boot), Clone: here.Clone}, err
}

// Doubt says why a free witness of op here does not prove that op, which began at
// o, has ended; "" where it does. It is for operations that hand their witness down
// to nobody. It creates nothing.
func (d Dir) Doubt(op ulid.ULID, o Origin) (string, error) {
	here, err := d.here(op)
	return o.doubt(here), err
}

func (o Origin) doubt(here Place) string {
	r := Record{Salt: o.Salt}
	switch {
	case o.Salt == "":
		return "its journal does not say where it began"
	case o.Machine != r.digest("machine", here.Machine):
		return "it began on another machine"
	case o.Clone != here.Clone:
		return "it began in another clone, of which this one is a copy, unless it was restored, or moved to another disk"
	case here.Local, r.same(o.Boot, "boot", here.Boot):
		return ""
	}
	return "it began before a reboot, or on another machine that has this clone's file system, too"
}

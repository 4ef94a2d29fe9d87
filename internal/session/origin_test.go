package session

import (
	"strings"
	"testing"
)

// A free witness proves that an operation has ended where it is the very witness
// that was locked, and no other machine may have it locked.
func TestDoubt(t *testing.T) {
	at := Place{Machine: "m", Boot: "b", Clone: Clone{1, 2, 3}, Local: true}
	o := Origin{Salt: "salt", Clone: at.Clone}
	r := Record{Salt: o.Salt}
	o.Machine, o.Boot = r.digest("machine", at.Machine), r.digest("boot", at.Boot)
	for _, c := range []struct {
		name string
		edit func(*Origin, *Place)
		want string
	}{
		{"the same", func(*Origin, *Place) {}, ""},
		{"rebooted", func(_ *Origin, p *Place) { p.Boot = "c" }, ""},
		{"a shared disk", func(_ *Origin, p *Place) { p.Local = false }, ""},
		{"a shared disk, rebooted", func(_ *Origin, p *Place) { p.Local, p.Boot = false, "c" }, "reboot"},
		{"a shared disk, unknown boot", func(o *Origin, p *Place) { p.Local, p.Boot, o.Boot = false, "", "" }, "reboot"},
		{"another machine", func(_ *Origin, p *Place) { p.Machine = "n" }, "another machine"},
		{"a machine without an id", func(o *Origin, p *Place) { p.Machine, o.Machine = "", "" }, ""},
		{"a copy", func(_ *Origin, p *Place) { p.Clone.Inode = 9 }, "copy"},
		{"a copy on another disk", func(_ *Origin, p *Place) { p.Clone.Device = 9 }, "copy"},
		{"another witness", func(_ *Origin, p *Place) { p.Clone.Witness = 9 }, "copy"},
		{"nothing is known", func(o *Origin, _ *Place) { *o = Origin{} }, "does not say"},
	} {
		o, p := o, at
		c.edit(&o, &p)
		if got := o.doubt(p); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

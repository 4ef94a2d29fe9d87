package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/lease"
)

func breakCommand() *command {
	return &command{
		name:     "break",
		synopsis: "[NAME] --operation ID --reason TEXT\n [--acquire [-m PURPOSE] [--format=sh|fish|json]]",
		summary:  "take a lease off its holder, on the record",
		about: `
Frees a lease whose holder does not come back. The holder's operation has to be
named in full, so that nobody breaks another one than they looked at; the reason
stands in the lease's history, and the former holder will be told. It can no
longer land then. --acquire takes the lease in the same push.`,
		examples: `
git lease break --operation 01JZ6Y8T3N4V5W6X7Y8Z9ABCDE --reason "host is gone"
eval "$(git lease break docs --operation ID --reason TEXT --acquire)"`,
		exits: []int{3, 8, 9},
		flags: []cli.Flag{operationFlag("`ID` of the operation that holds it"), text("reason", "`TEXT` for the record"),
			boolean("acquire", "take the lease at once, and print what acquire prints"), purposeFlag(),
			choice("format", "`FORMAT` of that: sh (the default), fish or json", formats...), jsonFlag(), remoteFlag()},
		evaluated: func(a arguments) bool { _, taking := a.last("acquire"); return taking },
		run:       breakLease,
	}
}

type brokenJSON struct {
	Lease  string    `json:"lease"`
	Remote string    `json:"remote"`
	Broken *holdJSON `json:"broken"`
	Event  string    `json:"event"`
}

func breakLease(ctx context.Context, c *call) error {
	name, err := c.name()
	if err := cmp.Or(err, c.only("acquire", "message", "format"), c.apart("json", "format")); err != nil {
		return err
	}
	_, given := c.in.last("operation")
	_, explained := c.in.last("reason")
	switch {
	case !given:
		return fault.New(fault.Usage, "breaking a lease needs the holder's operation, and a reason").
			WithHint("git lease show   (it names the operation)")
	case !explained:
		return fault.New(fault.Usage, "breaking a lease is on the record, and needs a reason").
			WithHint("%s", c.line(c.with("--reason", "WHY")...))
	}
	l, err := c.open(ctx, "", name)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want := c.want(name)
	operation, err := c.holder(ctx, l, want)
	if err != nil {
		return err
	}
	b := lease.Breaking{Want: want, Operation: operation, Reason: c.opts.String("reason")}
	var k keeping
	if b.Take, k, err = c.takingToo(l, want); err != nil {
		return err
	}
	broken, err := lease.Break(ctx, l, b)
	if err != nil && broken.Grant != nil {
		return c.notKnown(k, *broken.Grant, err)
	}
	if err != nil {
		return err
	}
	c.err.printf("%s %s at %s: operation %s of %s\n", paint(red, "broken"), broken.Name, l.Remote, broken.Hold.Operation, broken.Hold.Holder)
	if steps := broken.Hold.Pending(); len(steps) > 0 {
		c.note("steps to come of it are left: %s", strings.Join(steps, ", "))
		c.err.printf("%s %s\n", paint(yellow, "hint:"), lease.StepsCommands(l, broken.Hold))
	}
	return c.tookToo(ctx, l, k, broken.Grant, brokenJSON{broken.Name, l.Remote, c.hold(broken.Hold, false), string(broken.Event.OID)})
}

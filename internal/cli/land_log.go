package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"gitland/internal/land"
	"gitland/internal/note"
	"gitland/internal/object"
)

func landLogCommand() *command {
	return &command{
		name:     "log",
		synopsis: "[-n N] [--json] [OPTION...]",
		summary:  "show what has landed",
		about: `
Lists the landings under the target's lease, newest first, and marks those that
landed without a verification, and those of which only a repair by git land
reconcile tells. It takes and needs no lease.`,
		examples: `
git land log -n 5
git land log --json --onto release/1.x`,
		exits: []int{8, 9},
		flags: []cli.Flag{number("n", "`N` landings at most", 1, 1<<30), jsonFlag(), ontoFlag(), remoteFlag()},
		run:   landLog,
	}
}

type entryJSON struct {
	landingJSON
	Subject   string       `json:"subject,omitempty"`
	Actor     string       `json:"actor"`
	Host      string       `json:"host,omitempty"`
	Time      time.Time    `json:"time"`
	Operation string       `json:"operation"`
	Sequence  uint64       `json:"sequence"`
	Event     object.OID   `json:"event"`
	Record    *note.Record `json:"record,omitempty"`
	// Repaired is the code of the finding, where the event is a repair: then
	// actor, host and time are those of the repair, and why is its reason.
	Repaired string `json:"repaired,omitempty"`
	Why      string `json:"why,omitempty"`
}

func landLog(ctx context.Context, c *call) error {
	if err := c.nothingMore(); err != nil {
		return err
	}
	l, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want, err := c.want(l, "")
	if err != nil {
		return err
	}
	most, _ := value[int](c, "n")
	entries, err := land.Log(ctx, l, want, most)
	listed := []entryJSON{}
	for _, e := range entries {
		if c.opts.Bool("json") {
			listed = append(listed, newEntryJSON(e))
		} else {
			c.printEntry(e)
		}
	}
	err = errors.Join(err, ctx.Err())
	if !c.opts.Bool("json") {
		if err == nil && len(entries) == 0 {
			c.note("nothing has landed yet")
		}
		return err
	}
	object := map[string]any{"remote": l.Remote, "landings": listed}
	if err != nil { // as far as it could be read
		c.partial = object
		return err
	}
	return c.out.json(object)
}

// nothingMore refuses operands on both sides of "--".
func (c *call) nothingMore() error {
	c.in.operands = append(c.in.operands, c.in.rest...)
	return c.noOperands(c.in.command.fullName(c.tool) + " -h")
}

func newEntryJSON(e land.Entry) entryJSON {
	a := e.Event.By
	entry := entryJSON{landingJSON: newLandingJSON(a.Land), Subject: e.Subject, Actor: e.Event.Actor, Host: a.Host, Time: e.Event.Time,
		Operation: a.Operation.String(), Sequence: e.Event.Seq, Event: e.Event.OID, Record: e.Record}
	if f := a.Finding; f != nil {
		entry.Repaired, entry.Why = f.Code, a.Reason
	}
	return entry
}

func (c *call) printEntry(e land.Entry) {
	landing := e.Event.By.Land
	c.out.printf("%s  %s  %s on %s", paint(yellow, landing.Commit.Short()), e.Event.Time.Format(timeLayout), e.Event.Actor, landing.Branch.Branch())
	if e.Subject != "" {
		c.out.printf("  %s", e.Subject)
	}
	if landing.Unit != landing.ID.String() {
		c.out.printf("  [%s]", landing.Unit)
	}
	switch {
	case landing.Unverified != "":
		c.out.printf("  %s", paint(red, fmt.Sprintf("UNVERIFIED (%s) because: %s", landing.Unverified, landing.Reason)))
	case e.Record == nil:
		c.out.printf("  %s", paint(red, "WITHOUT A RECORD"))
	case e.Record.MergedUnverified:
		c.out.printf("  %s", paint(yellow, "merged tree unverified"))
	}
	if f := e.Event.By.Finding; f != nil { // the actor is who repaired
		c.out.printf("  %s", paint(yellow, fmt.Sprintf("REPAIRED (%s) because: %s", f.Code, e.Event.By.Reason)))
	}
	c.out.printf("\n")
}

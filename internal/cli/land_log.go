package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"gitland/internal/event"
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
Lists the landings under the target's lease, newest first, with the overrides
that moved refs past it. It marks those that landed without a verification,
those of which only a repair by git land reconcile tells, those whose steps are
not done, and those that the branch no longer has: an override took them off,
or somebody did past the tool. In brackets is the unit, where --unit or a
branch gave one. It takes and needs no lease.`,
		examples: `
git land log -n 5
git land log --json --onto release/1.x`,
		exits: []int{8, 9},
		flags: []cli.Flag{number("n", "`N` lines at most", 1, 1<<30), jsonFlag(), ontoFlag(), remoteFlag()},
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
	// Steps are those that follow it, with how they went by the log.
	Steps   []note.Step `json:"steps,omitempty"`
	Author  string      `json:"author,omitempty"`  // of the commit
	Gone    bool        `json:"gone,omitempty"`    // from its branch
	Removed bool        `json:"removed,omitempty"` // by an override
	// OtherVerdicts were found on the landed tree, before or since, and are not those of
	// the record.
	OtherVerdicts []note.Verification `json:"other_verdicts,omitempty"`
}

// An overriddenJSON is an override, and whether the branch does not show what it announced.
type overriddenJSON struct {
	eventJSON
	Unseen bool `json:"unseen,omitempty"`
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
	want := c.want("")
	most, _ := value[int](c, "n")
	entries, err := land.Log(ctx, l, want, most)
	listed, overrides := []entryJSON{}, []overriddenJSON{}
	for _, e := range entries {
		switch {
		case !c.opts.Bool("json"):
			c.printEntry(e)
		case e.Event.Kind == event.Override:
			overrides = append(overrides, overriddenJSON{c.eventJSON(e.Event), e.Unseen})
		default:
			listed = append(listed, newEntryJSON(e))
		}
	}
	err = errors.Join(err, ctx.Err())
	if !c.opts.Bool("json") {
		if err == nil && len(entries) == 0 {
			c.note("nothing has landed yet")
		}
		return err
	}
	object := map[string]any{"remote": l.Remote, "landings": listed, "overrides": overrides}
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
		Operation: a.Operation.String(), Sequence: e.Event.Seq, Event: e.Event.OID, Record: e.Record, Steps: e.Steps, Author: e.Author, Gone: e.Gone, Removed: e.Removed, OtherVerdicts: e.Others}
	if f := a.Finding; f != nil {
		entry.Repaired, entry.Why = f.Code, a.Reason
	}
	return entry
}

func (c *call) printEntry(e land.Entry) {
	at := e.Event.Time.Format(timeLayout)
	if e.Event.Kind == event.Override {
		what, seen := "OVERRIDE    ", ""
		if e.Event.By.Announced {
			what = "ANNOUNCED   "
		}
		if e.Unseen {
			seen = ", which is not seen on the branch,"
		}
		c.out.printf("%s  %s  %s  %s%s because: %s\n", paint(red, what), at, e.Event.Actor, updates(e.Event), seen, e.Event.By.Reason)
		return
	}
	landing, who := e.Event.By.Land, e.Event.Actor
	repair := e.Event.By.Finding
	if repair != nil { // the actor is who repaired
		who = cmp.Or(e.Author, "somebody")
	}
	c.out.printf("%s  %s  %s on %s", paint(yellow, landing.Commit.Short()), at, who, landing.Branch.Branch())
	if e.Subject != "" {
		c.out.printf("  %s", e.Subject)
	}
	if landing.Unit != landing.ID.String() {
		c.out.printf("  [%s]", landing.Unit)
	}
	because := ""
	switch {
	case landing.Unverified != "":
		because = landing.Reason
		c.out.printf("  %s", paint(red, fmt.Sprintf("UNVERIFIED (%s) because: %s", landing.Unverified, because)))
	case e.Record == nil:
		c.out.printf("  %s", paint(red, "WITHOUT A RECORD"))
	case e.Record.MergedUnverified:
		c.out.printf("  %s", paint(yellow, "merged tree unverified"))
	}
	if e.Record != nil && e.Record.Squashed != "" {
		c.out.printf("  squashed %s", e.Record.Squashed.Short())
	}
	if e.Record != nil && len(e.Record.Flaky) > 0 {
		c.out.printf("  %s", paint(yellow, "FLAKY ("+strings.Join(e.Record.Flaky, ", ")+")"))
	}
	if e.Record != nil && e.Record.NoVerify {
		c.out.printf("  %s", paint(yellow, "--no-verify"))
	}
	if e.Record != nil && len(e.Record.Allowed) > 0 {
		c.out.printf("  %s", paint(yellow, "--allow "+strings.Join(e.Record.Allowed, ", ")))
	}
	c.printSteps(e)
	if repair != nil {
		text := fmt.Sprintf("REPAIRED (%s) by %s", repair.Code, e.Event.Actor)
		if reason := e.Event.By.Reason; reason != "" && reason != because {
			text += " because: " + reason
		}
		c.out.printf("  %s", paint(yellow, text))
	}
	switch {
	case e.Removed:
		c.out.printf("  %s", paint(red, "REMOVED by an override"))
	case e.Gone:
		c.out.printf("  %s", paint(red, "GONE: "+landing.Branch.Branch()+" does not have it, and no override took it off"))
	}
	c.out.printf("\n")
}

// printSteps says how the steps after a landing ended, or which are to come.
func (c *call) printSteps(e land.Entry) {
	steps := e.Steps
	if e.Record != nil && (e.Record.End != nil || len(steps) == 0) {
		steps = e.Record.Steps
	}
	done, open := note.Sorted(steps)
	if len(done) > 0 {
		c.out.printf("  steps done: %s", strings.Join(done, ", "))
	}
	switch {
	case len(open) == 0:
	case e.Record != nil && e.Record.End != nil:
		c.out.printf("  %s", paint(red, fmt.Sprintf("STEPS GIVEN UP because: %s; not done: %s", e.Record.End.Reason, strings.Join(open, ", "))))
	default:
		c.out.printf("  %s", paint(yellow, "steps not done: "+strings.Join(open, ", ")))
	}
}

// updates says which refs an override moved, from where to where.
func updates(e event.Event) string {
	var moves []string
	for _, u := range e.By.Updates {
		moves = append(moves, fmt.Sprintf("%s %s..%s", u.Ref.Branch(), orNone(u.Old.Short()), orNone(u.New.Short())))
	}
	return strings.Join(moves, ", ")
}

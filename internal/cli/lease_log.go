package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"gitland/internal/event"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/object"
)

func leaseLogCommand() *command {
	return &command{
		name:     "log",
		synopsis: "[NAME] [-n N] [--show-signature] [--json]",
		summary:  "show the history of a lease",
		about: `
Lists the events of the lease, newest first: the number that only ever grows,
the time, who, and what they did. It takes and needs no lease.

With --show-signature it has git check who signed each event, and exits with 8
where one is signed and not as it was when that was done.`,
		examples: `
git lease log
git lease log docs -n 5
git lease log --show-signature
git lease log --json`,
		exits: []int{8, 9},
		flags: []cli.Flag{number("n", "`N` events at most", 1, 1<<30),
			boolean("show-signature", "check the signature of each event (lease.sign)"), jsonFlag(), remoteFlag()},
		run: leaseLog,
	}
}

type eventJSON struct {
	OID      object.OID    `json:"oid"`
	ID       string        `json:"id"`
	Sequence uint64        `json:"sequence"`
	Event    event.Kind    `json:"event"`
	Actor    string        `json:"actor"`
	Host     string        `json:"host,omitempty"`
	Time     time.Time     `json:"time"`
	State    event.Phase   `json:"state"`
	Hold     *holdJSON     `json:"hold,omitempty"`
	By       string        `json:"operation,omitempty"`
	Target   string        `json:"target,omitempty"` // the operation that was taken off
	Reason   string        `json:"reason,omitempty"`
	Adopt    *adoptionJSON `json:"adopt,omitempty"`
	Land     *landingJSON  `json:"land,omitempty"`
	Step     *stepJSON     `json:"step,omitempty"`
	// Updates are the refs that an override moved.
	Updates []event.Update `json:"updates,omitempty"`
	// Announced means that they had still to move, in a push of their own.
	Announced bool `json:"announced,omitempty"`
	// Signature is what --show-signature found.
	Signature *signatureJSON `json:"signature,omitempty"`
}

type adoptionJSON struct {
	Branch object.Ref `json:"branch,omitempty"`
	Tip    object.OID `json:"tip,omitempty"`
	Over   object.OID `json:"over,omitempty"`
}

type landingJSON struct {
	ID         string     `json:"landing"`
	Unit       string     `json:"unit"`
	Branch     object.Ref `json:"branch"`
	Base       object.OID `json:"base"`
	Commit     object.OID `json:"commit"`
	Tree       object.OID `json:"tree"`
	Unverified string     `json:"unverified,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	// StepNames are those of the steps that follow it.
	StepNames []string `json:"step_names,omitempty"`
}

// A stepJSON is how a step of a motion went.
type stepJSON struct {
	Motion  string        `json:"motion"`
	Name    string        `json:"name"`
	Outcome event.Outcome `json:"outcome"`
	Took    uint64        `json:"duration_ms"`
}

// timeLayout is git's own, for --date=iso.
const timeLayout = "2006-01-02 15:04:05 -0700"

func leaseLog(ctx context.Context, c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	l, err := c.open(ctx, "", name)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want := c.want(name)
	most, limited := value[int](c, "n")
	listed, n := []eventJSON{}, 0
	show := func(e event.Event, s *git.Signature) {
		if c.opts.Bool("json") {
			j := c.eventJSON(e)
			j.Signature = newSignatureJSON(e, s)
			listed = append(listed, j)
		} else {
			c.printEvent(e)
			c.printSignature(e, s)
		}
	}
	checked := signatures{repo: l.Repo, show: show}
	err = lease.Log(ctx, l, want, func(e event.Event) bool {
		if c.opts.Bool("show-signature") {
			checked.add(ctx, e)
		} else {
			show(e, nil)
		}
		want.Name = e.Name
		n++
		return ctx.Err() == nil && checked.failed == nil && c.out.failure == nil && (!limited || n < most)
	})
	err = errors.Join(err, checked.end(ctx))
	if checked.unchecked > 0 {
		c.tellUnchecked(checked)
	}
	if err == nil {
		err = ctx.Err()
	}
	if !c.opts.Bool("json") {
		if err == nil && n == 0 {
			c.note("the lease has no history yet")
		}
		return err
	}
	object := map[string]any{"lease": want.Name, "remote": l.Remote, "events": listed}
	if err != nil { // as far as it could be read
		c.partial = object
		return err
	}
	return c.out.json(object)
}

func (c *call) tellUnchecked(s signatures) {
	signed := "a signature was"
	if s.unchecked > 1 {
		signed = fmt.Sprintf("%d signatures were", s.unchecked)
	}
	c.note("%s not checked: %s", signed, s.why)
	c.err.printf("%s %s\n", paint(yellow, "hint:"), s.mend)
}

func (c *call) printEvent(e event.Event) {
	who := e.Actor
	if e.By.Host != "" {
		who += " on " + e.By.Host
	}
	kind := paint(faint, fmt.Sprintf("%-7s", e.Kind))
	switch e.Kind {
	case event.Acquire:
		kind.style = yellow
	case event.Land:
		kind.style = green
	case event.Break, event.Recover, event.Override:
		kind.style = red
	case event.Step:
		if kind.style = green; !e.By.Step.Outcome.Ends() {
			kind.style = red
		}
	}
	if did := deed(e); did != "" {
		who += "  " + did
	}
	c.out.printf("%5d  %s  %s  %s\n", e.Seq, e.Time.Format(timeLayout), kind, who)
}

// deed says what an event did, beside its kind.
func deed(e event.Event) string {
	text := ""
	switch a := e.By.Adopt; {
	case a != nil && a.Branch != "":
		text = "branch " + a.Branch.Branch() + ", "
	case e.Kind == event.Acquire && e.State.Hold.Purpose != "":
		text = e.State.Hold.Purpose + ", "
	case e.Kind == event.Break || e.Kind == event.Recover:
		text = "off operation " + e.By.Target.String() + ", "
		if e.State.Hold != nil {
			text += "and took it, "
		}
	}
	if s := e.By.Step; s != nil {
		text = s.Name + " " + string(s.Outcome) + ", "
		if s.Took > 0 {
			text = fmt.Sprintf("%s %s in %.1fs, ", s.Name, s.Outcome, float64(s.Took)/1000)
		}
		if e.State.Hold == nil {
			text += "gave the lease back, "
		}
	}
	if h := e.State.Hold; e.Kind != event.Land && h != nil && h.TakenBy == e.ID && h.Steps != "" {
		text += "for the steps " + strings.Join(h.Pending(), " ") + ", "
	}
	if e.By.Announced {
		text += "announced "
	}
	if len(e.By.Updates) > 0 {
		text += updates(e) + ", "
	}
	if a := e.By.Adopt; a != nil && a.Over != "" {
		text += "over " + string(a.Over) + ", "
	}
	if l := e.By.Land; l != nil {
		text += fmt.Sprintf("%s as %s on %s, ", l.Unit, l.Commit.Short(), l.Branch.Branch())
		if l.Unverified != "" {
			text += fmt.Sprintf("UNVERIFIED (%s) because: %s, ", l.Unverified, l.Reason)
		}
		if l.Steps != "" {
			text += "with the steps " + l.Steps + ", "
		}
	}
	if e.By.Reason != "" && (e.By.Land == nil || e.By.Reason != e.By.Land.Reason) {
		text += "because: " + e.By.Reason + ", "
	}
	if op := e.By.Operation; !op.IsZero() && !strings.Contains(text, op.String()) {
		if !e.By.Target.IsZero() {
			text += "by "
		}
		text += "operation " + e.By.Operation.String() + ", "
	}
	return text[:max(0, len(text)-2)]
}

func (c *call) eventJSON(e event.Event) eventJSON {
	j := eventJSON{OID: e.OID, ID: e.ID.String(), Sequence: e.Seq, Event: e.Kind, Actor: e.Actor, Host: e.By.Host,
		Time: e.Time, State: e.State.Phase, Reason: e.By.Reason, Updates: e.By.Updates, Announced: e.By.Announced}
	if a := e.By.Adopt; a != nil {
		j.Adopt = &adoptionJSON{a.Branch, a.Tip, a.Over}
	}
	if h := e.State.Hold; h != nil {
		j.Hold = c.hold(*h, false)
	}
	if !e.By.Operation.IsZero() {
		j.By = e.By.Operation.String()
	}
	if !e.By.Target.IsZero() {
		j.Target = e.By.Target.String()
	}
	if s := e.By.Step; s != nil {
		j.Step = &stepJSON{s.Motion.String(), s.Name, s.Outcome, s.Took}
	}
	if e.By.Land != nil {
		landing := newLandingJSON(e.By.Land)
		j.Land = &landing
	}
	return j
}

func newLandingJSON(l *event.Landing) landingJSON {
	return landingJSON{l.ID.String(), l.Unit, l.Branch, l.Base, l.Commit, l.Tree, l.Unverified, l.Reason, strings.Fields(l.Steps)}
}

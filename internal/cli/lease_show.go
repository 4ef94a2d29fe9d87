package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/land"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

func showCommand() *command {
	return &command{
		name:     "show",
		synopsis: "[NAME...] [--json] [--exit-code]",
		summary:  "show who holds or froze a lease, or all (the default)",
		about: `
Reads the leases at the remote, all of them where none is named. It takes and
needs no lease. A remote that does not answer is never shown as free.`,
		examples: `
git lease show
git lease show main --exit-code && echo "free right now"
git lease show --json`,
		exits: []int{3, 8, 9},
		flags: []cli.Flag{jsonFlag(),
			boolean("exit-code", "exit with 3 for one held or frozen, 8 for an ambiguous one"), remoteFlag()},
		run: show,
	}
}

type leaseJSON struct {
	Lease    string         `json:"lease"`
	Remote   string         `json:"remote"`
	State    string         `json:"state"`
	Tip      object.OID     `json:"tip,omitempty"`
	Fence    uint64         `json:"fence,omitempty"`
	Branches []object.Ref   `json:"branches,omitempty"`
	Hold     *holdJSON      `json:"hold,omitempty"`
	Frozen   *frozenJSON    `json:"frozen,omitempty"`
	Problem  map[string]any `json:"problem,omitempty"`
}

type holdJSON struct {
	Operation string    `json:"operation"`
	Holder    string    `json:"holder"`
	Host      string    `json:"host,omitempty"`
	Purpose   string    `json:"purpose,omitempty"`
	Since     time.Time `json:"since"`
	Age       int       `json:"age_seconds"`
	Fence     uint64    `json:"fence"`
	Own       bool      `json:"own"`                 // by this session
	Announced string    `json:"announced,omitempty"` // a landing that has not ended
	// Motion is that whose Steps are to come; Stuck is how the first of them went last,
	// if it was tried.
	Motion string        `json:"motion,omitempty"`
	Steps  []string      `json:"steps,omitempty"`
	Stuck  event.Outcome `json:"stuck,omitempty"`
}

func (c *call) hold(h event.Hold, own bool) *holdJSON {
	j := &holdJSON{Operation: h.Operation.String(), Holder: h.Holder, Host: h.Host, Purpose: h.Purpose, Since: h.Since,
		Age: max(0, int(c.env.Now().Sub(h.Since).Seconds())), Fence: h.Fence, Own: own, Steps: h.Pending(), Stuck: h.Stuck}
	if !h.Motion.IsZero() {
		j.Motion = h.Motion.String()
	}
	if !h.Intent.IsZero() {
		j.Announced = h.Intent.String()
	}
	return j
}

type frozenJSON struct {
	Operation string     `json:"operation"`
	By        string     `json:"frozen_by"`
	Host      string     `json:"host,omitempty"`
	Reason    string     `json:"reason"`
	Since     time.Time  `json:"since"`
	Age       int        `json:"age_seconds"`
	Event     object.OID `json:"event"`
}

func (c *call) frozen(f *lease.Frost) *frozenJSON {
	if f == nil {
		return nil
	}
	return &frozenJSON{f.Operation.String(), f.By, f.Host, f.Reason, f.Since.UTC(),
		max(0, int(c.env.Now().Sub(f.Since).Seconds())), f.Event.OID}
}

func show(ctx context.Context, c *call) error {
	names, err := c.names(len(c.in.operands) + len(c.in.rest))
	if err != nil {
		return err
	}
	l, err := c.open(ctx, "", names...)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	want := c.want("")
	list, err := lease.Show(ctx, l, want.Branch, names...)
	if err != nil {
		return err
	}
	unfinished, err := land.ListUnfinished(l.Dir)
	if err != nil {
		c.note("%v", err) // showing needs no journal
	}
	own, code := c.ownRoot(l), 0
	shown := []leaseJSON{}
	for _, s := range list {
		code = max(code, stateCode(s))
		if c.opts.Bool("json") {
			shown = append(shown, c.leaseJSON(s, own))
		} else {
			c.printLease(l, s, own, unfinished)
		}
	}
	if c.opts.Bool("json") {
		object := map[string]any{"remote": l.Remote, "leases": shown}
		if len(unfinished) > 0 {
			object["unfinished"] = newUnfinishedJSON(unfinished)
		}
		err = c.out.json(object)
	} else {
		err = nil
		for _, u := range unfinished {
			c.out.printf("%s here: %s\n", paint(yellow, "unfinished"), c.describeUnfinished(u))
		}
	}
	if err == nil && code != 0 && c.opts.Bool("exit-code") {
		return &status{code: code}
	}
	return err
}

// ownRoot is this session's token, the zero Root where it has none that can be
// read: showing needs none.
func (c *call) ownRoot(l *ledger.Ledger) session.Root {
	source, err := l.Dir.FromEnv(c.env.Get)
	if err != nil {
		return session.Root{}
	}
	have, _ := source.Load()
	return have.Root
}

func stateCode(s lease.Status) int {
	switch s.State {
	case string(event.Held), string(event.Frozen):
		return codeOf(fault.New(fault.Held, ""))
	case lease.Ambiguous:
		return codeOf(s.Problem)
	}
	return 0
}

func (c *call) leaseJSON(s lease.Status, own session.Root) leaseJSON {
	j := leaseJSON{Lease: s.Name, Remote: s.Remote, State: s.State}
	if s.Problem != nil {
		j.Problem = c.failure([]error{s.Problem})
	}
	if t := s.Tip; t != nil {
		j.Tip, j.Fence, j.Branches = t.OID, t.Seq, t.State.Branches
		if h := t.State.Hold; h != nil {
			j.Hold = c.hold(*h, lease.Owns(own, t))
		}
		j.Frozen = c.frozen(s.Frost)
	}
	return j
}

func (c *call) printLease(l *ledger.Ledger, s lease.Status, own session.Root, unfinished []land.Unfinished) {
	c.out.printf("%s at %s: ", paint(bold, s.Name), s.Remote)
	switch {
	case s.Problem != nil:
		c.out.printf("%s: %v\n", paint(red, s.State), s.Problem)
		c.out.printf("  hint: %s\n", s.Problem.Hint)
	case s.Tip == nil:
		c.out.printf("%s, and never used\n", paint(green, string(event.Free)))
	case s.Frost != nil:
		c.out.printf("%s by %s\n", paint(yellow, s.State), s.Frost.Describe(c.env.Now()))
		c.out.printf("  hint: when that is over: %s\n", s.Frost.Thaw)
	case s.Tip.State.Hold == nil:
		c.out.printf("%s since %s\n", paint(green, s.State), lease.Age(c.env.Now().Sub(s.Tip.Time)))
	default:
		whose := ""
		if lease.Owns(own, s.Tip) {
			whose = " (this session)"
		}
		c.out.printf("%s%s by %s\n", paint(yellow, s.State), whose, lease.Describe(*s.Tip.State.Hold, c.env.Now()))
		if h := s.Tip.State.Hold; !h.Intent.IsZero() {
			c.out.printf("  landing %s was announced, and %s\n", h.Intent, announced(l, s, unfinished))
		} else if h.Steps != "" {
			c.out.printf("  %s\n", paint(yellow, lease.Coming(*h)))
			if way := wayOn(l, s, own, unfinished); way != "" {
				c.out.printf("  hint: %s\n", way)
			}
		}
	}
}

// announced says what this clone knows of the landing that was announced under the
// lease, and what can be done about it.
func announced(l *ledger.Ledger, s lease.Status, unfinished []land.Unfinished) string {
	h := s.Tip.State.Hold
	i := slices.IndexFunc(unfinished, func(u land.Unfinished) bool { return u.Under(h.Operation) })
	switch {
	case i < 0:
		return fmt.Sprintf("not by this clone: ask its holder, or, if it is dead: %s   (then: %s)",
			lease.Eval(l.Command("git", "lease", "break", s.Name, "--operation", h.Operation.String(), "--reason", "WHY", "--acquire")),
			l.Command("git", "land", "resume", h.Operation.String()))
	case unfinished[i].Alive:
		return "is under way in this clone"
	case unfinished[i].Doubt != "":
		return "may be under way elsewhere, " + unfinished[i].Doubt + ": " + unfinished[i].Next
	}
	return "died in this clone: " + unfinished[i].Next
}

// wayOn is how the steps that are to come under a lease come to their end; "" where
// somebody is at them here.
func wayOn(l *ledger.Ledger, s lease.Status, own session.Root, unfinished []land.Unfinished) string {
	h := s.Tip.State.Hold
	i := slices.IndexFunc(unfinished, func(u land.Unfinished) bool { return u.Under(h.Operation) })
	switch {
	case i >= 0 && unfinished[i].Alive:
		return ""
	case i >= 0, lease.Owns(own, s.Tip):
		return lease.StepsCommands(l, *h)
	}
	return fmt.Sprintf("not by this clone: ask its holder, or, if it is dead: %s   (then: %s)",
		lease.Eval(l.Command("git", "lease", "break", s.Name, "--operation", h.Operation.String(), "--reason", "WHY", "--acquire")), l.Command("git", "land", "resume", h.Operation.String()))
}

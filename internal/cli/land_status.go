package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gitland/internal/fault"
	"gitland/internal/land"
	"gitland/internal/lease"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/step"
	"gitland/internal/verify"
)

func statusCommand() *command {
	return &command{
		name:     "status",
		synopsis: "[--json] [OPTION...] [-- PATH...]",
		summary:  "show what would land, if it is verified, and who holds the lease",
		about: `
Shows what git land would do now, and what stands in its way. It changes
nothing, and needs no lease.`,
		examples: `
git land status
git land status --json -- hello.go`,
		exits: []int{9},
		flags: append(chooseFlags(), jsonFlag()),
		run:   landStatus,
	}
}

type statusJSON struct {
	Remote      string              `json:"remote"`
	Lease       string              `json:"lease"`
	Branch      object.Ref          `json:"branch"`
	Base        object.OID          `json:"base,omitempty"`
	Lands       string              `json:"lands"` // paths, staged, commits or nothing
	Paths       []string            `json:"paths,omitempty"`
	Commits     []object.OID        `json:"commits,omitempty"`
	Mode        policy.Mode         `json:"mode,omitempty"` // how those would land
	Tree        object.OID          `json:"tree,omitempty"`
	Already     object.OID          `json:"already,omitempty"` // landed as this commit
	Verified    bool                `json:"verified"`
	Merged      bool                `json:"merged_unverified,omitempty"` // only the change's own tree is verified
	Passing     []note.Verification `json:"passing,omitempty"`
	Failing     []note.Verification `json:"failing,omitempty"`
	Earlier     []note.Verification `json:"earlier,omitempty"` // verdicts that no longer count
	Flaky       []string            `json:"flaky,omitempty"`   // checks that passed after they had failed
	Outputs     []verify.Output     `json:"outputs,omitempty"` // of what failed, where it is kept here
	Missing     []string            `json:"missing,omitempty"`
	VerifyWith  string              `json:"verify_with,omitempty"`
	Steps       []note.Step         `json:"steps,omitempty"` // that would follow
	Hold        *holdJSON           `json:"hold,omitempty"`
	Frozen      *frozenJSON         `json:"frozen,omitempty"`
	Unfinished  []unfinishedJSON    `json:"unfinished,omitempty"`
	Lost        map[string]any      `json:"lost,omitempty"`    // this session's hold was taken off it
	Next        string              `json:"next,omitempty"`    // the one thing to do next
	Rewound     string              `json:"rewound,omitempty"` // that the target lacks its newest landing, and what to do
	Unpublished int                 `json:"unpublished_verifications,omitempty"`
	Problem     map[string]any      `json:"problem,omitempty"`
}

type unfinishedJSON struct {
	Operation string     `json:"operation"`
	Since     time.Time  `json:"since"`
	Branch    object.Ref `json:"branch"`
	Alive     bool       `json:"alive"`
	Doubt     string     `json:"doubt,omitempty"` // why it is not known to be dead
	Next      string     `json:"next,omitempty"`  // the command that ends it
}

func landStatus(ctx context.Context, c *call) error {
	l, selection, err := c.selection(ctx)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	source, err := l.Dir.FromEnv(c.env.Get)
	if err != nil {
		return err
	}
	o, err := land.Look(ctx, l, selection, source)
	if err != nil {
		return err
	}
	if c.opts.Bool("json") {
		return c.out.json(c.statusJSON(o))
	}
	c.printStatus(o)
	return nil
}

func (c *call) statusJSON(o land.Outlook) statusJSON {
	j := statusJSON{Remote: o.Remote, Lease: o.Lease, Branch: o.Branch, Base: o.Base, Lands: o.Kind, Paths: o.Paths,
		Commits: o.Commits, Mode: o.Mode, Tree: o.Tree, Already: o.Already, Verified: o.Verified, Merged: o.Merged, Passing: o.Judgement.Passing,
		Failing: o.Judgement.Failing, Earlier: o.Judgement.Earlier, Flaky: o.Judgement.Flaky(), Outputs: o.Outputs, Missing: o.Judgement.Missing, Steps: step.Results(o.Steps), Rewound: o.Rewound, Unpublished: o.Unpublished, Frozen: c.frozen(o.Frost)}
	if o.Tree != "" && !o.Verified {
		j.VerifyWith = o.VerifyWith
	}
	if o.Hold != nil {
		j.Hold = c.hold(*o.Hold, o.OwnHold)
	}
	j.Unfinished, j.Next = newUnfinishedJSON(o.Unfinished), o.Next
	if o.Lost != nil {
		j.Lost = c.failure([]error{o.Lost})
	}
	if o.Problem != nil {
		j.Problem = c.failure(explain(o.Problem))
	}
	return j
}

func newUnfinishedJSON(list []land.Unfinished) []unfinishedJSON {
	var j []unfinishedJSON
	for _, u := range list {
		one := unfinishedJSON{u.Operation.String(), u.Since.UTC(), u.Branch, u.Alive, u.Doubt, u.Next}
		if u.Alive {
			one.Next = ""
		}
		j = append(j, one)
	}
	return j
}

func (c *call) describeUnfinished(u land.Unfinished) string {
	state := "died (" + u.Next + ")"
	switch {
	case u.Over:
		state = "has been brought to its end by others (" + u.Next + ")"
	case u.Stepping:
		state = "has steps to come (" + u.Next + ")"
	}
	where := "on " + u.Branch.Branch()
	if u.Motion {
		where = "under " + u.Lease
	}
	switch {
	case u.Alive:
		state = "is under way"
	case u.Doubt != "":
		state = "may be under way elsewhere, " + u.Doubt + ": " + u.Next
	}
	if u.Override {
		return fmt.Sprintf("override %s of %s, begun %s ago, %s", u.Operation, u.Branch.Branch(), lease.Age(c.env.Now().Sub(u.Since)), state)
	}
	return fmt.Sprintf("operation %s %s, begun %s ago, %s", u.Operation, where, lease.Age(c.env.Now().Sub(u.Since)), state)
}

func (c *call) printStatus(o land.Outlook) {
	row := func(s style, name, text string) { c.out.printf("%s %s\n", paint(s, fmt.Sprintf("%-10s", name)), text) }
	row(plain, "target", fmt.Sprintf("%s at %s, now at %s", o.Branch.Branch(), o.Remote, orNone(o.Base.Short())))
	if o.Rewound != "" {
		row(red, "rewound", o.Rewound)
	}
	row(plain, "lands", lands(o))
	if o.Tree != "" {
		row(plain, "tree", string(o.Tree))
		c.printVerified(row, o)
	}
	for _, s := range o.Steps {
		row(plain, "step", s.Name+": "+s.Run)
	}
	switch {
	case o.Ambiguous:
		row(red, "lease", o.Lease+" is ambiguous")
	case o.Frost != nil:
		row(yellow, "lease", o.Lease+" is frozen by "+o.Frost.Describe(c.env.Now()))
	case o.Hold == nil:
		row(green, "lease", o.Lease+" is free")
	case o.OwnHold:
		row(green, "lease", o.Lease+" is held by this session, operation "+o.Hold.Operation.String())
	default:
		row(yellow, "lease", o.Lease+" is held by "+lease.Describe(*o.Hold, c.env.Now()))
	}
	if o.Hold != nil && o.Hold.Steps != "" {
		row(yellow, "steps", lease.Coming(*o.Hold)+", of "+o.Hold.Motion.String())
	}
	if o.Lost != nil {
		row(red, "lost", o.Lost.What)
	}
	for _, u := range o.Unfinished {
		row(yellow, "unfinished", c.describeUnfinished(u))
	}
	if o.Unpublished > 0 {
		row(yellow, "kept", count(o.Unpublished, "verification")+", to go out with the next landing")
	}
	if o.Problem != nil {
		for _, e := range explain(o.Problem) {
			c.out.printf("%s %v\n", paint(red, "problem   "), e)
			if f, ok := errors.AsType[*fault.Error](e); ok {
				for _, line := range f.Details {
					c.out.printf("           %s\n", line)
				}
			}
		}
	}
	if o.Next != "" {
		row(bold, "next", o.Next)
	}
}

// count is a number of things, of which the word is for one.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func lands(o land.Outlook) string {
	switch {
	case o.Already != "" && o.Head != "HEAD":
		return "nothing: " + o.Branch.Branch() + " has all of " + o.Head + "'s commits"
	case o.Already != "" && len(o.Paths) == 0:
		return "nothing: " + o.Branch.Branch() + " has all of HEAD's commits, nothing is staged, and no path is named"
	case o.Already != "":
		return "nothing: the target has it, as " + o.Already.Short()
	case len(o.Commits) > 0:
		return fmt.Sprintf("%d of %s's commits", len(o.Commits), o.Head) + map[policy.Mode]string{
			policy.Squash: ", as one", policy.Merge: ", by a merge commit", policy.FFOnly: ", as they are"}[o.Mode]
	case len(o.Paths) > 0:
		return o.Kind + ": " + strings.Join(o.Paths, ", ")
	}
	return orNone(o.Kind)
}

// maxEarlier is how many verdicts that no longer count are shown.
const maxEarlier = 10

// verdict tells what a check found, by whom, and when.
func verdict(v note.Verification) string {
	text := fmt.Sprintf("%s, by %s: %s", v.Check, v.Actor, orNone(v.Command))
	if v.Verdict != note.Pass {
		text += fmt.Sprintf(" (exit %d)", v.Exit)
	}
	return text
}

func (c *call) printOutput(out verify.Output) {
	for _, line := range land.Told(&out) {
		c.out.printf("           %s\n", line)
	}
}

func (c *call) printVerified(row func(style, string, string), o land.Outlook) {
	earlier := o.Judgement.Earlier
	if more := len(earlier) - maxEarlier; more > 0 {
		row(faint, "earlier", count(more, "older verdict"))
		earlier = earlier[more:]
	}
	for _, v := range earlier {
		row(faint, "earlier", verdict(v))
	}
	for _, v := range o.Judgement.Passing {
		row(green, "passed", verdict(v))
	}
	if flaky := o.Judgement.Flaky(); len(flaky) > 0 {
		row(yellow, "flaky", strings.Join(flaky, ", ")+": passed after the same command had failed on this tree")
	}
	for _, v := range o.Judgement.Failing {
		row(red, "failed", verdict(v))
		for _, out := range o.Outputs {
			if out.Verification == v.ID {
				c.printOutput(out)
			}
		}
	}
	switch {
	case !o.Verified:
		without := strings.Join(o.Judgement.Missing, ", ")
		if without == note.Any {
			without = "no check was run on that tree"
		} else {
			without = "not passed: " + without
		}
		row(yellow, "unverified", without)
	case o.Merged:
		row(yellow, "merged", "that was the change's own tree; merged onto the target it is not verified")
	}
}

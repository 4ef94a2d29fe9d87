package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/land"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/policy"
)

func landTool() *tool {
	return &tool{
		name:     "git land",
		operand:  "paths go behind --: LINE   (and a target is named with --onto WORD)",
		commands: []*command{verifyCommand(), statusCommand(), landLogCommand(), reconcileCommand(), resumeCommand(), abortCommand(), overrideCommand(), initCommand()},
		root: &command{
			synopsis: "[-m NOTE]... [-x COMMAND] [OPTION...] [-- PATH...]",
			about: `
Commits PATH..., else what is staged, else the commits of HEAD, onto the branch
that a team shares, as the remote has it now, and pushes branch, record and log
in one motion. What has no recorded passing verification is refused.`,
			examples: `
git land -x "make test" -m "Greet the world" -- hello.go
git land --force-unverified --reason "site is down" -m "Revert 1.2"`,
			exits: []int{3, 4, 5, 6, 8, 9},
			one:   "a step failed",
			flags: slices.Concat([]cli.Flag{
				texts("message", "`NOTE` for the commit message; each one is a paragraph", "m"),
				text("x", "`COMMAND` to verify with, unless that has passed (--check NAME)"),
				beside(text("check", "`NAME` of that check")),
			}, chooseFlags(), []cli.Flag{
				duration("timeout", "`DURATION` to wait for the lease (land.wait, 30s), or --no-wait"),
				beside(boolean("no-wait", "do not wait while another operation holds the lease")),
				boolean("force-unverified", "land unverified, on the record; --reason TEXT says why"),
				beside(text("reason", "`TEXT` that says why")),
			}, stepFlags("that follows the landing"), []cli.Flag{
				boolean("no-verify", "skip pre-commit and commit-msg, which the record then says"),
				boolean("dry-run", "print the plan, and change nothing; --json: an object"),
				beside(jsonFlag()),
			}),
			run: landChange,
		},
	}
}

// chooseFlags are those by which selection chooses what lands, where and how.
func chooseFlags() []cli.Flag {
	return []cli.Flag{
		ontoFlag(), remoteFlag(),
		text("head", "`REV` whose commits land, in place of HEAD's; --unit ID names it"),
		beside(unitFlag()),
		boolean("squash", "commits as one; --merge, --ff-only, --rebase (land.mode)"),
		beside(boolean("merge", "commits as they are, by a merge commit")),
		beside(boolean("ff-only", "commits as they are, or not at all")),
		beside(boolean("rebase", "commits one by one, on top of the target")),
		expectFlag("expect-base", "`OID` where the target must be; --expect-head: where HEAD"),
		beside(expectFlag("expect-head", "`OID` where HEAD, or REV, must be")),
		allowFlag(),
	}
}

// expectFlag takes an object id, or its first digits: a name would be whatever it names
// by now.
func expectFlag(name, usage string) cli.Flag {
	return generic(name, usage, func(text string) (string, error) {
		text = strings.ToLower(text)
		if len(text) < 4 || len(text) > 64 || strings.Trim(text, "0123456789abcdef") != "" {
			return "", errors.New("no object id, and not the first digits of one, of which there are four at least")
		}
		return text, nil
	})
}

// mode is how commits are to land, as far as that was given.
func (c *call) mode() (mode policy.Mode, err error) {
	for _, m := range policy.Modes() {
		switch {
		case !c.opts.Bool(string(m)):
		case mode != "":
			return "", fault.New(fault.Usage, "options --%s and --%s exclude each other", mode, m)
		default:
			mode = m
		}
	}
	return mode, nil
}

func unitFlag() cli.Flag { return text("unit", "`ID` of what the change is about") }

func allowFlag() cli.Flag {
	var names []string
	for _, g := range land.Guards() {
		names = append(names, string(g))
	}
	var allowed []land.Guard // it can be given several times
	return generic("allow", "`GUARD` that is not to refuse, as its refusal calls it", func(text string) ([]land.Guard, error) {
		if !slices.Contains(names, text) {
			return nil, fmt.Errorf("no guard of that name; there are %s", strings.Join(names, ", "))
		}
		allowed = append(allowed, land.Guard(text))
		return allowed, nil
	})
}

func ontoFlag() cli.Flag {
	return branchFlag("onto", "`BRANCH` to land on (land.onto, else the remote's HEAD)")
}

func landChange(ctx context.Context, c *call) error {
	err := cmp.Or(c.only("x", "check"), c.only("force-unverified", "reason"), c.apart("no-wait", "timeout"), c.apart("x", "force-unverified"))
	if err != nil {
		return err
	}
	if c.opts.Bool("force-unverified") { // before anything is looked at
		if err := land.CheckReason(c.opts.String("reason")); err != nil {
			return err
		}
	}
	steps, err := c.givenSteps()
	if err != nil {
		return err
	}
	l, selection, err := c.selection(ctx)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	r := land.Request{Selection: selection, Check: c.opts.String("check"), Command: c.opts.String("x"),
		Force: c.opts.Bool("force-unverified"), Reason: c.opts.String("reason"), DryRun: c.opts.Bool("dry-run"),
		Warn: func(w string) { c.err.printf("%s %s\n", paint(yellow, "warning:"), w) },
		Tell: c.telling(), Stderr: c.env.Stderr, Environ: c.env.Environ, Edit: c.editor(l.Repo), Steps: steps, Setting: c.setting()}
	if r.Session, err = l.Dir.FromEnv(c.env.Get); err != nil {
		return err
	}
	if r.Waiting, err = c.landWaiting(l); err != nil {
		return err
	}
	result, err := land.Land(ctx, l, r)
	if err != nil && result.Status == land.Landed { // and a step after it is to come
		return errors.Join(err, c.printStuck(result))
	}
	if err != nil {
		return errors.Join(c.toWait(err, "%s", "--timeout", "10m"), c.printRefused(result))
	}
	return c.printResult(result)
}

// selection opens the authority, and says what is chosen to land there.
func (c *call) selection(ctx context.Context) (*ledger.Ledger, land.Selection, error) {
	s := land.Selection{Unit: c.opts.String("unit"), Messages: c.opts.StringSlice("message")}
	s.Head = c.opts.String("head")
	s.ExpectBase, _ = value[string](c, "expect-base")
	s.ExpectHead, _ = value[string](c, "expect-head")
	var err error
	if s.Paths, err = c.paths(); err != nil {
		return nil, s, err
	}
	if s.Mode, err = c.mode(); err != nil {
		return nil, s, err
	}
	l, err := c.open(ctx, "")
	if err != nil {
		return nil, s, err
	}
	s.Want = c.want("")
	s.Allow, _ = value[[]land.Guard](c, "allow")
	s.NoVerify = c.opts.Bool("no-verify")
	return l, s, nil
}

// paths are the operands behind "--"; nil where there are none.
func (c *call) paths() ([]string, error) {
	words := behind(c.tool, c.in.command, c.before(), c.in.rest)
	if err := c.noOperands("paths go behind --: " + c.line(words...) + "   (and a target is named with --onto WORD)"); err != nil {
		return nil, err
	}
	if c.in.cut && len(c.in.rest) == 0 {
		return nil, fault.New(fault.Usage, "no path follows --").WithHint("leave -- out to land what is staged, or HEAD's commits")
	}
	for _, p := range c.in.rest {
		if p == "" {
			return nil, fault.New(fault.Usage, "a path is empty").WithHint("use . for the current directory")
		}
	}
	return c.in.rest, nil
}

// landWaiting is for how long a landing waits: land.wait, unless told.
func (c *call) landWaiting(l *ledger.Ledger) (lease.Waiting, error) {
	limit, err := l.Repo.Config.Duration("land.wait", 30*time.Second)
	if err != nil {
		return lease.Waiting{}, fault.New(fault.Usage, "%w", err).WithHint("git config land.wait 30s")
	}
	if given, ok := value[time.Duration](c, "timeout"); ok {
		limit = given
	}
	if c.opts.Bool("no-wait") {
		limit = 0
	}
	return lease.Waiting{Limit: limit, Tell: c.tellWaiting}, nil
}

// telling tells of what a landing does. After a lost race, and while it waits,
// a landing does the same again, and only what is new is told.
func (c *call) telling() func(what, text string) {
	last := map[string]string{}
	return func(what, text string) {
		if last[what] != text {
			c.did(what, text)
		}
		last[what] = text
	}
}

func (c *call) did(what, text string) {
	c.err.printf("%s %s\n", paint(green, fmt.Sprintf("%-9s", what)), text)
}

// resultJSON is a result whose record is left out where nothing has landed.
type resultJSON struct {
	land.Result
	Record *note.Record `json:"record,omitempty"`
}

func (c *call) printResult(r land.Result) error {
	switch {
	case r.Hint != "":
		c.err.printf("%s the local branch stays where it is: %s\n%s %s\n",
			paint(yellow, "note:"), r.Local, paint(yellow, "hint:"), r.Hint)
	case r.Local != "" && r.Local != "moved":
		c.note("the local branch stays where it is: %s", r.Local)
	}
	if r.Kept != "" {
		c.note("%s", r.Kept)
	}
	if r.Note != "" && r.Status == land.Landed {
		c.note("the commits keep their messages, and -m is a note in the record   (--squash and --merge make a commit with that message)")
	}
	if c.opts.Bool("json") {
		shown := resultJSON{Result: r}
		if r.Status == land.Landed {
			shown.Record = &r.Record
		}
		return c.out.json(shown)
	}
	switch r.Status {
	case land.Already:
		c.out.printf("already landed as %s\n", r.Commit.Short())
	case land.Planned:
		c.printPlan(r)
	default:
		c.out.printf("%s %s on %s\n", paint(green, "landed"), r.Commit.Short(), r.Branch.Branch())
	}
	return nil
}

// printStuck prints a landing of which a step is to come: in JSON with the error.
func (c *call) printStuck(r land.Result) error {
	if !c.opts.Bool("json") {
		return c.printResult(r)
	}
	text, err := json.Marshal(resultJSON{Result: r, Record: &r.Record})
	return errors.Join(err, json.Unmarshal(text, &c.partial))
}

// printRefused prints the plan of a dry run that is refused.
func (c *call) printRefused(r land.Result) error {
	switch {
	case r.Status != land.Planned:
		return nil
	case c.opts.Bool("json"): // one object, with the error
		text, err := json.Marshal(resultJSON{Result: r})
		return errors.Join(err, json.Unmarshal(text, &c.partial))
	}
	c.printPlan(r)
	return nil
}

func (c *call) printPlan(r land.Result) {
	row := func(name, text string) { c.out.printf("  %-8s %s\n", name, text) }
	c.out.printf("would land on %s at %s, under the lease %s\n", r.Branch.Branch(), r.Remote, r.Lease)
	row("base", orNone(string(r.Base)))
	row("tree", string(r.Tree))
	row("unit", r.Unit)
	if len(r.Paths) > 0 {
		row("paths", strings.Join(r.Paths, ", "))
	} else {
		row("commits", fmt.Sprint(r.Commits))
		row("mode", string(r.Mode))
	}
	if r.Note != "" {
		row("note", r.Note)
	}
	for _, s := range r.Steps {
		row("step", s.Name+": "+s.Run)
	}
}

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return text
}

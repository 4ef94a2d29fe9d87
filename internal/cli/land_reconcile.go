package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/reconcile"
)

func reconcileCommand() *command {
	return &command{
		name:     "reconcile",
		synopsis: "[--since REV] [--json] [OPTION...]\n--fix [--reason TEXT] [OPTION...]",
		summary:  "compare branch, records and log, and name where they disagree",
		about: `
Walks the target branch since it came under the lease, its landing records and
the lease's chain, as the remote has them now. Each disagreement has a code,
what a reader would conclude from it, and the command that settles it.
Unverified landings, overrides, breaks, recoveries and repairs are no faults:
they are counted, and the newest are shown; --all lists them all. It needs no
lease.

--fix settles what can be settled, under the lease, by appending: records and
events that are missing, and with --reason an acknowledgement of what cannot be
mended. Verifications that wait in this clone are published, without the lease.
A chain is never mended so. It may be killed, and run again.`,
		examples: `
git land reconcile
git land reconcile --since v1.2 --json
git land reconcile --fix --reason "pushed by hand while the site was down"`,
		exits: []int{3, 7, 9},
		flags: []cli.Flag{text("since", "`REV` whose commits are passed over"), boolean("fix", "settle what can be settled"),
			boolean("all", "list all that is no fault, and what was settled before"),
			text("reason", "`TEXT` for the record; acknowledges what cannot be mended"), jsonFlag(), ontoFlag(), remoteFlag()},
		run: landReconcile,
	}
}

func landReconcile(ctx context.Context, c *call) error {
	if err := c.nothingMore(); err != nil {
		return err
	}
	if err := cmp.Or(c.only("fix", "reason"), c.apart("all", "json")); err != nil { // which has all
		return err
	}
	if _, given := c.in.last("reason"); given {
		if _, err := lease.Reason(c.opts.String("reason"), "what is acknowledged is", "how it came to this"); err != nil {
			return err
		}
	}
	l, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	r := reconcile.Request{Fix: c.opts.Bool("fix"), Reason: c.opts.String("reason")}
	r.Want = c.want("")
	if r.Since, err = c.since(ctx, l); err != nil {
		return err
	}
	if r.Session, err = l.Dir.FromEnv(c.env.Get); err != nil {
		return err
	}
	var clear func()
	r.Progress, clear = c.progress()
	if c.env.Get("GOGC") == "" {
		debug.SetGCPercent(50) // a long history is read whole: memory is dearer than time
	}
	report, err := reconcile.Run(ctx, l, r)
	clear()
	if err != nil {
		return err
	}
	return c.printReport(l, report, r)
}

// since is the commit that --since names, in this clone.
func (c *call) since(ctx context.Context, l *ledger.Ledger) (object.OID, error) {
	rev := c.opts.String("since")
	if rev == "" {
		return "", nil
	}
	o, err := l.Repo.Lookup(ctx, rev+"^{commit}")
	if errors.Is(err, git.ErrNotFound) {
		return "", fault.New(fault.Usage, "%s is no commit in this clone", rev).WithHint("git log --oneline")
	}
	return o.OID, err
}

// progress shows a line on a terminal that is written over, and wipes it away.
func (c *call) progress() (show func(what string, done, all int), clear func()) {
	if !c.env.StderrTTY {
		return nil, func() {}
	}
	var mu sync.Mutex
	var last time.Time
	shown := false
	show = func(what string, done, all int) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < 100*time.Millisecond {
			return
		}
		last, shown = time.Now(), true
		of := ""
		if all > 0 {
			of = fmt.Sprintf(" of %d", all)
		}
		c.err.write(fmt.Sprintf("\rreading %s: %d%s\x1b[K", what, done, of))
	}
	return show, func() {
		if shown {
			c.err.write("\r\x1b[K")
		}
	}
}

func (c *call) printReport(l *ledger.Ledger, report reconcile.Report, r reconcile.Request) error {
	var err error
	if n := len(report.Findings); n > 0 {
		err = disagreement(l, report, r)
	}
	if c.opts.Bool("json") {
		if err != nil {
			c.partial = map[string]any{"report": report}
			return err
		}
		return c.out.json(map[string]any{"report": report})
	}
	if n := report.Published; n > 0 {
		c.out.printf("%s  %s\n", paint(green, "published"), counted(n, "verification")+" of this clone")
	}
	for _, f := range report.Settled {
		c.out.printf("%s  %s  %s\n", paint(green, "settled"), paint(green, string(f.Code)), objectOf(f))
	}
	for _, f := range report.Findings {
		c.out.printf("%s  %s\n", paint(red, string(f.Code)), objectOf(f))
		switch {
		case f.Commit != "":
			c.out.printf("    %s  %s: %s\n", f.Commit.Short(), f.Author, f.Subject)
		case f.Author != "":
			c.out.printf("    landed by %s, %s; the commit is not in this clone\n", f.Author, f.Subject)
		}
		c.out.printf("    %s\n", f.Text)
		if len(f.Others) > 0 {
			c.out.printf("    see: %s\n", joinOIDs(f.Others))
		}
		c.out.printf("    to settle it: %s\n", f.Command)
		for _, w := range f.Otherwise {
			c.out.printf("    or: %s   (%s)\n", w.Command, w.When)
		}
	}
	if err == nil {
		from := "it came under the lease"
		if r.Since != "" {
			from = r.Since.Short()
		}
		c.err.printf("%s %s at %s: branch, records and log tell one story of %s, with %s since %s\n",
			paint(green, "agreed"), report.Branch.Branch(), report.Remote, counted(report.Landings, "landing"), counted(report.Commits, "commit"), from)
	}
	c.printNotices(l, report, r, err == nil)
	return err
}

func disagreement(l *ledger.Ledger, report reconcile.Report, r reconcile.Request) error {
	fixable, reasons := 0, 0
	for _, f := range report.Findings {
		switch can, reason := f.Fixable(); {
		case can && reason:
			reasons++
		case can:
			fixable++
		}
	}
	n := len(report.Findings)
	what := fmt.Sprintf("%d disagreements", n)
	if n == 1 {
		what = "a disagreement"
	}
	f := fault.New(fault.Disagree, "%s between branch, records and log of %s at %s", what, report.Branch.Branch(), report.Remote)
	back := slices.IndexFunc(report.Findings, func(f reconcile.Finding) bool { return len(f.Otherwise) > 0 })
	fix := []string{"git", "land", "reconcile", "--fix"}
	if reasons > 0 {
		fix = append(fix, "--reason", "WHY")
	}
	if r.Want.Branch != "" {
		fix = append(fix, "--onto", report.Branch.Branch())
	}
	switch {
	case back >= 0:
		f.Hint = report.Findings[back].Command + "   (then look again; what costs more is named with each finding)"
	case reasons+fixable > 0:
		f.Hint = l.Command(fix...)
	}
	return f
}

func objectOf(f reconcile.Finding) string {
	if f.Object == "" {
		return f.Operation
	}
	return string(f.Object)
}

func joinOIDs(list []object.OID) string {
	var words []string
	for _, oid := range list {
		words = append(words, string(oid))
	}
	return strings.Join(words, " ")
}

// shownNotices is how many notices are shown where not all are asked for.
const shownNotices = 3

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// printNotices counts what is no fault, and shows the newest, or all. After a verdict
// that all is well only what is under way is shown: the rest has been there before.
func (c *call) printNotices(l *ledger.Ledger, report reconcile.Report, r reconcile.Request, agreed bool) {
	count := map[string]int{}
	for _, n := range report.Notices {
		count[n.Kind]++
	}
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		what := kind
		if count[kind] > 1 && kind != "under-way" {
			what += "s"
		}
		counts = append(counts, fmt.Sprintf("%d %s", count[kind], what))
	}
	if n := len(report.Acknowledged); n > 0 {
		counts = append(counts, fmt.Sprintf("%d settled before", n))
	}
	if len(counts) == 0 {
		return
	}
	c.out.printf("%s  %s\n", paint(faint, "no faults"), strings.Join(counts, ", "))
	shown := min(len(report.Notices), shownNotices)
	if agreed { // what is under way comes first
		shown = count["under-way"]
	}
	if c.opts.Bool("all") {
		shown = len(report.Notices)
		for _, f := range report.Acknowledged {
			c.out.printf("  settled before  %s  %s\n", f.Code, f.Object)
		}
	}
	for _, n := range report.Notices[:shown] {
		c.printNotice(n)
	}
	if more := len(report.Notices) - shown; more > 0 || !c.opts.Bool("all") && len(report.Acknowledged) > 0 {
		words := []string{"git", "land", "reconcile", "--all"}
		if r.Since != "" {
			words = append(words, "--since", string(r.Since))
		}
		if r.Want.Branch != "" {
			words = append(words, "--onto", report.Branch.Branch())
		}
		what := "all of them"
		if shown > 0 {
			what = fmt.Sprintf("the newest %d of %d are shown; all", shown, len(report.Notices)+len(report.Acknowledged))
		}
		c.note("%s: %s", what, l.Command(words...))
	}
}

func (c *call) printNotice(n reconcile.Notice) {
	who := n.Actor
	if n.Host != "" {
		who += " on " + n.Host
	}
	what := n.Object.Short()
	if what == "" {
		what = n.Operation
	}
	c.out.printf("  %s  %s", paint(yellow, n.Kind), what)
	if !n.Time.IsZero() {
		c.out.printf("  %s  %s", n.Time.Format(timeLayout), who)
	}
	c.out.printf("  %s\n", n.Text)
}

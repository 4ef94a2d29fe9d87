package cli

import (
	"context"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/land"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

func verifyCommand() *command {
	return &command{
		name:     "verify",
		synopsis: "[OPTION...] [-x COMMAND] [-- PATH...]\n--record pass|fail --check NAME [--tree OID]\n [OPTION...] [-- PATH...]",
		summary:  "run checks on the tree that would land, and record what they found",
		about: `
Builds the tree that would land, runs COMMAND in a shell on exactly that tree,
and publishes whether it passed: the check's exit code is the verdict. Without
-x it runs the checks that the target's .gitland names, or one of them.
--record publishes what another system found, with nothing run here.`,
		examples: `
git land verify
git land verify -x "make test" -- hello.go
git land verify --check lint -x "./lint --strict"
git land verify --record pass --check ci --tree "$(git rev-parse HEAD^{tree})"`,
		exits: []int{4, 5, 8, 9},
		flags: slices.Concat([]cli.Flag{
			text("x", "`COMMAND` of the check"),
			text("check", "`NAME` of the check"),
			boolean("accept", "let the commands of .gitland run in this clone"),
			choice("record", "`VERDICT` of another system: pass or fail", string(note.Pass), string(note.Fail)),
			oidFlag("tree", "`OID` of the tree that it is about, in full"),
		}, chooseFlags(), []cli.Flag{jsonFlag()}),
		run: verifyChange,
	}
}

func verifyChange(ctx context.Context, c *call) error {
	verdict, record := value[string](c, "record")
	_, command := c.in.last("x")
	_, named := c.in.last("check")
	tree, given := value[object.OID](c, "tree")
	switch {
	case record && command:
		return fault.New(fault.Usage, "a verification comes from -x COMMAND or from --record VERDICT, and from one of them")
	case record && c.opts.Bool("accept"):
		return fault.New(fault.Usage, "--record runs nothing that could be accepted")
	case record && !named:
		return fault.New(fault.Usage, "a verdict from elsewhere needs the name of its check").WithHint("add --check NAME")
	case given && !record:
		return fault.New(fault.Usage, "option --tree means nothing without --record")
	case given && c.in.cut:
		return fault.New(fault.Usage, "--tree names the whole tree: paths choose nothing from it")
	}
	for _, o := range []string{"head", "squash", "merge", "ff-only", "rebase", "expect-base", "expect-head", "allow"} {
		if err := c.apart("tree", o); err != nil {
			return err
		}
	}
	l, selection, err := c.selection(ctx)
	if err != nil {
		return err
	}
	defer closing(ctx, l)
	var found []note.Verification
	var published error
	if record {
		var v note.Verification
		v, published, err = land.RecordVerdict(ctx, l, land.RecordRequest{Selection: selection,
			Verdict: note.Verdict(verdict), Check: c.opts.String("check"), Tree: tree})
		found = append(found, v)
	} else {
		found, published, err = land.Verify(ctx, l, land.VerifyRequest{Selection: selection, Check: c.opts.String("check"),
			Command: c.opts.String("x"), Accept: c.opts.Bool("accept"), Tell: c.did, Stderr: c.env.Stderr, Environ: c.env.Environ})
	}
	if published != nil {
		c.err.printf("%s the verification is kept here, and goes out with the next landing: %v\n", paint(yellow, "hint:"), published)
	}
	if err != nil {
		return err
	}
	return c.verdicts(l, found, published == nil, record)
}

// verdicts tells what checks found. Those that failed and are not the last were run again.
// A verdict that was only recorded is not our failure.
func (c *call) verdicts(l *ledger.Ledger, found []note.Verification, published, recorded bool) error {
	how := "verified"
	if recorded {
		how = "recorded"
	}
	for _, v := range found {
		if v.Verdict == note.Pass || recorded {
			c.did(how, "tree "+v.Tree.Short()+" by "+v.Check+": "+string(v.Verdict)+took(v))
		}
	}
	v := found[len(found)-1]
	if v.Verdict == note.Fail && !recorded {
		f := land.Failed(l, v)
		f.Facts["verification"], f.Facts["verifications"], f.Facts["published"] = v, found, published
		return f.WithHint("mend it, and verify again")
	}
	if c.opts.Bool("json") {
		return c.out.json(map[string]any{"verifications": found, "published": published})
	}
	return nil
}

func took(v note.Verification) string {
	if v.Duration == 0 {
		return ""
	}
	return " in " + v.Duration.Round(10*time.Millisecond).String()
}

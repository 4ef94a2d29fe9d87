package land

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/policy"
	"gitland/internal/verify"
)

// DefaultCheck is the name of a check that was given none.
const DefaultCheck = "default"

// demanded are the checks that must have passed on what lands: those of the policy,
// and the one that -x gave. It refuses, with class Usage, one of the policy's by
// another command.
func demanded(team policy.Policy, check, command string) ([]note.Want, error) {
	var wants []note.Want
	for _, c := range team.Checks {
		wants = append(wants, note.Want{Check: c.Name, Command: c.Text})
	}
	if command == "" {
		return wants, nil
	}
	own := typed(team, check, command)
	if slices.Contains(wants, own) {
		return wants, nil
	}
	if c := team.Find(own.Check); c != nil {
		from := "git's configuration"
		if c.Shared {
			from = policy.File
		}
		return nil, fault.New(fault.Usage, "the check %s is another command by %s: %s", c.Name, from, nonEmpty(c.Text, "none, for another system records what it found")).
			WithHint("leave -x out   (or give what -x runs a name of its own: --check NAME)")
	}
	return append(wants, own), nil
}

// typed is the check that -x and --check give. Without a name it is the one of the
// policy that has the command.
func typed(team policy.Policy, check, command string) note.Want {
	if check == "" {
		for _, c := range team.Checks {
			if c.Text == command {
				check = c.Name
			}
		}
	}
	return note.Want{Check: nonEmpty(check, DefaultCheck), Command: command}
}

// lacking are the demanded checks that have not passed and can be run. blocked means that
// running them would not be enough: another check failed, or one is missing that
// another system runs.
func lacking(j note.Judgement, wants []note.Want) (run []note.Want, blocked bool) {
	for _, w := range wants {
		switch {
		case j.Passed(w):
		case w.Command == "":
			blocked = true
		default:
			run = append(run, w)
		}
	}
	blocked = blocked || slices.ContainsFunc(j.Failing, func(v note.Verification) bool {
		return !slices.Contains(run, note.Want{Check: v.Check, Command: v.Command})
	})
	return run, blocked
}

type checkRequest struct {
	wants   []note.Want
	typed   string // the command that the user gave, which is so accepted
	accept  bool   // the commands of the policy are accepted now
	again   string // the command line that accepts them
	unit    string
	tell    func(what, text string) // may be nil
	output  io.Writer
	environ []string
	id      ulid.ULID
}

// runChecks runs checks on what would land, up to the first that fails, again as often as
// its retries say, and keeps and publishes all that they found, also when one of them
// came to no end.
func runChecks(ctx context.Context, l *ledger.Ledger, p plan, r checkRequest) (found []note.Verification, published, err error) {
	if err := r.accepted(l, p.view.Policy); err != nil {
		return nil, nil, err
	}
	for _, w := range r.wants {
		if r.tell != nil && w.Command != r.typed {
			r.tell("checking", w.Check+": "+w.Command)
		}
		var verdicts []note.Verification
		verdicts, err = r.run(ctx, l, p, w)
		found = append(found, verdicts...)
		if n := len(verdicts); err != nil || verdicts[n-1].Verdict != note.Pass {
			break
		}
	}
	if len(found) > 0 && ctx.Err() == nil {
		published = l.PublishVerifications(ctx, ledger.Want{Name: p.view.Name, Branch: p.view.Branch})
	}
	return found, published, err
}

// run runs one check until it passes, or its retries are used up. Every verdict is kept,
// as it is found: the last one counts, and the others say that the check is flaky.
func (r checkRequest) run(ctx context.Context, l *ledger.Ledger, p plan, w note.Want) (verdicts []note.Verification, err error) {
	retries := p.view.Policy.Retries(w.Check)
	for n := 0; ; n++ {
		v, err := verify.Run(ctx, l, verify.Request{Tree: p.tree, Base: p.view.Base, Check: w.Check, Command: w.Command,
			Unit: r.unit, ID: r.id.String(), Setup: p.view.Policy.Setup.Text, Output: r.output, Environ: r.environ})
		if err == nil {
			err = l.Keep(v)
		}
		if err != nil {
			return verdicts, err
		}
		verdicts = append(verdicts, v)
		if v.Verdict == note.Pass || n == retries {
			return verdicts, nil
		}
		if r.tell != nil {
			r.tell("again", fmt.Sprintf("the check %s failed (exit %d), retry %d of %d", w.Check, v.Exit, n+1, retries))
		}
	}
}

// accepted refuses to run commands that come from others and that nobody has let run
// in this clone.
func (r checkRequest) accepted(l *ledger.Ledger, team policy.Policy) error {
	commands := []policy.Command{team.Setup}
	for _, w := range r.wants {
		if c := team.Find(w.Check); c != nil && w.Command != r.typed {
			commands = append(commands, c.Command)
		}
	}
	if r.accept { // those of its steps as well
		commands = team.Commands()
	}
	left, err := policy.Unaccepted(l.Dir, commands...)
	if err != nil || len(left) == 0 {
		return err
	}
	if r.accept {
		for _, c := range left {
			r.tell("accepted", c.Key+" = "+c.Text)
		}
		return policy.Accept(l.Dir, left...)
	}
	return unaccepted(left, "commands of %s run in this clone only when its user has accepted them").
		WithHint("%s   (it accepts them, and runs the checks)", r.again)
}

// unaccepted is the fault, without a hint, of commands that nobody has let run in this
// clone; what says which they are, of the file %s.
func unaccepted(left []policy.Command, what string) *fault.Error {
	var shown []string
	var facts []map[string]string // as with git land init --json
	for _, c := range left {
		shown = append(shown, c.Key+" = "+c.Text)
		facts = append(facts, map[string]string{"key": c.Key, "command": c.Text})
	}
	return fault.New(fault.Unverified, what+", and these are not: %s", policy.File, strings.Join(shown, "; ")).
		WithFacts(map[string]any{"unaccepted": facts})
}

// notUnderstood is the fault of a policy of which not all is understood.
func notUnderstood(team policy.Policy, so string) *fault.Error {
	f := *team.Problem
	f.What += ", so " + so
	return f.WithHint("mend %s, and land that past the gate: %s", policy.File, mendPolicy)
}

// mendPolicy is the command line that lands a policy which was mended.
const mendPolicy = "git land --force-unverified --reason WHY -m 'Mend the policy' -- " + policy.File

// soundPolicy refuses to land a policy that the next landing could not be judged by, or
// whose lease is not the one that the target is then under. To land past the gate goes past
// that only where others may understand it, or it is there already.
func soundPolicy(ctx context.Context, l *ledger.Ledger, s Selection, p plan) error {
	next, err := l.PolicyIn(ctx, p.tree)
	past, there := s.reason != "", next.Blob == p.view.Policy.Blob
	switch {
	case err != nil:
		return err
	case there && (next.Problem == nil || past), past && (next.Problem == nil || next.Newer):
		return nil
	case next.Problem == nil:
		return cmp.Or(sameLease(p, next), sameTarget(ctx, l, p, next))
	}
	f := fault.New(fault.Conflict, "%s, and no landing after this one could be judged by it", next.Problem.What).WithFacts(next.Problem.Facts)
	if next.Newer {
		return f.WithHint("mend %s; or, where others have a newer version: %s", policy.File, forced(l, s))
	}
	return f.WithHint("mend %s, and land again", policy.File)
}

// sameTarget refuses a policy by which landings would go onto a branch that there is not.
func sameTarget(ctx context.Context, l *ledger.Ledger, p plan, next policy.Policy) error {
	if !next.Says("land.onto") || next.Target == p.view.Branch || p.view.Policy.Says("land.onto") && next.Target == p.view.Policy.Target {
		return nil
	}
	branches, err := l.Branches(ctx)
	if err != nil || slices.Contains(branches, next.Target) {
		return err
	}
	return fault.New(fault.Conflict, "%s (%s) would have landings go onto %s, and %s has no such branch", policy.File, next.Blob.Short(), next.Target.Branch(), l.Remote).
		WithHint("have land.onto in %s be a branch of %s: %s", policy.File, l.Remote, ledger.BranchList(branches))
}

func sameLease(p plan, next policy.Policy) error {
	branch, name := p.view.Branch.Branch(), p.view.Branch.Branch()
	if next.Says("lease.name") {
		name = next.Lease
	}
	if name == p.view.Name || !next.Says("lease.name") && !p.view.Policy.Says("lease.name") {
		return nil
	}
	f := fault.New(fault.Conflict, "%s (%s) would put %s under the lease %s, and it lands under %s", policy.File, next.Blob.Short(), branch, name, p.view.Name)
	if p.view.Keeps(p.view.Branch) {
		return f.WithHint("have lease.name in %s be %s: a branch stays under its lease", policy.File, p.view.Name)
	}
	return f.WithHint("%s   (and land again)", fault.Command("git", "config", "lease.name", name))
}

// forced is the command line that lands past the gate.
func forced(l *ledger.Ledger, s Selection) string {
	words := append([]string{"git", "land", "--force-unverified", "--reason", "WHY"}, stepWords(s.steps)...)
	for _, m := range s.Messages {
		words = append(words, "-m", m)
	}
	return withSelection(l, words, s)
}

// Failed is the fault of a check that was just run, after its last retry, without a hint.
// Its output has gone by, so people are told only where it is kept; a program gets the
// end of it.
func Failed(l *ledger.Ledger, v note.Verification) *fault.Error {
	facts := map[string]any{"tree": v.Tree, "check": v.Check, "command": v.Command, "exit": v.Exit}
	f := fault.New(fault.Unverified, "the check %s failed on tree %s: %s exited with %d", v.Check, v.Tree, v.Command, v.Exit).WithFacts(facts)
	if out := verify.OutputOf(l.Dir, v.ID); out != nil {
		facts["output"] = out
		f.WithDetails("its output is kept in " + out.Path)
	}
	return f
}

// failed is Failed, with the way on for a landing.
func failed(l *ledger.Ledger, team policy.Policy, v note.Verification) *fault.Error {
	f := Failed(l, v).WithHint("mend it and run git land again")
	if c := team.Find(v.Check); c != nil && c.Shared {
		f.Hint += fmt.Sprintf("   (where the check is wrong: mend it in %s alone, which what is there judges, and land that first: %s)", policy.File, mendPolicy)
	}
	return f
}

// firstError is err, else the fault of the last check if that failed.
func firstError(l *ledger.Ledger, team policy.Policy, found []note.Verification, err error) error {
	if n := len(found); err == nil && n > 0 && found[n-1].Verdict != note.Pass {
		return failed(l, team, found[n-1])
	}
	return err
}

// Told are the lines that tell of a check's output to somebody who has not seen it.
func Told(out *verify.Output) []string {
	lines := []string{"its output is kept in " + out.Path + ", and ends"}
	if len(out.Tail) == 0 {
		return []string{"it printed nothing"}
	}
	for _, line := range out.Tail {
		lines = append(lines, "| "+line)
	}
	return lines
}

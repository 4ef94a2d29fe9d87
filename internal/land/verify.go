package land

import (
	"context"
	"io"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/policy"
)

// A VerifyRequest asks for checks of what would land.
type VerifyRequest struct {
	Selection
	// Check and Command are one check that is run for this time. Without Command they
	// are those of the policy: the one named, or all.
	Check, Command string
	Accept         bool                    // let the commands of the policy run in this clone
	Tell           func(what, text string) // told before each check of the policy
	Stderr         io.Writer               // where a check's output goes as it runs
	Environ        []string                // the check's, before what verify takes away
}

// Verify runs checks on the very tree that would land, up to the first that fails, and
// records what they found. published tells why that is not at the authority yet; it
// is kept here, counts here, and goes out later. A verification that failed is
// no error.
func Verify(ctx context.Context, l *ledger.Ledger, r VerifyRequest) (found []note.Verification, published, err error) {
	s := r.Selection
	s.words = r.words()
	p, unit, err := prospect(ctx, l, s)
	if err != nil {
		return nil, nil, err
	}
	wants, err := r.wants(l, p)
	if err != nil {
		return nil, nil, err
	}
	id, done := watched(l)
	defer done()
	return runChecks(ctx, l, p, checkRequest{wants: wants, typed: r.Command, accept: r.Accept, again: acceptCommand(l, r.Selection), unit: unit, tell: r.Tell, output: r.Stderr, environ: r.Environ, id: id})
}

// words begin the command line that verifies so.
func (r VerifyRequest) words() []string {
	words := []string{"git", "land", "verify"}
	if r.Accept {
		words = append(words, "--accept")
	}
	if r.Check != "" {
		words = append(words, "--check", r.Check)
	}
	if r.Command != "" {
		words = append(words, "-x", r.Command)
	}
	return words
}

// acceptCommand is the whole command that lets the commands of the policy run here.
func acceptCommand(l *ledger.Ledger, s Selection) string {
	return withSelection(l, []string{"git", "land", "verify", "--accept"}, s)
}

func (r VerifyRequest) wants(l *ledger.Ledger, p plan) ([]note.Want, error) {
	team := p.view.Policy
	if r.Command != "" {
		_, err := demanded(team, r.Check, r.Command)
		return []note.Want{typed(team, r.Check, r.Command)}, err
	}
	if team.Problem != nil {
		return nil, notUnderstood(team, "which checks it wants is not known")
	}
	var wants []note.Want
	var names []string
	for _, c := range team.Checks {
		if c.Text != "" && (r.Check == "" || r.Check == c.Name) {
			wants = append(wants, note.Want{Check: c.Name, Command: c.Text})
		}
		names = append(names, c.Name)
	}
	switch {
	case len(wants) > 0:
		return wants, nil
	case r.Check == "":
		return nil, fault.New(fault.Usage, "there is no check to run: %s on %s has none with a command, and -x gives none", policy.File, p.view.Branch.Branch()).
			WithHint("add -x COMMAND")
	case team.Find(r.Check) != nil:
		return nil, fault.New(fault.Usage, "the check %s has no command: another system records what it found", r.Check).
			WithHint("%s   (when it has passed there)", withSelection(l, []string{"git", "land", "verify", "--record", "pass", "--check", r.Check}, r.Selection))
	}
	return nil, fault.New(fault.Usage, "%s on %s has no check %s", policy.File, p.view.Branch.Branch(), r.Check).
		WithHint("add -x COMMAND   (it has: %s)", nonEmpty(shortList(names), "none"))
}

// prospect plans a landing that nobody has asked for yet.
func prospect(ctx context.Context, l *ledger.Ledger, s Selection) (plan, string, error) {
	id, done := watched(l)
	defer done()
	view, err := l.Fetch(ctx, s.Want)
	if err != nil {
		return plan{}, "", err
	}
	c, err := readChange(ctx, l, s, view.Policy.Paths, id.String())
	if err != nil {
		return plan{}, "", err
	}
	c.drop()
	p, err := makePlan(ctx, l, view, c)
	return p, chooseUnit(s, c, view.Branch), err // a verification without a unit says nothing of one
}

// A RecordRequest records what another system found.
type RecordRequest struct {
	Selection
	Verdict note.Verdict
	Check   string
	Tree    object.OID // "" is the tree that would land
}

// RecordVerdict records a verdict that was found elsewhere, with no command.
// What it returns is as with Verify.
func RecordVerdict(ctx context.Context, l *ledger.Ledger, r RecordRequest) (v note.Verification, published, err error) {
	want := r.Want
	v = note.Verification{ID: l.NewID(), Check: nonEmpty(event.CleanText(r.Check, event.MaxText), DefaultCheck), Verdict: r.Verdict,
		Tree: r.Tree, Unit: event.CleanText(r.Unit, event.MaxText), Host: l.Host, Time: l.Now()}
	if r.Tree == "" {
		s := r.Selection
		s.words = []string{"git", "land", "verify", "--record", string(r.Verdict), "--check", r.Check}
		p, unit, err := prospect(ctx, l, s)
		if err != nil {
			return v, nil, err
		}
		want = ledger.Want{Name: p.view.Name, Branch: p.view.Branch}
		v.Tree, v.Base, v.Unit = p.tree, p.view.Base, unit
	} else if len(r.Tree) != 2*l.Repo.Format.Size() {
		return v, nil, fault.New(fault.Usage, "%s is no object id of this repository, which uses %s", r.Tree, l.Repo.Format)
	}
	team, err := l.Expected(ctx, want)
	if err != nil {
		return v, nil, err
	}
	if c := team.Find(v.Check); c != nil && c.Text != "" {
		return v, nil, fault.New(fault.Usage, "the check %s counts when its command has passed, %s: a verdict without that is not asked for", c.Name, c.Text).
			WithHint("%s", withSelection(l, []string{"git", "land", "verify", "--check", c.Name}, r.Selection))
	}
	if v.Actor, err = l.Repo.Ident(); err != nil {
		return v, nil, err
	}
	if err := l.Keep(v); err != nil {
		return v, nil, err
	}
	return v, l.PublishVerifications(ctx, want), nil
}

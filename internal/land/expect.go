package land

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

// expectHead refuses a HEAD, or what --head names, that is not the commit expected.
func (c *change) expectHead(ctx context.Context, repo *git.Repo) error {
	want := c.asked.ExpectHead
	if want == "" {
		return nil
	}
	is, err := isCommit(ctx, repo, "--expect-head", want, c.head)
	if err != nil || is {
		return err
	}
	return fault.New(fault.Conflict, "%s is at %s, and --expect-head wants %s", c.name(), nonEmpty(string(c.head), "no commit"), want).
		WithHint("%s", whatCame(ctx, repo, want, c.head)).
		WithFacts(map[string]any{"expected_head": want, "head": c.head})
}

// headStillExpected is expectHead right before the push: a check or a hook may have moved
// HEAD, or what --head names, since it was read.
func (c change) headStillExpected(ctx context.Context, repo *git.Repo) (err error) {
	if c.asked.ExpectHead == "" {
		return nil
	}
	c.head, _, err = repo.Revision(ctx, c.name())
	if err != nil && !errors.Is(err, git.ErrNoRevision) { // that is an unborn one
		return err
	}
	return c.expectHead(ctx, repo)
}

// expectBase refuses a target that is not at the commit expected. A change that has
// landed there, on that very commit, needs it no more; planned says that it is known
// whether it has.
func (p *plan) expectBase(ctx context.Context, l *ledger.Ledger, planned bool) error {
	want := p.change.asked.ExpectBase
	if want == "" {
		return nil
	}
	is, err := isCommit(ctx, l.Repo, "--expect-base", want, p.view.Base)
	if err != nil || is {
		return err
	}
	if planned && p.already != "" {
		if landed, err := p.landedOn(ctx, l, want); err != nil || landed {
			return err
		}
	}
	return fault.New(fault.Conflict, "%s at %s is at %s, and --expect-base wants %s", p.view.Branch.Branch(), l.Remote,
		nonEmpty(string(p.view.Base), "no commit"), want).
		WithHint("%s", whatCame(ctx, l.Repo, want, p.view.Base)).
		WithFacts(map[string]any{"expected_base": want, "base": p.view.Base})
}

// whatCame is the command that shows what has come to a place since what was expected.
func whatCame(ctx context.Context, repo *git.Repo, want string, now object.OID) string {
	if now == "" {
		return "git land status"
	}
	if _, err := repo.Lookup(ctx, want+"^{commit}"); err == nil {
		return fault.Command("git", "log", "--oneline", want+".."+now.Short()) + "   (what has come to it)"
	}
	return fault.Command("git", "log", "--oneline", "-5", now.Short()) + "   (what is there)"
}

// landedOn reports whether a record of the commit that has the change says that it
// landed on the one expected.
func (p *plan) landedOn(ctx context.Context, l *ledger.Ledger, want string) (bool, error) {
	blob, err := l.Note(ctx, p.view.Records, p.already)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(note.ParseRecords(blob), func(r note.Line[note.Record]) bool {
		return r.Err == nil && r.Value.Branch == p.view.Branch && strings.HasPrefix(string(r.Value.Base), want)
	}), nil
}

// isCommit reports whether what a user expects is the commit; an empty one is there
// when all zeros are expected. Digits that several commits begin with are refused, as
// git refuses them: they expect none.
func isCommit(ctx context.Context, repo *git.Repo, option, want string, commit object.OID) (bool, error) {
	if want == string(commit) || commit == "" {
		return want == string(commit) || want == string(repo.Format.Zero()), nil
	}
	if !strings.HasPrefix(string(commit), want) {
		return false, nil
	}
	named, err := repo.CommitsNamed(ctx, want)
	if err == nil && len(named) > 1 {
		err = fault.New(fault.Usage, "%s %s is ambiguous: %d commits begin so", option, want, len(named)).
			WithHint("give the whole id")
	}
	return err == nil, err
}

package land

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/policy"
)

// signs reports whether the commits that a landing makes are signed, as git commit signs
// its own.
func signs(l *ledger.Ledger) (bool, error) {
	sign, err := l.Repo.Config.Bool("commit.gpgSign", false)
	if err != nil {
		return false, fault.New(fault.Usage, "%w", err).WithHint("git config commit.gpgSign true")
	}
	return sign, nil
}

// unsigned is the fault of a commit that was to be signed, and could not be.
func (p *plan) unsigned(l *ledger.Ledger, what string, err error) error {
	s, without := p.change.asked, p.signing(l, "false")
	if errors.Is(err, git.ErrNotSame) {
		s.Mode = policy.Merge
		return fault.New(fault.Conflict, "%s cannot be signed anew as it is: git signs no commit with such headers or identities", what).
			WithHint("%s   (it keeps the commit; or, to have it rebased unsigned: %s)", withSelection(l, s.landing(), s), without)
	}
	return fault.New(fault.Failed, "%s is to be signed, and could not be: %w", what, err).
		WithHint("mend user.signingKey, gpg.format or what belongs to them, and run git land again   (or, unsigned: %s)", without)
}

// guardSignatures refuses to rebase a commit whose signature could not be made again here:
// the committer, whom it is of, is another, or nothing is signed here. A commit is whose
// e-mail address it has as its committer; names are spelled in many ways.
func (p *plan) guardSignatures(ctx context.Context, l *ledger.Ledger, _ [][]git.Change) error {
	sign, err := signs(l)
	if err != nil || len(p.picks) == 0 {
		return err
	}
	me, err := l.Repo.Ident()
	if err != nil {
		return err
	}
	for _, pick := range p.picks { // there are none but where commits are rebased
		c, err := l.Repo.Commit(ctx, pick.commit)
		if err != nil {
			return err
		}
		who := git.IdentName(c.Committer)
		own := address(who) == address(me)
		if !slices.ContainsFunc(c.Extra, git.IsSignature) || own && sign {
			continue
		}
		s := p.change.asked
		s.Mode = policy.Merge
		way, that := withSelection(l, s.landing(), s), "keeps the commit as it is"
		if own {
			way, that = p.signing(l, "true"), "signs it anew"
		}
		return fault.New(fault.Conflict, "commit %s is signed, by %s, and to be rebased onto %s it would lose that", pick.commit.Short(), who, p.view.Branch.Branch()).
			WithHint("%s   (it %s; or, without the signature: %s)", way, that, p.allowing(l, GuardSignature)).
			WithFacts(map[string]any{"commit": pick.commit, "signed_by": who})
	}
	return nil
}

// signing is the command that lands the change with commit.gpgSign as it says.
func (p *plan) signing(l *ledger.Ledger, value string) string {
	s := p.change.asked
	return "git -c commit.gpgSign=" + value + strings.TrimPrefix(withSelection(l, s.landing(), s), "git")
}

// address is the e-mail address of "Name <email>".
func address(ident string) string {
	_, email, _ := strings.Cut(ident, "<")
	return strings.ToLower(strings.TrimSuffix(email, ">"))
}

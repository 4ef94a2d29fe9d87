package land

import (
	"errors"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// rebaseCommand brings HEAD onto the target by hand.
func rebaseCommand(l *ledger.Ledger, branch object.Ref) string {
	if l.IsLocal() {
		return fault.Command("git", "rebase", branch.Branch())
	}
	return fault.Command("git", "pull", "--rebase", "--autostash", l.Remote, branch.Branch())
}

// conflict tells a merge conflict as a refusal; other errors stay as they are.
func (p *plan) conflict(l *ledger.Ledger, err error, commit object.OID) error {
	var conflict *git.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	what := "the change"
	if commit != "" {
		what = "commit " + commit.Short()
	}
	return fault.New(fault.Conflict, "%s conflicts with %s at %s in: %s", what, p.view.Branch.Branch(),
		p.view.Base.Short(), shortList(conflict.Paths)).
		WithFacts(map[string]any{"paths": conflict.Paths, "base": p.view.Base}).
		WithHint("commit what you have, then: %s   (mend the conflict, and run git land again)", rebaseCommand(l, p.view.Branch))
}

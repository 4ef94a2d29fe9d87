package land

import (
	"context"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
)

// guardEmpty refuses commits that change nothing, none of them: they are leftovers of
// something, mostly. One among others is nobody's accident.
func (p *plan) guardEmpty(_ context.Context, l *ledger.Ledger, diffs [][]git.Change) error {
	for _, diff := range diffs {
		if len(diff) > 0 {
			return nil
		}
	}
	if p.tree != p.baseTree {
		return nil
	}
	what := "the commit changes"
	if len(p.stack) != 1 {
		what = "the commits change"
	}
	return fault.New(fault.Conflict, "%s nothing: %s would have the files that it has", what, p.view.Branch.Branch()).
		WithHint("%s   (where just that is meant)", p.allowing(l, GuardEmpty))
}

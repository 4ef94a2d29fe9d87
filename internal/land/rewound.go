package land

import (
	"context"

	"gitland/internal/event"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// lookedAt is how many events are looked at for the newest landing.
const lookedAt = 64

// rewound says that the branch of v does not have its newest landing, and how that
// is put back; "" where it has it, where an override took it off, or where somebody
// has acknowledged it.
func rewound(ctx context.Context, l *ledger.Ledger, v ledger.View, w ledger.Want) (string, error) {
	if v.Tip == nil {
		return "", nil
	}
	var newest *event.Event
	known := map[object.OID]bool{} // what repairs name
	n := 0
	err := lease.Walk(ctx, l, v, func(e event.Event) bool {
		for _, u := range e.By.Updates {
			if u.Ref != v.Branch {
				continue
			}
			if shown, err := lease.Shows(ctx, l.Repo, u, v.Base); !e.By.Announced || shown || err != nil {
				return false
			}
		}
		if f := e.By.Finding; f != nil {
			known[f.Object] = true
		}
		if land := e.By.Land; land != nil && e.Kind != event.Intent && land.Branch == v.Branch {
			newest = &e
			return false
		}
		n++
		return n < lookedAt
	})
	if err != nil || newest == nil {
		return "", ctx.Err() // what cannot be read is told by others
	}
	commit := newest.By.Land.Commit
	if commit == v.Base || known[commit] || known[newest.OID] {
		return "", nil
	}
	in, err := isIn(ctx, l, commit, v.Base)
	if err != nil || in || l.Repo.IsShallow() {
		return "", err
	}
	what := v.Branch.Branch() + " no longer has " + commit.Short() + ", the newest landing by its log: it was rewound"
	if _, err := l.Repo.Commit(ctx, commit); err == nil && v.Base != "" {
		if forward, err := isIn(ctx, l, v.Base, commit); err == nil && forward {
			return what + "; this puts it back: " + l.Command("git", "land", "override", "--reason", "WHY", string(commit)+":"+v.Branch.Branch()), nil
		}
	}
	return what + "; what is gone is named by: " + reconcileCommand(l, w.Branch), nil
}

// reconcileCommand is the command line that compares a branch; "" is the target that is
// meant where none is chosen.
func reconcileCommand(l *ledger.Ledger, branch object.Ref) string {
	return withSelection(l, []string{"git", "land", "reconcile"}, Selection{Want: ledger.Want{Branch: branch}})
}

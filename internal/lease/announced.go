package lease

import (
	"context"
	"errors"

	"gitland/internal/event"
	"gitland/internal/git"
	"gitland/internal/object"
)

// An override that was announced need not have come: the event went first, and the
// push of its refs may have failed. What it says of a branch is told by where the
// branch was next.

// Expected is where an event, by the push that moved the branch with it, expected that
// to be. Of an announced override nothing is known, nor of a repair, which tells of
// what was before.
func Expected(e event.Event, branch object.Ref) (at object.OID, ok bool) {
	if land := e.By.Land; land != nil && e.Kind == event.Land && land.Branch == branch {
		return land.Base, true
	}
	for _, u := range e.By.Updates {
		if u.Ref == branch && !e.By.Announced {
			return u.Old, true
		}
	}
	return "", false
}

// Shows reports whether a branch that stands at at, the first time that it is known
// after u was announced, shows that move. One that somebody else made shows
// it, too: they cannot be told apart. Where this clone lacks what would tell, it does.
func Shows(ctx context.Context, repo *git.Repo, u event.Update, at object.OID) (bool, error) {
	switch {
	case at == u.New:
		return true, nil
	case at == u.Old, at == "", u.New == "":
		return false, nil
	}
	has := func(commit object.OID) (bool, error) {
		in, err := repo.IsAncestor(ctx, commit, at)
		if errors.Is(err, git.ErrNotFound) {
			return true, nil
		}
		return in || repo.IsShallow(), err
	}
	if in, err := has(u.New); err != nil || !in || u.Old == "" {
		return in, err
	}
	forward, err := repo.IsAncestor(ctx, u.Old, u.New)
	if err != nil && !errors.Is(err, git.ErrNotFound) || forward {
		return forward, err
	}
	kept, err := has(u.Old) // which a rewind would have taken off
	return !kept || repo.IsShallow(), err
}

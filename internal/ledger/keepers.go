package ledger

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
	"gitland/internal/session"
)

// Keepers are the tips of the leases that list a branch, the one with the most events
// first: more than one where several clones put it under a lease at one instant. It takes one
// connection. A chain whose tip cannot be read lists nothing here.
func (l *Ledger) Keepers(ctx context.Context, branch object.Ref) ([]event.Event, error) {
	below := l.spaces.leases
	if !l.IsLocal() {
		below = l.mirror("lease/")
		if err := l.fetchChains(ctx, below); err != nil {
			return nil, err
		}
	}
	tips, err := l.tipsBelow(ctx, below)
	if err != nil {
		return nil, err
	}
	keepers := slices.DeleteFunc(tips, func(e event.Event) bool { return !slices.Contains(e.State.Branches, branch) })
	slices.SortFunc(keepers, func(a, b event.Event) int {
		if a.Seq != b.Seq {
			return int(min(max(int64(b.Seq)-int64(a.Seq), -1), 1))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return keepers, nil
}

// tipsBelow are the events that local refs below a prefix name, each for its lease, but
// for those that cannot be read or are no events of it.
func (l *Ledger) tipsBelow(ctx context.Context, prefix string) ([]event.Event, error) {
	refs, err := l.Repo.Refs(ctx, strings.TrimSuffix(prefix, "/"))
	if err != nil {
		return nil, err
	}
	var tips []event.Event
	for ref, tip := range refs {
		name, err := event.DecodeName(strings.TrimPrefix(string(ref), prefix))
		if err != nil {
			continue
		}
		e, err := l.Event(ctx, tip, name)
		switch {
		case err == nil:
			tips = append(tips, e)
		case !IsUnsound(err) && !errors.Is(err, git.ErrNotFound):
			return nil, err
		}
	}
	return tips, nil
}

// fetchChains fetches all chains of the authority into the mirror.
func (l *Ledger) fetchChains(ctx context.Context, into string) error {
	lock, err := session.Lock(ctx, l.lockPath()) // two fetches of one clone would fail on each other's ref updates
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := l.Repo.Fetch(ctx, l.remote, git.Refspec{From: l.spaces.leases + "*", To: into + "*"}); err != nil {
		return l.unreachable(err)
	}
	l.fetched()
	return nil
}

// LeaveOne is the command that leaves, of the leases that list a branch, the first: an
// override on its log takes the chain of the other away.
func (l *Ledger) LeaveOne(branch object.Ref, first, other event.Event) string {
	ref, err := l.LeaseRef(other.Name)
	if err != nil {
		return fault.Command("git", "lease", "show", other.Name)
	}
	words := []string{"git"}
	if name := l.Repo.Config.Get("lease.name"); name != "" && name != first.Name || name == "" && first.Name != branch.Branch() {
		words = append(words, "-c", "lease.name="+first.Name)
	}
	return l.Command(append(words, "land", "override", "--onto", branch.Branch(), "--reason", "WHY", ":"+string(ref))...)
}

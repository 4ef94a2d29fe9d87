package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/object"
)

// NoBranch is the fault, of class Usage, of a target that the authority does not have
// while it has others; nil where it has no branch at all, and so waits for its first.
// command is the command line that means one of those instead. The other way on begins
// the branch.
func (l *Ledger) NoBranch(ctx context.Context, v View, command func(there object.Ref) string) error {
	branches, err := l.Branches(ctx)
	if err != nil || len(branches) == 0 {
		return err
	}
	there, err := l.KnownTarget(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(branches, there) {
		there = branches[0]
	}
	at, known := there.Branch(), string(there)
	if !l.IsLocal() {
		at = l.Remote + "/" + at
		known = "refs/remotes/" + at
	}
	if _, err := l.Repo.Lookup(ctx, known); err != nil {
		at = "COMMIT"
	}
	return fault.New(fault.Usage, "%s has no branch %s", l.Remote, v.Branch.Branch()).
		WithHint("%s   (it has: %s; or, to begin that branch: %s)", command(there), BranchList(branches),
			l.Command("git", "land", "override", "--reason", "WHY", at+":"+string(v.Branch)))
}

// BranchList names branches, the first of them where they are many.
func BranchList(branches []object.Ref) string {
	const most = 8
	var names []string
	for _, b := range branches[:min(len(branches), most)] {
		names = append(names, b.Branch())
	}
	list := strings.Join(names, ", ")
	if more := len(branches) - len(names); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// NoStory is NoBranch where there is also no history of a lease to read, so that words,
// which begin a command, would tell of nothing.
func (l *Ledger) NoStory(ctx context.Context, v View, words ...string) error {
	if v.Tip != nil || v.Base != "" || v.Problem != nil || v.Phase() != event.Free {
		return nil
	}
	return l.NoBranch(ctx, v, func(there object.Ref) string {
		return l.Command(append(slices.Clone(words), "--onto", there.Branch())...)
	})
}

package land

import (
	"context"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/policy"
)

// A mending is two command lines: the first brings the change onto the target and stops
// in the conflict, the second goes on when that is mended, and lands.
type mending struct {
	Begin  string `json:"begin"`
	Finish string `json:"finish"`
}

// mending says how the conflict of a change is mended by hand, so that nothing else of
// the worktree lands, is lost, or goes onto a branch where it does not belong.
//
// What has no commit yet gets one. Where that would not be the only one of the branch
// that the target lacks, or the branch does not follow the target, all is done on a
// detached HEAD: the branch stays as it is, and is gone back to at the end.
func (p *plan) mending(ctx context.Context, l *ledger.Ledger) (mending, error) {
	apart, err := p.mendApart(ctx, l)
	if err != nil {
		return mending{}, err
	}
	var begin []string
	commit := p.change.commitCommand(l)
	base, goOn := p.view.Base.Short(), "rebase" // which is here: it was fetched
	switch {
	case p.change.apart:
		begin = []string{fault.Command("git", "switch", "--detach", p.change.head.Short()), fault.Command("git", "rebase", "--autostash", base)}
	case apart && commit == "":
		begin = []string{"git switch --detach", fault.Command("git", "rebase", "--autostash", base)}
	case apart:
		begin = []string{"git switch --detach", commit, fault.Command("git", "rebase", "--autostash", "--onto", base, "HEAD^")}
	default:
		begin = []string{commit, rebaseOnto(l, p.view.Branch, base)}
	}
	if p.mode == policy.Squash || p.mode == policy.Merge { // by the same merge
		begin[len(begin)-1], goOn = fault.Command("git", "merge", "--autostash", base), "merge"
	}
	// Not "git add" of the paths: of some of them nothing may be left. All else was
	// stashed by git.
	finish := []string{"git add -u", "git -c core.editor=true " + goOn + " --continue", p.change.landNext(l)}
	switch {
	case apart && p.change.branch == "":
		finish = append(finish, fault.Command("git", "switch", "--detach", p.change.here.Short()))
	case apart:
		finish = append(finish, fault.Command("git", "switch", p.change.branch.Branch()))
	}
	return mending{inTurn(begin), inTurn(finish)}, nil
}

// mendApart reports whether the current branch is not the place to mend the change.
func (p *plan) mendApart(ctx context.Context, l *ledger.Ledger) (bool, error) {
	if p.change.apart || p.change.head == "" { // which has no commit to stay at
		return p.change.apart, nil
	}
	if follows, err := (&follower{l: l, change: p.change, target: p.view.Branch}).follows(ctx); err != nil || !follows {
		return true, err
	}
	if p.change.kind == fromCommits {
		return false, nil
	}
	others, err := p.unlanded(ctx, l)
	return len(others) > 0, err
}

// commitCommand commits what has no commit yet, and nothing else; "" for commits.
func (c change) commitCommand(l *ledger.Ledger) string {
	if c.kind == fromCommits {
		return ""
	}
	words := []string{"git", "commit"}
	if c.asked.NoVerify {
		words = append(words, "--no-verify")
	}
	messages := c.asked.Messages
	if len(messages) == 0 || slices.ContainsFunc(messages, func(m string) bool { return !onLine(m) }) {
		messages = []string{Message}
	}
	for _, m := range messages {
		words = append(words, "-m", m)
	}
	if c.kind == fromStaged && len(c.chosen.Paths) == 0 {
		return fault.Command(words...)
	}
	paths := c.asked.Paths
	if paths == nil { // land.paths, from which other things may be staged, too
		paths = pathspecs(l.Repo, c.paths())
	}
	add := ""
	if slices.ContainsFunc(c.diff, func(d git.Change) bool { return d.OldMode == "000000" }) && c.kind == fromPaths {
		add = fault.Command(append([]string{"git", "add", "-A", "--"}, paths...)...) + " && " // which git commit leaves out
	}
	return add + fault.Command(append(append(words, "--"), paths...)...)
}

// rebaseOnto brings HEAD onto the target at base, or as the authority has it by then.
func rebaseOnto(l *ledger.Ledger, target object.Ref, base string) string {
	if !l.IsLocal() && l.Repo.Config.Get("remote."+l.Remote+".pushurl") != "" {
		return fault.Command("git", "rebase", "--autostash", base) // what git pull fetches from is another place
	}
	return rebaseCommand(l, target)
}

// inTurn is one command line of several, of which each needs the one before it.
func inTurn(commands []string) string {
	return strings.Join(slices.DeleteFunc(commands, func(c string) bool { return c == "" }), " && ")
}

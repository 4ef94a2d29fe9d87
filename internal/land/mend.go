package land

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
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
func (p *plan) mending(ctx context.Context, l *ledger.Ledger, conflicts []string) (mending, error) {
	apart, err := p.mendApart(ctx, l)
	if err != nil {
		return mending{}, err
	}
	var begin []string
	if apart {
		begin = []string{p.change.detach()}
	}
	begin = append(begin, p.change.commitCommand(l), unintend(ctx, l.Repo, p.change.paths()), p.bringCommand(l, apart))
	add, err := p.addMended(ctx, l, conflicts)
	if err != nil {
		return mending{}, err
	}
	finish := []string{add, p.continueCommand(), p.landMended(l)}
	switch {
	case apart && p.change.branch == "":
		finish = append(finish, fault.Command("git", "switch", "--detach", p.change.here.Short()))
	case apart:
		finish = append(finish, fault.Command("git", "switch", p.change.branch.Branch()))
	}
	return mending{inTurn(begin), inTurn(finish)}, nil
}

// addMended adds what was mended. Not by its paths: of some of them nothing may be left.
// All else was stashed by git, but for submodules, which neither that nor a rebase moves.
func (p *plan) addMended(ctx context.Context, l *ledger.Ledger, conflicts []string) (string, error) {
	modules, err := l.Repo.Submodules(ctx, p.baseTree)
	if err != nil { // of a file that git cannot read there: ours is what there is
		modules = nil
	}
	modules = append(modules, l.Repo.SubmodulesHere(ctx)...)
	slices.Sort(modules)
	words := []string{"git", "add", "-u"}
	for _, m := range slices.Compact(modules) {
		if there(filepath.Join(l.Repo.Top, m, ".git")) && !slices.Contains(conflicts, m) {
			words = append(words, ":(top,exclude,literal)"+m)
		}
	}
	if len(words) > 3 {
		words = append(slices.Insert(words, 3, "--"), ":/")
	}
	return fault.Command(words...), nil
}

// merges reports whether the change lands merged, and so its conflicts are those of a
// merge, and not of each commit.
func (p *plan) merges() bool {
	return p.change.kind == fromCommits && (p.mode == policy.Squash || p.mode == policy.Merge)
}

// detach leaves the current branch for the commits that land.
func (c change) detach() string {
	if !c.apart {
		return "git switch --detach"
	}
	return fault.Command("git", "switch", "--detach", c.head.Short())
}

// bringCommand brings HEAD onto the target, and stops in the conflict.
func (p *plan) bringCommand(l *ledger.Ledger, apart bool) string {
	base := p.view.Base.Short() // which is here: it was fetched
	rebase := []string{"git", "rebase", "--autostash"}
	if moves, _ := l.Repo.Config.Bool("rebase.updaterefs", false); moves && apart {
		rebase = append(rebase, "--no-update-refs") // or the branch that was left goes along
	}
	switch {
	case p.merges():
		return fault.Command("git", "merge", "--ff", "--no-edit", "--autostash", base)
	case apart && p.change.kind == fromCommits:
		return fault.Command(append(rebase, base)...)
	case apart:
		return fault.Command(append(rebase, "--onto", base, "HEAD^")...)
	case !l.IsLocal() && l.Repo.Config.Get("remote."+l.Remote+".pushurl") != "":
		return fault.Command(append(rebase, base)...) // what git pull fetches from is another place
	}
	return rebaseCommand(l, p.view.Branch)
}

func (p *plan) continueCommand() string {
	if !p.merges() {
		return "git -c core.editor=true rebase --continue"
	}
	words := []string{"git", "commit", "--no-edit"}
	if p.change.asked.NoVerify {
		words = append(words, "--no-verify")
	}
	return fault.Command(words...)
}

// landMended is the command line that lands what was mended, which is HEAD's commits then.
// Other things may be staged, where it was none before, or was named, so it says so.
func (p *plan) landMended(l *ledger.Ledger) string {
	s := p.change.asked
	if p.change.apart { // which names it no more
		s.Unit = chooseUnit(s, p.change, p.view.Branch)
	}
	if s.ExpectHead, s.Paths = "", nil; s.Head != "" || p.change.kind != fromCommits {
		s.Head = "HEAD"
	}
	if !p.merges() { // else they are of the commit that is still to be made
		s.Messages, s.NoVerify = nil, false
	}
	return withSelection(l, s.landing(), s)
}

// mendApart reports whether the current branch is not the place to mend the change.
func (p *plan) mendApart(ctx context.Context, l *ledger.Ledger) (bool, error) {
	switch {
	case p.change.apart:
		return true, nil
	case p.change.head == "": // there is no commit to stay at
		return false, nil
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
	if c.kind == fromPaths {
		add = c.addNew(l.Repo, paths)
	}
	return inTurn([]string{add, fault.Command(append(append(words, "--"), paths...)...)})
}

// addNew adds the new files, which git commit leaves out; it is "" where the index has them.
func (c change) addNew(repo *git.Repo, specs []string) string {
	staged := change{diff: c.staged}.paths()
	isNew := func(d git.Change) bool { return d.OldMode == "000000" && !slices.Contains(staged, d.Path) }
	if !slices.ContainsFunc(c.diff, isNew) {
		return ""
	}
	words := []string{"git", "add", "-A", "--"}
	for _, spec := range specs {
		named := change{chosen: git.Scope{Paths: []string{spec}, FromTop: c.chosen.FromTop}}
		remains := func(d git.Change) bool {
			return named.covers(repo, d.Path) && !(d.Deleted() && slices.Contains(staged, d.Path))
		}
		if !named.plain(repo, spec) || slices.ContainsFunc(c.diff, remains) {
			words = append(words, spec)
		}
	}
	return fault.Command(words...)
}

// unintend makes what is only meant to be added, but for some paths, unknown to git again,
// which can stash nothing as long as there is any; "" where there is none.
func unintend(ctx context.Context, repo *git.Repo, but []string) string {
	intended, err := repo.Intended(ctx)
	if intended = without(intended, but); err != nil || len(intended) == 0 {
		return "" // then it is git that refuses
	}
	return fault.Command(append([]string{"git", "reset", "--quiet", "--"}, pathspecs(repo, intended)...)...)
}

// inTurn is one command line of several, of which each needs the one before it.
func inTurn(commands []string) string {
	return strings.Join(slices.DeleteFunc(commands, func(c string) bool { return c == "" }), " && ")
}

package land

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/policy"
)

// A plan is what landing a change on one fetched state would do, up to the
// tree. It is a function of both, made again after each lost race.
type plan struct {
	view     ledger.View
	change   change
	baseTree object.OID
	tree     object.OID         // that would land
	mode     policy.Mode        // fromCommits: how they do
	stack    []git.RevListEntry // fromCommits: the commits to land, oldest first
	picks    []pick             // what rebasing those comes to
	forward  bool               // fromCommits: they land as they are
	already  object.OID         // the target has the change, in this commit
	squashed []squashing        // HEAD's commits that landed as one
	rebased  []rebased          // and those that landed each by itself, oldest first
	lacks    bool               // HEAD has commits that the target lacks
	// elsewhere: HEAD has other commits than the target, which has all that they change.
	elsewhere bool
	allowed   []string // guards that would have refused it, but for --allow
}

// makePlan merges the change onto the target as the authority has it. It
// returns a fault of class Conflict when the two disagree, when it is unclear what is
// meant, or when the target is not where it was expected.
func makePlan(ctx context.Context, l *ledger.Ledger, v ledger.View, c change) (plan, error) {
	p, err := planOn(ctx, l, v, c)
	if elsewhere := p.expectBase(ctx, l, err == nil); elsewhere != nil {
		return p, elsewhere
	}
	return p, err
}

func planOn(ctx context.Context, l *ledger.Ledger, v ledger.View, c change) (plan, error) {
	p := plan{view: v, change: c, baseTree: l.Repo.Format.EmptyTree()}
	if err := p.chooseMode(l); err != nil {
		return p, err
	}
	if err := onUpstream(ctx, l, v, c); err != nil {
		return p, err
	}
	if v.Base != "" {
		base, err := l.Repo.Commit(ctx, v.Base)
		if err != nil {
			return p, err
		}
		p.baseTree = base.Tree
	} else if err := firstOnly(ctx, l, v, c.asked); err != nil {
		return p, err
	}
	unlanded, err := p.unlanded(ctx, l)
	if err != nil {
		return p, err
	}
	p.lacks = len(unlanded) > 0
	if c.kind == fromCommits {
		p.stack = unlanded
		if doing := l.Repo.Doing(); len(unlanded) > 0 && !c.apart && doing != "" {
			return p, fault.New(fault.Conflict, "a %s is under way, and HEAD has only a part of its commits", doing).
				WithHint("git %s --continue && %s", doing, c.landNext(l))
		}
		return p, p.planCommits(ctx, l)
	}
	if err := p.checkChoice(ctx, l, unlanded); err != nil {
		return p, err
	}
	if err := p.onlyForward(ctx, l); err != nil {
		return p, err
	}
	p.tree, err = l.Repo.MergeTrees(ctx, c.headTree, p.baseTree, c.tree, p.mergeOptions()...)
	if err != nil {
		return p, p.conflict(ctx, l, err, "")
	}
	if p.tree == p.baseTree {
		err = p.asLanded(ctx, l)
	}
	return p, err
}

// mergeOptions are those of the merge of one new commit onto the target. Where commits beside
// it do not land, the target is without them, as if it had taken back what they do: that it
// moved a directory, say, which git would have new files follow.
func (p *plan) mergeOptions() []git.MergeOption {
	if p.lacks {
		return []git.MergeOption{git.InPlace}
	}
	return nil
}

// firstOnly lets a branch be made by landing only where there is none at all:
// a misspelt target must not become a branch.
func firstOnly(ctx context.Context, l *ledger.Ledger, v ledger.View, s Selection) error {
	return l.NoBranch(ctx, v, func(there object.Ref) string {
		s.Want.Branch = there
		return withSelection(l, s.landing(), s)
	})
}

// landing begins the command line that lands with the check, the reason, the messages, the
// steps and --no-verify, where they were given; or that verifies, where that was asked for.
func (s Selection) landing() []string {
	if s.words != nil {
		return slices.Clone(s.words)
	}
	words := []string{"git", "land"}
	if s.command != "" {
		words = append(words, "-x", s.command)
	}
	if s.command != "" && s.check != "" && s.check != DefaultCheck {
		words = append(words, "--check", s.check)
	}
	if s.reason != "" {
		words = append(words, "--force-unverified", "--reason", s.reason)
	}
	if s.NoVerify {
		words = append(words, "--no-verify")
	}
	words = append(words, stepWords(s.steps)...)
	for _, m := range s.Messages {
		words = append(words, "-m", m)
	}
	return words
}

// landAll is the command line that lands HEAD's commits where the change was to land.
func (c change) landAll(l *ledger.Ledger) string {
	return c.landCommits(l, c.asked)
}

func (c change) landCommits(l *ledger.Ledger, s Selection) string {
	s.Paths = nil
	if c.kind != fromCommits && !s.commitsAlone() {
		s.Messages, s.NoVerify = nil, false // they have their own, and had their hooks
	}
	return withSelection(l, s.landing(), s)
}

// landNext is landAll for when HEAD has come to have what is to land.
func (c change) landNext(l *ledger.Ledger) string {
	s := c.asked
	s.Head, s.ExpectHead = "", ""
	if c.apart {
		s.Unit = chooseUnit(s, c, s.Want.Branch)
	}
	return c.landCommits(l, s)
}

func shortList(names []string) string {
	if len(names) > 8 {
		return strings.Join(names[:8], ", ") + fmt.Sprintf(" and %d more", len(names)-8)
	}
	return strings.Join(names, ", ")
}

// checkChoice refuses to guess between commits that have not landed and a
// change on top of them.
func (p *plan) checkChoice(ctx context.Context, l *ledger.Ledger, unlanded []git.RevListEntry) error {
	if s := p.change.asked; len(unlanded) == 0 && s.commitsAlone() {
		mode := s.Mode
		s.Mode = ""
		return fault.New(fault.Conflict, "--%s lands commits, and %s has all of HEAD's; what is staged (%s) is none yet",
			mode, p.view.Branch.Branch(), shortList(p.change.paths())).
			WithHint("%s   (as a commit of its own)", withSelection(l, s.landing(), s))
	}
	if len(unlanded) == 0 {
		return nil
	}
	if p.change.kind == fromStaged {
		return p.ambiguous(l, len(unlanded), p.change.paths())
	}
	from := l.Repo.Format.EmptyTree()
	if p.view.Base != "" {
		fork, err := p.fork(ctx, l)
		if err != nil {
			return err
		}
		if fork != "" {
			commit, err := l.Repo.Commit(ctx, fork)
			if err != nil {
				return err
			}
			from = commit.Tree
		}
	}
	diff, err := l.Repo.DiffTrees(ctx, from, p.change.headTree)
	if err != nil {
		return err
	}
	if len(p.change.diff) == 0 {
		// The chosen paths are as HEAD has them: is it HEAD's commits that are meant?
		if diff, err = l.Repo.DiffTreesWithin(ctx, from, p.change.headTree, p.change.chosen); err != nil || len(diff) == 0 {
			return err
		}
		return fault.New(fault.Conflict, "%s is as HEAD has it, and %s that %s lacks: it lands with them, or not at all",
			shortList(change{diff: diff}.paths()), headHas(len(unlanded)), p.view.Branch.Branch()).
			WithHint("%s", p.change.landAll(l))
	}
	both := overlap(p.change.paths(), change{diff: diff}.paths())
	if len(both) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "%s that %s lacks, and they change %s, which is also chosen: it cannot land without them",
		headHas(len(unlanded)), p.view.Branch.Branch(), shortList(both)).
		WithHint("%s   (the commits first, then the paths)", p.change.landAll(l))
}

func headHas(commits int) string {
	if commits == 1 {
		return "HEAD has 1 commit"
	}
	return fmt.Sprintf("HEAD has %d commits", commits)
}

// ambiguous is the fault of staged paths beside commits that have not landed.
func (p *plan) ambiguous(l *ledger.Ledger, commits int, staged []string) error {
	all := p.change.landAll(l)
	return fault.New(fault.Conflict, "%s that %s lacks, and there are staged changes: which of them is to land?",
		headHas(commits), p.view.Branch.Branch()).
		WithHint("%s   (the staged paths, as they are in the working tree), or `git stash && %s` (the commits alone), or `git commit && %s` (both)",
			p.change.landPaths(l, staged), all, p.change.landNext(l))
}

// landPaths is a command line that lands the given paths, which are relative
// to the top, where the change was to land.
func (c change) landPaths(l *ledger.Ledger, paths []string) string {
	s := c.asked
	if len(s.Messages) == 0 {
		s.Messages = []string{"MESSAGE"}
	}
	if s.commitsAlone() {
		s.Mode = ""
	}
	s.Paths = nil
	for _, path := range paths {
		if l.Repo.Prefix != "" || strings.ContainsAny(path, "*?[\\") || strings.HasPrefix(path, ":") {
			path = ":(top,literal)" + path
		}
		s.Paths = append(s.Paths, path)
	}
	if len(paths) == 0 || len(paths) > 8 {
		s.Paths = []string{"PATH..."}
	}
	return withSelection(l, s.landing(), s)
}

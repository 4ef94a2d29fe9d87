package land

import (
	"context"
	"errors"
	"slices"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

// A squashing is a landing by which the commits up to one of HEAD's landed as one commit.
type squashing struct {
	head   object.OID // the last of those commits
	landed object.OID // the commit of the target
}

// maxSquashed is how many commits of the target that HEAD lacks are looked at for such
// a landing, the newest first.
const maxSquashed = 500

// squashings are those of HEAD's commits, the newest first, by the records of what the
// target has beyond HEAD. By trees and patches alone nobody could find them.
func (p *plan) squashings(ctx context.Context, l *ledger.Ledger) (found []squashing, err error) {
	if p.view.Base == "" || p.view.Records == "" {
		return nil, nil
	}
	commits, err := l.Repo.FirstParents(ctx, p.view.Base, p.change.head, maxSquashed)
	if err != nil {
		return nil, err
	}
	for _, oid := range commits {
		blob, err := l.Note(ctx, p.view.Records, oid)
		if err != nil {
			return nil, err
		}
		for _, line := range note.ParseRecords(blob) {
			r := line.Value
			if line.Err != nil || r.Squashed == "" || r.Commit != oid || r.Branch != p.view.Branch ||
				slices.Contains(found, squashing{r.Squashed, oid}) { // its record says how its steps ended, too
				continue
			}
			if in, err := isIn(ctx, l, r.Squashed, p.change.head); err != nil {
				return nil, err
			} else if in {
				found = append(found, squashing{r.Squashed, oid})
			}
		}
	}
	return found, nil
}

// A rebased commit of HEAD is on the target as another one.
type rebased struct {
	commit, landed object.OID
	from, to       object.OID // the tree that commit changes, and what it makes of it
}

// unlanded are the commits of HEAD that the target lacks: it has neither them, nor what
// rebasing made of them, nor the one commit as which they landed.
func (p *plan) unlanded(ctx context.Context, l *ledger.Ledger) ([]git.RevListEntry, error) {
	if p.change.head == "" {
		return nil, nil
	}
	list, err := l.Repo.Unlanded(ctx, p.view.Base, p.change.head)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if p.squashed, err = p.squashings(ctx, l); err != nil {
		return nil, err
	}
	if len(p.squashed) > 0 {
		var heads []object.OID
		for _, s := range p.squashed {
			heads = append(heads, s.head)
		}
		if list, err = l.Repo.Unlanded(ctx, p.view.Base, p.change.head, heads...); err != nil {
			return nil, err
		}
	}
	return p.withoutRebased(ctx, l, list)
}

// withoutRebased leaves out of a list the commits that landed, each by itself. To git all
// commits that change nothing look alike; as git rebase does, such a one stays, unless all
// of the others are left out.
func (p *plan) withoutRebased(ctx context.Context, l *ledger.Ledger, list []git.RevListEntry) (left []git.RevListEntry, err error) {
	if !slices.ContainsFunc(list, func(e git.RevListEntry) bool { return e.Alike }) {
		return list, nil
	}
	alike, err := l.Repo.Alike(ctx, p.view.Base, p.change.head)
	if err != nil {
		return nil, err
	}
	lacks := false
	for _, e := range list {
		found := rebased{}
		empty := false
		if e.Alike {
			if empty, err = l.Repo.ChangesNothing(ctx, e); err == nil && !empty {
				found, err = p.counterpart(ctx, l, e, alike)
			}
		}
		switch {
		case err != nil:
			return nil, err
		case found.landed != "":
			p.rebased = append(p.rebased, found)
			continue
		}
		lacks = lacks || !empty
		left = append(left, e)
	}
	if !lacks {
		return nil, nil
	}
	return left, nil
}

// maxCandidates is how many commits of the target are compared with one of HEAD.
const maxCandidates = 8

// counterpart finds among commits of the target, that look like one of HEAD, the one that
// it landed as: what rebasing it onto the parent of that one makes is that very tree. To
// look alike is not enough: of an indented line and one that is not, or of two places in
// a file, git's patch ids are the same.
func (p *plan) counterpart(ctx context.Context, l *ledger.Ledger, e git.RevListEntry, alike []git.RevListEntry) (rebased, error) {
	commit, err := l.Repo.Commit(ctx, e.OID)
	if err != nil {
		return rebased{}, err
	}
	from, err := l.Repo.FirstParentTree(ctx, commit)
	if err != nil {
		return rebased{}, err
	}
	type candidate struct {
		oid object.OID
		object.CommitData
	}
	var candidates []candidate
	for _, a := range alike {
		c, err := l.Repo.Commit(ctx, a.OID)
		if err != nil {
			return rebased{}, err
		}
		candidates = append(candidates, candidate{a.OID, c})
	}
	// Rebasing keeps author and date, so that most often the first one is it.
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		first := func(c candidate) int {
			if c.Author == commit.Author {
				return 0
			}
			return 1
		}
		return first(a) - first(b)
	})
	for _, c := range candidates[:min(len(candidates), maxCandidates)] {
		onto, err := l.Repo.FirstParentTree(ctx, c.CommitData)
		if err != nil {
			return rebased{}, err
		}
		same, err := sameChange(ctx, l.Repo, from, commit.Tree, onto, c.Tree)
		if err != nil {
			return rebased{}, err
		}
		if same {
			return rebased{e.OID, c.oid, from, commit.Tree}, nil
		}
	}
	return rebased{}, nil
}

// sameChange reports whether what leads from one tree to another leads from onto to made.
func sameChange(ctx context.Context, repo *git.Repo, from, to, onto, made object.OID) (bool, error) {
	ours, err := repo.DiffTrees(ctx, from, to)
	if err != nil {
		return false, err
	}
	theirs, err := repo.DiffTrees(ctx, onto, made)
	if err != nil || slices.Equal(ours, theirs) { // most often, and without a process
		return err == nil, err
	}
	tree, err := repo.MergeTrees(ctx, from, onto, to)
	if _, conflicts := errors.AsType[*git.ConflictError](err); conflicts {
		return false, nil
	}
	return tree == made, err
}

// fork is what HEAD and the target have in common, or where HEAD's commits have landed as
// one: what HEAD has changed since is what has not landed. It is empty where there is
// nothing in common.
func (p *plan) fork(ctx context.Context, l *ledger.Ledger) (object.OID, error) {
	if len(p.squashed) > 0 {
		return p.squashed[0].head, nil
	}
	return l.Repo.MergeBase(ctx, p.view.Base, p.change.head)
}

// mergeHead merges what HEAD has changed since the fork into the target.
func (p *plan) mergeHead(ctx context.Context, l *ledger.Ledger, fork object.OID) (object.OID, error) {
	if len(p.squashed) == 0 {
		return l.Repo.MergeCommits(ctx, p.view.Base, p.change.head)
	}
	since, err := l.Repo.Commit(ctx, fork)
	if err != nil {
		return "", err
	}
	return l.Repo.MergeTrees(ctx, since.Tree, p.baseTree, p.change.headTree)
}

// allLanded settles, where the target has all commits of HEAD in one way or another, as
// which of its own it has the last one. It is refused where somebody has taken off again
// what they changed: whoever lands, and goes on, counts on it being there.
func (p *plan) allLanded(ctx context.Context, l *ledger.Ledger) error {
	p.tree, p.already = p.baseTree, p.change.head
	if in, err := isIn(ctx, l, p.change.head, p.view.Base); err != nil || in {
		return err
	}
	p.elsewhere = true
	if len(p.squashed) > 0 && p.squashed[0].head == p.change.head {
		p.already = p.squashed[0].landed
		return p.stillThere(ctx, l, nil)
	}
	p.already = p.view.Base // a merge of what has landed, say
	if n := len(p.rebased); n > 0 {
		p.already = p.rebased[n-1].landed
	}
	fork, err := p.fork(ctx, l)
	if err != nil || fork == "" {
		return err
	}
	before, err := l.Repo.Commit(ctx, fork)
	if err != nil {
		return err
	}
	return p.notTakenOff(ctx, l, before.Tree, p.change.headTree, nil)
}

// noneTakenOff is notTakenOff of the commits that are left out of a stack since they
// landed: the rest of it must not land, and the branch go along, without them.
func (p *plan) noneTakenOff(ctx context.Context, l *ledger.Ledger) error {
	for _, r := range p.rebased {
		p.already = r.landed
		if err := p.notTakenOff(ctx, l, r.from, r.to, nil); err != nil {
			return err
		}
	}
	p.already = ""
	return nil
}

// asLanded is the commit of the target by which it has the chosen paths, which are as HEAD
// has them, or as the target does.
func (p *plan) asLanded(ctx context.Context, l *ledger.Ledger) error {
	if p.view.Base == "" {
		return nil
	}
	last := func(tip object.OID, scope git.Scope) (object.OID, error) {
		oid, err := l.Repo.LastTouched(ctx, tip, scope)
		if err == nil && oid == "" {
			oid = tip
		}
		return oid, err
	}
	var err error
	if len(p.change.diff) > 0 {
		p.already, err = last(p.view.Base, git.Scope{Paths: p.change.paths(), FromTop: true, Literal: true})
		return err
	}
	// Nothing differs from HEAD: it is by HEAD's commit that they have landed, if that is
	// one of the target, and not by what others did to them since.
	if p.change.head != "" {
		in, err := isIn(ctx, l, p.change.head, p.view.Base)
		if err != nil {
			return err
		}
		if in {
			if p.already, err = last(p.change.head, p.change.chosen); err != nil {
				return err
			}
			return p.stillThere(ctx, l, &p.change.chosen)
		}
	}
	p.already, err = last(p.view.Base, p.change.chosen)
	return err
}

// stillThere is notTakenOff of what the commit changed that the plan has landed as.
func (p *plan) stillThere(ctx context.Context, l *ledger.Ledger, within *git.Scope) error {
	landed, err := l.Repo.Commit(ctx, p.already)
	if err != nil {
		return err
	}
	before, err := l.Repo.FirstParentTree(ctx, landed)
	if errors.Is(err, git.ErrNotFound) {
		return nil // a shallow clone ends here: what the commit changed is not known
	}
	if err != nil {
		return err
	}
	return p.notTakenOff(ctx, l, before, landed.Tree, within)
}

// notTakenOff refuses where the target no longer has what led from one tree to another,
// within a scope, and has nothing else in its place: where to bring it there once more
// would go, and change something.
func (p *plan) notTakenOff(ctx context.Context, l *ledger.Ledger, from, to object.OID, within *git.Scope) error {
	merged, err := l.Repo.MergeTrees(ctx, from, p.baseTree, to)
	if _, goneOn := errors.AsType[*git.ConflictError](err); goneOn || err == nil && merged == p.baseTree {
		return nil
	}
	if err != nil {
		return err
	}
	lacks, err := l.Repo.DiffTrees(ctx, p.baseTree, merged)
	if err == nil && within != nil {
		lacks, err = l.Repo.DiffTreesWithin(ctx, p.baseTree, merged, *within)
	}
	if err != nil || len(lacks) == 0 {
		return err
	}
	paths := change{diff: lacks}.paths()
	by, err := l.Repo.LastTouched(ctx, p.view.Base, git.Scope{Paths: paths, FromTop: true, Literal: true})
	if err != nil {
		return err
	}
	landed, branch := p.already, p.view.Branch.Branch()
	p.already = ""
	f := fault.New(fault.Conflict, "it landed as %s, and %s has that no more in %s: %s took it off again", landed.Short(), branch, shortList(paths), by.Short()).
		WithFacts(map[string]any{"landed": landed, "removed_by": by, "paths": paths})
	if p.change.apart {
		return f.WithHint("%s   (what took it off)", fault.Command("git", "show", string(by)))
	}
	return f.WithHint("%s && %s && %s   (it takes back what took it off)", rebaseCommand(l, p.view.Branch),
		fault.Command("git", "revert", "--no-edit", by.Short()), p.change.landNext(l))
}

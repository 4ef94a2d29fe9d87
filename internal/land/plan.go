package land

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

// A plan is what landing a change on one fetched state would do, up to the
// tree. It is a function of both, made again after each lost race.
type plan struct {
	view     ledger.View
	change   change
	baseTree object.OID
	tree     object.OID         // that would land
	stack    []git.RevListEntry // fromCommits: the commits to land, oldest first
	forward  bool               // fromCommits: they stand on the base already
	already  object.OID         // the target has the change, in this commit
}

// makePlan merges the change onto the target as the authority has it. It
// returns a fault of class Conflict when the two disagree, or when it is
// unclear what is meant.
func makePlan(ctx context.Context, l *ledger.Ledger, v ledger.View, c change) (plan, error) {
	p := plan{view: v, change: c, baseTree: l.Repo.Format.EmptyTree()}
	if v.Base != "" {
		base, err := l.Repo.Commit(ctx, v.Base)
		if err != nil {
			return p, err
		}
		p.baseTree = base.Tree
	} else if err := firstOnly(ctx, l, v); err != nil {
		return p, err
	}
	unlanded, err := p.unlanded(ctx, l)
	if err != nil {
		return p, err
	}
	if c.kind == fromCommits {
		p.stack = unlanded
		return p, p.planCommits(ctx, l)
	}
	if err := p.checkChoice(ctx, l, unlanded); err != nil {
		return p, err
	}
	p.tree, err = l.Repo.MergeTrees(ctx, c.headTree, p.baseTree, c.tree)
	if err != nil {
		return p, p.conflict(err, "")
	}
	if p.tree == p.baseTree {
		p.already, err = p.landedBefore(ctx, l)
	}
	return p, err
}

// firstOnly lets a branch be made by landing only where there is none at all:
// a misspelt target must not become a branch.
func firstOnly(ctx context.Context, l *ledger.Ledger, v ledger.View) error {
	branches, err := l.Branches(ctx)
	if err != nil || len(branches) == 0 {
		return err
	}
	return fault.New(fault.Usage, "%s has no branch %s", l.Remote, v.Branch.Branch()).
		WithHint("%s   (it has: %s)", fault.Command("git", "land", "--onto", branches[0].Branch()), shortList(branchNames(branches)))
}

func branchNames(refs []object.Ref) []string {
	var names []string
	for _, r := range refs {
		names = append(names, r.Branch())
	}
	return names
}

func shortList(names []string) string {
	if len(names) > 8 {
		return strings.Join(names[:8], ", ") + fmt.Sprintf(" and %d more", len(names)-8)
	}
	return strings.Join(names, ", ")
}

func (p *plan) unlanded(ctx context.Context, l *ledger.Ledger) ([]git.RevListEntry, error) {
	if p.change.head == "" {
		return nil, nil
	}
	return l.Repo.Unlanded(ctx, p.view.Base, p.change.head)
}

// checkChoice refuses to guess between commits that have not landed and a
// change on top of them.
func (p *plan) checkChoice(ctx context.Context, l *ledger.Ledger, unlanded []git.RevListEntry) error {
	if len(unlanded) == 0 {
		return nil
	}
	const count = "HEAD has %d commits that %s lacks"
	if p.change.kind == fromStaged {
		return fault.New(fault.Conflict, count+", and there are staged changes: which of them is to land?",
			len(unlanded), p.view.Branch.Branch()).
			WithHint("%s   (the staged change alone), or `git stash && git land` (the commits alone), or `git commit && git land` (both)",
				fault.Command(append([]string{"git", "land", "-m", "MESSAGE", "--"}, fromTop(p.change.paths())...)...))
	}
	from := l.Repo.Format.EmptyTree()
	if p.view.Base != "" {
		fork, err := l.Repo.MergeBase(ctx, p.view.Base, p.change.head)
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
	both := overlap(p.change.paths(), change{diff: diff}.paths())
	if len(both) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, count+", and they change %s, which is also chosen: it cannot land without them",
		len(unlanded), p.view.Branch.Branch(), shortList(both)).
		WithHint("%s   (the commits first, then the paths)", l.Command("git", "land"))
}

// fromTop makes literal pathspecs of paths that are relative to the top.
func fromTop(paths []string) []string {
	var specs []string
	for _, path := range paths {
		specs = append(specs, ":(top,literal)"+path)
	}
	if len(specs) > 8 {
		return []string{"PATH..."}
	}
	return specs
}

// planCommits works out the tree of rebasing the stack onto the base one by
// one. Building the commits is left for when they may land.
func (p *plan) planCommits(ctx context.Context, l *ledger.Ledger) error {
	if len(p.stack) == 0 {
		if n := len(p.change.modified); n > 0 {
			return fault.New(fault.Conflict, "nothing is chosen to land: nothing is staged, %s has all commits of HEAD, and %d files are modified (%s)",
				p.view.Branch.Branch(), n, shortList(p.change.modified)).
				WithHint("%s", fault.Command(append([]string{"git", "land", "-m", "MESSAGE", "--"}, fromTop(p.change.modified)...)...))
		}
		if p.change.head == "" {
			return fault.New(fault.Conflict, "nothing is chosen to land: there is no commit here, and nothing is staged").
				WithHint("git land -m MESSAGE -- PATH...")
		}
		p.tree, p.already = p.baseTree, p.change.head
		return nil
	}
	if first := p.stack[0]; p.view.Base == "" || slices.Contains(first.Parents, p.view.Base) {
		contains, err := p.onBase(ctx, l)
		if err != nil {
			return err
		}
		if p.forward = contains; contains {
			p.tree = p.change.headTree
			return nil
		}
	}
	tree := p.baseTree
	for _, c := range p.stack {
		next, err := p.replay(ctx, l, c, tree)
		if err != nil {
			return err
		}
		tree = next
	}
	if p.tree = tree; tree == p.baseTree {
		p.already = p.view.Base
	}
	return nil
}

// onBase reports whether HEAD descends from the base.
func (p *plan) onBase(ctx context.Context, l *ledger.Ledger) (bool, error) {
	if p.view.Base == "" {
		return true, nil
	}
	return l.Repo.IsAncestor(ctx, p.view.Base, p.change.head)
}

// replay is the tree of applying one commit to another tree.
func (p *plan) replay(ctx context.Context, l *ledger.Ledger, c git.RevListEntry, onto object.OID) (object.OID, error) {
	if len(c.Parents) > 1 {
		return "", fault.New(fault.Conflict, "%s is a merge, which cannot be rebased as it is onto %s", c.OID.Short(), p.view.Branch.Branch()).
			WithHint("%s", rebaseCommand(l, p.view.Branch))
	}
	commit, err := l.Repo.Commit(ctx, c.OID)
	if err != nil {
		return "", err
	}
	before := l.Repo.Format.EmptyTree()
	if len(c.Parents) == 1 {
		parent, err := l.Repo.Commit(ctx, c.Parents[0])
		if err != nil {
			return "", err
		}
		before = parent.Tree
	}
	tree, err := l.Repo.MergeTrees(ctx, before, onto, commit.Tree)
	if err != nil {
		return "", p.conflict(err, c.OID)
	}
	return tree, nil
}

// rebaseCommand brings HEAD onto the target by hand.
func rebaseCommand(l *ledger.Ledger, branch object.Ref) string {
	if l.IsLocal() {
		return fault.Command("git", "rebase", branch.Branch())
	}
	return fault.Command("git", "pull", "--rebase", "--autostash", l.Remote, branch.Branch())
}

// conflict tells a merge conflict as a refusal; other errors stay as they are.
func (p *plan) conflict(err error, commit object.OID) error {
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
		WithHint("commit or stash what you have, bring it onto %s (git rebase), mend the conflict, and run git land again", p.view.Branch.Branch())
}

// landedBefore finds the commit of the target that has the change.
func (p *plan) landedBefore(ctx context.Context, l *ledger.Ledger) (object.OID, error) {
	paths := p.change.paths()
	if len(paths) == 0 && p.change.kind == fromPaths {
		// Nothing differs from HEAD: what HEAD has of the chosen paths is asked
		// for, and the newest commit that made it so.
		paths = []string{"."}
	}
	if p.view.Base == "" {
		return "", nil
	}
	oid, err := l.Repo.LastTouched(ctx, p.view.Base, paths)
	if err == nil && oid == "" {
		oid = p.view.Base
	}
	return oid, err
}

// commits builds the commits that land: the last is the new tip.
func (p *plan) commits(ctx context.Context, l *ledger.Ledger, text string) (tip object.OID, count int, err error) {
	sign, err := l.Repo.Config.Bool("commit.gpgsign", false)
	if err != nil {
		return "", 0, err
	}
	if p.change.kind != fromCommits {
		var parents []object.OID
		if p.view.Base != "" {
			parents = []object.OID{p.view.Base}
		}
		tip, err = l.Repo.CommitTree(ctx, git.NewCommit{Tree: p.tree, Parents: parents, Message: text, Sign: sign})
		return tip, 1, err
	}
	if p.forward {
		return p.change.head, len(p.stack), nil
	}
	return p.rebase(ctx, l)
}

// rebase writes the stack anew on the base. Author, dates and message stay as
// they are; a signature does not, since it would not match.
func (p *plan) rebase(ctx context.Context, l *ledger.Ledger) (tip object.OID, count int, err error) {
	stamp, err := l.Repo.Stamp(l.Now())
	if err != nil {
		return "", 0, err
	}
	tip, tree := p.view.Base, p.baseTree
	var objects []object.Object
	for _, c := range p.stack {
		next, err := p.replay(ctx, l, c, tree)
		if err != nil {
			return "", 0, err
		}
		if next == tree {
			continue // the target has this one already
		}
		commit, err := l.Repo.Commit(ctx, c.OID)
		if err != nil {
			return "", 0, err
		}
		commit.Tree, commit.Committer = next, stamp
		commit.Parents = nil
		if tip != "" {
			commit.Parents = []object.OID{tip}
		}
		commit.Extra = slices.DeleteFunc(commit.Extra, func(h object.Header) bool {
			return h.Key == "gpgsig" || h.Key == "gpgsig-sha256"
		})
		o := l.Repo.Format.New(object.Commit, commit.Encode())
		objects = append(objects, o)
		tip, tree = o.OID, next
		count++
	}
	return tip, count, l.Repo.Write(ctx, objects...)
}

// verifyCommand is the whole command that would verify what p would land.
func verifyCommand(l *ledger.Ledger, s Selection, check string) string {
	words := []string{"git", "land", "verify"}
	if check != "" && check != DefaultCheck {
		words = append(words, "--check", check)
	}
	if s.Want.Branch != "" {
		words = append(words, "--onto", s.Want.Branch.Branch())
	}
	text := l.Command(append(words, "-x", "COMMAND")...)
	if s.Paths != nil {
		text += " " + fault.Command(append([]string{"--"}, s.Paths...)...)
	}
	return text
}

// DefaultCheck is the name of a check that was given none.
const DefaultCheck = "default"

// required is land.require: whether the very tree that lands must be verified,
// or the change's own.
func required(c git.Config) (unit bool, err error) {
	switch v := c.Get("land.require"); v {
	case "", "result":
		return false, nil
	case "unit":
		return true, nil
	default:
		return false, fault.New(fault.Usage, "config land.require: %q is neither result nor unit", v).
			WithHint("git config land.require result")
	}
}

// A verdict is what the gate found.
type verdict struct {
	judgement note.Judgement
	merged    bool // unit: the merged tree itself is not verified
}

// judge asks whether p may land.
func judge(ctx context.Context, l *ledger.Ledger, p plan, want *note.Want) (verdict, error) {
	of := func(tree object.OID) (note.Judgement, error) {
		lines, err := l.Verified(ctx, p.view, tree)
		return note.Judge(lines, tree, want), err
	}
	var v verdict
	var err error
	if v.judgement, err = of(p.tree); err != nil || v.judgement.Pass {
		return v, err
	}
	unit, err := required(l.Repo.Config)
	if err != nil || !unit || p.change.tree == p.tree || len(v.judgement.Failing) > 0 {
		return v, err
	}
	own, err := of(p.change.tree)
	if own.Pass {
		v.judgement, v.merged = own, true
	}
	return v, err
}

// unverified is the fault of a plan that the gate refuses.
func unverified(ctx context.Context, l *ledger.Ledger, s Selection, p plan, v verdict, want *note.Want) error {
	facts := map[string]any{"tree": p.tree, "base": p.view.Base, "branch": p.view.Branch, "missing": v.judgement.Missing}
	check := ""
	if want != nil {
		check = want.Check
	}
	hint := verifyCommand(l, s, check)
	if n := len(v.judgement.Failing); n > 0 {
		last := v.judgement.Failing[n-1]
		return fault.New(fault.Unverified, "the tree %s that would land failed its check %s (%s, exit %d, by %s)",
			p.tree, last.Check, nonEmpty(last.Command, "recorded from elsewhere"), last.Exit, last.Actor).
			WithHint("mend it, then: %s", hint).WithFacts(facts)
	}
	moved, err := baseMoved(ctx, l, p, want)
	if err != nil {
		return err
	}
	if moved {
		facts["base_moved"] = true
		return fault.New(fault.Unverified, "the change was verified, but %s has moved since: the tree %s that would land now has no passing verification",
			p.view.Branch.Branch(), p.tree).
			WithHint("%s", hint).WithFacts(facts)
	}
	return fault.New(fault.Unverified, "the tree %s that would land has no passing verification", p.tree).
		WithHint("%s", hint).WithFacts(facts)
}

func nonEmpty(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// olderBases is how far back one looks for a verification on an older base.
const olderBases = 8

// baseMoved reports whether the same change was verified on an older state of
// the target. It is asked only to word a refusal, so it may take its time.
func baseMoved(ctx context.Context, l *ledger.Ledger, p plan, want *note.Want) (bool, error) {
	passed := func(tree object.OID) (bool, error) {
		lines, err := l.Verified(ctx, p.view, tree)
		return err == nil && note.Judge(lines, tree, want).Pass, err
	}
	if ok, err := passed(p.change.tree); ok || err != nil || p.view.Base == "" {
		return ok && p.change.tree != p.tree, err
	}
	older, err := l.Repo.FirstParents(ctx, p.view.Base, p.change.head, olderBases)
	if err != nil {
		return false, err
	}
	for _, oid := range older {
		if oid == p.view.Base {
			continue
		}
		v := p.view
		v.Base = oid
		before, err := makePlan(ctx, l, v, p.change)
		if err != nil || before.already != "" {
			continue
		}
		if ok, err := passed(before.tree); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

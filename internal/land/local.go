package land

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/oklog/ulid/v2"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// A follower brings a worktree along after its change has landed. It loses nothing:
// paths outside the change follow git's own rules for switching commits, which
// refuse to touch what was changed, and the branch moves only when everything
// it had is in what it moves to.
type follower struct {
	l         *ledger.Ledger
	change    change
	target    object.Ref
	base      object.OID // of the target before
	commit    object.OID // of the target now
	tree      object.OID // of commit
	operation ulid.ULID
	landed    bool // the target has all commits of HEAD, by their ids or others
	moved     bool // index and files are at tree, and the branch is not
}

// localMoved is what became of a local side that has followed.
const localMoved = "moved"

// bring moves index, files and branch, given the branch that HEAD is on. It
// returns what became of them, the command that does by hand what it left
// undone, and the ref updates that remain to be made.
func (s *follower) bring(ctx context.Context, branch object.Ref) (outcome, hint string, moves []git.Move) {
	repo := s.l.Repo
	fallback := rebaseCommand(s.l, s.target)
	switch {
	case s.change.apart && branch == s.target && !s.l.IsLocal() && repo.Top != "":
		return "it is not what landed", fallback, nil
	case s.change.apart:
		return "", "", nil
	case repo.Top == "":
		return "no work tree", "", nil
	}
	targetHere := s.l.IsLocal() && s.change.branch == s.target
	head, err := repo.Lookup(ctx, "HEAD^{commit}")
	if errors.Is(err, git.ErrNotFound) { // unborn
		head, err = object.Object{}, nil
	}
	expected := s.change.head
	if targetHere { // the landing itself has moved HEAD
		expected = s.commit
	}
	if err == nil && !targetHere && head.OID != expected && branch == s.change.branch {
		if in, err := isIn(ctx, s.l, s.commit, head.OID); err == nil && in {
			return localMoved, "", nil // it has followed already
		}
	}
	switch {
	case err != nil:
		return err.Error(), fallback, nil
	case branch != s.change.branch && s.change.branch != "":
		return "HEAD moved while the landing was under way", fault.Command("git", "switch", s.change.branch.Branch()) + " && " + s.rebase(ctx), nil
	case head.OID != expected || branch != s.change.branch:
		return "HEAD moved while the landing was under way", s.again(), nil
	}
	if !targetHere {
		follows, err := s.follows(ctx)
		if err != nil {
			return err.Error(), "", nil
		}
		if !follows {
			return fmt.Sprintf("%s does not follow %s", s.change.branch.Branch(), s.target.Branch()), "", nil
		}
	}
	if s.change.kind != fromCommits && !targetHere && !s.landed && s.change.head != "" && s.change.head != s.base {
		in, err := repo.IsAncestor(ctx, s.change.head, s.commit)
		if err != nil {
			return err.Error(), fallback, nil
		}
		if !in {
			return "it has commits that have not landed", s.rebase(ctx), nil
		}
	}
	if !targetHere {
		if outcome, hint, err := s.inTheWay(ctx); err != nil {
			return err.Error(), fallback, nil
		} else if outcome != "" {
			return outcome, hint, nil
		}
	}
	if err := s.moveFiles(ctx); err != nil {
		lock := filepath.Join(repo.GitDir, "index.lock")
		if _, statErr := os.Stat(lock); statErr == nil {
			return "the index is locked by another git process", "when there is no such process any more: " + fault.Command("rm", lock) + "   (then run git land again)", nil
		}
		return "files here are in the way of what others landed: " + err.Error(), s.inPlaceOf(ctx, err), nil
	}
	if targetHere {
		return localMoved, "", nil
	}
	s.moved = true
	move := git.Move{Ref: s.change.branch, New: s.commit, Old: git.Was(s.change.head)}
	if s.change.branch == "" {
		move.Ref = git.Head
	}
	return localMoved, "", []git.Move{move}
}

// flush makes the ref updates that bring has left. Where a hook or a lock of the clone
// does not let it, index and files go back: with the branch where it was, what others
// landed would be shown as staged.
func (s *follower) flush(ctx context.Context, message string, moves ...git.Move) error {
	err := s.l.Flush(ctx, message, moves...)
	if err != nil && s.moved && s.tree != s.change.tree {
		err = errors.Join(err, s.l.Repo.MoveWorkTree(ctx, s.tree, s.change.tree, false))
	}
	return err
}

// inTheWay says why HEAD, or the branch that it is on, is not to be moved now: "" where
// nothing is in the way of that.
func (s *follower) inTheWay(ctx context.Context) (outcome, hint string, err error) {
	repo := s.l.Repo
	// Both go on from where HEAD is: a bisection would take it for what it had chosen.
	switch {
	case repo.Bisecting():
		return "a bisection is under way here", "git bisect reset && " + s.rebase(ctx), nil
	case repo.Doing() == "rebase":
		return "a rebase is under way here", "git rebase --continue && " + s.rebase(ctx), nil
	case s.change.branch == "":
		return "", "", nil
	}
	keepers, err := repo.Keepers(ctx, s.change.branch)
	if err != nil || len(keepers) == 0 {
		return "", "", err
	}
	if k := keepers[0]; k.Doing == "" {
		return kept(s.change.branch, k), fault.Command("git", "-C", k.Path, "switch", "--detach") + " && " + s.rebase(ctx), nil
	}
	return kept(s.change.branch, keepers[0]), s.rebase(ctx) + "   (when that is over)", nil
}

// rebase is the command that brings the branch along by hand. New files that have
// landed are in git's way as long as it knows nothing of them.
func (s *follower) rebase(ctx context.Context) string {
	command := inTurn([]string{unintend(ctx, s.l.Repo, s.change.paths()), rebaseCommand(s.l, s.target)})
	var made []string
	for _, d := range s.change.diff {
		if d.OldMode == "000000" {
			made = append(made, d.Path)
		}
	}
	switch {
	case s.change.kind != fromPaths || len(made) == 0:
		return command
	case len(made) > maxAgain:
		return fmt.Sprintf("git add the %d new files that have landed, then: %s", len(made), command)
	}
	add := append([]string{"git", "add", "--"}, pathspecs(s.l.Repo, made)...)
	return fault.Command(add...) + " && " + command
}

// follows reports whether the current branch may go where the target went. The
// target's own branch does, and one that has it for its upstream, and a detached
// HEAD; so does a topic branch, which is this clone's alone. A branch that is
// shared in its own right does not: landing a fix on a release must not bring
// the release to main. Nor does a topic where the landing went to another branch
// than usual: it would bring that one's commits along the next time.
func (s *follower) follows(ctx context.Context) (bool, error) {
	repo, branch := s.l.Repo, s.change.branch
	if branch == "" || branch == s.target {
		return true, nil
	}
	name := "branch." + branch.Branch() + "."
	if upstream := repo.Config.Get(name + "merge"); upstream != "" {
		return upstream == string(s.target) && repo.Config.Get(name+"remote") == s.l.Remote, nil
	}
	if s.l.IsLocal() { // all branches are here; a worktree's own is a topic, the main one's is not
		return repo.GitDir != repo.CommonDir, nil
	}
	if usual, err := s.l.KnownTarget(ctx); err != nil || usual != "" && usual != s.target {
		return false, err
	}
	tracked := object.Ref("refs/remotes/" + s.l.Remote + "/" + branch.Branch())
	refs, err := repo.Resolve(ctx, tracked)
	return refs[tracked] == "", err
}

// moveFiles takes index and files from HEAD with the change to what landed.
// What was staged is in the index already. It is not put there once more: by
// now the user may have staged something else.
func (s *follower) moveFiles(ctx context.Context) error {
	repo := s.l.Repo
	var before, entries []git.IndexEntry
	if s.change.kind != fromStaged {
		if s.tree == s.change.tree && s.change.stamp != "" && s.change.stamp == repo.IndexStamp() {
			if s.change.index != nil && s.change.index.Install(s.change.stamp) {
				return nil
			}
			return repo.SetIndex(ctx, newEntries(s.change.diff)) // nobody has touched the index
		}
		now, unmerged, err := repo.IndexEntries(ctx, s.change.paths())
		if err != nil {
			return err
		}
		if unmerged { // a merge that the user began meanwhile
			return errors.New("a landed path is in the middle of a merge")
		}
		before, entries = s.change.indexed(now)
	}
	if s.tree == s.change.tree {
		return repo.SetIndex(ctx, entries)
	}
	replaced, same, err := s.rehearse(ctx, entries)
	if err != nil { // what cannot be done must not be begun
		return err
	}
	if err := repo.SetIndex(ctx, append(entries, same...)); err != nil {
		return err
	}
	repo.Refresh(ctx)
	if err := repo.MoveWorkTree(ctx, s.change.tree, s.tree, false); err != nil {
		return errors.Join(err, repo.SetIndex(ctx, append(replaced, before...)))
	}
	return nil
}

func (m *motion) follower(b built) *follower {
	return &follower{l: m.l, change: m.change, target: b.plan.view.Branch, base: b.plan.view.Base, commit: b.commit, tree: b.plan.tree,
		landed: !b.plan.lacks, operation: m.journal.Operation}
}

// bringAlong moves the local side after the landing. Nothing here can undo it:
// what cannot be done is told, with the command that does it.
func (m *motion) bringAlong(ctx context.Context, b built) {
	ctx = context.WithoutCancel(ctx)
	branch, err := m.headBranch(ctx)
	if err != nil {
		m.result.Local, m.result.Hint = err.Error(), rebaseCommand(m.l, b.plan.view.Branch)
		return
	}
	for _, w := range b.others {
		if err := w.MoveWorkTree(ctx, b.plan.baseTree, b.plan.tree, false); err != nil {
			m.warn("the worktree %s could not follow: %v", w.Top, err)
		}
	}
	var moves []git.Move
	s := m.follower(b)
	m.result.Local, m.result.Hint, moves = s.bring(ctx, branch)
	var target []git.Move
	m.result.Kept, target = m.localTarget(ctx, b)
	moves = append(moves, target...)
	if err := s.flush(ctx, "land: "+m.journal.Unit, moves...); err != nil {
		m.result.Local, m.result.Hint = err.Error(), s.rebase(ctx)
	}
}

// headBranch is the branch that HEAD is on by now. Its commit is looked at anyway; the
// process that tells the branch is started only where HEAD may have been switched.
func (m *motion) headBranch(ctx context.Context) (object.Ref, error) {
	if m.l.Repo.HeadIsStill(m.change.at) {
		return m.change.branch, nil
	}
	return m.l.Repo.HeadBranch(ctx)
}

// afterwards does what can wait until the landing is through.
func (m *motion) afterwards(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if err := m.forget(); err != nil {
		m.warn("the journal could not be removed: %v", err)
	}
	if err := m.l.ShowRecords(ctx); err != nil {
		m.warn("git log will not show the record: %v", err)
	}
	if err := m.l.PublishVerifications(ctx, m.want); err != nil {
		m.warn("verifications wait to be published: %v", err)
	}
}

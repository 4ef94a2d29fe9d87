package land

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/policy"
)

// kind is where a change comes from.
type kind string

const (
	fromPaths   kind = "paths"   // the working tree's content of chosen paths
	fromStaged  kind = "staged"  // what is in the index
	fromCommits kind = "commits" // commits of HEAD that the target lacks
)

// A change is what a user has that the target may lack, as far as this
// worktree alone tells.
type change struct {
	asked    Selection // by which it was chosen
	id       string    // of who reads it, for temporary files
	kind     kind
	chosen   git.Scope         // pathspecs that chose it
	at       git.Position      // of HEAD when it was read; zero where a journal tells
	branch   object.Ref        // that HEAD is on; empty when detached
	head     object.OID        // HEAD's commit, or that of Selection.Head; empty when unborn
	headTree object.OID        // its tree; the empty tree when unborn
	ref      string            // that names head; empty when none does
	here     object.OID        // HEAD's commit
	apart    bool              // it is not head: nothing here is what lands
	tree     object.OID        // HEAD's tree with the change: the change's own tree
	diff     []git.Change      // from headTree to tree
	staged   []git.Change      // fromPaths: where the index was not as headTree, within the paths
	around   []git.StatusEntry // fromPaths: what was not as HEAD has it, anywhere, but for untracked files
	stamp    string            // of the index then
	// index is the copy of the index in which the change was made, while it
	// differs from the index in nothing but the change.
	index    *git.TempIndex
	modified []string // fromCommits: tracked files that differ from the index
	outside  []string // fromCommits: what is staged outside of land.paths
}

// paths are those that the change touches.
func (c change) paths() []string {
	var paths []string
	for _, d := range c.diff {
		paths = append(paths, d.Path)
	}
	return paths
}

// readChange finds out what the selection chooses: paths, or where there are none
// what is staged within landPaths, and so on. It touches neither index nor files. id
// is that of an operation that is watched, for temporary files. The caller has to drop the change.
func readChange(ctx context.Context, l *ledger.Ledger, s Selection, landPaths []string, id string) (change, error) {
	repo := l.Repo
	if err := s.fits(); err != nil {
		return change{asked: s}, err
	}
	c, err := readHead(ctx, repo, s)
	if err != nil {
		return c, err
	}
	c.asked, c.id = s, id
	if err := c.expectHead(ctx, repo); err != nil {
		return c, err
	}
	switch {
	case s.Head != "":
		c.kind, c.tree = fromCommits, c.headTree // whatever is here
	case s.Paths != nil:
		if repo.Top == "" {
			return c, errNoWorkTree()
		}
		c.kind, c.chosen = fromPaths, git.Scope{Paths: s.Paths}
		err = c.takePaths(ctx, l)
	case repo.Top != "":
		if s.commitsAlone() { // then land.paths choose nothing
			landPaths = nil
		}
		if err = c.takeStaged(ctx, l, landPaths); err != nil || c.kind != "" {
			break
		}
		if len(landPaths) > 0 {
			c.kind, c.chosen = fromPaths, git.Scope{Paths: landPaths, FromTop: true}
			err = c.takePaths(ctx, l)
			if err == nil && len(c.diff) > 0 {
				break
			}
			if errors.Is(err, git.ErrNoMatch) {
				err = nil
			}
		}
		if err == nil {
			err = c.takeCommits(ctx, repo, landPaths)
		}
	default:
		err = c.takeCommits(ctx, repo, landPaths)
	}
	if err != nil {
		c.drop()
	}
	return c, err
}

func errNoWorkTree() error {
	return fault.New(fault.Usage, "there is no work tree here whose paths could land").
		WithHint("run git land inside the work tree")
}

// fits refuses what does not go together.
func (s Selection) fits() error {
	if s.Paths == nil {
		return nil
	}
	switch {
	case s.Head != "":
		return fault.New(fault.Usage, "--head lands commits, and paths choose nothing from them").WithHint("leave --head or the paths out")
	case s.Mode == policy.Squash || s.Mode == policy.Merge:
		return fault.New(fault.Usage, "--%s lands commits, and paths land as one commit of their own", s.Mode).
			WithHint("leave --%s or the paths out", s.Mode)
	}
	return nil
}

// commitsAlone reports whether it is commits that are meant, and no files here.
func (s Selection) commitsAlone() bool { return s.Mode == policy.Squash || s.Mode == policy.Merge }

// readHead finds out where HEAD is, and what s.Head names.
func readHead(ctx context.Context, repo *git.Repo, s Selection) (change, error) {
	at, err := repo.Start(ctx)
	c := change{at: at, branch: at.Branch, here: at.Commit, head: at.Commit, headTree: at.Tree, ref: string(at.Branch)}
	if err != nil || s.Head == "" {
		return c, err
	}
	commit, ref, err := repo.Revision(ctx, s.Head)
	if errors.Is(err, git.ErrNoRevision) {
		return c, fault.New(fault.Usage, "--head %s names no commit here", s.Head).
			WithHint("%s", fault.Command("git", "log", "--all", "--oneline", "--decorate"))
	}
	if err != nil {
		return c, err
	}
	data, err := repo.Commit(ctx, commit)
	c.apart = commit != c.head
	c.head, c.headTree = commit, data.Tree
	if c.apart || ref != "" {
		c.ref = ref
	}
	return c, err
}

// name is what lands, as a user calls it.
func (c change) name() string { return cmp.Or(c.asked.Head, "HEAD") }

// rebase is the command that brings what lands onto the target by hand.
func (c change) rebase(l *ledger.Ledger, target object.Ref) string {
	command := rebaseCommand(l, target)
	if !c.apart {
		return command
	}
	if branch, ok := strings.CutPrefix(c.ref, "refs/heads/"); ok {
		return fault.Command("git", "switch", branch) + " && " + command
	}
	return fault.Command("git", "switch", "--detach", string(c.head)) + " && " + command
}

// drop removes the copy of the index.
func (c *change) drop() {
	if c.index != nil {
		c.index.Close()
		c.index = nil
	}
}

// indexed is the change with only those paths of which the index has, in
// entries, what it had when the change was read, and what it replaces. What the user
// staged since is the user's.
func (c change) indexed(entries []git.IndexEntry) (replaced, wanted []git.IndexEntry) {
	before := map[string]object.OID{}
	for _, d := range c.diff {
		before[d.Path] = d.Old
	}
	for _, d := range c.staged {
		before[d.Path] = d.New
	}
	now := map[string]git.IndexEntry{}
	for _, e := range entries {
		now[e.Path] = e
	}
	for _, e := range newEntries(c.diff) {
		if is := now[e.Path]; is.OID == before[e.Path] {
			replaced, wanted = append(replaced, is), append(wanted, e)
		}
	}
	return replaced, wanted
}

// takeStaged builds the tree of HEAD with what is staged, within the given
// pathspecs. It leaves c.kind empty when nothing is.
func (c *change) takeStaged(ctx context.Context, l *ledger.Ledger, within []string) error {
	repo := l.Repo
	staged, err := repo.DiffIndex(ctx, c.headTree, within)
	if err != nil || len(staged) == 0 {
		return err
	}
	c.kind, c.chosen, c.diff = fromStaged, git.Scope{Paths: within, FromTop: true}, staged
	if err := c.halfDone(l); err != nil {
		return err
	}
	if len(within) == 0 {
		c.tree, err = repo.WriteTree(ctx)
		return err
	}
	index, err := repo.TempIndex(ctx, c.id)
	if err != nil {
		return err
	}
	defer index.Close()
	if err := index.Reset(ctx, c.headTree); err != nil {
		return err
	}
	if err := index.SetIndex(ctx, newEntries(staged)); err != nil {
		return err
	}
	c.tree, err = index.WriteTree(ctx)
	return err
}

// takeCommits takes HEAD as it is.
func (c *change) takeCommits(ctx context.Context, repo *git.Repo, landPaths []string) (err error) {
	c.drop()
	c.kind, c.chosen, c.tree, c.diff = fromCommits, git.Scope{}, c.headTree, nil
	if repo.Top == "" {
		return nil
	}
	if len(landPaths) > 0 { // then what is staged elsewhere was not chosen
		outside, err := repo.DiffIndex(ctx, c.headTree, nil)
		if err != nil {
			return err
		}
		c.outside = change{diff: outside}.paths()
	}
	c.modified, err = repo.Modified(ctx)
	return err
}

// newEntries are the index entries of the new sides.
func newEntries(diff []git.Change) []git.IndexEntry {
	var entries []git.IndexEntry
	for _, d := range diff {
		entries = append(entries, git.IndexEntry{Mode: d.NewMode, OID: d.New, Path: d.Path})
	}
	return entries
}

// message is the commit message of the paragraphs given with -m.
func message(paragraphs []string) string {
	var kept []string
	for _, p := range paragraphs {
		if p = strings.TrimSpace(p); p != "" {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return strings.Join(kept, "\n\n") + "\n"
}

// overlap lists what both have, in the order of a.
func overlap(a, b []string) []string {
	var both []string
	for _, p := range a {
		if slices.Contains(b, p) {
			both = append(both, p)
		}
	}
	return both
}

package land

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
	"gitland/internal/policy"
)

// What git commit asks, in its order. The hooks that come after a commit are not run:
// what they tell of has not landed yet, and may never.
const (
	preCommit  = "pre-commit"
	prepareMsg = "prepare-commit-msg"
	commitMsg  = "commit-msg"
)

// A hooked is what the hooks made of a change, and of its message.
type hooked struct {
	tree object.OID // of the change that they were shown
	mode policy.Mode
	text string
	err  error
	// by is the hook that changed the content, which is tree after it; "" for none.
	by    string
	after object.OID
}

// runHooks runs the hooks that git commit would for the commit that is made of the change,
// once for each content. They see what "git commit --only" would show them, HEAD with the
// change, on an index of their own: neither the target nor the user's index is theirs.
//
// Of commits that are there already they see no content, and of one that is made of those
// they have the message alone: git has asked pre-commit of each of them.
//
// What fails is a fault of class Conflict. One that has changed the content has made a
// tree that nobody has chosen, or verified: that is one of class Unverified. The message
// may be changed, as git commit lets it.
func (m *motion) runHooks(ctx context.Context, p plan) error {
	if !p.makes() {
		if m.r.NoVerify {
			return fault.New(fault.Usage, "commits land as they are, and no hook of a commit is run that --no-verify could skip").
				WithHint("%s", withSelection(m.l, m.r.Selection.withHooks().landing(), m.r.Selection))
		}
		return nil
	}
	if m.hooked == nil || m.hooked.tree != m.change.tree || m.hooked.mode != p.mode {
		m.hooked = &hooked{tree: m.change.tree, mode: p.mode, text: m.text}
		m.hooked.err = m.hooked.run(ctx, m, p)
		if m.change.kind == fromCommits && p.mode == policy.Squash {
			m.journal.Text = m.hooked.text
		}
	}
	if m.hooked.err != nil || m.hooked.by == "" {
		return m.hooked.err
	}
	return m.hookChanged(ctx, p)
}

// message is that of the commit that is made, as the hooks left it.
func (m *motion) message() string {
	if m.hooked != nil {
		return m.hooked.text
	}
	return m.text
}

func (s Selection) withHooks() Selection {
	s.NoVerify = false
	return s
}

func (h *hooked) run(ctx context.Context, m *motion, p plan) error {
	d, err := m.draft(ctx, p)
	if err != nil {
		return err
	}
	h.text = d.text
	names, run, err := m.hookNames(ctx, p)
	if err != nil || len(names) == 0 && !d.edit {
		return err
	}
	var index *git.TempIndex
	if len(names) > 0 {
		if index, err = m.change.scopedIndex(ctx, m.l.Repo); err != nil {
			return err
		}
		defer index.Close()
	}
	file, remove, err := m.l.Repo.MessageFile(m.journal.Operation.String(), h.text)
	if err != nil {
		return err
	}
	defer remove()
	ask := func(name string, args ...string) error {
		if !slices.Contains(names, name) {
			return nil
		}
		return m.askHook(ctx, index, name, args)
	}
	if err := ask(preCommit); err != nil {
		return err
	}
	if slices.Contains(names, preCommit) {
		if h.after, err = index.WriteTree(ctx); err != nil {
			return fmt.Errorf("the index that the hook %s left: %w", preCommit, err)
		}
		if h.after != h.tree {
			h.by = preCommit
			return nil
		}
	}
	source := "message"
	if p.change.kind == fromCommits && m.text == "" {
		source = string(p.mode) // squash or merge, as git has it
	}
	if err := ask(prepareMsg, file, source); err != nil {
		return err
	}
	if d.edit {
		if h.text, err = m.edit(ctx, d, file); err != nil {
			return err
		}
	}
	if err := ask(commitMsg, file); err != nil {
		return err
	}
	if h.text, err = hookedMessage(ctx, m.l.Repo, file, h.text); err != nil {
		return err
	}
	if strings.TrimSpace(h.text) == "" {
		return fault.New(fault.Conflict, "the hooks (%s) left no message for the commit, and nothing landed", shortList(names)).
			WithHint("mend them, and run git land again")
	}
	if len(run) > 0 {
		m.tell("hooked", strings.Join(run, ", "))
	}
	return nil
}

// hookNames are the hooks that git is to be asked for, and those of them that it runs: of
// the others it says why not. Without a work tree there is no git commit, whose hooks
// they are.
func (m *motion) hookNames(ctx context.Context, p plan) (names, run []string, err error) {
	if m.l.Repo.Top == "" {
		return nil, nil, nil
	}
	for _, name := range []string{preCommit, prepareMsg, commitMsg} {
		if m.r.NoVerify && name != prepareMsg || name == preCommit && p.change.kind == fromCommits {
			continue
		}
		state, err := m.l.Repo.HookState(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		if state != git.NoHook {
			names = append(names, name)
		}
		if state == git.RunsHook {
			run = append(run, name)
		}
	}
	return names, run, nil
}

func (m *motion) askHook(ctx context.Context, index *git.TempIndex, name string, args []string) error {
	author, err := m.l.Repo.Author()
	if err != nil {
		return err
	}
	refused, err := index.RunHook(ctx, git.CommitHook{Name: name, Args: args, Author: author, Output: m.r.Stderr})
	if err != nil {
		return fmt.Errorf("run the hook %s: %w", name, err)
	}
	if refused {
		return m.hookRefused(name)
	}
	return nil
}

// scopedIndex is an index that has HEAD's tree with the change, and nothing else.
func (c *change) scopedIndex(ctx context.Context, repo *git.Repo) (*git.TempIndex, error) {
	if c.index != nil {
		return c.index.Copy()
	}
	index, err := repo.TempIndex(ctx, c.id)
	if err != nil {
		return nil, err
	}
	if err = index.Reset(ctx, c.headTree); err == nil {
		err = index.SetIndex(ctx, newEntries(c.diff))
	}
	if err != nil {
		index.Close()
		return nil, err
	}
	index.Refresh(ctx) // a hook that asks whether files differ from it need not read all
	return index, nil
}

// hookedMessage is the message as the hooks left it.
func hookedMessage(ctx context.Context, repo *git.Repo, file, was string) (string, error) {
	text, err := readMessage(file)
	if err != nil || text == was {
		return text, err
	}
	return repo.CleanMessage(ctx, text)
}

func readMessage(file string) (string, error) {
	text, err := git.ReadMessage(file)
	if err != nil {
		return "", fault.New(fault.Conflict, "the message that the hooks, or the editor, left is not taken: %w", err).
			WithHint("mend what wrote it, and run git land again")
	}
	return text, nil
}

// hookRefused is the fault of a hook that failed. What it said stands above it.
func (m *motion) hookRefused(name string) error {
	f := fault.New(fault.Conflict, "the hook %s refused the commit, and nothing landed", name).WithFacts(map[string]any{"hook": name})
	if name == prepareMsg { // as with git commit, nothing skips it
		return f.WithHint("mend what it objects to, and run git land again")
	}
	s := m.r.Selection
	s.NoVerify = true
	return f.WithHint("mend what it objects to, and run git land again   (or, past it and on the record: %s)", withSelection(m.l, s.landing(), s))
}

// hookChanged is the fault of a hook that changed the content. What it made is in no index
// and in no file but those that it wrote itself: its tree is named, with the commands that
// take it over and verify that.
func (m *motion) hookChanged(ctx context.Context, p plan) error {
	h, repo := m.hooked, m.l.Repo
	changed, err := repo.DiffTrees(ctx, h.tree, h.after)
	if err != nil {
		return err
	}
	now, err := repo.MergeTrees(ctx, m.change.headTree, p.baseTree, h.after, p.mergeOptions()...)
	if err != nil { // it conflicts now; the tree by itself is what there is to show
		now = h.after
	}
	paths := change{diff: changed}.paths()
	lost, err := m.endangered(ctx, changed)
	if err != nil {
		return err
	}
	take, s := m.takeOver(changed)
	again, which := verifyCommand(m.l, s, p.view.Policy), "verifies"
	if s.command != "" || s.reason != "" { // then landing verifies, or nothing does
		again, which = withSelection(m.l, s.landing(), s), "lands"
	}
	past := m.r.Selection
	past.NoVerify = true
	var hint string
	switch {
	case len(lost) > 0:
		words := append([]string{"git", "diff", string(h.tree), string(h.after), "--"}, pathspecs(repo, lost)...)
		hint = fmt.Sprintf("%s   (what the hook made of that, to be taken over by hand: it would be at the cost of other changes; or, past the hook and on the record: %s)",
			fault.Command(words[:min(len(words), 5+maxAgain)]...), withSelection(m.l, past.landing(), past))
	case s.Paths != nil && len(s.Paths) == 0:
		hint = fmt.Sprintf("choose something else: the hook leaves nothing of it   (or, past the hook and on the record: %s)", withSelection(m.l, past.landing(), past))
	default:
		hint = fmt.Sprintf("%s   (it takes over what the hook made, and %s that)", take+again, which)
	}
	return fault.New(fault.Unverified, "the hook %s changed %s: the tree %s would land now, and not %s, which was chosen",
		h.by, shortList(paths), now, p.tree).
		WithHint("%s", hint).
		WithFacts(map[string]any{"hook": h.by, "tree": p.tree, "changed_tree": now, "paths": paths})
}

// takeOver is the beginning of a command line that takes over what the hook made of the
// paths that it changed, and the selection of what that is. A new file that it has taken
// out stays where it is, and is not chosen any more: git knows nothing of it to restore.
func (m *motion) takeOver(changed []git.Change) (string, Selection) {
	repo, s, paths := m.l.Repo, m.r.Selection, change{diff: changed}.paths()
	from, to := pathspecs(repo, paths), "--staged"
	if m.change.kind == fromPaths {
		to = "--worktree"
		added, gone := without(paths, m.change.paths()), m.takenOut(changed)
		switch {
		case len(gone) > 0:
			s.Paths = append([]string{}, pathspecs(repo, append(without(m.change.paths(), gone), added...))...)
			from = pathspecs(repo, without(paths, gone))
		case s.Paths != nil: // a file that it added lands only if it is chosen
			s.Paths = slices.Concat(s.Paths, pathspecs(repo, added))
		}
		if len(gone) > 0 && len(s.Paths) > maxAgain {
			s.Paths = []string{"PATH..."}
		}
	}
	switch {
	case len(from) == 0:
		return "", s
	case len(from) > maxAgain:
		from = []string{"PATH..."}
	}
	return fault.Command(append([]string{"git", "restore", "--source", string(m.hooked.after), to, "--"}, from...)...) + " && ", s
}

// endangered are those of the paths which were not chosen, and where taking over what the
// hook made would be at the cost of work: the file, or what is staged, is neither as it
// was in HEAD nor as the hook has it. Of very many all are taken for such.
func (m *motion) endangered(ctx context.Context, changed []git.Change) (paths []string, err error) {
	repo, chosen := m.l.Repo, m.change.paths()
	removed := func(d git.Change) bool { // with what was chosen of it, which is nowhere else
		return m.change.kind == fromPaths && d.Deleted() && slices.ContainsFunc(m.change.diff, func(c git.Change) bool { return c.Path == d.Path && c.OldMode != "000000" })
	}
	others := slices.DeleteFunc(slices.Clone(changed), func(d git.Change) bool { return slices.Contains(chosen, d.Path) && !removed(d) })
	paths = change{diff: others}.paths()
	if len(paths) == 0 || len(paths) > maxAgain {
		return paths, nil
	}
	have := map[string]object.OID{}
	if m.change.kind == fromPaths {
		for _, path := range paths {
			have[path], err = repo.HashFile(ctx, path)
			switch {
			case errors.Is(err, git.ErrNotFound):
				have[path] = repo.Format.Zero()
			case err != nil:
				have[path] = "" // something that is no file
			}
		}
	} else {
		entries, _, err := repo.IndexEntries(ctx, paths)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			have[e.Path] = e.OID
		}
	}
	paths = nil
	for _, d := range others {
		if oid := have[d.Path]; removed(d) || oid != d.Old && oid != d.New {
			paths = append(paths, d.Path)
		}
	}
	return paths, nil
}

// takenOut are those of the paths that are new, and that the hook took out of the index.
func (m *motion) takenOut(changed []git.Change) (paths []string) {
	for _, d := range changed {
		before := slices.IndexFunc(m.change.diff, func(c git.Change) bool { return c.Path == d.Path })
		if d.Deleted() && before >= 0 && m.change.diff[before].OldMode == "000000" {
			paths = append(paths, d.Path)
		}
	}
	return paths
}

// without are those of a that b lacks.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

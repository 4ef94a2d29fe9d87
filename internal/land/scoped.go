package land

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
)

// takePaths builds the tree of HEAD with the working tree's content of chosen
// paths.
func (c *change) takePaths(ctx context.Context, l *ledger.Ledger) error {
	repo := l.Repo
	c.stamp = repo.IndexStamp()
	around := sync.OnceValues(func() ([]git.StatusEntry, error) { return repo.Status(ctx, false) })
	var wg sync.WaitGroup
	wg.Go(func() { around() })
	defer wg.Wait()
	index, err := repo.TempIndex(ctx, c.id)
	if err != nil {
		return err
	}
	c.index = index
	plain, addErr := c.addTo(ctx, l, index)
	if c.around, err = around(); err != nil {
		return err
	}
	if c.staged, err = c.stagedWithin(ctx, repo); err != nil {
		return err
	}
	if err := c.halfDone(l); err != nil {
		return err // which can also be why git could not add
	}
	if !plain || len(c.staged) > 0 {
		c.drop()
	}
	return addErr
}

// stagedWithin is what of the chosen paths the index has and HEAD has not.
func (c *change) stagedWithin(ctx context.Context, repo *git.Repo) ([]git.Change, error) {
	staged := repo.Staged(c.around)
	switch {
	case len(staged) == 0:
		return nil, nil
	case !slices.ContainsFunc(c.chosen.Paths, func(spec string) bool { return !c.plain(repo, spec) }):
		return slices.DeleteFunc(staged, func(d git.Change) bool { return !c.covers(repo, d.Path) }), nil
	}
	return repo.DiffEntries(ctx, c.headTree, c.chosen)
}

// halfDone refuses what is staged of the change while git is in the middle of something:
// it may be the other side's, and whoever finishes that would have it twice.
func (c *change) halfDone(l *ledger.Ledger) error {
	staged := c.staged
	if c.kind == fromStaged {
		staged = c.diff
	}
	if len(staged) == 0 {
		return nil
	}
	var unmerged []string
	for _, d := range staged {
		if d.Unmerged {
			unmerged = append(unmerged, d.Path)
		}
	}
	if len(unmerged) > 0 {
		return fault.New(fault.Conflict, "%s is in the middle of a merge", shortList(unmerged)).WithHint("git status")
	}
	switch doing := l.Repo.Doing(); doing {
	case "":
		return nil
	case "merge":
		return fault.New(fault.Conflict, "a merge is under way, and what is staged of %s is its result", shortList(change{diff: staged}.paths())).
			WithHint("git commit && %s", c.landNext(l))
	default:
		return fault.New(fault.Conflict, "a %s is under way, and what is staged of %s is its result", doing, shortList(change{diff: staged}.paths())).
			WithHint("git %s --continue && %s", doing, c.landNext(l))
	}
}

// addTo adds the chosen paths to a copy of the index. Most often nothing else is
// staged, and then the copy is HEAD but for them; where something is, that is put
// back to what HEAD has, and addTo returns false.
func (c *change) addTo(ctx context.Context, l *ledger.Ledger, index *git.TempIndex) (plain bool, err error) {
	repo := l.Repo
	if err := c.add(ctx, l, index); err != nil {
		return false, err
	}
	tree, treeErr := index.WriteTree(ctx) // fails in the middle of a merge, elsewhere
	if treeErr == nil {
		c.tree = tree
		if c.diff, err = repo.DiffTrees(ctx, c.headTree, tree); err != nil {
			return false, err
		}
		if c.onlyChosen(repo) {
			return true, nil
		}
	}
	all, err := index.DiffIndex(ctx, c.headTree, git.Scope{FromTop: true})
	if err != nil {
		return false, err
	}
	within, err := index.DiffIndex(ctx, c.headTree, c.chosen)
	if err != nil {
		return false, err
	}
	chosen := map[string]bool{}
	for _, d := range within {
		chosen[d.Path] = true
	}
	var entries []git.IndexEntry
	for _, d := range all {
		if !chosen[d.Path] {
			entries = append(entries, git.IndexEntry{Mode: d.OldMode, OID: d.Old, Path: d.Path})
		}
	}
	if len(entries) == 0 && treeErr == nil {
		return true, nil
	}
	// What was chosen is set last: it may be a directory where HEAD has a file.
	if err := index.SetIndex(ctx, append(entries, newEntries(within)...)); err != nil {
		return false, err
	}
	if c.tree, err = index.WriteTree(ctx); err == nil {
		c.diff, err = repo.DiffTrees(ctx, c.headTree, c.tree)
	}
	return false, err
}

// add adds the chosen paths. What git does not take because it is only in HEAD any more
// ("git rm", "git rm --cached" of what is ignored since) is as chosen already.
func (c *change) add(ctx context.Context, l *ledger.Ledger, index *git.TempIndex) error {
	if c.chosen.FromTop {
		return c.notAdded(l, index.AddFromTop(ctx, c.chosen.Paths...), nil)
	}
	specs := c.chosen.Paths
	// Exclusions alone choose all else; but not once what they stood beside is taken out.
	includes := func(spec string) bool { return !git.Excludes(spec) }
	for first := true; first || slices.ContainsFunc(specs, includes); first = false {
		err := index.Add(ctx, specs...)
		if err == nil {
			return nil
		}
		var refused []string
		if none, unmatched := errors.AsType[*git.NoMatchError](err); unmatched {
			refused = []string{none.Path}
		} else if git.ExitCode(err) == 1 { // git-add(1): ignored, or outside of a sparse checkout
			refused = c.ignored(ctx, index, specs)
		}
		for _, spec := range refused {
			staged, diffErr := l.Repo.DiffEntries(ctx, c.headTree, git.Scope{Paths: []string{spec}})
			if diffErr != nil {
				return diffErr
			}
			if len(staged) == 0 {
				return c.notAdded(l, err, refused)
			}
		}
		if len(refused) == 0 {
			return c.notAdded(l, err, nil)
		}
		specs = slices.DeleteFunc(slices.Clone(specs), func(spec string) bool { return slices.Contains(refused, spec) })
	}
	return nil
}

// ignored are those of the specs that git ignores, as far as it can be asked.
func (c *change) ignored(ctx context.Context, index *git.TempIndex, specs []string) []string {
	names := slices.DeleteFunc(slices.Clone(specs), func(spec string) bool { return strings.HasPrefix(spec, ":") })
	if len(names) == 0 {
		return nil
	}
	ignored, err := index.Ignored(ctx, names...)
	if err != nil { // then the refusal is less exact
		return nil
	}
	return ignored
}

// notAdded tells why git does not take the chosen paths, of which some are named where
// that is known.
func (c *change) notAdded(l *ledger.Ledger, err error, refused []string) error {
	none, unmatched := errors.AsType[*git.NoMatchError](err)
	again := withSelection(l, c.asked.landing(), c.asked)
	outside := slices.IndexFunc(c.chosen.Paths, func(spec string) bool { return isOutside(l.Repo, spec) })
	switch {
	case err == nil:
		return nil
	case outside >= 0:
		f := fault.New(fault.Usage, "the path %s is outside of the work tree %s", c.chosen.Paths[outside], l.Repo.Top).
			WithHint("name what is in it, or run git land in the clone that has that path")
		f.Err = err
		return f
	case unmatched:
		f := fault.New(fault.Usage, "the path %s matches no file", none.Path).WithHint("git status   (it names what has changed)")
		f.Err = err
		return f
	case len(refused) > 0:
		return fault.New(fault.Conflict, "git ignores %s, so it does not land", shortList(refused)).
			WithHint("%s && %s", fault.Command(append([]string{"git", "add", "--force", "--"}, refused...)...), again)
	case c.outsideSparse(l.Repo, err):
		return fault.New(fault.Conflict, "of the chosen paths (%s) some are outside of the sparse checkout here, where git does not look at files", shortList(c.chosen.Paths)).
			WithHint("%s && %s", fault.Command(append([]string{"git", "add", "-A", "--sparse", "--"}, c.chosen.Paths...)...), c.landAll(l))
	case git.ExitCode(err) == 1 || git.ExitCode(err) == 128:
		return fault.New(fault.Conflict, "git does not take what is chosen: %w", err).
			WithHint("%s   (until it takes them)", fault.Command(append([]string{"git", "add", "-A", "--dry-run", "--"}, c.chosen.Paths...)...))
	}
	return err
}

// outsideSparse reports whether git add failed with err because of a sparse checkout: it
// exits with 1 for what is there, and dies of what a sparse index has no entry for.
func (c *change) outsideSparse(repo *git.Repo, err error) bool {
	sparse, configErr := repo.Config.Bool("core.sparsecheckout", false)
	if configErr != nil || !sparse {
		return false
	}
	return git.ExitCode(err) == 1 || slices.ContainsFunc(c.chosen.Paths, func(spec string) bool {
		_, err := os.Lstat(filepath.Join(repo.Top, c.full(repo, spec)))
		return c.plain(repo, spec) && errors.Is(err, os.ErrNotExist)
	})
}

// onlyChosen reports whether every path of the diff is certainly one of those
// chosen. A pathspec with anything special in it is left to git.
func (c *change) onlyChosen(repo *git.Repo) bool {
	return !slices.ContainsFunc(c.chosen.Paths, git.Excludes) && !slices.ContainsFunc(c.diff, func(d git.Change) bool { return !c.covers(repo, d.Path) })
}

// covers reports whether a path, from the top, is one of those chosen by a plain pathspec.
func (c *change) covers(repo *git.Repo, p string) bool {
	return slices.ContainsFunc(c.chosen.Paths, func(spec string) bool {
		full := c.full(repo, spec)
		return c.plain(repo, spec) && (full == "." || p == full || strings.HasPrefix(p, full+"/"))
	})
}

// plain reports whether a pathspec is the name of a file or directory, and nothing else.
func (c *change) plain(repo *git.Repo, spec string) bool {
	return !strings.ContainsAny(spec, ":*?[\\") && !path.IsAbs(spec) && !repo.FoldsPathspecs()
}

// isOutside reports whether a pathspec, relative to where git runs, names something
// outside of the work tree, which git dies of.
func isOutside(repo *git.Repo, spec string) bool {
	name, from := spec, repo.Prefix
	if words, rest, long := strings.Cut(spec, ")"); long && strings.HasPrefix(words, ":(") {
		if name = rest; strings.Contains(words, "top") {
			from = ""
		}
	} else if short, magic := strings.CutPrefix(spec, ":"); magic {
		if name = strings.TrimLeft(short, "!^/"); strings.Contains(short[:len(short)-len(name)], "/") {
			from = ""
		}
	}
	if path.IsAbs(name) {
		real, err := filepath.EvalSymlinks(repo.Top)
		return err == nil && !leadsInto(real, name)
	}
	full := path.Clean(from + name)
	return full == ".." || strings.HasPrefix(full, "../")
}

// leadsInto reports whether a path, of which the end need not be there, leads into a
// directory.
func leadsInto(dir, name string) bool {
	for at := path.Clean(name); ; at = path.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return real == dir || strings.HasPrefix(real, dir+"/")
		}
		if at == path.Dir(at) {
			return false
		}
	}
}

// full is a plain pathspec from the top.
func (c *change) full(repo *git.Repo, spec string) string {
	if c.chosen.FromTop {
		return path.Clean(spec)
	}
	return path.Clean(repo.Prefix + spec)
}

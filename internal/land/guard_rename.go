package land

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// Modes as git has them.
const (
	absent    = "000000"
	submodule = "160000"
)

// mostHalves bounds how many files are compared. Where more come into question, only those
// of one name in different directories are.
const mostHalves = 500

// A moving has the files that could be halves of renamings: those that HEAD has and that
// are gone here, and those that are here and HEAD lacks; chosen ones, and others.
type moving struct {
	gone, come         []git.Change          // chosen
	alsoGone, alsoCome []string              // not chosen
	was                map[string]object.OID // what HEAD has of alsoGone
	modules            []git.Change          // submodules that are chosen
	alsoModules        []git.StatusEntry     // and others
}

// guardRenames refuses one half of a renaming: the file would land under both names, or
// under none. Files are the same by git's own comparison, only where exactly one half is
// chosen, and where neither of the two has another half on its own side. A commit has
// what its author put there.
func (p *plan) guardRenames(ctx context.Context, l *ledger.Ledger, _ [][]git.Change) error {
	if p.change.kind == fromCommits || l.Repo.Top == "" {
		return nil
	}
	m, err := p.change.moving(ctx, l.Repo)
	if err != nil || m == nil {
		return err
	}
	half, err := m.half(ctx, l, &p.change)
	if err != nil || half == nil {
		return err
	}
	chosen, other, where := half.New, half.Old, "gone"
	if !slices.Contains(p.change.paths(), half.New) {
		chosen, other, where = half.Old, half.New, "there"
	}
	hint := ""
	switch s := p.change.asked; {
	case p.change.kind == fromStaged && len(p.change.chosen.Paths) == 0:
		hint = fault.Command(append([]string{"git", "add", "-A", "--"}, pathspecs(l.Repo, []string{other})...)...) +
			" && " + withSelection(l, s.landing(), s)
	case s.Paths != nil:
		s.Paths = append(slices.Clone(s.Paths), pathspecs(l.Repo, []string{other})...)
		hint = withSelection(l, s.landing(), s)
	default: // the other half is outside of land.paths
		c := p.change
		c.asked.Allow = append(slices.Clone(s.Allow), GuardPaths)
		hint = c.landPaths(l, append(c.paths(), other))
	}
	return fault.New(fault.Conflict, "%s was renamed to %s, of which only %s is chosen, while %s is %s here",
		half.Old, half.New, chosen, other, where).
		WithFacts(map[string]any{"renamed": []string{half.Old, half.New}}).
		WithHint("%s   (or, where half of it is meant: %s)", hint, p.allowing(l, GuardRename))
}

// moving finds what could be half of a renaming; nil where nothing could. It asks git for
// what is not known yet only where the change adds or deletes files.
func (c *change) moving(ctx context.Context, repo *git.Repo) (*moving, error) {
	m := &moving{was: map[string]object.OID{}}
	for _, d := range c.diff {
		switch {
		case regular(d.OldMode) && d.Deleted():
			m.gone = append(m.gone, d)
		case d.OldMode == absent && regular(d.NewMode):
			m.come = append(m.come, d)
		case d.OldMode == submodule || d.IsSubmodule():
			m.modules = append(m.modules, d)
		}
	}
	m.dropWhole()
	if len(m.gone)+len(m.come)+len(m.modules) == 0 {
		return nil, nil
	}
	entries := c.around
	if c.kind == fromStaged || len(m.gone) > 0 {
		var err error
		if entries, err = repo.Status(ctx, len(m.gone) > 0); err != nil {
			return nil, err
		}
	}
	chosen := map[string]bool{}
	for _, d := range c.diff {
		chosen[d.Path] = true
	}
	for _, e := range entries {
		switch {
		case chosen[e.Path] || strings.HasSuffix(e.Path, "/"):
		case e.HeadMode == submodule || e.IndexMode == submodule:
			m.alsoModules = append(m.alsoModules, e)
		case e.Gone() && regular(e.HeadMode):
			m.alsoGone, m.was[e.Path] = append(m.alsoGone, e.Path), e.Head
		case e.New():
			m.alsoCome = append(m.alsoCome, e.Path)
		}
	}
	return m, m.alike(ctx, repo)
}

func regular(mode string) bool { return mode == "100644" || mode == "100755" }

// dropWhole takes out the files that were renamed without a change.
func (m *moving) dropWhole() {
	m.gone = slices.DeleteFunc(m.gone, func(g git.Change) bool {
		i := slices.IndexFunc(m.come, func(c git.Change) bool { return c.New == g.Old })
		if i < 0 {
			return false
		}
		m.come = slices.Delete(m.come, i, i+1)
		return true
	})
}

// alike leaves only those which are not chosen that some chosen one resembles in size, as
// nearly all files that have to be compared do not.
func (m *moving) alike(ctx context.Context, repo *git.Repo) error {
	var ids []object.OID
	for _, d := range m.gone {
		ids = append(ids, d.Old)
	}
	for _, d := range m.come {
		ids = append(ids, d.New)
	}
	for _, p := range m.alsoGone {
		ids = append(ids, m.was[p])
	}
	sizes, err := repo.Sizes(ctx, ids)
	if err != nil {
		return err
	}
	gone, rest := sizes[:len(m.gone)], sizes[len(m.gone):]
	come, alsoGone := rest[:len(m.come)], rest[len(m.come):]
	if m.alsoGone = choose(m.alsoGone, func(i int, p string) bool { return similar(alsoGone[i], come) }); len(m.alsoGone) > mostHalves {
		m.alsoGone = choose(m.alsoGone, func(_ int, p string) bool { return sameName(p, m.come) })
	}
	if m.alsoCome = choose(m.alsoCome, func(_ int, p string) bool {
		return similar(fileSize(repo, p), gone)
	}); len(m.alsoCome) > mostHalves {
		m.alsoCome = choose(m.alsoCome, func(_ int, p string) bool { return sameName(p, m.gone) })
	}
	return nil
}

func choose(paths []string, keep func(int, string) bool) []string {
	var kept []string
	for i, p := range paths {
		if keep(i, p) {
			kept = append(kept, p)
		}
	}
	return kept
}

// similar reports whether a file of this size can be the same as one of the others. The
// work tree's may be larger, by its line ends.
func similar(size int64, others []int64) bool {
	return size > 0 && slices.ContainsFunc(others, func(o int64) bool { return o > 0 && size*3 >= o*2 && o*3 >= size*2 })
}

func sameName(p string, others []git.Change) bool {
	return slices.ContainsFunc(others, func(d git.Change) bool { return path.Base(d.Path) == path.Base(p) })
}

// half is a renaming of which one half is chosen and the other is not; nil for none.
func (m *moving) half(ctx context.Context, l *ledger.Ledger, c *change) (*git.Rename, error) {
	if r := m.halfModule(); r != nil {
		return r, nil
	}
	if (len(m.come) == 0 || len(m.alsoGone) == 0) && (len(m.gone) == 0 || len(m.alsoCome) == 0) {
		return nil, nil
	}
	gone, come := change{diff: m.gone}.paths(), change{diff: m.come}.paths()
	all, err := l.Repo.Renames(ctx, c.headTree, c.id, slices.Concat(gone, m.alsoGone), slices.Concat(come, m.alsoCome))
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if slices.Contains(gone, r.Old) == slices.Contains(come, r.New) {
			continue
		}
		whole, err := m.whole(ctx, l, c, r)
		if err != nil {
			return nil, err
		}
		if !whole {
			return &r, nil
		}
	}
	return nil, nil
}

// halfModule is half for submodules, which stay at their commit.
func (m *moving) halfModule() *git.Rename {
	for _, d := range m.modules {
		for _, e := range m.alsoModules {
			switch {
			case d.OldMode == absent && e.Gone() && e.Head == d.New:
				return &git.Rename{Old: e.Path, New: d.Path}
			case d.Deleted() && e.New() && e.Index == d.Old:
				return &git.Rename{Old: d.Path, New: e.Path}
			}
		}
	}
	return nil
}

// whole reports whether a half of r has another half on its own side, chosen or not: then
// r is a copy.
func (m *moving) whole(ctx context.Context, l *ledger.Ledger, c *change, r git.Rename) (bool, error) {
	entries, err := l.Repo.Status(ctx, true)
	if err != nil {
		return false, err
	}
	like := fileSize(l.Repo, r.New)
	var gone, come []string
	for _, e := range entries {
		switch {
		case slices.Contains(c.paths(), e.Path) || strings.HasSuffix(e.Path, "/"):
		case e.Gone() && regular(e.HeadMode):
			gone = append(gone, e.Path)
		case e.New() && similar(fileSize(l.Repo, e.Path), []int64{like}):
			come = append(come, e.Path)
		}
	}
	sides := []struct{ gone, come []string }{{change{diff: m.gone}.paths(), change{diff: m.come}.paths()}, {gone, come}}
	for _, side := range sides {
		within, err := l.Repo.Renames(ctx, c.headTree, c.id, side.gone, side.come)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(within, func(w git.Rename) bool { return w.Old == r.Old || w.New == r.New }) {
			return true, nil
		}
	}
	return false, nil
}

// fileSize is that of a regular file of the work tree, else 0.
func fileSize(repo *git.Repo, p string) int64 {
	info, err := os.Lstat(filepath.Join(repo.Top, p))
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

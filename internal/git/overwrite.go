package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gitland/internal/object"
)

// An InTheWayError is files that git does not know, and submodules, where a move of the
// work tree would put others. Paths are relative to the top.
type InTheWayError struct {
	Paths      []string
	Submodules []string          // with files, of which git does not ask whether they are anywhere else
	Inside     map[string]string // of those in a directory: what would be a file in its place
}

func (e *InTheWayError) Error() string {
	var said []string
	if len(e.Submodules) > 0 {
		said = append(said, "the files of the submodule "+strings.Join(e.Submodules, ", ")+" would be overwritten")
	}
	if len(e.Paths) > 0 {
		said = append(said, "git does not know "+strings.Join(e.Paths, ", ")+", and would overwrite it")
	}
	return strings.Join(said, "; ")
}

// inTheWay refuses a move between trees where something that the index lacks is in the
// place of what it would add, with other content. Since 2.34 git read-tree takes what is
// ignored for something that may be overwritten, and has no option against it. Nor does
// it look into a submodule before it puts a file, or a directory, in its place.
func (r *Repo) inTheWay(ctx context.Context, from, to object.OID) error {
	diff, err := r.DiffTrees(ctx, from, to)
	if err != nil {
		return err
	}
	if err := r.strayed(ctx, diff); err != nil {
		return err
	}
	modules, err := r.replacedSubmodules(diff)
	if err != nil {
		return err
	}
	there := map[string][]string{} // what stands in the place of a path
	var all []string
	folds, _ := r.Config.Bool("core.ignorecase", false)
	for _, d := range diff {
		renamed := func(o Change) bool { return o.Deleted() && strings.EqualFold(o.Path, d.Path) }
		if d.OldMode != absent || folds && slices.ContainsFunc(diff, renamed) { // which is the same file there
			continue
		}
		if slices.ContainsFunc(modules, func(sub string) bool { return strings.HasPrefix(d.Path, sub+"/") }) {
			continue
		}
		if there[d.Path], err = r.standing(d); err != nil {
			return err
		}
		all = append(all, there[d.Path]...)
	}
	if len(all) == 0 && len(modules) == 0 { // as it mostly is
		return nil
	}
	slices.Sort(all)
	all = slices.Compact(all)
	known, _, err := r.IndexEntries(ctx, all)
	if err != nil {
		return err
	}
	lacking := map[string]bool{}
	for _, e := range known {
		lacking[e.Path] = e.Mode == "0"
	}
	var inTheWay []string
	inside := map[string]string{}
	for _, d := range diff {
		for _, p := range there[d.Path] {
			if !lacking[p] || slices.Contains(inTheWay, p) {
				continue
			}
			if p == d.Path {
				if oid, err := r.HashFile(ctx, p); err == nil && oid == d.New {
					continue
				}
			}
			inTheWay = append(inTheWay, p)
			if strings.HasPrefix(p, d.Path+"/") {
				inside[p] = d.Path
			}
		}
	}
	if len(inTheWay) == 0 && len(modules) == 0 {
		return nil
	}
	return &InTheWayError{inTheWay, modules, inside}
}

// replacedSubmodules are those in whose place the move would put something else, and
// that have files here.
func (r *Repo) replacedSubmodules(diff []Change) (paths []string, err error) {
	for _, d := range diff {
		if d.OldMode != submodule || d.IsSubmodule() {
			continue
		}
		inside := func(o Change) bool { return !o.Deleted() && strings.HasPrefix(o.Path, d.Path+"/") }
		if d.Deleted() && !slices.ContainsFunc(diff, inside) {
			continue // git leaves its files
		}
		entries, err := os.ReadDir(filepath.Join(r.Top, d.Path))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		case err != nil:
			return nil, err
		case len(entries) > 0:
			paths = append(paths, d.Path)
		}
	}
	return paths, nil
}

// strayed refuses, where git moves submodules along (submodule.recurse), to move one that
// is not at the commit that it would be moved from: git would leave what is committed
// there, of which perhaps no branch tells, without a word.
func (r *Repo) strayed(ctx context.Context, diff []Change) error {
	if recurse, _ := r.Config.Bool("submodule.recurse", false); !recurse {
		return nil
	}
	for _, d := range diff {
		if d.OldMode != submodule {
			continue
		}
		module := *r
		module.Dir, module.environ = filepath.Join(r.Top, d.Path), WithoutRepoEnv(r.environ)
		if _, err := os.Lstat(filepath.Join(module.Dir, ".git")); err != nil {
			continue
		}
		out, err := module.run(ctx, command{reading: true, args: []string{"rev-parse", "--verify", "HEAD^{commit}"}})
		if err != nil {
			return err
		}
		if head := object.OID(strings.TrimSpace(out)); head != d.Old && head != d.New {
			return fmt.Errorf("the submodule %s is at %s, and not where it would be moved from", d.Path, head.Short())
		}
	}
	return nil
}

// standing are the files that stand where a path is to be added: in its place, as one of
// its directories, or inside of what would be its place.
func (r *Repo) standing(d Change) (files []string, err error) {
	for i, c := range d.Path + "/" {
		if c != '/' {
			continue
		}
		part := d.Path[:i]
		info, err := os.Lstat(filepath.Join(r.Top, part))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return nil, nil
		case err != nil:
			return nil, err
		case !info.IsDir():
			return []string{part}, nil
		}
	}
	if d.IsSubmodule() {
		return nil, nil // it has a directory
	}
	err = filepath.WalkDir(filepath.Join(r.Top, d.Path), func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		file, err = filepath.Rel(r.Top, file)
		files = append(files, filepath.ToSlash(file))
		return err
	})
	return files, err
}

package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gitland/internal/object"
)

// An InTheWayError is files that git does not know, where a move of the work tree would
// put others. Paths are relative to the top.
type InTheWayError struct{ Paths []string }

func (e *InTheWayError) Error() string {
	return "git does not know " + strings.Join(e.Paths, ", ") + ", and would overwrite it"
}

// inTheWay refuses a move between trees where something that the index lacks is in the
// place of what it would add, with other content. Since 2.34 git read-tree takes what is
// ignored for something that may be overwritten, and has no option against it.
func (r *Repo) inTheWay(ctx context.Context, from, to object.OID) error {
	diff, err := r.DiffTrees(ctx, from, to)
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
		if there[d.Path], err = r.standing(d); err != nil {
			return err
		}
		all = append(all, there[d.Path]...)
	}
	if len(all) == 0 { // as it mostly is
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
		}
	}
	if len(inTheWay) == 0 {
		return nil
	}
	return &InTheWayError{inTheWay}
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

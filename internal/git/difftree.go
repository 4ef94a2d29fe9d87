package git

import (
	"context"
	"fmt"
	"strconv"

	"gitland/internal/object"
)

// absent is the mode of the side that lacks a path, as in git's raw diffs.
const absent = "000000"

// DiffTrees lists the paths in which two trees differ, in git's order, without
// looking for renames. It reads the trees through the process that reads all
// objects: only directories that differ are looked at, and none is started.
func (r *Repo) DiffTrees(ctx context.Context, from, to object.OID) ([]Change, error) {
	d := treeDiff{ctx: ctx, repo: r}
	err := d.trees("", from, to)
	return d.changes, err
}

// A Scope is what paths mean: pathspecs relative to the repository's Dir, or to
// the top; or, Literal, names and nothing else.
type Scope struct {
	Paths   []string
	FromTop bool
	Literal bool
}

func (r *Repo) in(s Scope, c command) command {
	c.args = append(append(c.args, "--"), s.Paths...)
	if s.FromTop {
		c.dir = r.Top
	}
	if s.Literal {
		c.env = append(c.env, literalPaths...)
	}
	return c
}

// DiffTreesWithin is DiffTrees for the paths of a scope. It asks git, which
// alone knows what a pathspec matches.
func (r *Repo) DiffTreesWithin(ctx context.Context, from, to object.OID, scope Scope) ([]Change, error) {
	out, err := r.run(ctx, r.in(scope, command{reading: true, args: []string{"diff-tree", "-r", "-z", "--raw",
		"--no-relative", "--no-renames", "--full-index", "--ignore-submodules=none", string(from), string(to)}}))
	if err != nil {
		return nil, err
	}
	return parseRaw(out)
}

type treeDiff struct {
	ctx     context.Context
	repo    *Repo
	changes []Change
}

// trees compares two directories at path, either of which may be absent.
func (d *treeDiff) trees(path string, from, to object.OID) error {
	if from == to {
		return nil
	}
	sides, err := d.read(from, to)
	if err != nil {
		return err
	}
	a, b := sides[0], sides[1]
	for len(a) > 0 || len(b) > 0 {
		// A file and a directory of one name are two entries, and sort apart.
		switch {
		case len(b) == 0 || len(a) > 0 && object.TreeLess(a[0], b[0]):
			err = d.entry(path, &a[0], nil)
			a = a[1:]
		case len(a) == 0 || object.TreeLess(b[0], a[0]):
			err = d.entry(path, nil, &b[0])
			b = b[1:]
		default:
			err = d.entry(path, &a[0], &b[0])
			a, b = a[1:], b[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entry compares what one name is on both sides; nil is nothing.
func (d *treeDiff) entry(dir string, from, to *object.TreeEntry) error {
	zero := d.repo.Format.Zero()
	c := Change{OldMode: absent, NewMode: absent, Old: zero, New: zero}
	var a, b object.OID
	isTree := false
	if from != nil {
		c.Path, c.OldMode, c.Old = dir+from.Name, sixDigits(from.Mode), from.OID
		a, isTree = from.OID, from.IsTree()
	}
	if to != nil {
		c.Path, c.NewMode, c.New = dir+to.Name, sixDigits(to.Mode), to.OID
		b, isTree = to.OID, to.IsTree()
	}
	switch {
	case isTree:
		return d.trees(c.Path+"/", a, b)
	case c.Old != c.New || c.OldMode != c.NewMode:
		d.changes = append(d.changes, c)
	}
	return nil
}

// read reads two directories, of which either may be absent.
func (d *treeDiff) read(oids ...object.OID) (entries [2][]object.TreeEntry, err error) {
	var asked []string
	for _, oid := range oids {
		if oid != "" {
			asked = append(asked, string(oid))
		}
	}
	found, err := d.repo.objects.askAll(d.ctx, "contents", asked...)
	if err != nil {
		return entries, err
	}
	for i, oid := range oids {
		if oid == "" {
			continue
		}
		o := found[0]
		found = found[1:]
		switch {
		case o.OID == "":
			return entries, fmt.Errorf("tree %s: %w", oid, ErrNotFound)
		case o.Kind != object.Tree:
			return entries, fmt.Errorf("%s is a %s, not a tree", oid.Short(), o.Kind)
		}
		if entries[i], err = d.repo.Format.ParseTree(o.Data); err != nil {
			return entries, err
		}
	}
	return entries, nil
}

// sixDigits is the mode as git prints it. Of files it knows but two modes, and
// takes others, which old trees have, for one of them (canon_mode in its cache.h).
func sixDigits(mode string) string {
	bits, err := strconv.ParseUint(mode, 8, 32)
	switch {
	case err != nil || bits&0o170000 != 0o100000:
		return absent[min(len(mode), 6):] + mode
	case bits&0o100 != 0:
		return "100755"
	}
	return "100644"
}

package git

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gitland/internal/object"
)

// A StatusEntry is a path of which HEAD, the index and the work tree do not all have the
// same. A side that lacks it has mode "000000" and an id of zeros.
type StatusEntry struct {
	Path                          string // relative to the top; a directory of which nothing is known ends in a slash
	HeadMode, IndexMode, FileMode string
	Head, Index                   object.OID
	Unmerged                      bool // in the middle of a merge; then it has no sides
	Meant                         bool // only meant to be added ("git add -N"): the index has a name for it, and no content
	Untracked                     bool // the index lacks it; then it has no sides either
}

// Gone reports whether HEAD has the path, and index or work tree lack it.
func (e StatusEntry) Gone() bool {
	return !e.Unmerged && !e.Untracked && e.HeadMode != absent && (e.IndexMode == absent || e.FileMode == absent)
}

// New reports whether HEAD lacks the path.
func (e StatusEntry) New() bool {
	return e.Untracked || !e.Unmerged && e.HeadMode == absent
}

// Status compares HEAD, index and work tree, without looking for renames, or at what has
// changed inside of submodules. With untracked it also lists the files that the index
// lacks, unless git ignores them.
func (r *Repo) Status(ctx context.Context, untracked bool) ([]StatusEntry, error) {
	files := "--untracked-files=no"
	if untracked {
		files = "--untracked-files=all"
	}
	out, err := r.run(ctx, command{reading: true, dir: r.Top, args: []string{"status", "--porcelain=v2", "-z",
		"--no-renames", "--no-ahead-behind", "--ignore-submodules=dirty", files}})
	if err != nil {
		return nil, err
	}
	var entries []StatusEntry
	for line := range strings.SplitSeq(out, "\x00") {
		e, err := r.parseStatus(line)
		if err != nil {
			return nil, err
		}
		if e.Path != "" {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// parseStatus reads one line of the "Porcelain Format Version 2" in git-status(1).
func (r *Repo) parseStatus(line string) (StatusEntry, error) {
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "?":
		return StatusEntry{Path: rest, Untracked: true}, nil
	case "1": // XY sub mH mI mW hH hI path
		if f := strings.SplitN(rest, " ", 8); len(f) == 8 {
			return StatusEntry{Path: f[7], HeadMode: f[2], IndexMode: f[3], FileMode: f[4],
				Head: object.OID(f[5]), Index: object.OID(f[6]), Meant: f[0] == ".A"}, nil
		}
	case "u": // XY sub m1 m2 m3 mW h1 h2 h3 path
		if f := strings.SplitN(rest, " ", 10); len(f) == 10 {
			return StatusEntry{Path: f[9], Unmerged: true}, nil
		}
	case "", "#":
		return StatusEntry{}, nil
	}
	return StatusEntry{}, fmt.Errorf("status: unexpected line %q", line)
}

// Staged is what the index has that HEAD has not, as DiffEntries tells it.
func (r *Repo) Staged(entries []StatusEntry) []Change {
	var staged []Change
	for _, e := range entries {
		switch {
		case e.Untracked:
		case e.Meant: // the entry has an empty file
			staged = append(staged, Change{Path: e.Path, OldMode: absent, NewMode: e.FileMode, Old: e.Head, New: r.Format.Hash(object.Blob, nil)})
		case e.Unmerged || e.HeadMode != e.IndexMode || e.Head != e.Index:
			staged = append(staged, Change{Path: e.Path, OldMode: e.HeadMode, NewMode: e.IndexMode, Old: e.Head, New: e.Index, Unmerged: e.Unmerged})
		}
	}
	return staged
}

// A Rename is one file under two names.
type Rename struct{ Old, New string }

// Renames pairs files that the tree has, and index or work tree lack, with files that it
// lacks, by git's own comparison of their content: at least four fifths are the same. Only
// the given paths are looked at, of which the index may lack those of added. id names a
// temporary index. No object is stored.
func (r *Repo) Renames(ctx context.Context, tree object.OID, id string, deleted, added []string) ([]Rename, error) {
	if len(deleted) == 0 || len(added) == 0 {
		return nil, nil
	}
	index, err := r.TempIndex(ctx, id)
	if err != nil {
		return nil, err
	}
	defer index.Close()
	literal := command{dir: r.Top, env: literalPaths}
	for batch := range batches(added, 500) {
		c := literal
		c.args = append([]string{"add", "--intent-to-add", "--sparse", "--"}, batch...)
		if _, err := index.repo.run(ctx, c); ExitCode(err) > 0 {
			return nil, nil // one of them has gone meanwhile, say
		} else if err != nil {
			return nil, err
		}
	}
	c := literal
	c.reading = true
	c.args = append([]string{"diff-index", "-z", "--raw", "-M80%", "-l1000", "--diff-filter=R", "--no-relative",
		"--full-index", "--ignore-submodules=all", string(tree), "--"}, append(append([]string{}, deleted...), added...)...)
	out, err := index.repo.run(ctx, c)
	if err != nil {
		return nil, err
	}
	var renames []Rename
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+2 < len(fields); i += 3 { // ":<modes> <oids> R<score>", old, new
		renames = append(renames, Rename{fields[i+1], fields[i+2]})
	}
	return renames, nil
}

// FoldsPathspecs reports whether the environment has git match pathspecs without regard
// to case.
func (r *Repo) FoldsPathspecs() bool {
	return slices.ContainsFunc(r.environ, func(kv string) bool {
		value, set := strings.CutPrefix(kv, "GIT_ICASE_PATHSPECS=")
		return set && value != "0" && value != ""
	})
}

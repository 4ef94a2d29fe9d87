package git

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gitland/internal/object"
)

// A Change is the difference of one path between two trees, or between a tree
// and the index. A missing side has mode "000000".
type Change struct {
	Path             string // relative to the top
	OldMode, NewMode string
	Old, New         object.OID
	Unmerged         bool // in the index, in the middle of a merge
}

// Deleted reports whether the new side lacks the path.
func (c Change) Deleted() bool { return c.NewMode == "000000" }

// submodule is the mode of a commit of another repository.
const submodule = "160000"

// IsSubmodule reports whether the new side is a commit of another repository.
func (c Change) IsSubmodule() bool { return c.NewMode == submodule }

// DiffIndex lists the paths in which the index differs from a tree, within the
// pathspecs, which are relative to the top; none means everywhere. An entry
// that is only meant to be added ("git add -N") has no content yet, and is none.
func (r *Repo) DiffIndex(ctx context.Context, tree object.OID, within []string) ([]Change, error) {
	return r.diffIndex(ctx, r.Top, tree, within, "--ita-invisible-in-index")
}

// DiffEntries is DiffIndex for a scope. An entry that is only meant to be added
// is one, with an empty file.
func (r *Repo) DiffEntries(ctx context.Context, tree object.OID, scope Scope) ([]Change, error) {
	dir := ""
	if scope.FromTop {
		dir = r.Top
	}
	return r.diffIndex(ctx, dir, tree, scope.Paths)
}

func (r *Repo) diffIndex(ctx context.Context, dir string, tree object.OID, within []string, options ...string) ([]Change, error) {
	args := []string{"diff-index", "--cached", "-z", "--raw", "--no-relative", "--no-renames", "--full-index", "--ignore-submodules=none"}
	return r.rawDiff(ctx, command{reading: true, dir: dir, args: append(append(args, options...), string(tree))}, within...)
}

// Modified lists the tracked paths, relative to the top, whose file differs
// from the index.
func (r *Repo) Modified(ctx context.Context) ([]string, error) { return r.modified(ctx) }

// Intended lists the files that are only meant to be added ("git add -N"), relative to
// the top. Where there are any, git stash fails.
func (r *Repo) Intended(ctx context.Context) ([]string, error) {
	return r.modified(ctx, "--diff-filter=A")
}

func (r *Repo) modified(ctx context.Context, options ...string) ([]string, error) {
	args := append([]string{"diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv"}, options...)
	out, err := r.run(ctx, command{reading: true, dir: r.Top, args: args})
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), nil
}

func (r *Repo) rawDiff(ctx context.Context, c command, within ...string) ([]Change, error) {
	c.args = append(append(c.args, "--"), within...)
	out, err := r.run(ctx, c)
	if err != nil {
		return nil, err
	}
	return parseRaw(out)
}

// parseRaw reads ":<mode> <mode> <oid> <oid> <status>\0<path>\0" of git-diff-tree(1).
func parseRaw(out string) ([]Change, error) {
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if out == "" {
		return nil, nil
	}
	if len(fields)%2 != 0 {
		return nil, fmt.Errorf("raw diff: odd number of fields")
	}
	var changes []Change
	for i := 0; i < len(fields); i += 2 {
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("raw diff: line %q", fields[i])
		}
		changes = append(changes, Change{Path: fields[i+1], OldMode: f[0], NewMode: f[1],
			Old: object.OID(f[2]), New: object.OID(f[3]), Unmerged: f[4] == "U"})
	}
	return changes, nil
}

// An IndexEntry is one path of the index at stage 0. Mode "0" removes it.
type IndexEntry struct {
	Mode string
	OID  object.OID
	Path string
}

// IndexEntries reads the entries of the given paths, as literal names relative
// to the top, and reports whether one of them is in the middle of a merge. A
// path that the index lacks comes back with mode "0".
func (r *Repo) IndexEntries(ctx context.Context, paths []string) (entries []IndexEntry, unmerged bool, err error) {
	if len(paths) == 0 {
		return nil, false, nil
	}
	found := map[string]IndexEntry{}
	// In batches: names travel as arguments, whose total length is bounded.
	for batch := range batches(paths, 500) {
		args := append([]string{"ls-files", "--stage", "-z", "--full-name", "--"}, batch...)
		out, err := r.run(ctx, command{reading: true, args: args, dir: r.Top, env: literalPaths})
		if err != nil {
			return nil, false, err
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
			head, path, _ := strings.Cut(line, "\t")
			f := strings.Fields(head)
			if len(f) != 3 {
				continue
			}
			unmerged = unmerged || f[2] != "0"
			found[path] = IndexEntry{Mode: f[0], OID: object.OID(f[1]), Path: path}
		}
	}
	for _, p := range paths {
		e, ok := found[p]
		if !ok {
			e = IndexEntry{Mode: "0", OID: r.Format.Zero(), Path: p}
		}
		entries = append(entries, e)
	}
	return entries, unmerged, nil
}

// literalPaths has git take paths for what they are. "git --literal-pathspecs"
// would do that too, unless one of the other settings is in the environment.
var literalPaths = []string{"GIT_LITERAL_PATHSPECS=1", "GIT_GLOB_PATHSPECS=0", "GIT_NOGLOB_PATHSPECS=0", "GIT_ICASE_PATHSPECS=0"}

func batches(paths []string, n int) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for len(paths) > 0 {
			k := min(n, len(paths))
			if !yield(paths[:k]) {
				return
			}
			paths = paths[k:]
		}
	}
}

// SetIndex sets or removes entries of the index and leaves all others as they
// are, byte for byte.
func (r *Repo) SetIndex(ctx context.Context, entries []IndexEntry) error {
	if len(entries) == 0 {
		return nil
	}
	var in bytes.Buffer
	for _, e := range entries {
		oid := e.OID
		if e.Mode == "0" || e.Mode == "000000" {
			oid = r.Format.Zero()
		}
		fmt.Fprintf(&in, "%s %s\t%s\x00", e.Mode, oid, e.Path)
	}
	_, err := r.run(ctx, command{args: []string{"update-index", "-z", "--index-info"}, stdin: in.Bytes(), dir: r.Top})
	return err
}

// IndexStamp changes whenever the index does, and sometimes when it does not.
func (r *Repo) IndexStamp() string { return stampOf(r.indexPath()) }

func stampOf(index string) string {
	info, err := os.Stat(index)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

// indexPath honours GIT_INDEX_FILE, which git itself sets for hooks.
func (r *Repo) indexPath() string {
	for _, kv := range r.environ {
		if path, ok := strings.CutPrefix(kv, "GIT_INDEX_FILE="); ok {
			if !filepath.IsAbs(path) {
				path = filepath.Join(r.Top, path)
			}
			return path
		}
	}
	return filepath.Join(r.GitDir, "index")
}

// BorrowedIndex is the index that GIT_INDEX_FILE names, if that is one that another
// command made for a commit, and drops or installs afterwards: a copy of ours, or the
// lock under which git commit prepares one (index.lock, next-index-PID.lock). What is
// brought up to date there, the user's own index misses. Empty is none such.
func (r *Repo) BorrowedIndex() string {
	path := r.indexPath()
	if name := filepath.Base(path); strings.HasPrefix(name, indexPrefix) || strings.HasSuffix(name, ".lock") {
		return path
	}
	return ""
}

// SweepTemporary removes the copies of the index, and messages for hooks, that processes
// which were killed have left behind: those whose id, of length characters, is not alive
// any more.
func (r *Repo) SweepTemporary(length int, alive func(id string) bool) {
	entries, _ := os.ReadDir(r.GitDir) // what cannot be listed cannot be swept
	for _, e := range entries {
		id, ours := strings.CutPrefix(e.Name(), indexPrefix)
		if !ours {
			id, ours = strings.CutPrefix(e.Name(), messagePrefix)
		}
		if ours && len(id) >= length && !alive(id[:length]) {
			os.RemoveAll(filepath.Join(r.GitDir, e.Name()))
		}
	}
}

// What lies in the git directory for a moment is named by what it is and for whom.
const (
	indexPrefix   = "lease-index-"
	messagePrefix = "lease-message-"
)

// temporary is a name that nobody has used before, also for the same id: who goes on for
// one that was killed may find what was left there, or a git that still writes it.
func (r *Repo) temporary(prefix, id string) string {
	return filepath.Join(r.GitDir, prefix+id+"-"+rand.Text())
}

// WriteTree stores the index as a tree. It fails in the middle of a merge.
func (r *Repo) WriteTree(ctx context.Context) (object.OID, error) {
	out, err := r.run(ctx, command{args: []string{"write-tree"}})
	if err != nil {
		return "", err
	}
	return object.ParseOID(strings.TrimSpace(out))
}

// MoveWorkTree takes index and work tree from one tree to another by git's
// two-tree merge (git-read-tree(1)): a path that the user has changed, or that
// is in the way, makes it fail with nothing touched; one that git does not know
// is told by an *InTheWayError. With dry it only says whether it would work.
func (r *Repo) MoveWorkTree(ctx context.Context, from, to object.OID, dry bool) error {
	if err := r.inTheWay(ctx, from, to); err != nil {
		return err
	}
	args := []string{"read-tree", "-m", "-u"}
	if dry {
		args = append(args, "-n")
	}
	_, err := r.run(ctx, command{args: append(args, string(from), string(to)), dir: r.Top})
	return err
}

// Refresh brings the index's cached file times up to date, so that commands
// that trust them do not report unchanged files. It cannot fail in a way that
// matters: the next "git status" does the same.
func (r *Repo) Refresh(ctx context.Context) {
	r.run(ctx, command{args: []string{"update-index", "-q", "--refresh"}, dir: r.Top})
}

// HashFile is the id that a file of the work tree would have in the object
// database, filters applied. A missing file is ErrNotFound.
func (r *Repo) HashFile(ctx context.Context, path string) (object.OID, error) {
	full := filepath.Join(r.Top, path)
	info, err := os.Lstat(full)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: %w", path, ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(full)
		return r.Format.Hash(object.Blob, []byte(target)), err
	}
	if !info.Mode().IsRegular() { // of a pipe git would wait for a writer
		return "", fmt.Errorf("%s is no file", path)
	}
	out, err := r.run(ctx, command{reading: true, args: []string{"hash-object", "--", path}, dir: r.Top})
	if err != nil {
		return "", err
	}
	return object.ParseOID(strings.TrimSpace(out))
}

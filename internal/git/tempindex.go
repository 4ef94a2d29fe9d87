package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"gitland/internal/object"
)

// A TempIndex is a copy of the index in which a tree can be built without
// touching the real one.
type TempIndex struct {
	repo *Repo
	id   string
	path string
	real string // the index that it is a copy of
}

// TempIndex copies the index into the git directory. A copy, not an empty index: it keeps
// skip-worktree bits, and the cached file times that save reading every file. id is of
// whoever uses it, for SweepTemporary.
func (r *Repo) TempIndex(ctx context.Context, id string) (*TempIndex, error) {
	path := r.temporary(indexPrefix, id)
	real := r.indexPath()
	if err := copyIndex(path, real); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("copy the index: %w", err)
	}
	c := *r
	c.environ = append(r.Environ(), "GIT_INDEX_FILE="+path)
	return &TempIndex{repo: &c, id: id, path: path, real: real}, nil
}

// Copy copies the copy.
func (t *TempIndex) Copy() (*TempIndex, error) {
	path := t.repo.temporary(indexPrefix, t.id)
	if err := copyIndex(path, t.path); err != nil {
		return nil, fmt.Errorf("copy the index: %w", err)
	}
	c := *t.repo
	c.environ = append(c.Environ(), "GIT_INDEX_FILE="+path)
	return &TempIndex{repo: &c, id: t.id, path: path, real: t.real}, nil
}

// Install puts the copy in the place of the index, if that is still as stamp
// says, and reports whether it did. As in "git commit --only", the copy becomes
// the lock of the index, which keeps everybody else from writing it, and then
// the index. Where that cannot be done nothing has changed.
func (t *TempIndex) Install(stamp string) bool {
	old, err := os.Lstat(t.real)
	if err != nil || !old.Mode().IsRegular() {
		return false
	}
	// What git has not written anew has our mode instead of the user's.
	if now, err := os.Lstat(t.path); err != nil || now.Mode() != old.Mode() {
		return false
	}
	lock := t.real + ".lock"
	if os.Link(t.path, lock) != nil {
		return false
	}
	if stampOf(t.real) != stamp || os.Rename(lock, t.real) != nil {
		os.Remove(lock)
		return false
	}
	return true
}

// Close removes the copy.
func (t *TempIndex) Close() {
	os.Remove(t.path)
	os.Remove(t.path + ".lock")
}

// Reset makes the copy equal to tree, keeping what is known of the files, at which it does
// not look (-i): without that, git refuses to replace an entry whose file it is told to
// leave alone (skip-worktree, assume-unchanged) and that has changed.
func (t *TempIndex) Reset(ctx context.Context, tree object.OID) error {
	_, err := t.repo.run(ctx, command{args: []string{"read-tree", "--reset", "-i", string(tree)}})
	return err
}

// ErrNoMatch says that a pathspec matched no file. The error is a *NoMatchError.
var ErrNoMatch = errors.New("matches no file")

// A NoMatchError names a pathspec that matched no file.
type NoMatchError struct {
	Path string
	Err  error // what git said
}

func (e *NoMatchError) Error() string        { return fmt.Sprintf("%s %v: %v", e.Path, ErrNoMatch, e.Err) }
func (e *NoMatchError) Unwrap() error        { return e.Err }
func (e *NoMatchError) Is(target error) bool { return target == ErrNoMatch }

// Add takes the working tree's content of the paths, as "git add -A" does:
// filters, modes and deletions included. paths are git's pathspecs, relative
// to the repository's Dir; none means everything.
func (t *TempIndex) Add(ctx context.Context, paths ...string) error {
	return t.add(ctx, "", paths)
}

// AddFromTop is Add with pathspecs that are relative to the top, of which only
// some need to match: they come from configuration, and name what there may be.
func (t *TempIndex) AddFromTop(ctx context.Context, paths ...string) error {
	err := t.add(ctx, t.repo.Top, paths)
	if !errors.Is(err, ErrNoMatch) {
		return err
	}
	// Git has added nothing at all because of the one that does not match.
	none := err
	taken, away := split(paths)
	for _, path := range taken {
		switch err := t.add(ctx, t.repo.Top, append([]string{path}, away...)); {
		case err == nil:
			none = nil
		case !errors.Is(err, ErrNoMatch):
			return err
		}
	}
	return none
}

// noAdvice keeps git add from saying what to do about what it does not take: we do.
var noAdvice = []string{"advice.addEmbeddedRepo=false", "advice.addIgnoredFile=false", "advice.updateSparsePath=false"}

func (t *TempIndex) add(ctx context.Context, dir string, paths []string) error {
	args := []string{"add", "-A", "--"} // without paths, -A is the whole work tree
	_, err := t.repo.run(ctx, command{args: append(args, exclusionsFirst(paths)...), dir: dir, config: noAdvice})
	if ExitCode(err) == 128 && len(paths) > 0 {
		// Git dies both for an unmatched pathspec and for an unreadable file.
		paths, away := split(paths)
		unmatched := func(paths ...string) bool {
			_, err := t.repo.run(ctx, command{reading: true, dir: dir, args: slices.Concat([]string{
				"ls-files", "--error-unmatch", "--cached", "--others", "--exclude-standard", "-z", "--"}, away, paths)})
			return ExitCode(err) == 1
		}
		if len(paths) > 0 && unmatched(paths...) {
			for len(paths) > 1 { // which one is it
				half := len(paths) / 2
				if unmatched(paths[:half]...) {
					paths = paths[:half]
				} else {
					paths = paths[half:]
				}
			}
			return &NoMatchError{paths[0], err}
		}
	}
	return err
}

// exclusionsFirst has the pathspecs that take something away stand before the others.
// The order means nothing, but git add (2.39 to 2.56) cuts what the others have in common
// off those behind them, too: of "src/new :!docs" it would add nothing, without a word.
func exclusionsFirst(paths []string) []string {
	taken, away := split(paths)
	return append(away, taken...)
}

// split tells the pathspecs that take something away from the others.
func split(paths []string) (taken, away []string) {
	for _, path := range paths {
		if Excludes(path) {
			away = append(away, path)
		} else {
			taken = append(taken, path)
		}
	}
	return taken, away
}

// Excludes reports whether a pathspec takes something away from the others.
func Excludes(spec string) bool {
	if magic, long := strings.CutPrefix(spec, ":("); long {
		magic, _, _ = strings.Cut(magic, ")")
		return slices.Contains(strings.Split(magic, ","), "exclude")
	}
	short := spec[:len(spec)-len(strings.TrimLeft(spec, ":/!^"))]
	return strings.HasPrefix(short, ":") && strings.ContainsAny(short, "!^")
}

// Ignored are those of the pathspecs, as Add takes them, that git ignores.
func (t *TempIndex) Ignored(ctx context.Context, paths ...string) ([]string, error) {
	out, err := t.repo.run(ctx, command{reading: true, args: []string{"check-ignore", "-z", "--stdin"}, stdin: []byte(strings.Join(paths, "\x00") + "\x00")})
	if err != nil && ExitCode(err) != 1 { // none
		return nil, err
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 }), nil
}

// DiffIndex lists the paths in which the copy differs from a tree, within a scope, as
// Repo.DiffIndex does.
func (t *TempIndex) DiffIndex(ctx context.Context, tree object.OID, scope Scope) ([]Change, error) {
	dir := ""
	if scope.FromTop {
		dir = t.repo.Top
	}
	return t.repo.diffIndex(ctx, dir, tree, scope.Paths, "--ita-invisible-in-index")
}

// WriteTree stores the copy as a tree.
func (t *TempIndex) WriteTree(ctx context.Context) (object.OID, error) {
	return t.repo.WriteTree(ctx)
}

// MoveWorkTree is Repo.MoveWorkTree on the copy.
func (t *TempIndex) MoveWorkTree(ctx context.Context, from, to object.OID, dry bool) error {
	return t.repo.MoveWorkTree(ctx, from, to, dry)
}

// Refresh is Repo.Refresh on the copy.
func (t *TempIndex) Refresh(ctx context.Context) { t.repo.Refresh(ctx) }

// SetIndex is Repo.SetIndex on the copy.
func (t *TempIndex) SetIndex(ctx context.Context, entries []IndexEntry) error {
	return t.repo.SetIndex(ctx, entries)
}

// IndexEntries is Repo.IndexEntries on the copy.
func (t *TempIndex) IndexEntries(ctx context.Context, paths []string) (entries []IndexEntry, unmerged bool, err error) {
	return t.repo.IndexEntries(ctx, paths)
}

package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

// A worktree is a verification worktree that is ours until it is closed.
type worktree struct {
	dir    string
	lock   *session.Flock
	base   string     // the path without the number, of all of this clone
	made   *git.Repo  // as seen from it, once it is filled
	commit object.OID // of the tree that it is filled with
	parent object.OID // the request's base; may be empty
}

// close gives the worktree back. The lock is handed down to what runs in it, so
// that a check which outlives us keeps its worktree; but we have seen its end
// here, and a daemon that it left behind must not keep it: hence an unlocking
// for everybody.
func (w *worktree) close(ctx context.Context) {
	if w.made != nil && !w.parent.IsZero() {
		// Our commit has served its purpose, and would only puzzle the user in
		// "git log --all". If the check has moved HEAD itself, it may keep it.
		w.made.Park(context.WithoutCancel(ctx), w.commit, w.parent)
	}
	syscall.Flock(int(w.lock.File().Fd()), syscall.LOCK_UN)
	w.lock.Close()
}

// openWorktree takes the first verification worktree of this clone that nobody
// uses, and makes it equal to r.Tree.
func (r Request) openWorktree(ctx context.Context, l *ledger.Ledger) (*worktree, error) {
	base, err := worktreeBase(l.Repo, r.Environ)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(base), 0o700); err != nil {
		return nil, err
	}
	w, err := takeWorktree(base)
	if err != nil {
		return nil, fmt.Errorf("lock a verification worktree: %w", err)
	}
	l.Notice("the check %s runs in %s", r.Check, w.dir)
	if err := r.fill(ctx, l.Repo, w); err != nil {
		w.close(ctx)
		return nil, err
	}
	return w, nil
}

func takeWorktree(base string) (*worktree, error) {
	for n := 1; ; n++ {
		dir := base + "-" + strconv.Itoa(n)
		lock, ok, err := session.TryLock(dir + ".lock")
		if err != nil {
			return nil, err
		}
		if ok {
			return &worktree{dir: dir, base: base, lock: lock}, nil
		}
	}
}

// worktreeBase is the path of this clone's verification worktrees, without
// "-<number>": a readable name and a hash of the clone's place, below the user's
// cache directory. It is not inside .git, since tools ignore files that have
// such a directory above them, and each directory has a name of its own, since
// tools name things after it.
func worktreeBase(repo *git.Repo, environ []string) (string, error) {
	dir, err := cacheDir(repo.Config.Get("land.verify.dir"), environ)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, worktreeName(repo)), nil
}

// IsWorktree reports whether a worktree of the repository is a verification worktree,
// which nobody works in.
func IsWorktree(repo *git.Repo, path string) bool {
	n, ok := strings.CutPrefix(filepath.Base(path), worktreeName(repo)+"-")
	_, err := strconv.Atoi(n)
	return ok && err == nil
}

// worktreeName is the last part of worktreeBase.
func worktreeName(repo *git.Repo) string {
	name := strings.TrimSuffix(repo.CommonDir, ".git")
	name = strings.Map(func(c rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", c) {
			return c
		}
		return '-'
	}, filepath.Base(name))
	sum := sha256.Sum256([]byte(repo.CommonDir))
	return name[:min(len(name), 40)] + "-" + hex.EncodeToString(sum[:5])
}

// cacheDir is land.verify.dir, else a directory of ours where the user's caches
// are. Like os.UserCacheDir, but of the environment that we were given.
func cacheDir(configured string, environ []string) (string, error) {
	home := lookup(environ, "HOME")
	if configured != "" {
		dir := configured
		if rest, ok := strings.CutPrefix(dir, "~/"); ok && filepath.IsAbs(home) {
			dir = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(dir) {
			return "", fault.New(fault.Usage, "config land.verify.dir: %q is not an absolute path", configured)
		}
		return filepath.Clean(dir), nil
	}
	// basedir-spec: a relative path is invalid and to be ignored.
	cache := lookup(environ, "XDG_CACHE_HOME")
	if !filepath.IsAbs(cache) {
		if !filepath.IsAbs(home) {
			return "", fault.New(fault.Usage, "there is no place for a verification worktree: neither HOME nor XDG_CACHE_HOME is an absolute path").
				WithHint("git config land.verify.dir /some/directory")
		}
		cache = filepath.Join(home, ".cache")
		if runtime.GOOS == "darwin" {
			cache = filepath.Join(home, "Library", "Caches")
		}
	}
	return filepath.Join(cache, "gitland", "verify"), nil
}

// fill makes w equal to r.Tree: again, or anew where there is no sound worktree
// that was set up as it would be now.
func (r Request) fill(ctx context.Context, repo *git.Repo, w *worktree) error {
	if err := r.makeCommit(ctx, repo, w); err != nil {
		return err
	}
	err := r.reuse(ctx, repo, w)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// Whatever is wrong with it (removed, pruned, left half made or with a lock
	// by a process that was killed), nothing in it is worth a diagnosis.
	if err := remove(w.dir); err != nil {
		return fault.New(fault.Failed, "the verification worktree cannot be made anew: %w", err).
			WithHint("remove it yourself: %s", fault.Command("rm", "-rf", w.dir))
	}
	if err := register(ctx, repo, w); err != nil {
		return err
	}
	if w.made, err = at(ctx, repo, w.dir); err != nil {
		return err
	}
	if err := w.made.CheckoutClean(ctx, w.commit); err != nil {
		return err
	}
	if r.Setup != "" {
		if err := r.setUp(ctx, w); err != nil {
			return err
		}
		// The tree as it is, not as the setup left it; what git ignores stays.
		if err := w.made.CheckoutClean(ctx, w.commit); err != nil {
			return err
		}
	}
	return os.WriteFile(marker(w.made), []byte(r.setupKey()), 0o600)
}

// register makes the worktree, still empty, one at a time in this clone.
func register(ctx context.Context, repo *git.Repo, w *worktree) error {
	lock, err := session.Lock(ctx, w.base+".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	return repo.AddWorktree(ctx, w.dir, w.commit)
}

// makeCommit makes the commit that the worktree's HEAD will be at: on the base,
// as the landed one will be, so that checks which ask git for a version or for
// what has changed get an answer.
func (r Request) makeCommit(ctx context.Context, repo *git.Repo, w *worktree) error {
	const nobody = "gitland <> 0 +0000" // the same each time, so that one is enough
	c := object.CommitData{Tree: r.Tree, Author: nobody, Committer: nobody, Message: "A tree that is verified\n"}
	if !r.Base.IsZero() {
		c.Parents = []object.OID{r.Base}
	}
	o := repo.Format.New(object.Commit, c.Encode())
	w.commit, w.parent = o.OID, r.Base
	return repo.Write(ctx, o)
}

// reuse makes the worktree that is there hold w.commit. It touches nothing that
// is not certainly ours.
func (r Request) reuse(ctx context.Context, repo *git.Repo, w *worktree) error {
	made, err := at(ctx, repo, w.dir)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(marker(made))
	if err != nil {
		return err
	}
	if string(key) != r.setupKey() {
		return errors.New("set up in another way")
	}
	if err := made.CheckoutClean(ctx, w.commit); err != nil {
		return err
	}
	w.made = made
	return nil
}

func (r Request) setUp(ctx context.Context, w *worktree) error {
	result, err := r.shell(ctx, "land.verify.setup", r.Setup, w.dir, w.lock.File())
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return fault.New(fault.Failed, "land.verify.setup failed with exit code %d in %s", result.Code, w.dir).
			WithFacts(map[string]any{"exit": result.Code, "directory": w.dir})
	}
	return nil
}

// marker is the file that says that a worktree was made and set up to the end,
// and how. Git removes it together with the worktree's registration.
func marker(made *git.Repo) string { return filepath.Join(made.GitDir, "lease-verify") }

// setupKey is the content of marker.
func (r Request) setupKey() string {
	sum := sha256.Sum256([]byte(r.Setup))
	return hex.EncodeToString(sum[:]) + "\n"
}

// at opens the worktree in dir, if it is one of repo. Otherwise git may have
// found a repository further up, whose files must not be cleaned away.
func at(ctx context.Context, repo *git.Repo, dir string) (*git.Repo, error) {
	made, err := repo.In(ctx, dir)
	if err != nil {
		return nil, err
	}
	if made.CommonDir != repo.CommonDir || !sameFile(made.Top, dir) || made.GitDir == made.CommonDir {
		return nil, fmt.Errorf("%s is not a worktree of %s", dir, repo.CommonDir)
	}
	return made, nil
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// remove removes a directory, also one with directories in it that are read
// only, as some tools make their caches.
func remove(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(path, 0o700) // if it does not help, RemoveAll says so
		}
		return nil
	})
	return os.RemoveAll(dir)
}

package verify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/verify"
)

// roleVar makes of this test executable a process that verifies, for tests in
// which such a process dies.
const roleVar = "VERIFY_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(runRole(role))
	}
	os.Exit(m.Run())
}

// A role is what a verifying process is to do.
type role struct {
	Dir     string
	Request verify.Request
}

func runRole(text string) int {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		fmt.Println(err)
		return 1
	}
	ctx := context.Background()
	repo, err := git.Open(ctx, git.Options{Dir: r.Dir, Environ: os.Environ(), Unattended: true})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer repo.Close()
	l, err := ledger.Open(repo, ledger.Options{Remote: ledger.Local, Now: time.Now, Notice: func(string, ...any) {}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	r.Request.Environ = os.Environ()
	v, err := verify.Run(ctx, l, r.Request)
	fmt.Println(v.Verdict, err)
	return 0
}

// A clone is a repository whose trees are verified, seen from one directory.
type clone struct {
	t     *testing.T
	dir   string
	env   []string
	cache string // of all that use env
}

// initRepo makes a repository with one commit.
func initRepo(t *testing.T, args ...string) *clone {
	t.Helper()
	dir := filepath.Join(tempDir(t), "project")
	gittest.Git(t, filepath.Dir(dir), append(append([]string{"init", "--quiet", "--initial-branch=main"}, args...), dir)...)
	gittest.Commit(t, dir, "begin", map[string]string{
		"file": "one\n", "sub/file": "two\n", ".gitignore": "*.tmp\nbuild/\n"})
	env, _ := gittest.Env(t)
	cache := filepath.Join(tempDir(t), "cache", "of", "user")
	return &clone{t: t, dir: dir, env: gittest.With(env, "XDG_CACHE_HOME="+cache), cache: cache}
}

// tempDir is a temporary directory under the name by which git knows it: on some
// systems the usual one is a symbolic link.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// in is the same clone as seen from another directory, with vars.
func (c *clone) in(dir string, vars ...string) *clone {
	n := *c
	n.dir, n.env = dir, gittest.With(c.env, vars...)
	return &n
}

// git runs git in the clone's directory and environment.
func (c *clone) git(args ...string) string {
	c.t.Helper()
	r := gittest.Run(c.t, gittest.Command(c.t, c.env, c.dir, "git", args...))
	if r.Code != 0 {
		c.t.Fatalf("git %s: exit %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return strings.TrimSuffix(r.Stdout, "\n")
}

// tree is the tree of a revision.
func (c *clone) tree(rev string) object.OID {
	c.t.Helper()
	return object.OID(c.git("rev-parse", "--verify", rev+"^{tree}"))
}

// workTree is the tree of the working tree.
func (c *clone) workTree() object.OID {
	c.t.Helper()
	n := c.in(c.dir, "GIT_INDEX_FILE="+filepath.Join(c.t.TempDir(), "index"))
	n.git("add", "-A", ":/")
	return object.OID(n.git("write-tree"))
}

// makeTree stores a tree of just these files.
func (c *clone) makeTree(files map[string]string) object.OID {
	c.t.Helper()
	dir := c.t.TempDir()
	gittest.Write(c.t, dir, files)
	n := c.in(dir, "GIT_DIR="+c.git("rev-parse", "--absolute-git-dir"), "GIT_WORK_TREE="+dir, "GIT_INDEX_FILE="+filepath.Join(c.t.TempDir(), "index"))
	n.git("add", "--all", "--force")
	return object.OID(n.git("write-tree"))
}

// A run is one verification, and what was seen of it.
type run struct {
	note.Verification
	err     error
	output  string
	notices []string
}

// verify runs a check, with changes to the request.
func (c *clone) verify(tree object.OID, command string, change ...func(*verify.Request)) run {
	c.t.Helper()
	return c.verifyContext(c.t.Context(), tree, command, change...)
}

// now is when all verifications end.
var now = time.Date(2026, 8, 1, 12, 30, 15, 999, time.FixedZone("", 7200))

func (c *clone) verifyContext(ctx context.Context, tree object.OID, command string, change ...func(*verify.Request)) run {
	c.t.Helper()
	repo, err := git.Open(c.t.Context(), git.Options{Dir: c.dir, Environ: c.env, Unattended: true})
	if err != nil {
		c.t.Fatal(err)
	}
	defer repo.Close()
	var got run
	l, err := ledger.Open(repo, ledger.Options{Remote: ledger.Local, Now: func() time.Time { return now },
		Notice: func(format string, args ...any) { got.notices = append(got.notices, fmt.Sprintf(format, args...)) }})
	if err != nil {
		c.t.Fatal(err)
	}
	var out output
	r := verify.Request{Tree: tree, Check: "default", Command: command, Unit: "unit", ID: l.NewID().String(), Output: &out, Environ: c.env}
	for _, f := range change {
		f(&r)
	}
	got.Verification, got.err = verify.Run(ctx, l, r)
	got.output = out.String()
	if left, _ := filepath.Glob(filepath.Join(repo.GitDir, "lease-index-"+r.ID+"*")); len(left) > 0 {
		c.t.Errorf("left behind: %q", left)
	}
	return got
}

// both runs two verifications at once. When one has no verdict, the other is
// ended too: they wait for each other.
func (c *clone) both(tree object.OID, commandA, commandB string) (a, b run) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for got, command := range map[*run]string{&a: commandA, &b: commandB} {
		wg.Go(func() {
			*got = c.verifyContext(ctx, tree, command)
			if got.err != nil {
				c.t.Errorf("%s: %v", command, got.err)
				cancel()
			}
		})
	}
	wg.Wait()
	return a, b
}

// output is a buffer that may be read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// wantPass ends the test unless the verification passed with the output.
func (r run) wantPass(t *testing.T, output string) {
	t.Helper()
	if r.err != nil || r.Verdict != note.Pass || r.output != output {
		t.Fatalf("got %q, %v, output %q; want a pass with output %q", r.Verdict, r.err, r.output, output)
	}
}

// wantFault ends the test unless there is a refusal of the class that has the
// text in it, and no verification.
func (r run) wantFault(t *testing.T, class fault.Class, text string) {
	t.Helper()
	if fault.ClassOf(r.err) != class || !strings.Contains(fmt.Sprint(r.err), text) {
		t.Fatalf("got error %v (%s), want one of class %s with %q", r.err, fault.ClassOf(r.err), class, text)
	}
	if r.Verdict != "" || !r.ID.IsZero() {
		t.Fatalf("got a verification beside the error: %+v", r.Verification)
	}
}

// worktrees are the directories of the verification worktrees, in order.
func (c *clone) worktrees() []string {
	c.t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.cache, "gitland", "verify"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Fatal(err)
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(c.cache, "gitland", "verify", e.Name()))
		}
	}
	return dirs
}

// worktree is the only verification worktree.
func (c *clone) worktree() string {
	c.t.Helper()
	dirs := c.worktrees()
	if len(dirs) != 1 {
		c.t.Fatalf("got verification worktrees %q, want one", dirs)
	}
	return dirs[0]
}

// fifo makes a named pipe.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

package property

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
	"gitland/internal/object"
)

// A case is one repository, with what is done in it.
type caseOf struct {
	t     *testing.T
	r     *rand.Rand
	seed  int
	n     int
	drawn map[feature]bool
	ends  []string

	image  *image
	root   string // holds all that follows
	remote string
	gitDir string // of the clone
	own    string // of its worktree, where HEAD and index are
	top    string // of the work tree
	cwd    string // where commands run
	env    []string
	local  store // writes into the clone
	server store // writes into the remote

	sub        string     // cwd, from the top; "" at the top
	branch     string     // that HEAD is on; "" when detached
	head       object.OID // HEAD; "" when unborn
	onto       string     // the target, where it is not the usual one
	s          state
	there      tree            // the target at the remote
	tip        object.OID      // its commit
	begun      bool            // in a lease that the session brought
	round      int             // of landings, from 0
	configured map[string]bool // for one landing
	script     []string        // what was done, for the report of a failure
}

func newCase(t *testing.T, images *images, seed, n int) *caseOf {
	c := &caseOf{t: t, r: rand.New(rand.NewPCG(uint64(seed), uint64(n))), seed: seed, n: n, drawn: map[feature]bool{}, configured: map[string]bool{}, env: images.env}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("case %d: %s\nto repeat it: GITLAND_SEED=%d GITLAND_CASE=%d go test -count=1 -v ./internal/acceptance/property", n,
				strings.Join(c.script, "\n"), seed, n)
		}
	})
	k := plain
	switch roll := c.r.IntN(100); {
	case roll < 9:
		k = sha256ed
		c.has(repoSHA256)
	case roll < 17:
		k = shallow
		c.has(repoShallow)
	case roll < 25:
		k = partial
		c.has(repoPartial)
	case roll < 35:
		k = submodule
		c.has(repoSubmodule)
	case roll < 39:
		k = empty
		c.has(repoEmpty)
	}
	c.image = images.of(k)
	c.root = filepath.Join(t.TempDir(), "case")
	c.image.put(t, c.root)
	c.remote, c.gitDir, c.top = filepath.Join(c.root, "origin.git"), filepath.Join(c.root, "clone/.git"), filepath.Join(c.root, "clone")
	c.own, c.cwd, c.branch, c.head = c.gitDir, c.top, "main", c.image.tip
	c.there, c.tip = c.image.base, c.image.tip
	c.s = state{head: c.image.base, index: map[string]indexed{}, work: tree{}}
	for p, e := range c.s.head {
		c.s.index[p] = indexed{entry: e}
		c.s.work[p] = c.s.smudge(p, e)
	}
	c.server = store{t, c.remote, c.image.format}
	c.layout(k)
	c.local = store{t, c.gitDir, c.image.format}
	c.places(k)
	if images.key != "" && c.chance(4, signing) {
		c.sign(images.key)
	}
	return c
}

// has notes that the case has a feature.
func (c *caseOf) has(f feature) { c.drawn[f] = true }

// chance is true in percent of the cases.
func (c *caseOf) chance(percent int, f feature) bool {
	if c.r.IntN(100) >= percent {
		return false
	}
	c.has(f)
	return true
}

func (c *caseOf) note(format string, args ...any) {
	c.script = append(c.script, fmt.Sprintf(format, args...))
}

// layout is from where the clone is used, and how its worktree stands to it.
func (c *caseOf) layout(k kind) {
	switch roll := c.r.IntN(100); {
	case roll < 10 && k != empty && k != submodule:
		c.has(repoLinked)
		c.linked()
	case roll < 18 && k != submodule:
		c.has(repoBare)
		bare := filepath.Join(c.root, "bare.git")
		c.must(os.Rename(c.gitDir, bare))
		c.gitDir, c.own = bare, bare
		c.replace(filepath.Join(bare, "config"), "bare = false", "bare = true")
		c.env = gittest.With(c.env, "GIT_DIR="+bare, "GIT_WORK_TREE="+c.top)
	case roll < 25:
		c.has(repoSymlink)
		c.cwd = filepath.Join(c.root, "through")
		c.must(os.Symlink("clone", c.cwd))
	case roll < 33 && k != empty:
		c.has(repoDirectory)
		c.sub = "src"
		c.cwd = filepath.Join(c.top, c.sub)
		c.s.work["src/stays.ign"] = entry{regular, "so that the directory stays\n"}
		c.must(os.WriteFile(filepath.Join(c.cwd, "stays.ign"), []byte("so that the directory stays\n"), 0o644))
	}
}

// linked makes a linked worktree, as "git worktree add" does, on a branch of its own.
func (c *caseOf) linked() {
	c.top = filepath.Join(c.root, "linked")
	c.own, c.cwd, c.branch = filepath.Join(c.gitDir, "worktrees/linked"), c.top, "linked"
	c.must(os.MkdirAll(c.own, 0o777))
	c.must(os.MkdirAll(c.top, 0o777))
	for path, text := range map[string]string{
		filepath.Join(c.own, "commondir"): "../..",
		filepath.Join(c.own, "gitdir"):    filepath.Join(c.top, ".git"),
		filepath.Join(c.own, "HEAD"):      "ref: refs/heads/linked",
		filepath.Join(c.top, ".git"):      "gitdir: " + c.own,
	} {
		c.must(os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	setRef(c.t, c.gitDir, "refs/heads/linked", c.head)
	index, err := os.ReadFile(filepath.Join(c.gitDir, "index"))
	c.must(err)
	c.must(os.WriteFile(filepath.Join(c.own, "index"), index, 0o644))
	c.files(tree{}, c.s.work)
}

// places are everything about the repository that is not in files or index.
func (c *caseOf) places(k kind) {
	atomic := !c.chance(6, repoApart)
	if !atomic {
		c.gitIn(c.remote, "config", "receive.advertiseAtomic", "false")
	}
	tried(c.t, c.gitDir, c.remote, atomic)
	if k != empty && c.chance(6, repoFirst) {
		for _, space := range []string{"lease", "notes"} {
			c.must(os.RemoveAll(filepath.Join(c.remote, "refs", space)))
		}
	}
	if k == empty {
		c.s.work[".gitattributes"], c.s.work[".gitignore"] = entry{regular, attributes}, entry{regular, ignores}
		c.files(tree{}, c.s.work)
		return
	}
	if c.branch == "main" && c.chance(10, repoDetached) {
		c.branch = ""
		c.must(os.WriteFile(filepath.Join(c.own, "HEAD"), []byte(string(c.head)+"\n"), 0o644))
	} else if c.branch == "main" && c.chance(12, repoTopic) {
		c.branch = "topic/one"
		setRef(c.t, c.gitDir, "refs/heads/topic/one", c.head)
		c.must(os.WriteFile(filepath.Join(c.own, "HEAD"), []byte("ref: refs/heads/topic/one\n"), 0o644))
	}
	if c.chance(15, repoStash) {
		c.stash()
	}
	if c.chance(15, repoBranches) {
		mine := c.local.commit(tree{"mine": {regular, "mine\n"}}, []object.OID{c.head}, ada, "mine\n")
		setRef(c.t, c.gitDir, "refs/heads/mine", mine)
		setRef(c.t, c.gitDir, "refs/tags/v1", c.head)
	}
	switch roll := c.r.IntN(100); {
	case roll < 8 && c.own == c.gitDir:
		c.has(repoSparse)
		c.sparse()
	case roll < 16:
		c.has(repoSplit)
		c.git("update-index", "--split-index")
	case roll < 24:
		c.has(repoFsmonitor)
		c.fsmonitor()
	}
}

func (c *caseOf) stash() {
	index := c.local.commit(c.image.base, []object.OID{c.head}, ada, "index on main\n")
	tip := c.local.commit(tree{"stashed": {regular, "stashed\n"}}, []object.OID{c.head, index}, ada, "WIP on main\n")
	setRef(c.t, c.gitDir, "refs/stash", tip)
	log := filepath.Join(c.gitDir, "logs/refs/stash")
	c.must(os.MkdirAll(filepath.Dir(log), 0o777))
	c.must(os.WriteFile(log, []byte(fmt.Sprintf("%s %s %s\tWIP on main\n", c.image.format.Zero(), tip, ada)), 0o644))
}

// sparse leaves docs out of the work tree.
func (c *caseOf) sparse() {
	c.git("config", "core.sparseCheckout", "true")
	c.must(os.MkdirAll(filepath.Join(c.own, "info"), 0o777))
	c.must(os.WriteFile(filepath.Join(c.own, "info/sparse-checkout"), []byte("/*\n!/docs/\n"), 0o644))
	c.git("update-index", "-q", "--refresh") // else git leaves alone what has been copied
	c.git("read-tree", "-m", "-u", "HEAD")
	for _, p := range within(c.s.index, "docs") {
		e := c.s.index[p]
		e.skip = true
		c.s.index[p] = e
		delete(c.s.work, p)
	}
}

// fsmonitor lets git ask a hook what has changed, which answers with the file
// "changed", and has it trust the rest.
func (c *caseOf) fsmonitor() {
	hook := filepath.Join(c.own, "fsmonitor")
	c.must(os.WriteFile(filepath.Join(c.own, "changed"), nil, 0o644))
	gittest.Script(c.t, hook, "#!/bin/sh\nprintf 'token\\000'\ncat '"+filepath.Join(c.own, "changed")+"'\n")
	c.git("config", "core.fsmonitor", hook)
	c.git("update-index", "--fsmonitor")
	c.git("status", "--porcelain")
}

func (c *caseOf) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *caseOf) replace(path, old, new string) {
	c.t.Helper()
	data, err := os.ReadFile(path)
	c.must(err)
	c.must(os.WriteFile(path, []byte(strings.ReplaceAll(string(data), old, new)), 0o644))
}

// git runs a git command of the test's own, at the top of the work tree.
func (c *caseOf) git(args ...string) string { c.t.Helper(); return c.gitIn(c.top, args...) }

func (c *caseOf) gitIn(dir string, args ...string) string {
	c.t.Helper()
	env := c.env
	if dir == c.remote {
		env = gittest.With(env, "GIT_DIR", "GIT_WORK_TREE")
	}
	return c.gitWith(env, dir, "", args...)
}

func (c *caseOf) gitWith(env []string, dir, stdin string, args ...string) string {
	c.t.Helper()
	cmd := gittest.Command(c.t, env, dir, "git", args...)
	cmd.Stdin = strings.NewReader(stdin)
	r := gittest.Run(c.t, cmd)
	if r.Code != 0 {
		c.t.Fatalf("git %q: exit %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

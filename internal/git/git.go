// Package git drives the git executable. It is the only door to it: no other
// package runs git, and methods name operations, they never take an argv.
//
// It owns the environment of git's processes, the parsing of what git prints,
// and the settings that must not leak from a user's configuration into our
// commands. It promises that every ref update and every push carries an
// expectation, that object ids and ref names which it returns are well formed,
// and that nothing is decided by the wording of a message. It refuses git
// older than MinVersion.
package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gitland/internal/object"
)

// killDelay is how long a git process may take to clean up after SIGTERM.
// SIGKILL at once would leave its .lock files behind.
const killDelay = 10 * time.Second

// maxOutput bounds what is kept of one command's standard output.
const maxOutput = 256 << 20

// A Repo is one repository, seen from one directory. It is safe for use by
// several goroutines. Close it when done.
type Repo struct {
	Dir       string // where commands run; pathspecs are relative to it
	GitDir    string // of this worktree, absolute
	CommonDir string // shared by all worktrees, absolute
	Top       string // of the work tree; empty when there is none here
	Prefix    string // Dir relative to Top, "" or ending in a slash
	Format    object.Format
	Config    Config

	given   []string // the environment that we were given
	environ []string
	durable bool
	opened  *Position // of HEAD when it was opened; nil where it could not be told
	objects *objectReader
	ident   func() (string, error)
	author  func() (string, error)
}

// Options say how to open a repository.
type Options struct {
	Dir     string   // "" is the current directory
	Environ []string // as os.Environ; the caller's environment
	// Unattended keeps git from asking for a password on a terminal.
	Unattended bool
}

// An Error is a git command that failed. Args has no secrets: object data,
// tokens and messages go through standard input.
type Error struct {
	Args     []string
	ExitCode int // -1 when it did not start, or was ended by a signal
	Stderr   string
	Err      error
}

func (e *Error) Error() string {
	var old *OldError
	if errors.As(e.Err, &old) {
		return old.Error()
	}
	what := "git " + e.Args[0]
	if text := strings.TrimSpace(e.Stderr); text != "" {
		return what + ": " + text
	}
	return what + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// ErrNotFound says that an object or ref is not there.
var ErrNotFound = errors.New("not found")

// ErrNoRepository says that the directory is in no git repository, or in one
// that git cannot use.
var ErrNoRepository = errors.New("not in a git repository")

// An UnsafeError is a repository that git refuses to use since it belongs to somebody else
// (safe.directory in git-config(1)). Path is what to name there.
type UnsafeError struct{ Path string }

func (e *UnsafeError) Error() string {
	return e.Path + " belongs to another user, so that git refuses to use it"
}

// unsafe finds out whether it is the owner that keeps git from using a repository: then
// one is there as soon as any owner is trusted.
func (r *Repo) unsafe(ctx context.Context) error {
	for _, what := range []string{"--show-toplevel", "--absolute-git-dir"} {
		out, err := r.run(ctx, command{reading: true, config: []string{"safe.directory=*"}, args: []string{"rev-parse", what}})
		if path := strings.TrimSuffix(out, "\n"); err == nil && path != "" {
			return &UnsafeError{path}
		}
	}
	return nil
}

// Open finds the repository that opts.Dir is in. It returns an *OldError for
// a git that is too old, an *UnsafeError, and an error that wraps ErrNoRepository when
// there is no repository.
func Open(ctx context.Context, opts Options) (*Repo, error) {
	r := &Repo{Dir: opts.Dir, given: opts.Environ, environ: childEnv(opts)}
	// Side by side: on a slow machine the start of a process is most of what a
	// short git command costs.
	var wg sync.WaitGroup
	var configErr, placeErr error
	asked := *r // what is learnt below is written while the reader starts
	r.objects = &objectReader{repo: &asked}
	r.objects.prepare()
	wg.Go(func() { configErr = r.loadConfig(ctx) })
	wg.Go(func() { placeErr = r.locate(ctx) })
	wg.Wait()
	if err := cmp.Or(placeErr, configErr); err != nil {
		// Git is asked for its version only when something fails: most runs
		// would pay a process for the answer that it is new enough.
		r.Close()
		return nil, cmp.Or(r.checkVersion(ctx), err)
	}
	r.given, r.environ = r.absolute(r.given), r.absolute(r.environ)
	r.ident = sync.OnceValues(func() (string, error) { return r.readIdent(ctx, "GIT_COMMITTER_IDENT") })
	r.author = r.ident
	if !r.sameIdent() {
		r.author = sync.OnceValues(func() (string, error) { return r.readIdent(ctx, "GIT_AUTHOR_IDENT") })
	}
	return r, nil
}

// Close ends the helper process that reads objects.
func (r *Repo) Close() { r.objects.close() }

// Durable returns the same repository with every write synced to disk before
// the command that made it returns. Git's default leaves loose objects out
// (core.fsync in git-config(1)), which would let a ref outlive its objects
// where this repository is itself the authority.
func (r *Repo) Durable() *Repo {
	c := *r
	c.durable = true
	return &c
}

// In returns the repository as seen from another of its worktrees.
func (r *Repo) In(ctx context.Context, dir string) (*Repo, error) {
	c := *r
	c.Dir = dir
	c.given, c.environ = WithoutRepoEnv(r.given), WithoutRepoEnv(r.environ)
	if err := c.locate(ctx); err != nil {
		return nil, err
	}
	return &c, nil
}

// repoVars are the variables that tie a git process to one repository, as
// "git rev-parse --local-env-vars" lists them, without those that carry
// configuration: "git -c k=v land" arrives in GIT_CONFIG_PARAMETERS.
var repoVars = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE",
	"GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_REPLACE_REF_BASE",
	"GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE",
}

// WithoutRepoEnv drops the variables that tie a process to one repository, for
// commands that run in another one, or in another worktree. Leaked, they have
// made hooks write into the wrong repository.
func WithoutRepoEnv(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(repoVars, name)
	})
}

const noEditor = "GIT_EDITOR=:"

// childEnv is the one place that decides what our git processes see.
func childEnv(opts Options) []string {
	env := slices.DeleteFunc(slices.Clone(opts.Environ), func(kv string) bool {
		// A reflog line of ours must not carry another command's name.
		return strings.HasPrefix(kv, "GIT_REFLOG_ACTION=")
	})
	env = append(env,
		"LANGUAGE=C",               // one language for messages that we pass on
		"GIT_NO_REPLACE_OBJECTS=1", // a replaced event or record is not what was pushed
		noEditor,                   // no git of ours may open one
		"GIT_MERGE_AUTOEDIT=no",
	)
	if opts.Unattended {
		env = append(env, "GIT_TERMINAL_PROMPT=0")
	}
	return env
}

// absolute rewrites what names the repository relative to the directory in
// which we were started: not all of our processes run there.
func (r *Repo) absolute(environ []string) []string {
	environ = slices.Clone(environ)
	for i, kv := range environ {
		switch name, value, _ := strings.Cut(kv, "="); {
		case name == "GIT_DIR":
			environ[i] = name + "=" + r.GitDir
		case name == "GIT_COMMON_DIR":
			environ[i] = name + "=" + r.CommonDir
		case name == "GIT_WORK_TREE" && r.Top != "" && value != "":
			environ[i] = name + "=" + r.Top
		}
	}
	return environ
}

// Environ is the environment of git's processes, for commands that should see
// the repository as git does.
func (r *Repo) Environ() []string { return slices.Clone(r.environ) }

// A command is one run of git.
type command struct {
	args    []string
	config  []string // "key=value" pairs for -c
	stdin   []byte
	env     []string
	reading bool // takes no optional locks
	dir     string
}

// pinned is configuration that no command of ours may inherit: background
// maintenance would outlive us while holding descriptors and locks, and git's
// 100 ms for a ref lock is too short beside other sessions.
var pinned = []string{
	"gc.auto=0", "maintenance.auto=false",
	"core.filesRefLockTimeout=5000", "core.packedRefsTimeout=5000",
}

func (r *Repo) start(ctx context.Context, c command) *exec.Cmd {
	var argv []string
	for _, kv := range slices.Concat(pinned, c.config) {
		argv = append(argv, "-c", kv)
	}
	if r.durable && !c.reading {
		argv = append(argv, "-c", "core.fsync=committed,reference", "-c", "core.fsyncMethod=batch")
	}
	cmd := exec.CommandContext(ctx, "git", append(argv, c.args...)...)
	cmd.Dir = r.Dir
	if c.dir != "" {
		cmd.Dir = c.dir
	}
	cmd.Env = slices.Concat(r.environ, c.env)
	if c.reading {
		cmd.Env = append(cmd.Env, "GIT_OPTIONAL_LOCKS=0")
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = killDelay
	return cmd
}

// run returns the command's standard output, also when it failed, and an
// *Error when it did.
func (r *Repo) run(ctx context.Context, c command) (string, error) {
	cmd := r.start(ctx, c)
	if c.stdin != nil {
		cmd.Stdin = bytes.NewReader(c.stdin)
	}
	var stdout, stderr limited
	stdout.max, stderr.max = maxOutput, 64<<10
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err == nil && stdout.cut {
		err = fmt.Errorf("more than %d bytes of output", maxOutput)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		code := exitCode(cmd)
		if code == 129 { // git's usage error: it does not know an option of ours
			err = cmp.Or(r.checkVersion(ctx), err)
		}
		return stdout.String(), &Error{Args: c.args, ExitCode: code, Stderr: stderr.String(), Err: err}
	}
	return stdout.String(), nil
}

func exitCode(cmd *exec.Cmd) int {
	if cmd.ProcessState == nil {
		return -1
	}
	return cmd.ProcessState.ExitCode()
}

// ExitCode is the exit code of the git command that failed with err, or -1.
func ExitCode(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.ExitCode
	}
	return -1
}

// Terminated reports whether err is of a git command that was told to end, by a
// signal that others may have got too.
func Terminated(err error) bool {
	return slices.Contains([]syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM}, endedBy(err))
}

// endedBy is the signal that ended the git command of err; 0 where none did.
func endedBy(err error) syscall.Signal {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal()
		}
	}
	return 0
}

// limited keeps the first max bytes and swallows the rest, so that a hostile
// remote cannot fill the memory.
type limited struct {
	bytes.Buffer
	max int
	cut bool
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.max - l.Len(); len(p) > room {
		l.cut = true
		l.Buffer.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return l.Buffer.Write(p)
}

// locate fills in where the repository is.
func (r *Repo) locate(ctx context.Context) error {
	begun := time.Now()
	out, err := r.run(ctx, command{reading: true, args: []string{"rev-parse",
		"--path-format=absolute", "--absolute-git-dir", "--git-common-dir",
		"--show-object-format", "--is-inside-work-tree", "--show-prefix",
		"--show-toplevel", // fails where there is no work tree
		"HEAD^{commit}",   // fails where HEAD is unborn
		"HEAD^{tree}", "--symbolic-full-name", "HEAD",
	}})
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) < 5 {
		if err == nil {
			err = fmt.Errorf("rev-parse: unexpected answer")
		}
		return cmp.Or(r.unsafe(ctx), fmt.Errorf("%w: %w", ErrNoRepository, err))
	}
	if len(lines) > 9 {
		return fmt.Errorf("%w: a path with a line break in its name", ErrNoRepository)
	}
	r.GitDir, r.CommonDir = lines[0], lines[1]
	if r.Format, err = object.ParseFormat(lines[2]); err != nil {
		return err
	}
	r.Top, r.Prefix = "", ""
	if lines[3] == "true" && len(lines) >= 6 {
		r.Prefix, r.Top = lines[4], lines[5]
	}
	if len(lines) < 9 {
		r.opened = nil
		return nil
	}
	r.opened = &Position{stamp: r.headStamp(begun)}
	if lines[8] != "HEAD" { // "HEAD" is a detached one
		r.opened.Branch, err = object.ParseRef(lines[8])
	}
	var commitErr, treeErr error
	r.opened.Commit, commitErr = object.ParseOID(lines[6])
	r.opened.Tree, treeErr = object.ParseOID(lines[7])
	return cmp.Or(err, commitErr, treeErr)
}

// copyIndex copies an index file. Index files are replaced and never changed in
// place, so that a plain copy is a consistent one.
//
// The copy keeps the time of the original: git trusts the cached times of files
// that are older than the index itself and compares the content of the others
// (gitformat-index(5), "racy git"). With a later time of its own, the copy would
// hide a file that was changed within the second in which it was staged.
func copyIndex(dst, src string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = cmp.Or(err, out.Close()); err == nil {
		err = os.Chtimes(dst, time.Time{}, info.ModTime())
	}
	if err != nil {
		os.Remove(dst)
	}
	return err
}

// Place tells the worktrees of a clone apart, wherever the clone is: its git directory
// from the common one.
func (r *Repo) Place() string {
	place, err := filepath.Rel(r.CommonDir, r.GitDir)
	if err != nil {
		return r.GitDir
	}
	return place
}

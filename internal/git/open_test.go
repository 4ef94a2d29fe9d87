package git_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "begin", map[string]string{"sub/file": "x\n"})
	linked := filepath.Join(tempDir(t), "linked")
	gittest.Git(t, dir, "worktree", "add", "--quiet", "-b", "side", linked)
	bare := gittest.Bare(t, "--object-format=sha256")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	common := filepath.Join(dir, ".git")
	for _, test := range []struct {
		dir, gitDir, commonDir, top, prefix string
		format                              object.Format
	}{
		{dir, common, common, dir, "", object.SHA1},
		{dir + "/sub", common, common, dir, "sub/", object.SHA1},
		{link, common, common, dir, "", object.SHA1},
		{common, common, common, "", "", object.SHA1},
		{linked + "/sub", common + "/worktrees/linked", common, linked, "sub/", object.SHA1},
		{bare, bare, bare, "", "", object.SHA256},
	} {
		r := open(t, test.dir)
		if r.GitDir != test.gitDir || r.CommonDir != test.commonDir || r.Top != test.top || r.Prefix != test.prefix || r.Format != test.format {
			t.Errorf("%s: got %s, %s, %s, %q, %s", test.dir, r.GitDir, r.CommonDir, r.Top, r.Prefix, r.Format)
		}
		if r.Config.Get("user.name") != "Ada" {
			t.Errorf("%s: no configuration", test.dir)
		}
	}
	other := must(open(t, bare).In(t.Context(), linked))(t)
	if other.Top != linked || other.Format != object.SHA1 || other.CommonDir != common {
		t.Errorf("in: got %+v", other)
	}
	// A hook of one repository, say, that works in another one.
	other = must(open(t, dir, "GIT_DIR="+common, "GIT_WORK_TREE="+dir, "GIT_INDEX_FILE=x").In(t.Context(), linked))(t)
	if other.Top != linked || other.GitDir != common+"/worktrees/linked" {
		t.Errorf("in: got %+v", other)
	}
}

func TestOpenRefused(t *testing.T) {
	t.Parallel()
	env, home := gittest.Env(t)
	if _, err := git.Open(t.Context(), git.Options{Dir: home, Environ: env}); !errors.Is(err, git.ErrNoRepository) {
		t.Errorf("got %v", err)
	}
	if _, err := git.Open(t.Context(), git.Options{Dir: filepath.Join(home, "absent"), Environ: env}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: got %v", err)
	}
	repo := initRepo(t)
	gittest.Git(t, repo, "config", "core.repositoryFormatVersion", "99")
	if _, err := git.Open(t.Context(), git.Options{Dir: repo, Environ: env}); !errors.Is(err, git.ErrNoRepository) {
		t.Errorf("of a newer format: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := git.Open(ctx, git.Options{Dir: initRepo(t), Environ: env}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	r := open(t, initRepo(t))
	_, err := r.CommitTree(t.Context(), git.NewCommit{Tree: "nonsense", Message: "a secret\n"})
	failed, ok := errors.AsType[*git.Error](err)
	if !ok || failed.ExitCode != 128 || git.ExitCode(err) != 128 || failed.Args[0] != "commit-tree" {
		t.Fatalf("got %+v", err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "git commit-tree: fatal: ") || strings.Contains(text, "secret") || strings.HasSuffix(text, "\n") {
		t.Errorf("got %q", text)
	}
	if git.ExitCode(nil) != -1 || git.ExitCode(errors.New("x")) != -1 {
		t.Error("an exit code without git")
	}
}

func TestEnviron(t *testing.T) {
	t.Parallel()
	env := strings.Join(open(t, initRepo(t), "GIT_REFLOG_ACTION=x", "GIT_CONFIG_PARAMETERS='a.b=c'").Environ(), "\n")
	for want, is := range map[string]bool{
		"GIT_REFLOG_ACTION": false, "GIT_CONFIG_PARAMETERS='a.b=c'": true, "GIT_TERMINAL_PROMPT=0": true,
		"GIT_NO_REPLACE_OBJECTS=1": true, "LANGUAGE=C": true, "GIT_EDITOR=:": true,
	} {
		if strings.Contains(env, want) != is {
			t.Errorf("%s: want %v in\n%s", want, is, env)
		}
	}
}

// "git -c land.x=y land" arrives in the environment.
func TestConfigOfTheCommandLine(t *testing.T) {
	t.Parallel()
	r := open(t, initRepo(t), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=land.onTo", "GIT_CONFIG_VALUE_0=two\nlines")
	if got := r.Config.Get("land.onto"); got != "two\nlines" {
		t.Errorf("got %q", got)
	}
	if err := r.SetConfig(t.Context(), "notes.displayRef", "refs/notes/x"); err != nil {
		t.Fatal(err)
	}
	if got := gittest.Git(t, r.Dir, "config", "--local", "notes.displayref"); got != "refs/notes/x" {
		t.Errorf("got %q", got)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.FixedZone("", -9000))
	r := open(t, dir)
	if got := must(r.Ident())(t); got != gittest.Identity {
		t.Errorf("got %q", got)
	}
	if got, want := must(r.Stamp(now))(t), gittest.Identity+" 1785594600 -0230"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r = open(t, dir, "GIT_COMMITTER_NAME=Bo", "GIT_COMMITTER_EMAIL=", "GIT_COMMITTER_DATE=@1000 +0100")
	if got, want := must(r.Stamp(now))(t), "Bo <> 1000 +0100"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r = open(t, dir, "HOME="+t.TempDir(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.useConfigOnly", "GIT_CONFIG_VALUE_0=true")
	if got, err := r.Ident(); err == nil {
		t.Errorf("got %q", got)
	}
}

// The identity is git's own, whether or not git had to be asked for it.
func TestIdentIsGits(t *testing.T) {
	t.Parallel()
	for _, who := range []struct{ name, email string }{
		{"Ada", "ada@example.com"}, {"Ada Lovelace", "ada.l@example.com"}, {"Émile Ünï", "e@x"}, {" Ada. ", "ada@example.com"},
		{"O'Hara", "o@x"}, {"A <B>", "a@b"}, {"Dr. A", "a@b.c."}, {"Ada,", "<a@b>"}, {"\"Q\"", "q@q"}, {"a:b;c", "x@y"}, {"A\tB", "a b@c"},
	} {
		dir := gittest.Remote(t)
		gittest.Git(t, dir, "config", "user.name", who.name)
		gittest.Git(t, dir, "config", "user.email", who.email)
		env, _ := gittest.Env(t)
		r, err := git.Open(t.Context(), git.Options{Dir: dir, Environ: env})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		want := git.IdentName(gittest.Git(t, dir, "var", "GIT_COMMITTER_IDENT"))
		if got, err := r.Ident(); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", who, got, err, want)
		}
	}
}

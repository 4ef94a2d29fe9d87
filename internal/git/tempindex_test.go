package git_test

import (
	"errors"
	"gitland/internal/git"
	"gitland/internal/object"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// A file that was changed in the very second in which it was staged, and has
// the same size, can be told only by its content. Git reads it if it is no older
// than the index, so a copy of the index must not be younger.
func TestTempIndexSeesChangeOfTheSameSecond(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	// Only the whole seconds of the file's time and its size are compared then,
	// as on systems that have no more to compare.
	gittest.Git(t, dir, "config", "core.checkStat", "minimal")
	gittest.Git(t, dir, "config", "core.trustCtime", "false")
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	touch := func(name string) {
		if err := os.Chtimes(filepath.Join(dir, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Write(t, dir, map[string]string{"file": "old\n"})
	touch("file")
	gittest.Git(t, dir, "add", "file")
	gittest.Write(t, dir, map[string]string{"file": "new\n"})
	touch("file")
	touch(".git/index")

	r := open(t, dir)
	index := must(r.TempIndex(t.Context(), "id"))(t)
	defer index.Close()
	if err := index.Add(t.Context()); err != nil {
		t.Fatal(err)
	}
	tree := must(index.WriteTree(t.Context()))(t)
	if got := gittest.Git(t, dir, "cat-file", "blob", string(tree)+":file"); got != "new" {
		t.Errorf("the tree has %q, the file is new", got)
	}
}

// stage makes a repository in which everything that a working tree can be is.
func stage(t *testing.T, args ...string) string {
	t.Helper()
	dir := initRepo(t, args...)
	gittest.Commit(t, dir, "begin", map[string]string{
		"file": "one\n", "sub/file": "two\n", "gone": "x\n", "staged": "x\n", "half": "x\n", ".gitignore": "*.tmp\n"})
	gittest.Write(t, dir, map[string]string{"staged": "staged\n", "half": "staged\n"})
	gittest.Git(t, dir, "add", "staged", "half")
	gittest.Write(t, dir, map[string]string{"half": "more\n", "file": "changed\n", "sub/new": "new\n", "x.tmp": "ignored\n"})
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// build builds a tree in a temporary index, sees that nothing else has changed,
// and lists what the tree has.
func build(t *testing.T, r *git.Repo, work func(*git.TempIndex) error) map[string]string {
	t.Helper()
	top := r.Top
	files, index, refs := gittest.Files(t, top), gittest.Index(t, top), gittest.Refs(t, top)
	x := must(r.TempIndex(t.Context(), "id"))(t)
	err := work(x)
	if err != nil {
		x.Close()
		t.Fatal(err)
	}
	tree := must(x.WriteTree(t.Context()))(t)
	x.Close()
	noTrace(t, r)
	if !maps.Equal(files, gittest.Files(t, top)) || !maps.Equal(index, gittest.Index(t, top)) || !maps.Equal(refs, gittest.Refs(t, top)) {
		t.Error("files, index or refs were changed")
	}
	return listTree(t, top, tree)
}

// listTree gives the content of each file of a tree.
func listTree(t *testing.T, dir string, tree object.OID) map[string]string {
	t.Helper()
	content := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(gittest.Git(t, dir, "ls-tree", "-r", "-z", string(tree)), "\x00"), "\x00") {
		if head, path, ok := strings.Cut(line, "\t"); ok {
			content[path] = gittest.Git(t, dir, "cat-file", "blob", strings.Fields(head)[2])
		}
	}
	return content
}

func TestTempIndex(t *testing.T) {
	t.Parallel()
	begin := map[string]string{"file": "one", "sub/file": "two", "gone": "x", "staged": "x", "half": "x", ".gitignore": "*.tmp"}
	with := func(changes ...string) map[string]string {
		want := maps.Clone(begin)
		for _, c := range changes {
			path, content, ok := strings.Cut(c, "=")
			want[path] = content
			if !ok {
				delete(want, path)
			}
		}
		return want
	}
	for name, test := range map[string]struct {
		dir   string // below the top
		env   []string
		paths []string
		top   bool
		want  map[string]string
	}{
		"nothing is everything": {want: with("staged=staged", "half=more", "file=changed", "sub/new=new", "gone")},
		"also from below":       {dir: "sub", want: with("staged=staged", "half=more", "file=changed", "sub/new=new", "gone")},
		"also when literal":     {env: []string{"GIT_LITERAL_PATHSPECS=1"}, want: with("staged=staged", "half=more", "file=changed", "sub/new=new", "gone")},
		"one file":              {paths: []string{"half"}, want: with("half=more")},
		"a removed file":        {paths: []string{"gone"}, want: with("gone")},
		"a directory":           {paths: []string{"sub"}, want: with("sub/new=new")},
		"relative":              {dir: "sub", paths: []string{"../file", "new"}, want: with("file=changed", "sub/new=new")},
		"relative to the top":   {dir: "sub", paths: []string{"file", "sub/new"}, top: true, want: with("file=changed", "sub/new=new")},
		"a pattern":             {paths: []string{"*ne*"}, want: with("sub/new=new", "gone")},
		"from the top":          {dir: "sub", paths: []string{":/half"}, want: with("half=more")},
		"all but":               {paths: []string{".", ":!sub", ":!half"}, want: with("staged=staged", "file=changed", "gone")},
		"an unchanged file":     {paths: []string{"sub/file"}, want: begin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := stage(t)
			r := open(t, filepath.Join(top, test.dir), test.env...)
			got := build(t, r, func(x *git.TempIndex) error {
				if err := x.Reset(t.Context(), revParse(t, top, "HEAD^{tree}")); err != nil {
					return err
				}
				if test.top {
					return x.AddFromTop(t.Context(), test.paths...)
				}
				return x.Add(t.Context(), test.paths...)
			})
			if !maps.Equal(got, test.want) {
				t.Errorf("got  %v\nwant %v", got, test.want)
			}
		})
	}
}

// Who goes on for a process that was killed has its id, and may find what it left.
func TestTempIndexesOfOneID(t *testing.T) {
	t.Parallel()
	r := open(t, stage(t))
	left, err := r.TempIndex(t.Context(), "id")
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	own, err := r.TempIndex(t.Context(), "id")
	if err != nil {
		t.Fatal(err)
	}
	again, err := left.Copy()
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	own.Close()
	if _, err := left.WriteTree(t.Context()); err != nil {
		t.Errorf("what was left is no index any more: %v", err)
	}
}

func TestTempIndexAddNoMatch(t *testing.T) {
	t.Parallel()
	top := stage(t)
	x := must(open(t, filepath.Join(top, "sub")).TempIndex(t.Context(), "id"))(t)
	defer x.Close()
	for _, paths := range [][]string{{"absent"}, {"file", "../absent"}, {"*.c"}, {":/absent"}} {
		if err := x.Add(t.Context(), paths...); !errors.Is(err, git.ErrNoMatch) {
			t.Errorf("%q: got %v", paths, err)
		}
	}
	if err := x.AddFromTop(t.Context(), "new"); !errors.Is(err, git.ErrNoMatch) {
		t.Errorf("got %v", err)
	}
	for _, paths := range [][]string{{"../../outside"}, {"../x.tmp"}, {":(nonsense)x"}} {
		if err := x.Add(t.Context(), paths...); err == nil || errors.Is(err, git.ErrNoMatch) {
			t.Errorf("%q: got %v", paths, err)
		}
	}
}

// What hooks see is the index that the environment names.
func TestTempIndexOfTheEnvironment(t *testing.T) {
	t.Parallel()
	top := stage(t)
	other := filepath.Join(top, ".git", "other-index")
	gittest.Run(t, gittest.Command(t, gittest.With(must2(gittest.Env(t)), "GIT_INDEX_FILE="+other), top, "git", "read-tree", "HEAD"))
	want := map[string]string{"file": "one", "sub/file": "two", "gone": "x", "staged": "x", "half": "more", ".gitignore": "*.tmp"}
	for _, name := range []string{other, ".git/other-index"} {
		r := open(t, filepath.Join(top, "sub"), "GIT_INDEX_FILE="+name)
		got := build(t, r, func(x *git.TempIndex) error { return x.Add(t.Context(), "../half") })
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func must2(env []string, _ string) []string { return env }

func TestTempIndexWithoutIndex(t *testing.T) {
	t.Parallel()
	dir := initRepo(t, "--object-format=sha256")
	gittest.Write(t, dir, map[string]string{"file": "x\n"})
	r := open(t, dir)
	x := must(r.TempIndex(t.Context(), "id"))(t)
	defer x.Close()
	if err := x.Add(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := listTree(t, dir, must(x.WriteTree(t.Context()))(t)); !maps.Equal(got, map[string]string{"file": "x"}) {
		t.Errorf("got %v", got)
	}
}

// The copy keeps what the index hides, and a split index in one piece.
func TestTempIndexOfOddIndex(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T, string){
		"skip-worktree": func(t *testing.T, dir string) {
			gittest.Git(t, dir, "update-index", "--skip-worktree", "gone")
		},
		"split": func(t *testing.T, dir string) { gittest.Git(t, dir, "update-index", "--split-index") },
		"version 4": func(t *testing.T, dir string) {
			gittest.Git(t, dir, "update-index", "--index-version", "4")
		},
		"untracked cache": func(t *testing.T, dir string) {
			gittest.Git(t, dir, "update-index", "--force-untracked-cache")
			gittest.Git(t, dir, "status", "--porcelain")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := stage(t)
			prepare(t, top)
			want := map[string]string{"file": "changed", "sub/file": "two", "sub/new": "new", "staged": "staged", "half": "more", ".gitignore": "*.tmp"}
			if name == "skip-worktree" {
				want["gone"] = "x"
			}
			r := open(t, top)
			got := build(t, r, func(x *git.TempIndex) error { return x.Add(t.Context()) })
			if !maps.Equal(got, want) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestDiffering(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(*testing.T, string)
		want    []string
	}{
		"nothing":            {func(*testing.T, string) {}, nil},
		"changed":            {func(t *testing.T, dir string) { gittest.Write(t, dir, map[string]string{"file": "x\n"}) }, []string{"file"}},
		"odd name":           {func(t *testing.T, dir string) { gittest.Write(t, dir, map[string]string{" é\n\t\"": "x\n"}) }, []string{" é\n\t\""}},
		"a directory":        {func(t *testing.T, dir string) { gittest.Write(t, dir, map[string]string{"new/a": "", "new/b": ""}) }, []string{"new/"}},
		"an empty directory": {func(t *testing.T, dir string) { os.Mkdir(filepath.Join(dir, "new"), 0o700) }, nil},
		"ignored":            {func(t *testing.T, dir string) { gittest.Write(t, dir, map[string]string{"x.tmp": "x\n"}) }, nil},
		"touched": {func(t *testing.T, dir string) {
			long := time.Now().Add(-time.Hour)
			os.Chtimes(filepath.Join(dir, "file"), long, long)
		}, nil},
		"staged": {func(t *testing.T, dir string) {
			gittest.Write(t, dir, map[string]string{"new": "x\n"})
			gittest.Git(t, dir, "add", "new")
			gittest.Git(t, dir, "rm", "--quiet", "sub/file")
		}, []string{"new", "sub/file"}},
		"staged and put back": {func(t *testing.T, dir string) {
			gittest.Write(t, dir, map[string]string{"file": "x\n"})
			gittest.Git(t, dir, "add", "file")
			gittest.Write(t, dir, map[string]string{"file": "one\n"})
		}, nil},
		"moved": {func(t *testing.T, dir string) { gittest.Git(t, dir, "mv", "sub/file", "moved") }, []string{"moved", "sub/file"}},
		"hidden": {func(t *testing.T, dir string) {
			gittest.Git(t, dir, "update-index", "--assume-unchanged", "file")
			gittest.Git(t, dir, "update-index", "--skip-worktree", "sub/file")
		}, []string{"file", "sub/file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := initRepo(t)
			gittest.Commit(t, dir, "begin", map[string]string{"file": "one\n", "sub/file": "two\n", ".gitignore": "*.tmp\n"})
			for _, setting := range []string{"status.showUntrackedFiles=no", "status.renames=copies", "status.branch=true", "status.short=true",
				"status.relativePaths=true", "column.ui=always", "color.ui=always", "core.quotePath=true"} {
				key, value, _ := strings.Cut(setting, "=")
				gittest.Git(t, dir, "config", key, value)
			}
			test.prepare(t, dir)
			objects := gittest.Git(t, dir, "count-objects")
			x := must(open(t, filepath.Join(dir, "sub", "..")).TempIndex(t.Context(), "id"))(t)
			defer x.Close()
			if err := x.Reset(t.Context(), revParse(t, dir, "HEAD^{tree}")); err != nil {
				t.Fatal(err)
			}
			got := must(x.Differing(t.Context()))(t)
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if after := gittest.Git(t, dir, "count-objects"); after != objects {
				t.Errorf("objects were stored: %s, there were %s", after, objects)
			}
		})
	}
}

// Git's own "git add" of these pathspecs adds nothing, and says nothing.
func TestAddWithAnExclusionBehind(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "begin", map[string]string{"src/old": "old\n", "docs/old": "old\n"})
	gittest.Write(t, dir, map[string]string{"src/new": "new\n", "src/not": "not\n", "docs/new": "new\n"})
	r := open(t, dir)
	for _, paths := range [][]string{{"src/new", ":!docs"}, {"src", ":(top,exclude)src/not", ":^docs"}, {":(exclude)docs", ":!src/not"}} {
		index := must(r.TempIndex(t.Context(), "id"))(t)
		if err := index.Add(t.Context(), paths...); err != nil {
			t.Fatal(err)
		}
		tree := must(index.WriteTree(t.Context()))(t)
		if got := gittest.Git(t, dir, "diff", "--name-only", "HEAD", string(tree)); got != "src/new" {
			t.Errorf("of %q there is %q", paths, got)
		}
		index.Close()
	}
	noTrace(t, r)
}

// A copy takes the place of the index only while that is as it was, and nobody
// writes it.
func TestInstall(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "begin", map[string]string{"file": "one\n", "other": "x\n"})
	gittest.Git(t, dir, "update-index", "--assume-unchanged", "other")
	gittest.Write(t, dir, map[string]string{"file": "two\n"})
	r := open(t, dir)
	stamp := r.IndexStamp()
	index := must(r.TempIndex(t.Context(), "id"))(t)
	if index.Install(stamp) {
		t.Error("a copy that git has not written took the index's place, with our mode")
	}
	if err := index.Add(t.Context(), "file"); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(dir, ".git", "index.lock")
	gittest.Write(t, dir, map[string]string{".git/index.lock": ""})
	if index.Install(stamp) {
		t.Error("installed beside somebody who writes")
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if index.Install("another" + stamp) {
		t.Error("installed over another index")
	}
	if got := gittest.Git(t, dir, "status", "--porcelain"); got != " M file" {
		t.Errorf("status %q", got)
	}
	stamp = r.IndexStamp() // "git status" has refreshed it
	if !index.Install(stamp) {
		t.Error("not installed")
	}
	index.Close()
	if got := gittest.Git(t, dir, "status", "--porcelain"); got != "M  file" {
		t.Errorf("status %q", got)
	}
	if got := gittest.Git(t, dir, "ls-files", "-v", "other"); got != "h other" {
		t.Errorf("ls-files %q", got)
	}
	noTrace(t, r)
}

// Reset reads no file: what the index hides may be changed, and the tree have others of it.
func TestResetOfHiddenPaths(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "then", map[string]string{"skipped": "1\n", "assumed": "1\n"})
	gittest.Commit(t, dir, "now", map[string]string{"skipped": "2\n", "assumed": "2\n"})
	gittest.Git(t, dir, "update-index", "--skip-worktree", "skipped")
	gittest.Git(t, dir, "update-index", "--assume-unchanged", "assumed")
	gittest.Write(t, dir, map[string]string{"skipped": "mine\n", "assumed": "mine\n"})
	x := must(open(t, dir).TempIndex(t.Context(), "id"))(t)
	defer x.Close()
	then := revParse(t, dir, "HEAD~^{tree}")
	if err := x.Reset(t.Context(), then); err != nil {
		t.Fatal(err)
	}
	if got := must(x.WriteTree(t.Context()))(t); got != then {
		t.Errorf("got %s, want %s", got, then)
	}
	differing := must(x.Differing(t.Context()))(t)
	slices.Sort(differing)
	if got := slices.Compact(differing); !slices.Equal(got, []string{"assumed", "skipped"}) {
		t.Errorf("differing: %q", got)
	}
}

package cli

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"gitland/internal/gittest"
)

// landsAlike is the script command "lands [OPTION... --] PATH...". It lands paths, from where the script is, and wants that to be
// exactly what "git add -A" and "git commit --only" make of them in a copy of the clone: the
// same tree, at the remote; the same index, with all flags; the same status. No file
// changes. A PATH that begins with a double quote is a Go string, for names that a
// script cannot have.
func landsAlike(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: lands [OPTION... --] PATH...")
	}
	var options []string
	if i := slices.Index(args, "--"); i >= 0 {
		options, args = args[:i], args[i+1:]
	}
	for i, arg := range args {
		if strings.HasPrefix(arg, `"`) {
			name, err := strconv.Unquote(arg)
			ts.Check(err)
			args[i] = name
		}
	}
	git := func(args ...string) string {
		ts.Check(ts.Exec("git", args...))
		return ts.ReadFile("stdout")
	}
	seen := func(top string) []string {
		return []string{git("-C", top, "ls-files", "--stage", "-v", "-z"), git("status", "--porcelain=v2", "-z")}
	}
	here := ts.MkAbs(".")
	top := strings.TrimSuffix(git("rev-parse", "--show-toplevel"), "\n")
	copied := filepath.Join(filepath.Dir(top), "copy-of-"+filepath.Base(top))
	ts.Check(os.RemoveAll(copied))
	gittest.CopyTree(scriptT{ts}, top, copied)
	inside, err := filepath.Rel(top, here)
	ts.Check(err)
	if !filepath.IsLocal(inside) {
		ts.Fatalf("%s is reached by another way than %s", here, top)
	}

	ts.Check(ts.Chdir(filepath.Join(copied, inside)))
	git(append([]string{"add", "-A", "--"}, args...)...)
	git(append([]string{"commit", "--quiet", "--only", "-m", "change", "--"}, args...)...)
	tree, listed, after := git("rev-parse", "HEAD^{tree}"), git("ls-tree", "-r", "--full-tree", "HEAD"), seen(copied)

	ts.Check(ts.Chdir(here))
	files := gittest.Files(scriptT{ts}, top)
	git(append(append(append([]string{"land", "--force-unverified", "--reason", "test", "-m", "change"}, options...), "--"), args...)...)
	if got := git("rev-parse", "refs/lease-remote/origin/heads/main^{tree}"); got != tree {
		ts.Fatalf("what landed is\n%s\nand what git commits is\n%s", git("ls-tree", "-r", "--full-tree", strings.TrimSpace(got)), listed)
	}
	for i, got := range seen(top) {
		if got != after[i] {
			ts.Fatalf("index, or status, after it is\n%q\nand after git commit it is\n%q", got, after[i])
		}
	}
	if got := gittest.Files(scriptT{ts}, top); !maps.Equal(got, files) {
		ts.Fatalf("files were\n%v\nand are\n%v", files, got)
	}
}

// scriptT is a script as the helpers of gittest want it.
type scriptT struct{ *testscript.TestScript }

func (scriptT) Helper()                            {}
func (t scriptT) Cleanup(f func())                 { t.Defer(f) }
func (t scriptT) Skipf(format string, args ...any) { t.Fatalf(format, args...) }
func (t scriptT) TempDir() string                  { return t.MkAbs("tmp") }

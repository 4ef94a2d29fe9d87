package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "gitland"

// layers are the packages of the program, from the bottom up. A package may
// import those of lower layers, and none beside it: what two of them share
// belongs below both.
var layers = [][]string{
	{"internal/object", "internal/fault", "hooks"},
	{"internal/event"},
	{"internal/chain", "internal/note"},
	{"internal/git", "internal/session", "internal/child"},
	{"internal/policy"},
	{"internal/ledger"},
	{"internal/verify"},
	{"internal/lease"},
	{"internal/step"},
	{"internal/land", "internal/reconcile", "internal/hook"},
	{"internal/doctor", "internal/setup"},
	{"internal/cli"},
	{"cmd/git-land", "cmd/git-lease"},
}

// forTests may import anything, and only tests may import them.
var forTests = []string{"internal", "internal/acceptance", "internal/acceptance/property", "internal/gittest", "internal/gittest/bench", "scripts", "scripts/release-example"}

// examples are copied by others, and use what comes with Go.
var examples = []string{"scripts/release-example/release", "scripts/release-example/registry"}

// A ban is on importing a package, with those who are exempt and the reason.
// Tests are exempt from the bans that say so.
type ban struct {
	imported string
	but      []string
	tests    bool // are exempt
	why      string
}

var bans = []ban{
	{"os/exec", []string{"internal/git", "internal/child", "internal/gittest"}, true,
		"git has one door, where its environment is set and its errors are read; a user's command has one, where signals are"},
	{"syscall", []string{"internal/git", "internal/child", "internal/session", "internal/verify", "internal/cli", "internal/gittest"}, true,
		"processes, locks and signals are the business of few"},
	{"github.com/urfave/cli/v2", []string{"internal/cli"}, false,
		"the command line's library must stay one that can be exchanged"},
	{"golang.org/x/term", []string{"internal/cli"}, false,
		"only who prints may ask for a terminal"},
	{"github.com/rogpeppe/go-internal/lockedfile", []string{"internal/session"}, false,
		"local locks, and the order in which they are taken, are session's"},
	{module + "/internal/child", []string{"internal/verify", "internal/lease", "internal/step", "internal/cli"}, true,
		"only those who run a user's command may start a process beside git"},
	{module + "/internal/chain", []string{"internal/ledger", "internal/lease", "internal/step", "internal/land", "internal/reconcile"}, true,
		"what may follow what is asked by those who append, and what has followed by those who tell of it"},
	{module + "/internal/cli", []string{"cmd/git-land", "cmd/git-lease"}, true,
		"a command line is no library"},
	{"log", nil, false, "what a user should know is told through cli, in one form"},
	{"unsafe", nil, false, "nothing here needs it"},
}

// pure packages do no input or output, so that they can be tested by their
// values alone and used by a server's hook.
var pure = []string{"internal/object", "internal/fault", "internal/event", "internal/chain", "internal/note"}

var outside = []string{"os", "os/exec", "os/signal", "net", "net/http", "syscall", "io/fs", "path/filepath"}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	layer := map[string]int{}
	for i, packages := range layers {
		for _, p := range packages {
			layer[p] = i
		}
	}
	for _, use := range imports(t) {
		own, ok := strings.CutPrefix(use.imported, module+"/")
		if !ok || slices.Contains(forTests, use.importer) {
			continue
		}
		at, known := layer[use.importer]
		to, exists := layer[own]
		switch {
		case !known:
			t.Errorf("%s: the package %s has no layer: give it one in this test", use.file, use.importer)
		case use.test && (slices.Contains(forTests, own) || own == use.importer):
		case slices.Contains(forTests, own):
			t.Errorf("%s imports %s, which is for tests", use.file, own)
		case !exists:
			t.Errorf("%s: the package %s has no layer: give it one in this test", use.file, own)
		case to >= at:
			t.Errorf("%s imports %s: imports point down only, from %s to lower layers", use.file, own, use.importer)
		}
	}
}

func TestBannedImports(t *testing.T) {
	t.Parallel()
	for _, use := range imports(t) {
		for _, b := range bans {
			if use.imported != b.imported || use.test && b.tests || slices.Contains(b.but, use.importer) || slices.Contains(examples, use.importer) {
				continue
			}
			t.Errorf("%s imports %s, which %s may not: %s", use.file, use.imported, use.importer, b.why)
		}
		if !use.test && slices.Contains(pure, use.importer) && slices.Contains(outside, use.imported) {
			t.Errorf("%s imports %s, but %s does no input or output", use.file, use.imported, use.importer)
		}
	}
}

func TestExamplesNeedNothing(t *testing.T) {
	t.Parallel()
	for _, use := range imports(t) {
		first, _, _ := strings.Cut(use.imported, "/")
		if slices.Contains(examples, use.importer) && (first == module || strings.Contains(first, ".")) {
			t.Errorf("%s imports %s, which does not come with Go: people copy the example", use.file, use.imported)
		}
	}
}

// TestBansAreAlive keeps the tables true: an exemption that nobody uses any
// more, and a package that is gone, have to leave them.
func TestBansAreAlive(t *testing.T) {
	t.Parallel()
	uses := imports(t)
	for _, b := range bans {
		for _, p := range b.but {
			if !slices.ContainsFunc(uses, func(u use) bool { return u.importer == p && u.imported == b.imported }) {
				t.Errorf("%s no longer imports %s: end its exemption", p, b.imported)
			}
		}
	}
	for _, p := range slices.Concat(slices.Concat(layers...), forTests, examples) {
		if !slices.ContainsFunc(uses, func(u use) bool { return u.importer == p }) {
			t.Errorf("the package %s is gone, or imports nothing: take it out of the tables", p)
		}
	}
}

// A use is one import in one file.
type use struct {
	file, importer, imported string
	test                     bool
}

func imports(t *testing.T) []use {
	t.Helper()
	var uses []use
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		path = filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		importer := path[:max(0, strings.LastIndex(path, "/"))]
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			uses = append(uses, use{path, importer, imported, strings.HasSuffix(path, "_test.go")})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return uses
}

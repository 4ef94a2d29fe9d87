package policy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/session"
)

// open opens a repository whose HEAD has the policy, and git's configuration keys and values.
func open(t *testing.T, file string, config ...string) (*git.Repo, string) {
	t.Helper()
	dir := gittest.Clone(t, gittest.URL(gittest.Remote(t)))
	for i := 0; i < len(config); i += 2 {
		gittest.Git(t, dir, "config", "--add", config[i], config[i+1])
	}
	if file != "" {
		gittest.Commit(t, dir, "agree", map[string]string{policy.File: file})
	}
	environ, _ := gittest.Env(t)
	repo, err := git.Open(t.Context(), git.Options{Dir: dir, Environ: environ, Unattended: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repo.Close)
	return repo, dir
}

func read(t *testing.T, repo *git.Repo, at string) policy.Policy {
	t.Helper()
	r, err := policy.NewReader(repo)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.At(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What the file says counts before git's configuration, key by key, and check by check.
func TestFileBeforeConfiguration(t *testing.T) {
	t.Parallel()
	own := []string{"land.onto", "refs/heads/own", "lease.name", "own", "land.require", "unit", "land.paths", "own", "lease.protect", "own/*",
		"land.verify.setup", "own setup", "land.check.mine.command", "mine", "land.check.Both.command", "mine", "land.wait", "3s"}
	repo, _ := open(t, "[land]\n\tonto = team\n\trequire = result\n\tpaths = a\n\tpaths = b\n[land \"check.Both\"]\n\tcommand = team\n[land \"check.one two\"]\n\tcommand = y\n", own...)
	p := read(t, repo, "HEAD")
	var checks []string
	for _, c := range p.Checks {
		checks = append(checks, c.Name+"="+c.Text)
	}
	if p.Problem != nil || p.Target != "refs/heads/team" || p.Unit || p.Lease != "own" || strings.Join(p.Paths, " ") != "a b" ||
		strings.Join(p.Protect, " ") != "own/*" || p.Setup.Text != "own setup" || p.Setup.Shared ||
		strings.Join(checks, ", ") != "Both=team, one two=y, mine=mine" {
		t.Errorf("%+v", p)
	}
	if p := read(t, repo, "HEAD~"); p.Blob != "" || p.Target != "refs/heads/own" || !p.Unit || len(p.Checks) != 2 || p.Checks[0].Text != "mine" {
		t.Errorf("without the file %+v", p)
	}
	if p := read(t, repo, "refs/heads/nosuch"); p.Target != "refs/heads/own" {
		t.Errorf("without a commit %+v", p)
	}
	if got := p.Commands(); len(got) != 2 || got[0].Key != "land.check.Both.command" || got[1].Text != "y" {
		t.Errorf("commands %+v", got)
	}
}

// Retries are those of the file, and where it has none for a check, of the clone, also for
// a check of the file.
func TestRetries(t *testing.T) {
	t.Parallel()
	repo, _ := open(t, "[land \"check.a\"]\n\tcommand = x\n\tretries = 1\n[land \"check.b\"]\n\tcommand = x\n[land \"check.c\"]\n\tcommand = x\n\tretries = 0\n",
		"land.check.a.retries", "9", "land.check.b.retries", "1", "land.check.b.retries", "2", "land.check.c.retries", "3", "land.check.other.retries", "4")
	p := read(t, repo, "HEAD")
	if p.Problem != nil || len(p.Checks) != 3 {
		t.Errorf("%+v", p)
	}
	for check, want := range map[string]int{"a": 1, "b": 2, "c": 0, "other": 4, "none": 0} {
		if got := p.Retries(check); got != want {
			t.Errorf("%s is run again %d times, want %d", check, got, want)
		}
	}
	odd, _ := open(t, "", "land.check.a.retries", "many")
	if _, err := policy.Configured(odd.Config); err == nil || err.Error() != `config land.check.a.retries: "many" is no number from 0 to 10` {
		t.Error(err)
	}
}

// Steps stand in the order of the file, then of the configuration, which fills in what the
// file leaves open and replaces nothing.
func TestSteps(t *testing.T) {
	t.Parallel()
	file := "[land \"step.b\"]\n\trun = team b\n[land \"step.a\"]\n\trun = team a\n\tcheck = is a\n"
	repo, _ := open(t, file, "land.step.own.run", "mine", "land.step.a.run", "mine", "land.step.a.check", "mine", "land.step.b.check", "is b",
		"land.step.gone.run", "x", "land.step.gone.run", "")
	spell := func(p policy.Policy) string {
		var list []string
		for _, s := range p.Steps {
			list = append(list, s.Name+"="+s.Run.Text+"?"+s.Check.Text)
		}
		return strings.Join(list, ", ")
	}
	for range 2 { // what is kept of the file does not change
		if got, want := spell(read(t, repo, "HEAD")), "b=team b?is b, a=team a?is a, own=mine?"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got, want := spell(read(t, repo, "HEAD~")), "own=mine?, a=mine?mine, b=?is b"; got != want {
		t.Errorf("without the file %s, want %s", got, want)
	}
	var keys []string
	for _, c := range read(t, repo, "HEAD").Commands() {
		keys = append(keys, c.Key)
	}
	if got := strings.Join(keys, " "); got != "land.step.b.run land.step.a.run land.step.a.check" {
		t.Errorf("commands %s", got)
	}
	odd, _ := open(t, "", "land.step.a b.run", "x")
	if _, err := policy.Configured(odd.Config); err == nil || !strings.Contains(err.Error(), "is no name of a step") {
		t.Error(err)
	}
	var many strings.Builder
	for i := range 65 {
		fmt.Fprintf(&many, "[land \"step.s%d\"]\n\trun = x\n", i)
	}
	repo, _ = open(t, many.String())
	if p := read(t, repo, "HEAD"); p.Problem == nil || !strings.Contains(p.Problem.What, "land.step.s64.run is one step too many") {
		t.Errorf("%v", p.Problem)
	}
}

// What is not understood is named, and what is stands all the same.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, problem string }{
		{"", ""},
		{"# nothing\n", ""},
		{"[land]\n\tonto = main\n", ""},
		{"[land]\r\n\tonto = main\r\n", ""},
		{"[land]\n\tont = main\n\tont = x\n[alias]\n\tx = !x\n", "has keys that this version does not know: land.ont, alias.x"},
		{"[include]\n\tpath = /etc/passwd\n", "has keys that this version does not know: include.path"},
		{"[land \"step.publish\"]\n\truns = x\n", "does not know: land.step.publish.runs"},
		{"[land \"step.a b\"]\n\trun = x\n", "is no name of a step"},
		{"[land \"step.publish\"]\n\tcheck = x\n", "land.step.publish.check is of no step that has a command"},
		{"[land \"step.publish\"]\n\trun = x\n\trun = y\n", "land.step.publish.run is given twice"},
		{"[land \"check.\"]\n\tcommand = x\n", "the name of a check is one line of text"},
		{"[land \"check.a\"]\n\tcommand = \"  \"\n", "land.check.a.command is blank"},
		{"[land \"check.a\"]\n\tcommand\n", "land.check.a.command has no value"},
		{"[land \"check.a\"]\n\tcommand = \"a\\tb\"\n", "land.check.a.command is more than one line"},
		{"[land \"check.a\"]\n\tcommand = a\u202eb\n", "land.check.a.command is more than one line"},
		{"[land \"check.a\"]\n\tcommand = a\u200bb\n", "land.check.a.command is more than one line"},
		{"[land \"check.a\"]\n\tcommand = a\u00a0b\n", "land.check.a.command is more than one line"},
		{"[land \"check.a\"]\n\tcommand = a\ufe0fb\U000e0101\n", "land.check.a.command is more than one line"},
		{"[land \"check.a\"]\n\tcommand = a\u3164\n", "land.check.a.command is more than one line"},
		{"[land \"check.a\u200b\"]\n\tcommand = a\n", "the name of a check is one line of text"},
		{"[land \"check.ä\"]\n\tcommand = héllo 世界 ✓\n", ""},
		{"[land]\n\tpaths = ../x\n", `land.paths "../x" leads out of the tree`},
		{"[land]\n\tpaths = a/../../x\n", "leads out of the tree"},
		{"[land]\n\tpaths = /etc\n", "leads out of the tree"},
		{"[land]\n\tpaths = \":(literal)../..\"\n", "leads out of the tree"},
		{"[land]\n\tpaths = \":(bogus)x\"\n", "is no pathspec that every git takes"},
		{"[land]\n\tpaths = \":(prefix:99)x\"\n", "is no pathspec that every git takes"},
		{"[land]\n\tpaths = \":(top\"\n", "is no pathspec that every git takes"},
		{"[land]\n\tpaths = \":(glob,literal)x\"\n", "is no pathspec that every git takes"},
		{"[land]\n\tpaths = \":(attr:a)x\"\n", "is no pathspec that every git takes"},
		{"[land]\n\tpaths = :@x\n", "is no pathspec that every git takes"},
		{"[land]\n\tpaths = \":(top,icase)x\"\n\tpaths = :/\n\tpaths = \":!y\"\n\tpaths = \":(exclude,glob)**/z\"\n\tpaths = .\n\tpaths = -A\n\tpaths = ..x\n\tpaths = \":^w\"\n", ""},
		{"[land \"verify\"]\n\tsetup = \"a\\nb\"\n", "land.verify.setup is more than one line"},
		{"[land \"check.a\"]\n\tcommand = " + strings.Repeat("x", 5000) + "\n", "land.check.a.command is more than one line"},
		{"[land \"check." + strings.Repeat("x", 101) + "\"]\n\tcommand = a\n", "the name of a check is one line of text"},
		{"[land]\n\tonto = -x\n", ""},
		{"[land]\n\tonto = a..b\n", `land.onto "a..b" is not the name of a branch`},
		{"[land]\n\tonto =\n", "land.onto is empty"},
		{"[lease]\n\tname = \" x\"\n", "lease.name "},
		{"[lease]\n\tprotect = [\n", `lease.protect "[" is no pattern`},
		{"[lease]\n\tprotect = release/**\n", ""},
		{"[land \"check.a\"]\n\tretries = 2\n\tcommand = x\n", ""},
		{"[land \"check.a\"]\n\tcommand = x\n\tretries = 11\n", `land.check.a.retries "11" is no number from 0 to 10`},
		{"[land \"check.a\"]\n\tcommand = x\n\tretries = -1\n", `land.check.a.retries "-1" is no number`},
		{"[land \"check.a\"]\n\tcommand = x\n\tretries = 1\n\tretries = 2\n", "land.check.a.retries is given twice"},
		{"[land \"check.a\"]\n\tcommand = x\n[land \"check.b\"]\n\tretries = 1\n", "land.check.b.retries is of no check that has a command"},
		{"[land \"check.a\"]\n\tcommand =\n\tretries = 1\n", "land.check.a.retries is of no check that has a command"},
		{checks(300, 1), "has 300 checks, which are more, or longer, than the record of a landing can name"},
		{checks(15, 4000), "has 15 checks, which are more, or longer,"},
		{checks(100, 100), ""},
		{"[land]\n\trequire = both\n", `land.require "both" is neither result nor unit`},
		{"[land \"check.a\"]\n\tcommand = x\n\tcommand = y\n", "land.check.a.command is given twice"},
		{"[land]\n\tonto = a\n\tonto = b\n", "land.onto is given twice"},
		{"[land]\n\tpaths = a\n\tpaths = b\n[lease]\n\tprotect = a\n\tprotect = b\n", ""},
		{"[land]\n\twait = 3s\n", "land.wait (land.wait is for a clone's own configuration)"},
		{"[land \"chekc.a\"]\n\tcommand = x\n", "land.chekc.a.command (it knows land.check.NAME.command, land.check.NAME.retries, land.step.NAME.run, land.step.NAME.check, land.maxFiles, land.mode, land.onto, "},
		{"[land]\n\tmode = sqash\n", "land.mode \"sqash\" is none of rebase, squash, merge and ff-only"},
		{"[land]\n\tmaxFiles = 0\n", "land.maxFiles \"0\" is no number of files"},
		{"[land\n", "is not in git's configuration syntax: bad config line 1 in blob "},
		{"\xff\n", "is not UTF-8 text"},
		{"# \x00\n", "is not UTF-8 text"},
		{"#" + strings.Repeat("x", 1<<16) + "\n", "is larger than the 65536 bytes that are allowed"},
	} {
		repo, _ := open(t, tt.file)
		p := read(t, repo, "HEAD")
		switch {
		case tt.problem == "" && p.Problem != nil, tt.problem != "" && (p.Problem == nil || !strings.Contains(p.Problem.What, tt.problem)):
			t.Errorf("%.80q: %v, want %q", tt.file, p.Problem, tt.problem)
		}
	}
}

// checks are so many, each with a command of so many bytes.
func checks(n, size int) string {
	var file strings.Builder
	for i := range n {
		fmt.Fprintf(&file, "[land \"check.%d\"]\ncommand=%s\n", i, strings.Repeat("x", size))
	}
	return file.String()
}

// A policy that is no regular file is none, and so not nothing either.
func TestNoRegularFile(t *testing.T) {
	t.Parallel()
	repo, dir := open(t, "")
	blob := gittest.Git(t, dir, "rev-parse", "HEAD:README")
	for mode, oid := range map[string]string{"120000": blob, "160000": gittest.Git(t, dir, "rev-parse", "HEAD")} {
		gittest.Git(t, dir, "update-index", "--add", "--cacheinfo", mode+","+oid+","+policy.File)
		tree := gittest.Git(t, dir, "write-tree")
		r, err := policy.NewReader(repo)
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.In(t.Context(), object.OID(tree))
		if err != nil || p.Problem == nil || !strings.Contains(p.Problem.What, "is no regular file") {
			t.Errorf("mode %s: %v, %v", mode, p.Problem, err)
		}
	}
}

// What stands at a blob's id as a file says nothing of a tree that has the same blob as
// a symbolic link, nor the other way round.
func TestSameBlobIsNoRegularFile(t *testing.T) {
	t.Parallel()
	repo, dir := open(t, "[land]\n\tonto = team")
	blob := gittest.Git(t, dir, "rev-parse", "HEAD:"+policy.File)
	gittest.Git(t, dir, "update-index", "--cacheinfo", "120000,"+blob+","+policy.File)
	link := object.OID(gittest.Git(t, dir, "write-tree"))
	file := object.OID(gittest.Git(t, dir, "rev-parse", "HEAD^{tree}"))
	for _, order := range [][]object.OID{{file, link}, {link, file}} {
		r, err := policy.NewReader(repo)
		if err != nil {
			t.Fatal(err)
		}
		for _, tree := range order {
			if p, err := r.In(t.Context(), tree); err != nil || (p.Problem != nil) != (tree == link) {
				t.Errorf("%s of %v: %v, %v", tree, order, p.Problem, err)
			}
		}
	}
}

// A tree that is not here is an error: to take it for one without a policy would let
// everything pass.
func TestMissingTree(t *testing.T) {
	t.Parallel()
	repo, _ := open(t, "")
	r, err := policy.NewReader(repo)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := r.In(t.Context(), object.OID(strings.Repeat("1", 40))); err == nil {
		t.Errorf("a missing tree has the policy %+v", p)
	}
}

func TestConfigured(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ key, value, want string }{
		{"land.onto", "a..b", `config land.onto: "a..b" is not the name of a branch`},
		{"land.require", "both", `config land.require: "both" is neither result nor unit`},
		{"lease.protect", "[", `config lease.protect: "[" is no pattern such as main or release/*`},
		{"land.paths", "", "config land.paths: is empty"},
		{"land.onto", "", ""},
		{"land.check.a.command", "a\nb", ""}, // the user has written it
	} {
		repo, _ := open(t, "", tt.key, tt.value)
		_, err := policy.NewReader(repo)
		if got := errorText(err); got != tt.want {
			t.Errorf("%s=%q: %q, want %q", tt.key, tt.value, got, tt.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A command is accepted for its key and as it is.
func TestAccept(t *testing.T) {
	t.Parallel()
	dir := session.Open(t.TempDir())
	one := policy.Command{Key: "land.check.a.command", Text: "one", Shared: true}
	changed, other, own := one, one, one
	changed.Text, other.Key, own.Shared = "two", "land.check.b.command", false
	if left, err := policy.Unaccepted(dir, one, own); err != nil || len(left) != 1 || left[0] != one {
		t.Errorf("left %v, %v", left, err)
	}
	if err := policy.Accept(dir, one); err != nil {
		t.Fatal(err)
	}
	if left, err := policy.Unaccepted(dir, one, changed, other, own); err != nil || len(left) != 2 || left[0] != changed || left[1] != other {
		t.Errorf("left %v, %v", left, err)
	}
	if err := policy.Accept(dir, changed); err != nil {
		t.Fatal(err)
	}
	if left, err := policy.Unaccepted(dir, one, changed); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// As many commands as one file can have are accepted, all of them.
func TestAcceptMany(t *testing.T) {
	t.Parallel()
	dir := session.Open(t.TempDir())
	var all []policy.Command
	for i := range 2500 {
		all = append(all, policy.Command{Key: fmt.Sprintf("land.check.%d.command", i), Text: "x", Shared: true})
	}
	if err := policy.Accept(dir, all...); err != nil {
		t.Fatal(err)
	}
	if left, err := policy.Unaccepted(dir, all...); err != nil || len(left) != 0 {
		t.Errorf("%d left, %v", len(left), err)
	}
}

// A file of which nothing can be read says that nothing was accepted, and is written anew.
func TestAcceptOverWhatIsCutOff(t *testing.T) {
	t.Parallel()
	one := policy.Command{Key: "land.check.a.command", Text: "one", Shared: true}
	for _, text := range []string{"", `{"format":1,"comm`, `{"format":"1"}`, "null"} {
		place := t.TempDir()
		file := filepath.Join(place, "lease", "accepted.json")
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		dir := session.Open(place)
		if left, err := policy.Unaccepted(dir, one); err != nil || len(left) != 1 {
			t.Errorf("%q: left %v, %v", text, left, err)
		}
		if err := policy.Accept(dir, one); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if left, err := policy.Unaccepted(dir, one); err != nil || len(left) != 0 {
			t.Errorf("%q: left %v after all, %v", text, left, err)
		}
	}
}

// What a newer version keeps is not written over by this one, which has to ask again.
func TestAcceptedByANewerVersion(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	dir := session.Open(place)
	file := filepath.Join(place, "lease", "accepted.json")
	const newer = `{"format":2,"commands":[{"key":"land.verify.setup","command":"true","until":"tomorrow"}]}`
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(newer), 0o600)); err != nil {
		t.Fatal(err)
	}
	command := policy.Command{Key: "land.verify.setup", Text: "true", Shared: true}
	if left, err := policy.Unaccepted(dir, command); err != nil || len(left) != 1 {
		t.Errorf("not accepted: %v, %v", left, err)
	}
	if err := policy.Accept(dir, command); fault.ClassOf(err) != fault.Ambiguous {
		t.Errorf("accept: %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != newer {
		t.Errorf("the file is %s, %v", text, err)
	}
}

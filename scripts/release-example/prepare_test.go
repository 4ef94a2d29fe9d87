package example

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

func TestReadFromAnyDirectory(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	for _, dir := range []string{"", "packages", "packages/cli/changes"} {
		if got := s.in(dir).exits(0, "release", "versions").Stdout; !strings.Contains(got, "search  0.4.2\nweb     3.0.0\n") {
			t.Errorf("in %q: %s", dir, got)
		}
		want := `text    1.0.0 -> 1.0.1  patch  packages/text/changes/accents.md
store   2.1.0 -> 2.1.1  patch  follows text 1.0.1
api     1.2.3 -> 1.3.0  minor  packages/api/changes/cursor.md, follows store 2.1.1
cli     1.9.0 -> 2.0.0  major  packages/cli/changes/no-all.md, packages/cli/changes/width.md, follows api 1.3.0
search  0.4.2 -> 0.4.3  patch  follows store 2.1.1, text 1.0.1
web     3.0.0 -> 3.0.1  patch  follows api 1.3.0, search 0.4.3
`
		if got := s.in(dir).exits(0, "release", "plan").Stdout; got != want {
			t.Errorf("in %q:\n%s", dir, got)
		}
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(s.exits(0, "release", "plan", "--json").Stdout), &list); err != nil || len(list) != 6 {
		t.Errorf("%v in %v", err, list)
	}
	s.exits(0, "release", "prepare")
	if got := s.exits(0, "release", "plan", "--json").Stdout; got != "[]\n" {
		t.Errorf("with nothing to do: %q", got)
	}
}

func TestMisused(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	nowhere := s
	nowhere.dir = t.TempDir()
	for _, c := range []struct {
		s    shop
		code int
		args string
		says string
	}{
		{s, 129, "resume", "resume takes OPERATION, and was given none\nhint: release resume OPERATION\n"},
		{s, 129, "upload api cli", "upload takes NAME, and was given api cli\nhint: release upload NAME\n"},
		{s, 129, "plan api", "plan takes no operand, and was given api\nhint: release plan\n"},
		{nowhere, 5, "plan", "this is no checkout of a repository\nhint: cd to one first\n"},
		{nowhere, 5, "uploaded api", "this is no checkout of a repository\nhint: cd to one first\n"},
	} {
		if r := c.s.exits(c.code, "release", strings.Fields(c.args)...); !strings.HasSuffix(r.Stderr, "release: "+c.says) {
			t.Errorf("%s: said %q", c.args, r.Stderr)
		}
	}
}

// A token that holds nothing any more is as good as none, for git land and so for us. One
// whose hold was taken off it is not: somebody has to know of that first.
func TestStaleToken(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	s.openRegistry()
	const broken = `git lease acquire >../token; . ../token
		(unset GIT_LEASE_TOKEN; git lease break main --operation "$GIT_LEASE_OPERATION" --reason test)
		`
	for _, command := range []string{"prepare", "publish"} {
		if r := s.exits(6, "sh", "-c", broken+"release "+command); command == "prepare" && !strings.Contains(r.Stderr, "lost the lease main: broken by ") {
			t.Errorf("said %q", r.Stderr)
		}
		s.exits(0, "sh", "-e", "-c", `git lease acquire >../token; . ../token; git lease release; release `+command)
	}
}

// What a refusal says to type, where another one is at work, waits and prepares.
func TestBusy(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	holder := s.with("GIT_LEASE_SESSION=holder")
	holder.exits(0, "git-lease", "acquire")
	refused := s.exits(3, "release", "prepare")
	_, hint, _ := strings.Cut(refused.Stderr, "hint: ")
	hint, _, _ = strings.Cut(hint, "   (")
	if !strings.Contains(hint, " --wait ") {
		t.Fatalf("said %q", refused.Stderr)
	}
	waits := make(chan gittest.Result, 1)
	cmd := s.cmd("sh", "-c", hint)
	go func() { waits <- gittest.Run(t, cmd) }()
	holder.exits(0, "git-lease", "release")
	if r := <-waits; r.Code != 0 {
		t.Errorf("%+v", r)
	}
	if err := s.isPrepared(); err != nil {
		t.Error(err)
	}
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, s shop) {
		s.in("packages/web").exits(0, "release", "prepare")
		if err := s.isPrepared(); err != nil {
			t.Error(err)
		}
		want := "# cli\n\n## 2.0.0\n\n- major: The option --all is gone: lists are whole.\n" +
			"- patch: Help is no wider than the terminal.\n- follows api 1.3.0\n"
		if got := gittest.Read(t, s.dir, "packages/cli/NOTES.md"); got != want {
			t.Errorf("notes: %s", got)
		}
		want = "{\n  \"name\": \"search\",\n  \"version\": \"0.4.3\",\n  \"dependencies\": {\n    \"store\": \"2.1.1\",\n    \"text\": \"1.0.1\"\n  }\n}\n"
		if got := gittest.Read(t, s.dir, "packages/search/package.json"); got != want {
			t.Errorf("manifest: %s", got)
		}
		if op := s.holder(); op != "" {
			t.Errorf("operation %s holds the lease still", op)
		}
		if r := s.exits(5, "release", "prepare"); !strings.Contains(r.Stderr, "operation "+s.preparedBy()+" has prepared a release here") {
			t.Errorf("said %q", r.Stderr)
		}
		if r := s.exits(0, "release", "prepare", "--dirty"); !strings.Contains(r.Stderr, "nothing to release") {
			t.Errorf("said %q", r.Stderr)
		}

		// Later notes go above.
		s.git("add", ".")
		s.git("commit", "--quiet", "--message=released")
		gittest.Commit(t, s.dir, "change", map[string]string{"packages/cli/changes/b.md": "minor\n\nOne.\n\nTwo.\n"})
		s.exits(0, "release", "prepare")
		if got := gittest.Read(t, s.dir, "packages/cli/NOTES.md"); !strings.HasPrefix(got, "# cli\n\n## 2.1.0\n\n- minor: One.\n  \n  Two.\n\n## 2.0.0\n\n- major: ") {
			t.Errorf("notes: %s", got)
		}
		if v := s.versions(); v["cli"] != "2.1.0" || v["api"] != "1.3.0" {
			t.Errorf("versions %v", v)
		}
	})
}

func TestDirtyIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	for _, file := range []string{"packages/api/code", "packages/text/package.json"} {
		gittest.Write(t, s.dir, map[string]string{file: "{\"name\": \"text\", \"version\": \"1.0.0\"}\n"})
		before := gittest.Files(t, s.dir)
		r := s.exits(5, "release", "prepare")
		if !strings.Contains(r.Stderr, "the checkout has changes: "+file+"\n") {
			t.Errorf("said %q", r.Stderr)
		}
		if after := gittest.Files(t, s.dir); !maps.Equal(before, withoutState(after)) {
			t.Errorf("files are %v, and were %v", after, before)
		}
		s.exits(0, "release", "prepare", "--dirty")
		if err := s.isPrepared(); err != nil {
			t.Error(err)
		}
		s.fresh()
	}
}

// withoutState is a list of files without those of the tool itself.
func withoutState(files map[string]string) map[string]string {
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, ".release/") })
	return files
}

func TestUnsoundSources(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	for _, c := range []struct{ file, content, says string }{
		{"packages/api/changes/x.md", "Fixes it.\n", `packages/api/changes/x.md: the first line is "Fixes it.", not one of patch, minor, major`},
		{"packages/api/changes/x.md", "minor\n\n", "packages/api/changes/x.md says nothing for the notes"},
		{"packages/api/package.json", `{"name": "apis", "version": "1.0.0"}`, `packages/api/package.json names the package "apis"`},
		{"packages/api/package.json", `{"name": "api", "version": "1.0"}`, `"1.0" is no version such as 1.2.3`},
		{"packages/api/package.json", `{"name": "api", "version": "1.0.0", "private": true}`, `unknown field "private"`},
		{"packages/api/package.json", `{"name": "api", "version": "1.0.0", "dependencies": {"gone": "1.0.0"}}`, "gone, of api: there is no such package"},
		{"packages/api/package.json", `{"name": "api", "version": "1.0.0", "dependencies": {"web": "1.0.0"}}`, "it depends on itself"},
	} {
		gittest.Write(t, s.dir, map[string]string{c.file: c.content})
		for _, args := range [][]string{{"plan"}, {"prepare", "--dirty"}} {
			if r := s.exits(1, "release", args...); !strings.Contains(r.Stderr, c.says) {
				t.Errorf("%q: %q is missing in %q", args, c.says, r.Stderr)
			}
		}
		s.git("reset", "--quiet", "--hard")
		s.git("clean", "-fdq")
	}
}

// A token is believed by nobody but the remote.
func TestLeaseIsDemanded(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, s shop) {
		before := gittest.Files(t, s.dir)
		steps := [][]string{{"tag", "text"}, {"upload", "text"}}
		mutating := append([][]string{{"prepare"}}, steps...)
		stray := s.with("GIT_LAND_STEP=upload-text", "GIT_LEASE_TOKEN="+strings.Repeat("ab", 32), "GIT_LAND_COMMIT="+s.git("rev-parse", "HEAD"), "GIT_LEASE_OPERATION=01ARZ3NDEKTSV4RRFFQ69G5FAV", "GIT_LEASE_NAME=main")
		for _, args := range steps { // a step takes none
			if r := stray.exits(6, "release", args...); !strings.Contains(r.Stderr, "\nhint: git land status ") {
				t.Errorf("%q said %q", args, r.Stderr)
			}
			s.exits(5, "release", args...)
			s.with("GIT_LAND_COMMIT=HEAD").exits(6, "release", args...)
		}
		// A hold of another lease is none.
		s.with("GIT_LAND_COMMIT=HEAD").exits(6, "git-lease", "run", "docs", "--", "release", "upload", "text")

		holder := s.with("GIT_LEASE_SESSION=holder")
		holder.exits(0, "git-lease", "acquire")
		op := s.holder()
		for _, args := range mutating {
			if r := stray.exits(3, "release", args...); !strings.Contains(r.Stderr, "operation "+op) {
				t.Errorf("%q said %q", args, r.Stderr)
			}
		}
		if r := s.exits(3, "release", "prepare"); !strings.Contains(r.Stderr, "operation "+op) {
			t.Errorf("said %q", r.Stderr)
		}
		s.with("GIT_LEASE_SESSION=other").exits(3, "release", "prepare")
		s.reads()
		if after := gittest.Files(t, s.dir); !maps.Equal(before, after) {
			t.Errorf("files are %v, and were %v", after, before)
		}
		holder.exits(0, "release", "prepare") // by the lease that it has
		if s.holder() != op {
			t.Error("a lease that the session brought was given back")
		}
		holder.exits(0, "git-lease", "release")
		if err := s.isPrepared(); err != nil {
			t.Error(err)
		}
		s.fresh()
		s.exits(0, "git-lease", "run", "--", "release", "prepare")
		if err := s.isPrepared(); err != nil {
			t.Error(err)
		}
	})
}

// A remote that was named counts in all that a command starts.
func TestRemoteIsNamed(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	s.exits(0, "release", "prepare", "--remote", ".")
	if err := s.isPrepared(); err != nil {
		t.Error(err)
	}
	if refs := gittest.Git(t, s.remote, "for-each-ref", "refs/lease"); refs != "" {
		t.Errorf("the other remote has %s", refs)
	}
	if refs := s.git("for-each-ref", "refs/lease/main"); refs == "" {
		t.Error("there is no lease here")
	}
}

// Of two preparations that start at the same time one mutates. The other ends before it
// replaces a file, and names the operation of the one, whether that is at work still or
// just done.
func TestTwoPreparations(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, s shop) {
		refused := map[int]int{}
		for range loops(100) {
			results := gittest.Together(t, s.cmd("release", "prepare"), s.in("packages").cmd("release", "prepare"))
			one, other := results[0], results[1]
			if one.Code != 0 {
				one, other = other, one
			}
			if one.Code != 0 || other.Code != 3 && other.Code != 5 {
				t.Fatalf("%+v and %+v", one, other)
			}
			refused[other.Code]++
			if strings.Count(one.Stdout, "prepared ") != len(prepared) || other.Stdout != "" {
				t.Errorf("%+v and %+v", one, other)
			}
			if op := operation(t, one.Stderr); !strings.Contains(other.Stderr, "operation "+op) {
				t.Errorf("operation %s is not named by the other: %q", op, other.Stderr)
			} else if by := s.preparedBy(); by != op {
				t.Errorf("prepared by operation %s, and not by %s", by, op)
			}
			if err := s.isPrepared(); err != nil {
				t.Fatal(err)
			}
			if op := s.holder(); op != "" {
				t.Fatalf("operation %s holds the lease still", op)
			}
			s.fresh()
		}
		t.Logf("the other met the holder %d times, and what it had prepared %d times", refused[3], refused[5])
	})
}

// preparedBy is the operation that the tool names as the one that has prepared a release.
func (s shop) preparedBy() string {
	s.t.Helper()
	var ended struct {
		By string `json:"lease_operation"`
	}
	if err := json.Unmarshal([]byte(gittest.Read(s.t, s.dir, ".release/ended")), &ended); err != nil {
		s.t.Fatal(err)
	}
	return ended.By
}

// operation is the one under which git lease run says that it took the lease.
func operation(t *testing.T, stderr string) string {
	t.Helper()
	_, after, _ := strings.Cut(stderr, "operation ")
	op, _, found := strings.Cut(after, ",")
	if !found || len(op) != 26 {
		t.Fatalf("no operation in %q", stderr)
	}
	return op
}

// A preparation that was killed leaves its lease behind. Nobody prepares until that is
// proved to be gone.
func TestStaleLease(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, s shop) {
		before := gittest.Files(t, s.dir)
		dead := s.cmd("git-lease", "run", "-m", "release prepare", "--", "sh", "-c", "kill -9 0")
		if r := gittest.RunGroup(t, dead, filepath.Join(t.TempDir(), "group")); r.Code != 137 {
			t.Fatalf("%+v", r)
		}
		op := s.holder()
		for range 2 {
			if r := s.exits(3, "release", "prepare"); !strings.Contains(r.Stderr, "operation "+op) || !strings.Contains(r.Stderr, "git lease recover") {
				t.Errorf("said %q", r.Stderr)
			}
		}
		s.reads()
		if after := gittest.Files(t, s.dir); !maps.Equal(before, after) {
			t.Errorf("files are %v, and were %v", after, before)
		}
		s.exits(0, "git-lease", "recover")
		s.exits(0, "release", "prepare")
		if err := s.isPrepared(); err != nil {
			t.Error(err)
		}
	})
}

// What somebody changes after a preparation stopped half way is not written over.
func TestChangedSinceItStopped(t *testing.T) {
	t.Parallel()
	s := newShop(t, ".")
	s.exits(0, "release", "prepare")
	const manifest = "packages/text/package.json" // the first that is written
	written := gittest.Read(t, s.dir, manifest)
	gittest.Write(t, s.dir, map[string]string{".release/new/0": written, manifest: "mine\n"})
	if err := os.Rename(filepath.Join(s.dir, ".release", "ended"), filepath.Join(s.dir, ".release", "begun")); err != nil {
		t.Fatal(err)
	}
	r := s.exits(5, "release", "prepare", "--dirty")
	if !strings.Contains(r.Stderr, "hint: put it back: git checkout -- "+manifest+"\n") || gittest.Read(t, s.dir, manifest) != "mine\n" {
		t.Errorf("said %q", r.Stderr)
	}
	s.exits(5, "release", "publish")
	s.git("checkout", "--quiet", "--", manifest)
	if r := s.exits(0, "release", "versions"); !strings.Contains(r.Stdout, "text    1.0.0") || !strings.Contains(r.Stderr, "stopped half way") {
		t.Errorf("%+v", r)
	}
	s.exits(0, "release", "prepare")
	if err := s.isPrepared(); err != nil {
		t.Error(err)
	}
}

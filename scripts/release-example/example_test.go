// Package example has the tests of the release example: through its executables, real
// git and a real registry, as somebody uses it who has copied it.
package example

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "gitland/internal/cli" // in the executables, which a cached result must be of
	"gitland/internal/gittest"
)

// bin is where TestMain puts the executables.
var bin string

func TestMain(m *testing.M) {
	if err := readSources(); err != nil {
		panic(err)
	}
	os.Exit(gittest.Main(m, &bin, "gitland/scripts/release-example/release", "gitland/scripts/release-example/registry"))
}

// readSources reads all that the tests are of: a cached result is of the files that a
// test has read.
func readSources() error {
	return filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			_, err = os.ReadFile(path)
		}
		return err
	})
}

// loops is how often a race is run, as in the acceptance tests.
func loops(full int) int {
	percent := 10
	if p, err := strconv.Atoi(os.Getenv("GITLAND_LOOPS")); err == nil {
		percent = p
	}
	return max(1, full*percent/100)
}

// A shop is a checkout of the monorepo, where one works.
type shop struct {
	t      *testing.T
	dir    string
	env    []string
	remote string // its directory; that of the checkout where it is its own authority
}

// places are the two kinds of authority: a bare remote, and the one checkout itself.
func places(t *testing.T, test func(*testing.T, shop)) {
	t.Run("remote", func(t *testing.T) {
		t.Parallel()
		test(t, newShop(t, ""))
	})
	t.Run("checkout", func(t *testing.T) {
		t.Parallel()
		test(t, newShop(t, "."))
	})
}

// newShop makes a monorepo of the sample, and its remote, unless that is ".".
func newShop(t *testing.T, authority string) shop {
	t.Helper()
	env, _ := gittest.Env(t)
	s := shop{t: t, env: gittest.WithPath(env, bin)}
	seed := filepath.Join(t.TempDir(), "shop")
	gittest.CopyTree(t, "monorepo", seed)
	gittest.Git(t, seed, "init", "--quiet")
	gittest.Git(t, seed, "add", ".")
	gittest.Git(t, seed, "commit", "--quiet", "--message=Six packages")
	if authority == "." {
		s.dir, s.remote = seed, seed
		gittest.Git(t, s.dir, "config", "lease.remote", ".")
		gittest.Git(t, s.dir, "config", "land.onto", "main")
		return s
	}
	s.remote = gittest.Bare(t)
	gittest.Git(t, seed, "push", "--quiet", s.remote, "main")
	s.dir = gittest.Clone(t, gittest.URL(s.remote))
	return s
}

// another is another clone of the shop's remote.
func (s shop) another() shop {
	s.t.Helper()
	s.dir = gittest.Clone(s.t, gittest.URL(s.remote))
	return s
}

func (s shop) in(dir string) shop {
	s.dir = filepath.Join(s.dir, dir)
	return s
}

func (s shop) with(vars ...string) shop {
	s.env = gittest.With(s.env, vars...)
	return s
}

func (s shop) cmd(name string, args ...string) *exec.Cmd {
	s.t.Helper()
	return gittest.Command(s.t, s.env, s.dir, name, args...)
}

func (s shop) try(name string, args ...string) gittest.Result {
	s.t.Helper()
	return gittest.Run(s.t, s.cmd(name, args...))
}

// exits runs a command that must end with the given code.
func (s shop) exits(code int, name string, args ...string) gittest.Result {
	s.t.Helper()
	r := s.try(name, args...)
	if r.Code != code {
		s.t.Fatalf("%s %q: exit %d, want %d\nstdout: %s\nstderr: %s", name, args, r.Code, code, r.Stdout, r.Stderr)
	}
	return r
}

func (s shop) git(args ...string) string {
	s.t.Helper()
	return strings.TrimSuffix(s.exits(0, "git", args...).Stdout, "\n")
}

// holder is the operation that holds the lease, if one does.
func (s shop) holder() string {
	s.t.Helper()
	var shown struct {
		Leases []struct {
			Hold struct{ Operation string }
		}
	}
	if err := json.Unmarshal([]byte(s.exits(0, "git-lease", "show", "main", "--json").Stdout), &shown); err != nil {
		s.t.Fatal(err)
	}
	return shown.Leases[0].Hold.Operation
}

// versions are what release versions prints.
func (s shop) versions() map[string]string {
	s.t.Helper()
	v := map[string]string{}
	if err := json.Unmarshal([]byte(s.exits(0, "release", "versions", "--json").Stdout), &v); err != nil {
		s.t.Fatal(err)
	}
	return v
}

// reads has all that only reads run, which works whoever does what.
func (s shop) reads() {
	s.t.Helper()
	s.in("packages/api").exits(0, "release", "versions")
	s.exits(0, "release", "plan")
	s.exits(0, "git-lease", "show")
	s.exits(0, "git-lease", "log")
	s.exits(0, "git-land", "status")
	s.exits(0, "git-land", "log")
}

// fresh puts the checkout back to HEAD, with nothing of the tool's own.
func (s shop) fresh() {
	s.t.Helper()
	s.git("reset", "--quiet", "--hard")
	s.git("clean", "-fdxq")
}

// A registry is a running one.
type registry struct {
	t   *testing.T
	url string
}

// openRegistry starts a registry, which the shop uploads to from now on.
func (s shop) openRegistry() registry {
	s.t.Helper()
	cmd := s.cmd("registry", "-addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	r := registry{s.t, strings.TrimSpace(line)}
	s.use(r)
	return r
}

// use has the shop upload to a registry.
func (s shop) use(r registry) {
	s.t.Helper()
	s.git("config", "release.registry", r.url)
}

// upload sends what is not a release of a shop.
func (r registry) upload(path, body, lease, fence string) (int, string) {
	r.t.Helper()
	return r.call(http.MethodPut, path, body, http.Header{"Release-Lease": {lease}, "Release-Fence": {fence}})
}

func (r registry) byHand(path string) {
	r.t.Helper()
	if code, text := r.upload(path, "by hand", "nobody's", "1"); code != http.StatusCreated {
		r.t.Errorf("the registry answers %d %s", code, text)
	}
}

func (r registry) call(method, path, body string, header http.Header) (int, string) {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header = header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text := new(strings.Builder)
	if err := res.Write(text); err != nil {
		r.t.Fatal(err)
	}
	_, content, _ := strings.Cut(text.String(), "\r\n\r\n")
	return res.StatusCode, content
}

// uploads are NAME/VERSION in the order in which they came.
func (r registry) uploads() []string {
	r.t.Helper()
	code, text := r.call(http.MethodGet, "/", "", nil)
	if code != http.StatusOK {
		r.t.Fatalf("the registry answers %d %s", code, text)
	}
	return strings.Fields(text)
}

// fail tells the registry to fail the nth upload from now on.
func (r registry) fail(how string, n int) {
	r.t.Helper()
	if code, text := r.call(http.MethodPost, "/fail?upload="+strconv.Itoa(n)+"&how="+how, "", nil); code != http.StatusOK {
		r.t.Fatalf("the registry answers %d %s", code, text)
	}
}

// manifests are the sample's packages as they would be prepared: name and version, in
// the order of the uploads.
var prepared = []string{"text/1.0.1", "store/2.1.1", "api/1.3.0", "cli/2.0.0", "search/0.4.3", "web/3.0.1"}

// isPrepared says whether the checkout has just what a preparation makes of the sample.
func (s shop) isPrepared() error {
	s.t.Helper()
	var wrong []error
	v := s.versions()
	for _, id := range prepared {
		name, version, _ := strings.Cut(id, "/")
		if v[name] != version {
			wrong = append(wrong, errors.New(name+" is "+v[name]))
		}
		if notes, err := os.ReadFile(filepath.Join(s.dir, "packages", name, "NOTES.md")); err != nil || strings.Count(string(notes), "\n## "+version+"\n") != 1 {
			wrong = append(wrong, errors.New(name+" has no notes, or twice"))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "packages/*/changes/*")); len(left) > 0 {
		wrong = append(wrong, errors.New("left: "+strings.Join(left, " ")))
	}
	check := s.try("release", append([]string{"check"}, dotted()...)...)
	if check.Code != 0 {
		wrong = append(wrong, errors.New(check.Stderr))
	}
	return errors.Join(wrong...)
}

// dotted is prepared as check has it.
func dotted() []string {
	list := slices.Clone(prepared)
	for i := range list {
		list[i] = strings.Replace(list[i], "/", "@", 1)
	}
	return list
}

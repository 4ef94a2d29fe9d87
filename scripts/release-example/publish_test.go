package example

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gitland/internal/gittest"
)

// isPublished fails unless a release of the sample is whole: landed, tagged, uploaded once
// and in order, with nothing left to do.
func (s shop) isPublished(r registry) {
	s.t.Helper()
	if got := r.uploads(); !slices.Equal(got, prepared) {
		s.t.Errorf("uploaded %q, want %q", got, prepared)
	}
	refs := gittest.Refs(s.t, s.remote)
	for _, id := range dotted() {
		if got := refs["refs/tags/"+id]; got == "" || got != refs["refs/heads/main"] {
			s.t.Errorf("the tag %s is at %q", id, got)
		}
	}
	if changes := s.git("status", "--porcelain"); changes != "" {
		s.t.Errorf("the checkout has changes:\n%s", changes)
	}
	if err := s.isPrepared(); err != nil {
		s.t.Error(err)
	}
	if op := s.holder(); op != "" {
		s.t.Errorf("operation %s holds the lease still", op)
	}
	s.exits(0, "git-land", "reconcile")
}

func TestPublish(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, s shop) {
		r := s.openRegistry()
		s.exits(5, "release", "publish") // nothing is prepared
		s.exits(0, "release", "prepare")
		s.in("packages/web").exits(0, "release", "publish")
		s.isPublished(r)
		s.exits(5, "release", "publish") // nothing any more

		gittest.Write(t, s.dir, map[string]string{"packages/search/changes/s.md": "minor\n\nFinds more.\n"})
		s.exits(0, "git-land", "-x", "true", "-m", "change", "--", "packages/search")
		s.exits(0, "release", "prepare")
		gittest.Write(t, s.dir, map[string]string{"packages/text/work": "under way\n"})
		s.exits(5, "release", "publish")
		s.exits(0, "release", "publish", "--dirty")
		if got, want := r.uploads(), append(slices.Clone(prepared), "search/0.5.0", "web/3.0.2"); !slices.Equal(got, want) {
			t.Errorf("uploaded %q, want %q", got, want)
		}
		if changes := s.git("status", "--porcelain"); changes != "?? packages/text/work" {
			t.Errorf("changes: %q", changes)
		}
		s.exits(0, "git-land", "reconcile")
	})
}

// What is not the whole of a preparation, or more than it, does not land.
func TestOnlyWholeReleasesLand(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	other := s.another()
	s.openRegistry()
	s.exits(0, "release", "prepare")
	before := gittest.Refs(t, s.remote)["refs/heads/main"]
	late := map[string]string{"packages/store/changes/late.md": "patch\n\nLate.\n"}
	gittest.Write(t, s.dir, late)
	if r := s.exits(4, "release", "publish"); !strings.Contains(r.Stderr, "late.md is not released") {
		t.Errorf("said %q", r.Stderr)
	}
	s.exits(0, "rm", "packages/store/changes/late.md")

	s.git("checkout", "--quiet", "--", "packages/text/package.json")
	if r := s.exits(4, "release", "publish"); !strings.Contains(r.Stderr, "store depends on text 1.0.1, which is 1.0.0") {
		t.Errorf("said %q", r.Stderr)
	}
	if now := gittest.Refs(t, s.remote)["refs/heads/main"]; now != before {
		t.Errorf("main is at %s", now)
	}

	// What others have changed meanwhile is in no notes.
	s.fresh()
	s.exits(0, "release", "prepare")
	gittest.Write(t, other.dir, late)
	other.exits(0, "git-land", "-x", "true", "-m", "late", "--", "packages")
	s.exits(4, "release", "publish")
}

// The registry refuses, or loses its answer, at each upload in turn. Each time the release
// stops there, visibly, and git land resume goes on.
func TestRegistryFailsAtEachUpload(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"refused", "lost"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			places(t, func(t *testing.T, s shop) {
				r := s.openRegistry()
				s.exits(0, "release", "prepare")
				next := []string{"release", "publish"}
				for i, id := range prepared {
					name, _, _ := strings.Cut(id, "/")
					n := 1 // upload of this run
					if i > 0 && how == "refused" {
						n = 2 // the one that was refused comes first
					}
					r.fail(how, n)
					failed := s.exits(1, next[0], next[1:]...)
					if !strings.Contains(failed.Stderr, "upload-"+name+" failed") {
						t.Errorf("at %s: said %q", id, failed.Stderr)
					}
					next = []string{"git-land", "resume"}
					if shown := s.exits(0, "git-lease", "show").Stdout; !strings.Contains(shown, "upload-"+name) {
						t.Errorf("at %s: git lease show says %q", id, shown)
					}
					if i == 2 {
						s.secondReleaseIsRefused()
						s.reads()
					}
				}
				s.exits(0, "git-land", "resume")
				s.isPublished(r)
			})
		})
	}
}

// secondReleaseIsRefused tries to begin another release under a held lease.
func (s shop) secondReleaseIsRefused() {
	s.t.Helper()
	op := s.holder()
	others := []shop{s}
	if s.remote != s.dir {
		others = append(others, s.another())
	}
	for _, other := range others {
		before := gittest.Files(s.t, other.dir)
		if r := other.exits(3, "release", "prepare"); !strings.Contains(r.Stderr, "operation "+op) {
			s.t.Errorf("said %q", r.Stderr)
		}
		if after := gittest.Files(s.t, other.dir); !maps.Equal(before, after) {
			s.t.Errorf("files are %v, and were %v", after, before)
		}
	}
	s.exits(3, "release", "publish")
}

// A gate stands in front of a registry, and does something at one request.
type gate struct {
	url string
	mu  sync.Mutex
	at  string // "PUT text before", say; "" for none
	do  func() (drop bool)
}

func newGate(t *testing.T, r registry) *gate {
	t.Helper()
	to, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
		if g.pass(req.Method + " " + name + " before") {
			panic(http.ErrAbortHandler)
		}
		if name := req.Method + " " + name + " after"; g.is(name) {
			proxy.ServeHTTP(httptest.NewRecorder(), req)
			g.pass(name)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

func (g *gate) is(point string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at == point
}

// pass does what is to be done at a point, once, and says whether the request ends there.
func (g *gate) pass(point string) (drop bool) {
	g.mu.Lock()
	do := g.do
	if g.at != point {
		do = nil
	} else {
		g.at = ""
	}
	g.mu.Unlock()
	return do != nil && do()
}

func (g *gate) set(point string, do func() bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at, g.do = point, do
}

// The landing is killed with all that it runs, in each step: when the tags have not
// arrived and when they have, when the registry is asked, before an upload and after it.
// So is each git land resume, at the next of these places, until none is left.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, s shop) {
		r := s.openRegistry()
		g := newGate(t, r)
		s.use(registry{t, g.url})
		s.exits(0, "release", "prepare")
		group := filepath.Join(t.TempDir(), "group")
		next, kills := []string{"release", "publish"}, 0
		dies := func(where string) {
			t.Helper()
			if r := gittest.RunGroup(t, s.cmd(next[0], next[1:]...), group); r.Code != 137 {
				t.Fatalf("%s: %+v", where, r)
			}
			next = []string{"git-land", "resume"}
			kills++
			s.in("packages").exits(0, "release", "versions")
		}
		hooks := filepath.Join(s.remote, "hooks")
		if s.remote == s.dir {
			hooks = filepath.Join(s.remote, ".git", "hooks")
		}
		for _, hook := range []string{"pre-receive", "post-receive"} {
			path := filepath.Join(hooks, hook)
			gittest.Script(t, path, "#!/bin/sh\ngrep -q refs/tags || exit 0\nkill -s KILL -- -$(cat "+group+")\n")
			dies(hook)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		for i, id := range prepared {
			name, _, _ := strings.Cut(id, "/")
			for _, where := range []string{"GET " + name + " before", "PUT " + name + " before", "PUT " + name + " after"} {
				g.set(where, func() bool {
					text, _ := os.ReadFile(group)
					if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
						syscall.Kill(-pid, syscall.SIGKILL)
					}
					return true
				})
				dies(where)
			}
			if i == 2 {
				s.secondReleaseIsRefused()
				s.reads()
			}
		}
		s.exits(0, "git-land", "resume")
		s.isPublished(r)
		t.Logf("killed %d times", kills)
	})
}

// While one release is on its way a second one is refused, or waits, and what only reads
// goes on.
func TestSecondReleaseMeanwhile(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	other := s.another()
	r := s.openRegistry()
	other.use(r)
	g := newGate(t, r)
	s.use(registry{t, g.url})
	s.exits(0, "release", "prepare")
	other.exits(0, "release", "prepare") // of the same
	arrived, goOn := make(chan bool), make(chan bool)
	g.set("PUT api before", func() bool {
		arrived <- true
		<-goOn
		return false
	})
	publish := s.cmd("release", "publish")
	ended := make(chan gittest.Result, 1)
	go func() { ended <- gittest.Run(t, publish) }()
	<-arrived
	s.secondReleaseIsRefused()
	s.reads()
	other.reads()
	other.git("config", "land.wait", "0s")
	other.exits(5, "release", "publish") // the registry has some of it
	other.fresh()
	gittest.Write(t, other.dir, map[string]string{"README": "two\n"})
	other.exits(3, "git-land", "-x", "true", "-m", "other work", "--", "README")
	close(goOn)
	if r := <-ended; r.Code != 0 {
		t.Fatalf("%+v", r)
	}
	s.isPublished(r)
	other.exits(0, "git-land", "-x", "true", "-m", "other work", "--", "README")
	other.exits(0, "release", "prepare")
	if got := len(r.uploads()); got != len(prepared) {
		t.Errorf("%d uploads", got)
	}
}

// No version is used twice, whoever used it first.
func TestUsedVersions(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	r := s.openRegistry()
	g := newGate(t, r)
	s.use(registry{t, g.url})
	s.exits(0, "release", "prepare")
	before := gittest.Refs(t, s.remote)["refs/heads/main"]
	r.byHand("/web/3.0.1")
	if r := s.exits(5, "release", "publish"); !strings.Contains(r.Stderr, "the registry has web@3.0.1 already") {
		t.Errorf("said %q", r.Stderr)
	}
	if now := gittest.Refs(t, s.remote)["refs/heads/main"]; now != before {
		t.Errorf("main is at %s", now)
	}

	// Somebody uploads by hand while a release is on its way.
	r = s.openRegistry()
	g = newGate(t, r)
	s.use(registry{t, g.url})
	g.set("PUT text before", func() bool {
		r.byHand("/store/2.1.1")
		return false
	})
	if r := s.exits(1, "release", "publish"); !strings.Contains(r.Stderr, "the registry has store@2.1.1 already") {
		t.Errorf("said %q", r.Stderr)
	}
	s.exits(1, "git-land", "resume") // nobody can know whose it is
	if got := r.uploads(); !slices.Equal(got, []string{"store/2.1.1", "text/1.0.1"}) {
		t.Errorf("uploaded %q", got)
	}
	s.exits(0, "git-land", "abort", "--reason", "store was uploaded by hand")
	if op := s.holder(); op != "" {
		t.Errorf("operation %s holds the lease still", op)
	}
}

// A release whose clone is gone is ended in another one, and what the first one may still
// send the registry does not take.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	other := s.another()
	r := s.openRegistry()
	other.use(r)
	s.exits(0, "release", "prepare")
	r.fail("refused", 3)
	s.exits(1, "release", "publish")
	op := s.holder()
	refused := other.exits(3, "release", "resume", op)
	_, hint, _ := strings.Cut(refused.Stderr, "hint: if that is dead: ")
	if !strings.HasSuffix(hint, "release resume "+op+"\n") {
		t.Fatalf("said %q", refused.Stderr)
	}
	// The hint, as it is typed.
	other.exits(0, "sh", "-e", "-c", strings.Replace(hint, "WHY", "'laptop in the river'", 1)+"git lease release")
	if code, _ := r.upload("/text/9.9.9", "late", s.chain(), "2"); code != http.StatusPreconditionFailed {
		t.Errorf("an upload under an older fence: %d", code)
	}
	other.git("pull", "--quiet")
	other.isPublished(r)
}

// chain is the first event of the lease at the shop's authority.
func (s shop) chain() string {
	s.t.Helper()
	return gittest.Git(s.t, s.remote, "rev-list", "--first-parent", "--max-parents=0", "refs/lease/main")
}

// Several repositories have one registry, each with a lease of its own, whose fences say
// nothing of each other.
func TestOneRegistryForSeveral(t *testing.T) {
	t.Parallel()
	s, second := newShop(t, ""), newShop(t, "")
	r := s.openRegistry()
	for range 3 {
		s.exits(0, "git-lease", "run", "--", "true")
	}
	s.exits(0, "release", "prepare")
	s.exits(0, "release", "publish")
	want := slices.Clone(prepared)

	clone := s.another()
	clone.git("config", "lease.remote", ".")
	for _, c := range []struct {
		s       shop
		version string
	}{{second, "4.0.0"}, {clone, "5.0.0"}} {
		c.s.use(r)
		if c.s.remote == second.remote {
			c.s.git("rm", "--quiet", "packages/*/changes/*")
			c.s.git("commit", "--quiet", "--message=no fragments")
		}
		gittest.Commit(t, c.s.dir, "web alone", map[string]string{
			"packages/web/package.json":  `{"name": "web", "version": "` + c.version + `"}`,
			"packages/web/changes/it.md": "patch\n\nIs quicker.\n",
		})
		if c.s.remote == second.remote {
			c.s.git("push", "--quiet", "origin", "main")
		}
		c.s.exits(0, "release", "prepare")
		c.s.exits(0, "release", "publish")
		want = append(want, "web/"+strings.Replace(c.version, ".0.0", ".0.1", 1))
	}
	if got := r.uploads(); !slices.Equal(got, want) {
		t.Errorf("uploaded %q, want %q", got, want)
	}
	// Of one lease it is still the fence that decides.
	if code, said := r.upload("/text/9.9.9", "late", s.chain(), "2"); code != http.StatusPreconditionFailed || !strings.Contains(said, "the fence 2 is below ") {
		t.Errorf("%d %s", code, said)
	}
	for _, c := range [][2]string{{"", "99"}, {s.chain(), ""}} {
		if code, said := r.upload("/text/9.9.9", "", c[0], c[1]); code != http.StatusBadRequest {
			t.Errorf("%q: %d %s", c, code, said)
		}
	}
}

// A landing that fails within a lease run is brought to its end by git land resume, in
// that clone, though the run is dead.
func TestPublishWithinRun(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, s shop) {
		r := s.openRegistry()
		s.exits(0, "release", "prepare")
		r.fail("refused", 3)
		s.exits(1, "git-lease", "run", "--", "release", "publish")
		s.exits(0, "git-land", "resume")
		s.isPublished(r)
	})
}

// What the README says of a release that stops half way, as it is typed.
func TestReadmeStopsHalfWay(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	s := newShop(t, "")
	r := s.openRegistry()
	s.exits(0, "release", "prepare")
	s.exits(0, "release", "publish")
	_, block, _ := strings.Cut(gittest.Read(t, ".", "README.md"), "fail its third upload:\n\n```sh\n")
	block, _, _ = strings.Cut(block, "kill $!")
	block = strings.ReplaceAll(block, "http://127.0.0.1:8420", r.url)
	for line := range strings.Lines(block) {
		command, about, _ := strings.Cut(line, "  # ")
		code := 0
		if _, err := fmt.Sscanf(strings.TrimSpace(about), "exit %d:", &code); err != nil && strings.HasPrefix(about, "exit") {
			t.Fatal(line)
		}
		s.exits(code, "sh", "-c", command)
	}
	if got := r.uploads(); len(got) != 2*len(prepared) {
		t.Errorf("uploaded %q", got)
	}
}

// What is there, anybody may ask by hand. And what a release that was given up has left
// to do is done by hand, under a lease and from the commit that is named.
func TestByHand(t *testing.T) {
	t.Parallel()
	s := newShop(t, "")
	r := s.openRegistry()
	s.exits(1, "release", "uploaded", "text")
	s.exits(1, "release", "tagged", "text", "store")
	s.exits(0, "release", "prepare")
	r.fail("refused", 3)
	s.exits(1, "release", "publish")
	commit := gittest.Refs(t, s.remote)["refs/heads/main"]
	other := s.another()
	other.use(r)
	for _, c := range []struct {
		code int
		args []string
		says string
	}{
		{0, []string{"uploaded", "store"}, "the registry has store@2.1.1 of " + commit},
		{1, []string{"uploaded", "api"}, "the registry does not have api@1.3.0"},
		{0, []string{"tagged", "text", "web"}, "the tags text@1.0.1 web@3.0.1 are at " + commit},
		{5, []string{"upload", "api"}, "GIT_LAND_COMMIT does not say of which"},
	} {
		for _, s := range []shop{s, other} {
			if r := s.exits(c.code, "release", c.args...); !strings.Contains(r.Stdout+r.Stderr, c.says) {
				t.Errorf("%q says %+v", c.args, r)
			}
		}
	}

	s.exits(0, "git-land", "abort", "--reason", "the registry is down")
	said := s.exits(5, "release", "publish").Stderr
	_, hint, found := strings.Cut(said, "lacks: ")
	if !found {
		t.Errorf("publish says %q", said)
	}
	gittest.Write(t, other.dir, map[string]string{"packages/web/code": "later\n"})
	other.exits(0, "git-land", "-x", "true", "-m", "later work", "--", "packages")
	hint, _, _ = strings.Cut(hint, ";")
	hint = strings.Replace(hint, "=COMMIT", "="+commit[:12], 1)
	byHand := other.with("GIT_LAND_COMMIT=" + commit[:12])
	byHand.exits(6, "release", "upload", "api") // it takes no lease by itself
	for _, name := range []string{"api", "cli", "search"} {
		other.exits(0, "sh", "-c", strings.Replace(hint, "NAME", name, 1))
		byHand.exits(0, "release", "uploaded", name)
	}
	// The fence is of the branch's lease, whatever other ones a run has.
	byHand.exits(0, "git-lease", "run", "--name", "docs", "--name", "main", "--", "release", "upload", "web")
	byHand.exits(0, "git-lease", "run", "--", "release", "tag", "text", "web") // once more
	byHand.exits(0, "release", "tagged", "text", "store", "api", "cli", "search", "web")
	if got := r.uploads(); !slices.Equal(got, prepared) {
		t.Errorf("uploaded %q, want %q", got, prepared)
	}
}

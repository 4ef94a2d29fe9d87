// Package acceptance shows, through the executables and real git, that the
// project keeps its promises where several processes meet: exclusion, one
// story, nothing lost. It holds tests only.
package acceptance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	_ "gitland/internal/cli" // in the executables, which a cached result must be of
	"gitland/internal/gittest"
)

// bin is where TestMain puts the executables.
var bin string

func TestMain(m *testing.M) { os.Exit(gittest.Main(m, &bin)) }

// loops is how often a race is run: full in a campaign, a tenth of it in the
// ordinary tests. GITLAND_LOOPS is a percentage.
func loops(full int) int {
	percent := 10
	if p, err := strconv.Atoi(os.Getenv("GITLAND_LOOPS")); err == nil {
		percent = p
	}
	return max(1, full*percent/100)
}

// A seat is where a session works: a directory and an environment.
type seat struct {
	t   *testing.T
	dir string
	env []string
}

// newSeat makes an environment with our executables on the PATH.
func newSeat(t *testing.T, dir string) seat {
	t.Helper()
	env, _ := gittest.Env(t)
	return seat{t: t, dir: dir, env: gittest.WithPath(env, bin)}
}

// newcomer makes a clone of a remote's directory and a seat in it.
func newcomer(t *testing.T, remote string) seat {
	t.Helper()
	return newSeat(t, gittest.Clone(t, gittest.URL(remote)))
}

// clone is a newcomer that has tried the remote: what a clone finds out once is
// written down for it as another one found it.
func clone(t *testing.T, remote string) seat {
	t.Helper()
	s := newcomer(t, remote)
	text := foundOut(t, !strings.Contains(gittest.Read(t, remote, "config"), "advertiseAtomic = false"))
	path := filepath.Join(s.dir, probeFile(gittest.URL(remote)))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return s
}

// probeFile is where a clone keeps what it has found out about a URL.
func probeFile(url string) string {
	key := sha256.Sum256([]byte(url + "\x00"))
	name := sha256.Sum256([]byte(hex.EncodeToString(key[:])))
	return ".git/lease/probe/" + hex.EncodeToString(name[:]) + ".json"
}

var found = struct {
	sync.Mutex
	out map[bool]string
}{out: map[bool]string{}}

// foundOut is what a clone finds out about a remote that is atomic, or not.
func foundOut(t *testing.T, atomic bool) string {
	t.Helper()
	found.Lock()
	defer found.Unlock()
	if found.out[atomic] == "" {
		remote := gittest.Remote(t)
		gittest.Git(t, remote, "config", "receive.advertiseAtomic", strconv.FormatBool(atomic))
		s := newcomer(t, remote)
		s.exits(0, "git-lease", "adopt")
		found.out[atomic] = gittest.Read(t, s.dir, probeFile(gittest.URL(remote)))
	}
	return found.out[atomic]
}

func (s seat) at(dir string) seat {
	s.dir = filepath.Join(s.dir, dir)
	return s
}

func (s seat) with(vars ...string) seat {
	s.env = gittest.With(s.env, vars...)
	return s
}

func (s seat) cmd(name string, args ...string) *exec.Cmd {
	s.t.Helper()
	return gittest.Command(s.t, s.env, s.dir, name, args...)
}

func (s seat) try(name string, args ...string) gittest.Result {
	s.t.Helper()
	return gittest.Run(s.t, s.cmd(name, args...))
}

// exits runs a command that must end with the given code.
func (s seat) exits(code int, name string, args ...string) gittest.Result {
	s.t.Helper()
	r := s.try(name, args...)
	if r.Code != code {
		s.t.Fatalf("%s %q: exit %d, want %d\nstdout: %s\nstderr: %s", name, args, r.Code, code, r.Stdout, r.Stderr)
	}
	return r
}

func (s seat) git(args ...string) string {
	s.t.Helper()
	return strings.TrimSuffix(s.exits(0, "git", args...).Stdout, "\n")
}

// verify records a pass for what landing the paths would bring.
func (s seat) verify(paths ...string) {
	s.t.Helper()
	args := []string{"verify", "--record", "pass", "--check", "default"}
	if len(paths) > 0 {
		args = append(append(args, "--"), paths...)
	}
	s.exits(0, "git-land", args...)
}

func (s seat) write(files map[string]string) {
	s.t.Helper()
	gittest.Write(s.t, s.dir, files)
}

// decode reads the one JSON object that a command printed.
func decode[T any](t *testing.T, r gittest.Result) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(r.Stdout), &v); err != nil {
		t.Fatalf("%v in %q (stderr %q)", err, r.Stdout, r.Stderr)
	}
	return v
}

// A refusal is what --json prints of a failure.
type refusal struct {
	Error struct {
		Code      string `json:"code"`
		Message   string `json:"message"`
		Hint      string `json:"hint"`
		Operation string `json:"operation"`
		Holder    string `json:"holder"`
		BrokenBy  string `json:"broken_by"`
		Reason    string `json:"reason"`
		Tree      string `json:"tree"`
	} `json:"error"`
}

// A grant is what acquire --format=json prints.
type grant struct {
	Token     string `json:"token"`
	Operation string `json:"operation"`
	Name      string `json:"lease"`
	Remote    string `json:"remote"`
	Fence     uint64 `json:"fence"`
}

// sameRefs fails when a ref of a repository moved. Probes come and go.
func sameRefs(t *testing.T, what string, before, after map[string]string) {
	t.Helper()
	for ref, oid := range before {
		if after[ref] != oid {
			t.Errorf("%s: %s was %s and is %s", what, ref, oid, after[ref])
		}
	}
	for ref, oid := range after {
		if before[ref] == "" {
			t.Errorf("%s: %s appeared at %s", what, ref, oid)
		}
	}
}

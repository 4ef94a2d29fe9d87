package acceptance

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// A stage is where one scenario is played: a bare remote, the clone whose
// command is killed, and another clone. Their URLs are relative, so that a stage
// can be copied whole, with all that the clones have learnt of the remote.
type stage struct {
	t      *testing.T
	dir    string
	s      seat // in the clone that is killed
	other  seat
	killer *gittest.Killer
	random *rand.Rand
	locks  int // stale ones that had to be removed
	again  int // kills of what was to end a killed operation
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageAt(t, t.TempDir())
}

func newStageAt(t *testing.T, dir string) *stage {
	t.Helper()
	st := &stage{t: t, dir: dir}
	for _, err := range []error{
		os.Rename(gittest.Remote(t), st.remote()),
		os.Rename(gittest.Clone(t, gittest.URL(st.remote())), st.path("clone")),
		os.Rename(gittest.Clone(t, gittest.URL(st.remote())), st.path("other")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	st.sit()
	for _, s := range []seat{st.s, st.other} {
		s.git("remote", "set-url", "origin", "../origin.git")
	}
	return st
}

// sit takes the seats of a stage whose directories are there.
func (st *stage) sit() {
	st.t.Helper()
	st.s, st.other = newSeat(st.t, st.path("clone")), newSeat(st.t, st.path("other"))
	if err := os.MkdirAll(st.path("tmp"), 0o777); err != nil {
		st.t.Fatal(err)
	}
	path := ""
	for _, kv := range st.s.env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = value
		}
	}
	st.s = st.s.with("TMPDIR="+st.path("tmp"), "STAGE="+st.dir, "STAGE_PATH="+path)
}

func (st *stage) path(name string) string { return filepath.Join(st.dir, name) }

func (st *stage) remote() string { return st.path("origin.git") }

// copy is the same stage elsewhere, with the killer of k.
func (st *stage) copy(t *testing.T, k *gittest.Killer, random *rand.Rand) *stage {
	t.Helper()
	c := &stage{t: t, dir: t.TempDir(), killer: k, random: random}
	if err := os.Remove(c.dir); err != nil {
		t.Fatal(err)
	}
	gittest.CopyTree(t, st.dir, c.dir)
	c.sit()
	return c
}

var stages = struct {
	sync.Mutex
	made map[string]*stage
}{made: map[string]*stage{}}

// staged is a stage of its own that many tests begin on, which is prepared once.
func staged(t *testing.T, name string, prepare func(*stage)) *stage {
	t.Helper()
	stages.Lock()
	defer stages.Unlock()
	from := stages.made[name]
	if from == nil {
		dir, err := os.MkdirTemp(bin, "stage-")
		if err != nil {
			t.Fatal(err)
		}
		from = newStageAt(t, dir)
		prepare(from)
		stages.made[name] = from
	}
	st := from.copy(t, nil, nil)
	for _, s := range []seat{st.s, st.other} { // as if they had looked at the remote just now
		locks, err := filepath.Glob(filepath.Join(s.dir, ".git/lease/mirror/*.lock"))
		if err != nil {
			t.Fatal(err)
		}
		for _, lock := range locks {
			if err := os.Chtimes(lock, time.Time{}, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return st
}

// zeroLanded is a remote on which one unit has landed, the clone that it landed
// from, and another one that knows nothing of it. Apart: without --atomic.
func zeroLanded(t *testing.T, apart bool) (remote string, s, other seat) {
	t.Helper()
	st := staged(t, fmt.Sprint("zero landed, apart=", apart), func(st *stage) {
		gittest.Git(st.t, st.remote(), "config", "receive.advertiseAtomic", fmt.Sprint(!apart))
		st.s.write(map[string]string{"zero": "0\n"})
		st.s.landUnit("zero")
	})
	return st.remote(), st.s, st.other
}

// kill runs a command of the clone that is killed at a point.
func (st *stage) kill(s seat, at gittest.Point, args ...string) (r gittest.Result, killed bool) {
	st.t.Helper()
	s.env = st.killer.Env(s.env)
	r, killed = st.killer.Run(s.cmd(args[0], args[1:]...), at)
	st.unlock()
	want := map[syscall.Signal]int{syscall.SIGKILL: 137, syscall.SIGTERM: 143}[at.Signal]
	// A kill may come when all is said and done; so has resume that says "did not land".
	said := r.Code == 0 || r.Code == 1 && strings.Contains(r.Stderr, "did not land")
	if killed && r.Code != want && !said {
		st.t.Errorf("%s: exit %d, want %d\n%s%s", at, r.Code, want, r.Stdout, r.Stderr)
	}
	return r, killed
}

// unlock removes the lock files that git leaves behind when it is killed while
// it writes a ref or an index. That is git's own doing, after which it refuses
// to go on and asks whoever administers the repository to remove them; nobody
// else can know that their owner is dead. Here it is known.
func (st *stage) unlock() {
	st.t.Helper()
	for _, name := range []string{"origin.git", "clone/.git", "other/.git"} {
		err := filepath.WalkDir(st.path(name), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "lease" && filepath.Base(filepath.Dir(path)) == ".git":
				return filepath.SkipDir // flock(2) needs no such care
			case !d.IsDir() && strings.HasSuffix(path, ".lock"):
				st.locks++
				return os.Remove(path)
			}
			return nil
		})
		if err != nil {
			st.t.Fatal(err)
		}
	}
}

// state is that of the lease at the authority.
func (st *stage) state() string {
	st.t.Helper()
	return st.ofTip("Lease-State")
}

func (st *stage) ofTip(trailer string) string {
	st.t.Helper()
	r := gittest.TryGit(st.t, st.remote(), "log", "-1", "--format=%(trailers:key="+trailer+",valueonly,separator=)", "refs/lease/main")
	return strings.TrimSpace(r.Stdout)
}

// events counts the events of each kind.
func (st *stage) events() map[string]int {
	st.t.Helper()
	n := map[string]int{}
	r := gittest.TryGit(st.t, st.remote(), "log", "--format=%(trailers:key=Lease-Event,valueonly,separator=)", "refs/lease/main")
	for kind := range strings.FieldsSeq(r.Stdout) {
		n[kind]++
	}
	return n
}

// commits counts the landed commits of a unit.
func (st *stage) commits(unit string) int {
	st.t.Helper()
	return count(st.t, st.remote(), unit)
}

// clean checks that a finished operation has left nothing behind, anywhere.
func (st *stage) clean() {
	st.t.Helper()
	for ref := range gittest.Refs(st.t, st.remote()) {
		switch ref {
		case "HEAD", "refs/heads/main", "refs/lease/main", "refs/notes/landing/main", "refs/notes/verification":
		default:
			st.t.Errorf("left at the remote: %s", ref)
		}
	}
	for ref := range gittest.Refs(st.t, st.s.dir) {
		if strings.HasPrefix(ref, "refs/lease/") {
			st.t.Errorf("left in the clone: %s", ref)
		}
	}
	for _, pattern := range []string{"clone/.git/lease/journal/*", "clone/.git/lease-index*", "clone/.git/lease/*/*.tmp", "tmp/*"} {
		left, err := filepath.Glob(st.path(pattern))
		// Of an operation's own files everybody knows whether it lives. A write of any other may
		// be somebody's who does, so that what a kill has left of one goes after a day.
		left = slices.DeleteFunc(left, func(path string) bool {
			return slices.Contains([]string{"probe", "session", "outbox"}, filepath.Base(filepath.Dir(path)))
		})
		if err != nil || len(left) > 0 {
			st.t.Errorf("left behind: %q, %v", left, err)
		}
	}
	if got := st.s.git("status", "--porcelain"); got != "" {
		st.t.Errorf("status of the clone: %q", got)
	}
}

// A scenario is one operation that is killed, and how it is ended.
type scenario struct {
	name    string
	prepare func(st *stage) // nil: nothing
	fresh   bool            // the remote, and the clones know nothing of it; else as begun leaves them
	command []string
	env     []string // of the command
	// end brings the operation to its end, and checks what came of it. The
	// first is what the killed command said.
	end func(st *stage, first gittest.Result, at gittest.Point)
}

// begin makes the stage on which the scenario is played.
func (sc scenario) begin(t *testing.T) *stage {
	t.Helper()
	var st *stage
	if sc.fresh {
		st = newStage(t)
	} else {
		st = staged(t, "begun", begun)
	}
	if sc.prepare != nil {
		sc.prepare(st)
	}
	return st
}

// variants are the ways to be killed at one git call.
var variants = []gittest.Point{
	{After: false, Signal: syscall.SIGKILL}, {After: true, Signal: syscall.SIGKILL},
	{After: false, Signal: syscall.SIGTERM}, {After: true, Signal: syscall.SIGTERM},
}

// Each scenario is killed before and after each of its git calls, by KILL and by
// TERM, until a run ends before its turn has come.
func TestKilledAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		t.Run(strings.ReplaceAll(sc.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			killEverywhere(t, sc)
		})
	}
}

// maxCalls is far above the git calls of any command.
const maxCalls = 200

func killEverywhere(t *testing.T, sc scenario) {
	from := seed(t)
	template := sc.begin(t)
	killer := gittest.KillGit(t)
	// Of each stride points one is tried, chosen by the seed: a thirtieth in the
	// ordinary tests, since a point costs several seconds.
	stride := max(1, 100/loops(100))
	if stride > 1 {
		stride *= 3
	}
	pick := rand.New(rand.NewPCG(from, uint64(len(sc.name))))
	chosen, tried, readers, locks, again, calls := -1, 0, 0, 0, 0, 0
	survived := map[gittest.Point]bool{} // by variant
	for k := 0; len(survived) < len(variants); k++ {
		if k%stride == 0 {
			chosen = k + pick.IntN(stride)
		}
		variant := variants[k%len(variants)]
		at := variant
		at.N = k/len(variants) + 1
		if at.N > maxCalls {
			t.Fatalf("no run ends before its call %d", at.N)
		}
		if k != chosen || survived[variant] {
			continue
		}
		t.Run(strings.ReplaceAll(at.String(), " ", "-"), func(t *testing.T) {
			st := template.copy(t, killer, rand.New(rand.NewPCG(from, uint64(k))))
			first, killed := st.kill(st.s.with(sc.env...), at, sc.command...)
			switch n := len(killer.Calls()); {
			case killed:
				tried++
			case at.N > n:
				survived[variant], calls = true, n
			case !at.After || !slices.Contains(killer.Call(at.N), "cat-file"):
				// The reader of objects is killed when it is not needed any more, at
				// the very end; every other call has an end of its own.
				t.Errorf("of %d calls the %dth did not kill", n, at.N)
			default:
				readers++
			}
			if !killed && first.Code != 0 {
				t.Errorf("it was not killed: exit %d", first.Code)
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("first: exit %d\n%s%s", first.Code, first.Stdout, first.Stderr)
				}
			})
			sc.end(st, first, at)
			locks, again = locks+st.locks, again+st.again
		})
		if len(survived) > 0 && stride > 1 {
			break // one run of the last block speaks for all variants
		}
	}
	if least := calls * len(variants) / stride; tried+readers < least-1 || stride == 1 && tried+readers < least {
		t.Errorf("%d points, but an unkilled run has %d git calls", tried, calls)
	}
	t.Logf("%s: %d points at %d calls; %d kills of what ended them; %s; %d stale locks removed",
		sc.name, tried, calls, again, soundness(t), locks)
}

// soundness says in a figure whether all points of a test were sound.
func soundness(t *testing.T) string {
	if t.Failed() {
		return "NOT all sound"
	}
	return "none lost, none doubled, none stuck"
}

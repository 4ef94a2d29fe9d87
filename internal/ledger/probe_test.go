package ledger_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

// A probe that was killed is tidied up after by the next one: its refs at the
// remote, and what it kept here. One that is under way is left alone.
func TestProbeThatWasKilled(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	dir := gittest.Clone(t, gittest.URL(remote))
	env, _ := gittest.Env(t)
	k := gittest.KillGit(t)
	var mine, left []string
	list := func() (refs []string) {
		for ref := range gittest.Refs(t, remote) {
			if strings.Contains(ref, "probe") {
				refs = append(refs, ref)
			}
		}
		return refs
	}
	// From behind the calls that open a repository, until all refs are there.
	for n := 4; len(left) < 4; n++ {
		if n == 40 {
			t.Fatal("no probe was killed in the middle")
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestProbeThatIsKilled$")
		cmd.Env = gittest.With(k.Env(env), "LEDGER_TEST_PROBE="+dir)
		if r, killed := k.Run(cmd, gittest.Point{N: n, After: true, Signal: syscall.SIGKILL}); !killed && r.Code != 0 {
			t.Fatalf("%+v", r)
		}
		left = list()
	}
	alive := session.NewID(time.Now())
	l := open(t, dir)
	witness, err := l.Dir.Witness(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer witness.Close()
	dirs, err := filepath.Glob(filepath.Join(dir, ".git/lease/probing/*"))
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	stem := dirs[0][:len(dirs[0])-ulid.EncodedSize]
	if err := os.Mkdir(stem+alive.String(), 0o700); err != nil {
		t.Fatal(err)
	}
	mine = append(mine, "refs/lease/%probe-"+strings.ToLower(alive.String())+"-0")
	gittest.Git(t, remote, "update-ref", mine[0], "main")
	if err := l.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := list(); !slices.Equal(got, mine) {
		t.Errorf("at the remote: %q, want %q", got, mine)
	}
	// A push that was on its way when the probe was killed comes after that.
	late := left[0]
	gittest.Git(t, remote, "update-ref", late, "main")
	if err := l.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := list(); len(got) != 2 {
		t.Errorf("looked for again at once: %q", got)
	}
	then := time.Now().Add(-time.Hour)
	for _, d := range dirs { // of the one before, too
		if err := os.Chtimes(filepath.Join(d, "swept"), then, then); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := list(); !slices.Equal(got, mine) {
		t.Errorf("at the remote, later: %q, want %q", got, mine)
	}
	if dirs, _ := filepath.Glob(stem + "*"); len(dirs) != 1 {
		t.Errorf("left here: %q", dirs)
	}
}

// TestProbeThatIsKilled is the process of TestProbeThatWasKilled.
func TestProbeThatIsKilled(t *testing.T) {
	dir := os.Getenv("LEDGER_TEST_PROBE")
	if dir == "" {
		t.Skip("it is played by another test")
	}
	repo, err := git.Open(t.Context(), git.Options{Dir: dir, Environ: os.Environ(), Unattended: true})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	l, err := ledger.Open(repo, ledger.Options{Now: time.Now, Notice: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// What the probe of a clone that is gone has left goes with a later one's. What may
// be of a live one stays.
func TestAbandonedProbe(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	ref := func(space string, age time.Duration) string {
		name := space + "%probe-" + strings.ToLower(session.NewID(time.Now().Add(-age)).String()) + "-0"
		gittest.Git(t, remote, "update-ref", name, "main")
		return name
	}
	const day = 24 * time.Hour
	ref("refs/lease/", 40*day)
	ref("refs/notes/landing/", 40*day)
	want := []string{ref("refs/lease/", 3*day), ref("refs/notes/", time.Minute), ref("refs/elsewhere/", 40*day)}
	if err := open(t, gittest.Clone(t, gittest.URL(remote))).Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left []string
	for name := range gittest.Refs(t, remote) {
		if strings.Contains(name, "probe") {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
}

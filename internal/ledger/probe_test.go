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
	if err != nil || len(dirs) != 1 {
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

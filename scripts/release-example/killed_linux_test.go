package example

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gitland/internal/gittest"
)

// What a preparation does to files: it is held up after each such call for a moment, in
// which the kill arrives.
var filing = []string{"-f", "-b", "execve", "-y", "-qq", "-s", "0", "-e", "trace=write,fsync,renameat,unlinkat,mkdirat",
	"-e", "inject=write,fsync,renameat,unlinkat,mkdirat:delay_exit=50000"}

var filed = regexp.MustCompile(`^\d+ +(\w+)\(.*/(?:\.release|packages)\b`)

// A preparation is killed, and all that runs it, after each system call by which it writes,
// syncs, renames or removes one of its files. The next one leaves whole files only, and
// nothing half done.
func TestKilledAtEverySystemCall(t *testing.T) {
	t.Parallel()
	if err := exec.Command("strace", "-b", "execve", "-o", os.DevNull, "true").Run(); err != nil {
		t.Skipf("strace: %v", err)
	}
	places(t, func(t *testing.T, s shop) {
		old := gittest.Files(t, s.dir)
		s.exits(0, "release", "prepare")
		whole := withoutState(gittest.Files(t, s.dir))
		s.fresh()

		stride := min(10, max(1, 100/loops(100)))
		pick := rand.New(rand.NewPCG(1, uint64(len(s.remote))))
		hits, rolled := map[string]int{}, 0
		for n := 1; ; n += stride {
			at := n + pick.IntN(stride)
			what, r := s.killedAt(at)
			if what == "" {
				if r.Code != 0 {
					t.Fatalf("nothing went wrong: %+v", r)
				}
				break
			}
			hits[what]++
			for name, file := range withoutState(gittest.Files(t, s.dir)) {
				if file != old[name] && file != whole[name] {
					t.Errorf("killed after %s %d: half of %s", what, at, name)
				}
			}
			s.in("packages").exits(0, "release", "versions")
			if r.Code != 0 { // it had not ended by itself
				s.exits(3, "release", "prepare")
				s.exits(0, "git-lease", "recover")
			}
			next := s.try("release", "prepare")
			if strings.Contains(next.Stderr, "finished what operation") {
				rolled++
			}
			if next.Code != 0 && !strings.Contains(next.Stderr, "has prepared a release here") {
				t.Fatalf("killed after %s %d: %+v", what, at, next)
			}
			if after := withoutState(gittest.Files(t, s.dir)); !maps.Equal(after, whole) {
				t.Errorf("killed after %s %d: files are %v, want %v", what, at, after, whole)
			}
			if left, err := os.ReadDir(filepath.Join(s.dir, ".release")); err != nil || len(left) != 2 || left[1].Name() != "ended" {
				t.Errorf("killed after %s %d: left %v", what, at, left)
			}
			s.fresh()
		}
		t.Logf("killed after %v; %d were rolled forward", hits, rolled)
	})
}

// killedAt runs a preparation that is killed after the nth call, and says which that was,
// if there are as many.
func (s shop) killedAt(n int) (what string, r gittest.Result) {
	s.t.Helper()
	dir := s.t.TempDir()
	log, group := filepath.Join(dir, "log"), filepath.Join(dir, "group")
	if err := syscall.Mkfifo(log, 0o600); err != nil {
		s.t.Fatal(err)
	}
	hit := make(chan string, 1)
	go func() {
		what, err := killAfter(log, group, n)
		if err != nil {
			what = fmt.Sprint(err)
		}
		hit <- what
	}()
	args := append(append([]string{"run", "--", "strace"}, filing...), "-o", log, filepath.Join(bin, "release"), "prepare")
	r = gittest.RunGroup(s.t, s.cmd("git-lease", args...), group)
	if w, err := os.OpenFile(log, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		w.Close() // strace did not start, and the reader waits for it
	}
	return <-hit, r
}

func killAfter(log, group string, n int) (what string, err error) {
	f, err := os.Open(log)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := filed.FindStringSubmatch(lines.Text())
		if m == nil || what != "" {
			continue
		}
		if n--; n == 0 {
			what = m[1]
			text, err := os.ReadFile(group)
			if err != nil {
				return "", err
			}
			id, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				return "", err
			}
			if err := syscall.Kill(-id, syscall.SIGKILL); err != nil {
				return "", err
			}
		}
	}
	return what, nil
}

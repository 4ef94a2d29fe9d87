package acceptance

import (
	"bufio"
	"fmt"
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

// traced are the landings that are ended at system calls: one writes its journal
// once, the other again and again.
func traced() []scenario {
	var some []scenario
	for _, sc := range scenarios() {
		if sc.name == "landing" || sc.name == "held landing" {
			some = append(some, sc)
		}
	}
	return some
}

// needStrace skips where no process can be traced.
func needStrace(t *testing.T) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err == nil {
		err = exec.Command(strace, "-b", "execve", "-o", os.DevNull, "true").Run()
	}
	if err != nil {
		t.Skipf("strace: %v", err)
	}
}

// What git-land does to its journal; its git processes are not traced, as they
// are let go when they become git.
var journaling = []string{"-f", "-b", "execve", "-y", "-qq", "-s", "0", "-e", "trace=write,fsync,renameat,renameat2,rename,unlinkat,unlink"}

// A landing is killed, alone, after each write, rename, fsync and removal of its
// journal. It is held up there for a moment, in which the kill arrives.
func TestKilledAtEverySystemCall(t *testing.T) {
	t.Parallel()
	needStrace(t)
	eachPoint(t, func(t *testing.T, st *stage, sc scenario, n int) (r gittest.Result, what string) {
		log := st.path("log")
		if err := syscall.Mkfifo(log, 0o600); err != nil {
			t.Fatal(err)
		}
		hit := make(chan string, 1)
		go func() { hit <- killAt(log, n) }()
		r = st.trace(sc, append(journaling, "-e", "inject=write,fsync,renameat,renameat2,rename,unlinkat,unlink:delay_exit=50000", "-o", log))
		return r, <-hit
	})
}

var tracedCall = regexp.MustCompile(`^(\d+) +(?:<\.\.\. )?(\w+)(?:\(.*/lease/journal| resumed)`)

// killAt reads a trace, and kills the traced process when it has done its nth call
// on a journal. It returns what that was, or nothing. A call that others interrupt
// in the trace is told in two lines, of which only the first has the path.
func killAt(log string, n int) (what string) {
	f, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer f.Close()
	begun := map[string]bool{} // by thread: a call on a journal that is not finished
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := tracedCall.FindStringSubmatch(lines.Text())
		if m == nil || what != "" {
			continue
		}
		resumed := strings.Contains(m[0], " resumed")
		if strings.HasSuffix(lines.Text(), "<unfinished ...>") {
			begun[m[1]] = true
			continue
		}
		if resumed && !begun[m[1]] {
			continue
		}
		delete(begun, m[1])
		if n--; n == 0 {
			what = m[2]
			pid, _ := strconv.Atoi(m[1])
			syscall.Kill(pid, syscall.SIGKILL) // that of a thread is the process's
		}
	}
	return what
}

// The disk is full from one write on, for each thread: of the journal, or of what
// is told to a git process.
func TestNoSpaceAtEveryWrite(t *testing.T) {
	t.Parallel()
	needStrace(t)
	eachPoint(t, func(t *testing.T, st *stage, sc scenario, n int) (r gittest.Result, what string) {
		log := st.path("log")
		r = st.trace(sc, append(journaling, "-e", fmt.Sprintf("inject=write,fsync:error=ENOSPC:when=%d", n), "-o", log))
		text := read(t, log)
		switch {
		case strings.Contains(text, "ENOSPC") && regexp.MustCompile(`/lease/journal.*ENOSPC`).MatchString(text):
			return r, "journal"
		case strings.Contains(text, "ENOSPC"):
			return r, "other"
		}
		return r, ""
	})
}

// trace runs a scenario's command under strace.
func (st *stage) trace(sc scenario, options []string) gittest.Result {
	st.t.Helper()
	s := st.s.with(sc.env...)
	cmd := s.cmd("strace", append(append(options, filepath.Join(bin, sc.command[0])), sc.command[1:]...)...)
	r := gittest.RunGroup(st.t, cmd, st.path("group"))
	st.unlock()
	return r
}

// eachPoint plays the landings with something that goes wrong at the nth of what
// point counts, for each n, or for some by the seed, until nothing is there to go
// wrong: then point returns no name for it.
func eachPoint(t *testing.T, point func(*testing.T, *stage, scenario, int) (gittest.Result, string)) {
	from := seed(t)
	for i, sc := range traced() {
		template := sc.begin(t)
		killer := gittest.KillGit(t)
		stride := min(10, max(1, 100/loops(100))) // there are few
		pick := rand.New(rand.NewPCG(from, uint64(i)))
		hits := map[string]int{}
		for n, done := 1, false; !done; n += stride {
			at := n + pick.IntN(stride)
			t.Run(fmt.Sprintf("%s-%d", strings.ReplaceAll(sc.name, " ", "-"), at), func(t *testing.T) {
				st := template.copy(t, killer, rand.New(rand.NewPCG(from, uint64(at))))
				first, what := point(t, st, sc, at)
				if done = what == ""; done && first.Code != 0 {
					t.Errorf("nothing went wrong: exit %d\n%s%s", first.Code, first.Stdout, first.Stderr)
				}
				hits[what]++
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("%s: exit %d\n%s%s", what, first.Code, first.Stdout, first.Stderr)
					}
				})
				sc.end(st, first, gittest.Point{Signal: syscall.SIGKILL})
			})
		}
		delete(hits, "")
		t.Logf("%s: ended at %v; %s", sc.name, hits, soundness(t))
	}
}

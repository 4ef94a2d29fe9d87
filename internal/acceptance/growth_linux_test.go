package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// A landing reads no more of the history the longer that is: neither we nor git, whose
// --recurse-submodules=check once read all of it. Counted is what every process of a
// landing opens.
func TestLandingDoesNotReadTheHistory(t *testing.T) {
	t.Parallel()
	needStrace(t)
	s := clone(t, gittest.Remote(t))
	land := func(i int, with ...string) {
		t.Helper()
		s.write(map[string]string{"file": fmt.Sprintln("change", i, time.Now().UnixNano())})
		words := append(with, filepath.Join(bin, "git-land"), "--force-unverified", "--reason", "only a test", "-m", "change", "--", "file")
		s.exits(0, words[0], words[1:]...)
	}
	opened := func(i int) int {
		t.Helper()
		// Git goes back by dates, of whole seconds: it reads all that landed in the same one.
		at := s.git("log", "-1", "--format=%ct")
		until(t, "the second of the last landing is over", func() bool { return strconv.FormatInt(time.Now().Unix(), 10) > at })
		log := filepath.Join(t.TempDir(), "log")
		land(i, "strace", "-f", "-qq", "-s", "0", "-e", "trace=open,openat", "-o", log)
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "open")
	}
	for range 10 { // git looks a few commits further back than it has to, where there are some
		land(0)
	}
	early := opened(1)
	const more = 40
	for i := range more {
		land(2 + i)
	}
	if late := opened(2 + more); late > early+more/2 {
		t.Errorf("after %d more landings one opens %d files, and %d before", more, late, early)
	} else {
		t.Logf("%d files, and after %d more landings %d", early, more, late)
	}
}

package acceptance

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// seed is where random choices come from; GITLAND_SEED repeats a campaign.
func seed(t *testing.T) uint64 {
	t.Helper()
	s, err := strconv.ParseUint(os.Getenv("GITLAND_SEED"), 10, 64)
	if err != nil {
		s = 1
	}
	t.Logf("seed %d", s)
	return s
}

// Clones land at the same time and are killed at random: the process alone, so
// that its push goes on without it, or the process group with a signal that git
// cleans up after. Each unit is run again until it says that it has landed. In
// the end every unit has landed once, and commit, record and event agree.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	killedAtRandom(t, gittest.Remote(t))
}

// The same where refs cannot move together.
func TestKilledAtRandomWithoutAtomic(t *testing.T) {
	t.Parallel()
	killedAtRandom(t, notAtomic(t))
}

func killedAtRandom(t *testing.T, remote string) {
	t.Helper()
	const clones = 3
	units := max(2, loops(20))
	from := seed(t)
	seats := make([]seat, clones)
	for i := range seats {
		seats[i] = clone(t, remote)
	}
	var mu sync.Mutex
	kills, runs := 0, 0
	var wg sync.WaitGroup
	for i, s := range seats {
		random := rand.New(rand.NewPCG(from, uint64(i)))
		wg.Go(func() {
			for u := range units {
				name := fmt.Sprintf("unit-%d-%d", i, u)
				gittest.Write(t, s.dir, map[string]string{name: name + "\n"})
				for try := 0; ; try++ {
					ok, killed, said := landOrDie(s, name, random, try)
					mu.Lock()
					runs++
					if killed {
						kills++
					}
					mu.Unlock()
					if ok {
						break
					}
					if try == 40 {
						t.Errorf("%s does not land: %s", name, said)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d units, %d runs, %d of them killed", clones*units, runs, kills)
	agree(t, seats[0], remote, clones*units)
	for _, s := range seats {
		if left := s.git("for-each-ref", "--format=%(refname)", "refs/lease"); left != "" {
			t.Errorf("left in a clone: %s", left)
		}
	}
}

// landOrDie runs one landing, and kills it at random; less likely the more
// often it was tried. said is what the landing wrote on stderr.
func landOrDie(s seat, name string, random *rand.Rand, try int) (ok, killed bool, said string) {
	cmd := exec.Command(bin+"/git-land", "-m", "land "+name, "--unit", name, "--timeout", "10m",
		"--force-unverified", "--reason", "chaos", "--", name)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		s.t.Error(err)
		return true, false, ""
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	if random.IntN(3+try) > 1 {
		err := <-done
		return err == nil, false, stderr.String()
	}
	select {
	case err := <-done:
		return err == nil, false, stderr.String()
	case <-time.After(time.Duration(random.IntN(1500)) * time.Millisecond):
	}
	if random.IntN(2) == 0 {
		cmd.Process.Kill()
	} else {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	err := <-done
	return err == nil, true, stderr.String()
}

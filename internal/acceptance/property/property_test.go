// Package property shows that what lands is exactly what was chosen, and that nothing
// else is touched: in random repositories, with random changes in files and index, under
// random choices, while others land, and where the landing is interrupted or killed.
//
// A case is one repository. The generator (dirty_test.go, scope_test.go, others_test.go)
// makes it from the seed and the number of the case, and with it a model of it, in
// memory (model_test.go): the model says what is to land, without asking git or us.
// disk_test.go puts the repository on disk, run_test.go lands in it, ends the landing at
// random and concludes it, and check_test.go compares remote and clone with the model.
//
// It holds tests only.
package property

import (
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	_ "gitland/internal/cli" // in the executables, which a cached result must be of
	"gitland/internal/gittest"
)

// bin is where TestMain puts the executables.
var bin string

func TestMain(m *testing.M) { os.Exit(gittest.Main(m, &bin)) }

// campaign is how many cases are a campaign, in which every feature has to be drawn. The
// ordinary tests run a tenth of it; GITLAND_LOOPS is a percentage.
const campaign = 2000

// workers is how many cases run at the same time. They wait for disks and processes.
const workers = 4

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// GITLAND_SEED is where random choices come from. GITLAND_CASE runs one case alone.
func TestLandsWhatWasChosenAndNothingElse(t *testing.T) {
	t.Parallel()
	seed := number("GITLAND_SEED", 1)
	from, to := 0, campaign*number("GITLAND_LOOPS", 10)/100
	if only := number("GITLAND_CASE", -1); only >= 0 {
		from, to = only, only+1
	}
	counts, images := newTally(), newImages(t)
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for n := range numbers {
				t.Run(strconv.Itoa(n), func(t *testing.T) {
					c := newCase(t, images, seed, n)
					defer func() { counts.add(c.drawn, c.ends) }()
					c.run()
				})
			}
		})
	}
	for n := from; n < to; n++ {
		numbers <- n
	}
	close(numbers)
	wg.Wait()
	t.Logf("seed %d, %d cases\n%s", seed, to-from, counts)
	missing := slices.DeleteFunc(counts.missing(), func(f feature) bool { return f == signing && images.key == "" })
	if len(missing) > 0 && to-from >= campaign {
		t.Errorf("never drawn: %q", missing)
	}
}

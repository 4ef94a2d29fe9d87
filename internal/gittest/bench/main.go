// The bench command measures what a landing costs over plain git: "git land"
// of an already verified change, its gate, lease, record and log included,
// against "git fetch && git commit && git push" of the same change.
//
// The two are measured in pairs, each with a clone and a remote of its own, on
// the same kind of link, and in turns the one or the other first, so that what
// the machine does besides meets both alike. The ratio is the median of the
// pairs' ratios. Connections and git processes are counted, not timed, on
// landings of their own.
//
// With -index it measures a landing of ten paths, of an index of 100,000, against
// "git commit" of the same.
//
// Use scripts/bench, which builds the executables first.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gitland/internal/gittest"
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: ./scripts/bench [-n PAIRS] [-link NAME | -index]")
		flag.PrintDefaults()
	}
	pairs := flag.Int("n", 20, "how many `pairs` to measure on each link")
	only := flag.String("link", "", "measure only the links with `name` in theirs")
	index := flag.Bool("index", false, "measure ten paths of an index of 100,000 instead, against git commit")
	bin := flag.String("bin", "bin", "the `directory` of git-land and git-lease")
	flag.Parse()
	if flag.NArg() > 0 || *pairs < 1 {
		flag.Usage()
		os.Exit(129)
	}
	full, err := filepath.Abs(*bin)
	switch {
	case err != nil:
	case *index:
		err = benchIndex(full, *pairs)
	default:
		err = bench(full, *only, *pairs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(bin, only string, pairs int) error {
	fmt.Printf("%d pairs on each link; times are medians, the ratio with its quartiles\n\n", pairs)
	const columns = "%-20s %10s %10s   %-20s %-9s %-11s %s\n"
	fmt.Printf(columns, "link", "git land", "plain git", "ratio", "to reach", "connections", "git processes")
	for _, l := range links() {
		if !strings.Contains(l.name, only) {
			continue
		}
		var r report
		skipped, err := run(func(t gittest.T) { r = measure(t, l, bin, pairs) })
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", l.name, err)
		case skipped != "":
			fmt.Printf("%-20s skipped: %s\n", l.name, skipped)
			continue
		}
		goal := "-"
		if l.goal > 0 {
			goal = fmt.Sprintf("%.1f", l.goal)
		}
		fmt.Printf(columns, l.name, millis(r.land), millis(r.plain),
			fmt.Sprintf("%.2f (%.2f to %.2f)", r.ratio[1], r.ratio[0], r.ratio[2]),
			goal, spread(r.connections), spread(r.processes))
	}
	return nil
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// spread prints counts that are nearly always all the same.
func spread(counts []int) string {
	low, high := slices.Min(counts), slices.Max(counts)
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

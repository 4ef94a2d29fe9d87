package main

import (
	"fmt"
	"slices"
	"time"

	"gitland/internal/gittest"
)

// A report is what one link gave.
type report struct {
	land, plain            time.Duration // medians
	ratio                  [3]float64    // quartiles of the pairs' ratios
	connections, processes []int         // of each counted landing
}

// How many landings are counted, and how many files the repository has.
const (
	counted = 2
	files   = 200
)

// A side is a clone with a remote of its own.
type side struct {
	t   gittest.T
	way way
	env []string
	dir string
}

func newSide(t gittest.T, l link, bin string) side {
	remote := gittest.Bare(t)
	seed := gittest.Clone(t, gittest.URL(remote))
	content := map[string]string{}
	for i := range files {
		content[name(i)] = fmt.Sprintln("file", i)
	}
	gittest.Commit(t, seed, "begin", content)
	gittest.Git(t, seed, "push", "--quiet", "origin", "main")
	way := l.open(t, remote)
	env, _ := gittest.Env(t)
	env = gittest.With(env, "GIT_TEST_FSYNC") // both wait for the disk as they do for a user
	return side{t, way, gittest.WithPath(env, bin), gittest.Clone(t, way.url, way.cloneArgs...)}
}

func name(i int) string { return fmt.Sprintf("dir%d/file%d", i%10, i) }

func measure(t gittest.T, l link, bin string, pairs int) report {
	tool, plain := newSide(t, l, bin), newSide(t, l, bin)
	// The first landing adopts the branch and probes the remote: not timed.
	tool.land(0)
	plain.plain(0)
	var lands, plains []time.Duration
	var ratios []float64
	for i := 1; i <= pairs; i++ {
		var a, b time.Duration
		if i%2 == 0 {
			a, b = tool.land(i), plain.plain(i)
		} else {
			b, a = plain.plain(i), tool.land(i)
		}
		lands, plains = append(lands, a), append(plains, b)
		ratios = append(ratios, float64(a)/float64(b))
	}
	r := report{land: quartiles(lands)[1], plain: quartiles(plains)[1], ratio: quartiles(ratios)}
	for i := range counted {
		connections, processes := tool.count(pairs + 1 + i)
		r.connections = append(r.connections, connections)
		r.processes = append(r.processes, processes)
	}
	return r
}

// quartiles interpolates between neighbours.
func quartiles[N time.Duration | float64](values []N) (q [3]N) {
	slices.Sort(values)
	for i := range q {
		at := (i + 1) * (len(values) - 1) // in quarters of a step
		low, high := values[at/4], values[(at+3)/4]
		q[i] = low + (high-low)*N(at%4)/4
	}
	return q
}

// change makes the i-th change and returns the path that it is in.
func (s side) change(i int) string {
	path := name(i % files)
	gittest.Write(s.t, s.dir, map[string]string{path: fmt.Sprintln("change", i)})
	return path
}

// verified makes the i-th change and has a passing verification of the tree
// that it leads to recorded and published.
func (s side) verified(i int) string {
	path := s.change(i)
	s.recordPass([]string{path})
	return path
}

// run runs a command, which must succeed.
func (s side) run(name string, args ...string) (stdout string) {
	r := gittest.Run(s.t, gittest.Command(s.t, s.env, s.dir, name, args...))
	if r.Code != 0 {
		s.t.Fatalf("%s %q: exit %d\n%s%s", name, args, r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// land times the landing of the i-th change.
func (s side) land(i int) time.Duration {
	path := s.verified(i)
	start := time.Now()
	s.run("git", "land", "-m", fmt.Sprint("change ", i), "--", path)
	return time.Since(start)
}

// plain times the same in plain git.
func (s side) plain(i int) time.Duration {
	path := s.change(i)
	start := time.Now()
	s.run("git", "fetch", "--quiet")
	s.run("git", "commit", "--quiet", "-m", fmt.Sprint("change ", i), "--", path)
	s.run("git", "push", "--quiet")
	return time.Since(start)
}

// count counts what the landing of the i-th change needs. The executable is
// started by its own name, since below "git land" no git would be counted.
func (s side) count(i int) (connections, processes int) {
	path := s.verified(i)
	counter := gittest.CountGit(s.t)
	env, total := s.way.counted(counter.Env(s.env))
	s.env = env
	before := total()
	s.run("git-land", "-m", fmt.Sprint("change ", i), "--", path)
	return total() - before, len(counter.Calls())
}

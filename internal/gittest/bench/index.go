package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"gitland/internal/gittest"
)

// How many files a large index has, and how many of them a landing changes.
const (
	manyFiles = 100_000
	changed   = 10
	indexGoal = 1.5
)

// An indexReport is what landing a few paths of many gave.
type indexReport struct {
	land, commit, whole   time.Duration // medians; whole is fetch, commit and push
	overCommit, overWhole [3]float64    // quartiles of the pairs' ratios
}

// measureIndex measures, in pairs, the landing of ten verified paths of many, over
// file://, against "git commit" of the same paths in another clone. That one is pushed
// afterwards, which is timed for itself.
func measureIndex(t gittest.T, bin string, pairs int) indexReport {
	seed := manyFilesRemote(t)
	tool, plain := newIndexSide(t, seed, bin), newIndexSide(t, seed, bin)
	tool.landMany(0)
	plain.commitMany(0)
	var lands, commits, wholes []time.Duration
	var overCommit, overWhole []float64
	for i := 1; i <= pairs; i++ {
		var land, commit, whole time.Duration
		if i%2 == 0 {
			land = tool.landMany(i)
			commit, whole = plain.commitMany(i)
		} else {
			commit, whole = plain.commitMany(i)
			land = tool.landMany(i)
		}
		lands, commits, wholes = append(lands, land), append(commits, commit), append(wholes, whole)
		overCommit = append(overCommit, float64(land)/float64(commit))
		overWhole = append(overWhole, float64(land)/float64(whole))
	}
	return indexReport{quartiles(lands)[1], quartiles(commits)[1], quartiles(wholes)[1], quartiles(overCommit), quartiles(overWhole)}
}

// manyFilesRemote makes a remote whose branch has many files.
func manyFilesRemote(t gittest.T) string {
	remote := gittest.Bare(t)
	var in bytes.Buffer
	in.WriteString("commit refs/heads/main\ncommitter Ada <ada@example.com> 1700000000 +0000\ndata 5\nbegin\n")
	for i := range manyFiles {
		text := fmt.Sprintln("file", i)
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", manyName(i), len(text), text)
	}
	env, _ := gittest.Env(t)
	cmd := gittest.Command(t, env, remote, "git", "fast-import", "--quiet")
	cmd.Stdin = &in
	if r := gittest.Run(t, cmd); r.Code != 0 {
		t.Fatalf("git fast-import: exit %d\n%s", r.Code, r.Stderr)
	}
	return remote
}

func manyName(i int) string { return fmt.Sprintf("dir%03d/sub%d/file%d", i%500, i/500%10, i) }

// newIndexSide is newSide with a copy of the remote.
func newIndexSide(t gittest.T, seed, bin string) side {
	remote := filepath.Join(t.TempDir(), "origin.git")
	gittest.CopyTree(t, seed, remote)
	env, _ := gittest.Env(t)
	env = gittest.With(env, "GIT_TEST_FSYNC")
	way := openFile(t, remote)
	return side{t, way, gittest.WithPath(env, bin), gittest.Clone(t, way.url)}
}

// changeMany makes the i-th change of ten paths.
func (s side) changeMany(i int) []string {
	var paths []string
	for k := range changed {
		path := manyName((i*changed + k) * 997 % manyFiles)
		gittest.Write(s.t, s.dir, map[string]string{path: fmt.Sprintln("change", i)})
		paths = append(paths, path)
	}
	return paths
}

// landMany times the landing of the i-th change, which is verified before.
func (s side) landMany(i int) time.Duration {
	paths := s.changeMany(i)
	s.recordPass(paths)
	start := time.Now()
	s.run("git", append([]string{"land", "-m", fmt.Sprint("change ", i), "--"}, paths...)...)
	return time.Since(start)
}

// commitMany times the commit of the i-th change, and all that plain git needs for it.
func (s side) commitMany(i int) (commit, whole time.Duration) {
	paths := s.changeMany(i)
	start := time.Now()
	s.run("git", append([]string{"commit", "--quiet", "-m", fmt.Sprint("change ", i), "--"}, paths...)...)
	commit = time.Since(start)
	start = time.Now()
	s.run("git", "fetch", "--quiet")
	s.run("git", "push", "--quiet")
	return commit, commit + time.Since(start)
}

// benchIndex measures and prints.
func benchIndex(bin string, pairs int) error {
	var r indexReport
	skipped, err := run(func(t gittest.T) { r = measureIndex(t, bin, pairs) })
	switch {
	case err != nil:
		return fmt.Errorf("index: %w", err)
	case skipped != "":
		fmt.Println("skipped:", skipped)
		return nil
	}
	fmt.Printf("%d pairs, %d of %d files changed; times are medians, ratios with their quartiles\n\n", pairs, changed, manyFiles)
	row := func(name string, plain time.Duration, ratio [3]float64, goal string) {
		fmt.Printf("%-24s %10s %10s   %-20s %s\n", name, millis(r.land), millis(plain),
			fmt.Sprintf("%.2f (%.2f to %.2f)", ratio[1], ratio[0], ratio[2]), goal)
	}
	fmt.Printf("%-24s %10s %10s   %-20s %s\n", "against", "git land", "plain git", "ratio", "to reach")
	row("git commit", r.commit, r.overCommit, fmt.Sprint(indexGoal))
	row("commit, fetch and push", r.whole, r.overWhole, "-")
	return nil
}

// recordPass records and publishes a passing verification of what landing the paths
// leads to.
func (s side) recordPass(paths []string) {
	aside := s // has an index of its own
	aside.env = gittest.With(s.env, "GIT_INDEX_FILE="+filepath.Join(s.t.TempDir(), "index"))
	aside.run("git", "read-tree", "HEAD")
	aside.run("git", append([]string{"add", "--"}, paths...)...)
	tree := strings.TrimSpace(aside.run("git", "write-tree"))
	s.run("git", "land", "verify", "--record", "pass", "--check", "bench", "--tree", tree)
}

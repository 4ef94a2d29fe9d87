package reconcile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

// base..commit is what commit has and base has not, in histories with merges and
// with clocks at random. (Git's own base..commit goes by clocks in part, and has
// too much where they are as wrong as here.)
func TestBetween(t *testing.T) {
	t.Parallel()
	dir := gittest.Bare(t)
	r := rand.New(rand.NewPCG(1, 2))
	env, _ := gittest.Env(t)
	var stream strings.Builder
	const n = 40
	for i := range n {
		fmt.Fprintf(&stream, "commit refs/heads/c%d\nmark :%d\ncommitter Ada <a@b> %d +0000\ndata 0\n", i, i+1, 1_700_000_000+r.IntN(1000))
		if i > 0 {
			fmt.Fprintf(&stream, "from :%d\n", i-r.IntN(min(i, 4)))
			for range r.IntN(3) {
				fmt.Fprintf(&stream, "merge :%d\n", 1+r.IntN(i))
			}
		}
		stream.WriteString("\n")
	}
	cmd := gittest.Command(t, env, dir, "git", "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(stream.String())
	if got := gittest.Run(t, cmd); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	var ids []object.OID
	for i := range n {
		ids = append(ids, object.OID(gittest.Git(t, dir, "rev-parse", fmt.Sprintf("c%d", i))))
	}
	repo, err := git.Open(t.Context(), git.Options{Dir: dir, Environ: env})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	h, err := readHistory(t.Context(), repo, ids[n-1], "", ids, nil, func(int, int) {})
	if err != nil || len(h.nodes) != n {
		t.Fatalf("%d nodes, %v", len(h.nodes), err)
	}
	for range 40 {
		base, commit := ids[r.IntN(n)], ids[r.IntN(n)]
		var got []string
		h.between(base, commit, func(n *node) { got = append(got, string(n.oid)) })
		without := strings.Fields(gittest.Git(t, dir, "rev-list", string(base)))
		want := slices.DeleteFunc(strings.Fields(gittest.Git(t, dir, "rev-list", string(commit))),
			func(c string) bool { return slices.Contains(without, c) })
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s..%s: %d commits, want %d", base, commit, len(got), len(want))
		}
	}
	onBranch := 0
	for i := range h.nodes {
		if h.nodes[i].branch {
			onBranch++
		}
	}
	if want := gittest.Git(t, dir, "rev-list", "--count", string(ids[n-1])); fmt.Sprint(onBranch) != want || h.scope != onBranch {
		t.Errorf("%d commits on the branch, git has %s", onBranch, want)
	}
}

// So it is where the lease began with base, which is not in the graph then.
func TestBetweenOfMerge(t *testing.T) {
	t.Parallel()
	h := &history{nodes: []node{{oid: "merge", first: "base", parents: []int32{1}}, {oid: "side", first: "base"}},
		index: map[object.OID]int32{"merge": 0, "side": 1}, marked: make([]mark, 2)}
	var got []object.OID
	h.between("base", "merge", func(n *node) { got = append(got, n.oid) })
	if !slices.Equal(got, []object.OID{"merge", "side"}) {
		t.Errorf("got %q", got)
	}
}

// Each code is in the order of reports once, and fit for an event.
func TestCodes(t *testing.T) {
	t.Parallel()
	codes := Codes()
	for _, c := range codes {
		if strings.Trim(string(c), "abcdefghijklmnopqrstuvwxyz-") != "" || len(c) > 64 {
			t.Errorf("code %q", c)
		}
	}
	slices.Sort(codes)
	if len(slices.Compact(codes)) != len(Codes()) {
		t.Error("a code is listed twice")
	}
	for _, c := range slices.Concat(mended, acknowledged) {
		if rank(c) < 0 {
			t.Errorf("%s is in no order", c)
		}
	}
}

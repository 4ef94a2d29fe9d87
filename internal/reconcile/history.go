package reconcile

import (
	"container/heap"
	"context"
	"slices"

	"gitland/internal/git"
	"gitland/internal/object"
)

// A history is the part of the commits that is looked at, as a graph whose nodes
// are in topological order, children before parents.
type history struct {
	nodes []node
	index map[object.OID]int32
	scope int // how many nodes are of the branch
	// touched: the branch stands on start. All on the way to it are in the graph.
	touched bool
	walk    int32
	marked  []mark
}

type node struct {
	oid, tree object.OID
	parents   []int32    // in the graph
	first     object.OID // the first parent, also where it is outside of the graph
	branch    bool       // the branch has it
	covered   bool       // by what some landing says of itself, or an override
	removed   bool       // by an override
}

// A mark says in which walk a node was last seen, and as what.
type mark struct {
	walk int32
	out  bool // the base has it
}

// readHistory reads what is reachable from the branch or from a claimed commit,
// and not from one of excluded, among which is start.
func readHistory(ctx context.Context, repo *git.Repo, base, start object.OID, claimed, excluded []object.OID, tell func(done, all int)) (*history, error) {
	h := &history{index: map[object.OID]int32{}}
	var parents [][]object.OID
	tips := claimed
	if base != "" {
		tips = append([]object.OID{base}, claimed...)
	}
	err := repo.History(ctx, tips, excluded, func(e git.HistoryEntry) error {
		n := node{oid: e.OID, tree: e.Tree}
		if len(e.Parents) > 0 {
			n.first = e.Parents[0]
		}
		h.index[e.OID] = int32(len(h.nodes))
		h.nodes = append(h.nodes, n)
		parents = append(parents, e.Parents)
		if len(h.nodes)%4096 == 0 {
			tell(len(h.nodes), 0)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range h.nodes {
		for _, p := range parents[i] {
			if at, ok := h.index[p]; ok {
				h.nodes[i].parents = append(h.nodes[i].parents, at)
			}
		}
	}
	if at, ok := h.index[base]; ok {
		h.nodes[at].branch = true
	}
	for i := range h.nodes { // children come before their parents
		if n := &h.nodes[i]; n.branch {
			h.scope++
			h.touched = h.touched || start != "" && slices.Contains(parents[i], start)
			for _, p := range n.parents {
				h.nodes[p].branch = true
			}
		}
	}
	h.marked = make([]mark, len(h.nodes))
	return h, nil
}

// find is the node of a commit, nil where it is not in the graph.
func (h *history) find(oid object.OID) *node {
	if h == nil {
		return nil
	}
	if at, ok := h.index[oid]; ok {
		return &h.nodes[at]
	}
	return nil
}

// place orders commits, newest first; what is no commit of the graph comes last.
func (h *history) place(oid object.OID) int {
	if h == nil {
		return 0
	}
	if at, ok := h.index[oid]; ok {
		return int(at)
	}
	return len(h.nodes)
}

// between calls yield for each commit of base..commit, as git means it, that is
// in the graph. An empty base has no commit.
func (h *history) between(base, commit object.OID, yield func(*node)) {
	at, ok := h.index[commit]
	if !ok {
		return
	}
	n := &h.nodes[at]
	beside := func(p int32) bool { return h.nodes[p].oid != base }  // the base need not be in the graph, and what was merged is
	if n.first == base && !slices.ContainsFunc(n.parents, beside) { // as most landings are
		yield(n)
		return
	}
	h.walk++
	w := walk{h: h}
	w.push(at, false)
	if b, ok := h.index[base]; ok {
		w.push(b, true)
	}
	for w.open > 0 {
		i := heap.Pop(&w).(int32)
		out := h.marked[i].out
		if !out {
			w.open--
			yield(&h.nodes[i])
		}
		for _, p := range h.nodes[i].parents {
			w.push(p, out)
		}
	}
}

// A walk goes through the graph from its newest nodes on, as git's own does:
// whatever is older than all that is still open has been decided.
type walk struct {
	h     *history
	queue []int32
	open  int // of the queue, not reachable from the base
}

// push puts a node into the queue once, and remembers whether the base has it.
func (w *walk) push(i int32, out bool) {
	m := &w.h.marked[i]
	if m.walk != w.h.walk {
		*m = mark{walk: w.h.walk, out: out}
		heap.Push(w, i)
		if !out {
			w.open++
		}
		return
	}
	if out && !m.out {
		m.out = true
		w.open-- // it is still in the queue: its children come before it
	}
}

func (w *walk) Len() int           { return len(w.queue) }
func (w *walk) Less(i, j int) bool { return w.queue[i] < w.queue[j] }
func (w *walk) Swap(i, j int)      { w.queue[i], w.queue[j] = w.queue[j], w.queue[i] }
func (w *walk) Push(x any)         { w.queue = append(w.queue, x.(int32)) }
func (w *walk) Pop() any {
	last := w.queue[len(w.queue)-1]
	w.queue = w.queue[:len(w.queue)-1]
	return last
}

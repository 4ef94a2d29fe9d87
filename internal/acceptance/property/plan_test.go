package property

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitland/internal/object"
)

// A plan is what one landing is to do, as the model has it.
type plan struct {
	way     feature
	scope   scope
	args    []string
	steps   []step // what is to land, oldest first
	moves   []move // what others push
	landing bool   // others land, too
	// refused means that it must not land, and why; unsure that it need not.
	refused, unsure string
	before          state
}

// A step is one commit that lands.
type step struct {
	from, to        tree
	message, author string
}

// message is that of a landing of the case.
func (c *caseOf) message() string { return fmt.Sprintf("ours %d-%d", c.n, c.r.IntN(1000000)) }

// draw makes a plan, and the repository ready for it.
func (c *caseOf) draw() *plan {
	p := &plan{}
	stack := 0
	switch roll := c.r.IntN(100); {
	case roll < 55:
		p.way = wayPaths
	case roll < 75:
		p.way = wayStaged
	default:
		p.way, stack = wayCommits, 1+c.r.IntN(3)
	}
	if p.way != wayCommits && c.r.IntN(8) == 0 {
		stack = 1
	}
	steps := c.commits(stack)
	if len(steps) == 0 && p.way == wayCommits {
		p.way = wayPaths
	}
	c.has(p.way)
	was := c.s.clone()
	dirt := fileOps
	if p.way != wayCommits || c.r.IntN(10) == 0 {
		dirt = slices.Concat(fileOps, indexOps)
	}
	least := 1
	if p.way == wayCommits {
		least = 0
	}
	c.change(&c.s, dirt, least+c.r.IntN(6))
	if p.way == wayStaged {
		c.change(&c.s, indexOps, 1+c.r.IntN(3))
	}
	c.files(was.work, c.s.work)
	c.settleIntents()
	c.indexed(was.index, c.s.index)
	p.before = c.s.clone()

	message := c.message()
	p.args = append(slices.Clone(landing), "-m", message)
	switch p.way {
	case wayPaths:
		p.scope = drawScope(c.r, c.s, c.sub)
		p.args = append(append(p.args, "--"), p.scope.texts()...)
		p.steps = []step{{c.s.head, c.s.chosen(p.scope.matches), message + "\n", ""}}
		c.drawPaths(p, steps)
	case wayStaged:
		p.steps = []step{{c.s.head, c.s.staged(), message + "\n", ""}}
		if len(steps) > 0 {
			c.has(wayStagedBeside)
			p.refused = "commits that have not landed, and staged changes"
		}
	case wayCommits:
		p.steps = steps
		if len(differing(c.s.head, c.s.staged())) > 0 {
			p.refused = "staged changes beside commits"
		}
	}
	if len(differing(p.steps[0].from, p.steps[len(p.steps)-1].to)) == 0 && p.way != wayCommits && p.refused == "" {
		p.refused = "nothing is chosen"
	}
	c.note("%s: git-land %q", p.way, p.args)
	c.others(p)
	return p
}

// settleIntents has entries that are to be added be as their files are by now.
func (c *caseOf) settleIntents() {
	for path, e := range c.s.index {
		w, there := c.s.work[path]
		switch {
		case !e.intent:
		case there:
			c.s.index[path] = indexed{entry: entry{mode: c.s.clean(path, w).mode}, intent: true}
		default:
			delete(c.s.index, path)
		}
	}
}

// drawPaths says of a landing of paths whether it can be, and what is special in it.
func (c *caseOf) drawPaths(p *plan, unlanded []step) {
	for _, one := range p.scope {
		c.has(one.feature)
		if one.exclude {
			continue
		}
		found, sparse, only := false, false, true
		for path := range union(c.s) {
			_, is := c.s.index[path]
			_, onDisk := c.s.work[path]
			if !one.matches(path) {
				continue
			}
			_, was := c.s.head[path]
			found = found || is || was || onDisk && !ignored(path)
			sparse = sparse || c.s.index[path].skip
			only = only && (c.s.index[path].skip || !is && !onDisk)
			if is && !was && !onDisk {
				p.unsure = "a path that is only staged"
			}
		}
		switch {
		case sparse && only:
			p.unsure = "paths outside of a sparse checkout"
		case !found:
			p.refused = "a path that is not there"
		}
		for path := range c.s.work {
			if _, is := c.s.index[path]; !is && one.feature == scopePath && one.matches(path) && ignored(path) {
				p.unsure = "an ignored path is named"
			}
		}
	}
	for path, e := range c.s.index {
		if _, was := c.s.head[path]; !was && p.scope.matches(path) && ignored(path) && e != (indexed{}) {
			p.unsure = "an ignored path was forced in" // FIXME: until scoped commits keep the index
		}
	}
	diff := differing(p.steps[0].from, p.steps[0].to)
	for path := range union(c.s) {
		i, staged := c.s.index[path]
		switch {
		case !p.scope.matches(path) && c.s.dirty(path):
			c.has(dirtyOutside)
		case staged && i.entry != c.s.head[path] && c.s.work[path] != (entry{}) && c.s.clean(path, c.s.work[path]) != i.entry:
			c.has(dirtyInScope)
		}
	}
	if len(unlanded) == 0 {
		return
	}
	c.has(wayPathsBeside)
	for _, path := range differing(unlanded[0].from, unlanded[len(unlanded)-1].to) {
		if slices.Contains(diff, path) {
			p.refused = "commits that have not landed change a chosen path"
		}
	}
}

// commits makes commits on HEAD, which the target lacks.
func (c *caseOf) commits(n int) []step {
	var steps []step
	for i := range n {
		next := c.s.clone()
		c.change(&next, fileOps, 1+c.r.IntN(3))
		to := next.chosen(func(string) bool { return true })
		if len(differing(c.s.head, to)) == 0 {
			continue
		}
		author := fmt.Sprintf("Grace <grace@example.com> 16%08d +0200", c.r.IntN(100000000))
		made := step{c.s.head, to, fmt.Sprintf("%s, commit %d\n\nWith a body.\n", c.message(), i), author}
		var parents []object.OID
		if c.head != "" {
			parents = []object.OID{c.head}
		}
		c.head = c.local.commit(to, parents, author, made.message)
		c.s.late = next.late
		for path := range next.index {
			if e, there := to[path]; !there {
				delete(next.index, path)
			} else {
				next.index[path] = indexed{e, false, next.index[path].skip}
			}
		}
		for path, e := range to {
			if _, there := next.index[path]; !there {
				next.index[path] = indexed{entry: e}
			}
		}
		was := c.s
		c.s = state{to, next.index, next.work, next.late}
		c.files(was.work, c.s.work)
		c.indexed(was.index, c.s.index)
		steps = append(steps, made)
	}
	if len(steps) > 0 {
		if c.branch == "" {
			c.must(writeHead(c.own, string(c.head)))
		} else {
			setRef(c.t, c.gitDir, "refs/heads/"+c.branch, c.head)
		}
		c.note("%d commits", len(steps))
	}
	return steps
}

// inTheWay reports whether others' part of what landed, in which it differs from HEAD
// with the change, meets something here.
func (p *plan) inTheWay(landed tree) bool {
	last := p.steps[len(p.steps)-1]
	diff := differing(last.from, last.to)
	for _, path := range differing(last.to, landed) {
		i, is := p.before.index[path]
		w, onDisk := p.before.work[path]
		want, inChange := last.to[path]
		if p.way == wayPaths && slices.Contains(diff, path) {
			is, i = inChange, indexed{entry: want, skip: i.skip}
		}
		if i.skip {
			continue
		}
		if is != inChange || onDisk != inChange || is && (i.entry != want || p.before.clean(path, w) != want) {
			return true
		}
		for other := range union(p.before) {
			if strings.HasPrefix(other, path+"/") || strings.HasPrefix(path, other+"/") {
				return true
			}
		}
	}
	return false
}

// followed is the state of a worktree that has gone along with what landed.
func (p *plan) followed(landed tree) state {
	last := p.steps[len(p.steps)-1]
	after := p.before.clone()
	after.head = landed
	if p.way == wayPaths {
		for _, path := range differing(last.from, last.to) {
			if e, there := last.to[path]; there {
				put(after.index, path, indexed{entry: e, skip: p.before.index[path].skip})
			} else {
				delete(after.index, path)
			}
		}
	}
	for _, path := range differing(last.to, landed) {
		skip := after.index[path].skip
		if e, there := landed[path]; there {
			put(after.index, path, indexed{entry: e, skip: skip})
			if !skip {
				put(after.work, path, after.smudge(path, e))
			}
		} else {
			delete(after.index, path)
			delete(after.work, path)
		}
	}
	return after
}

// landedOn is the tree of each step, merged one by one onto a target.
func landedOn(base tree, steps []step) (trees []tree, conflict bool) {
	now := maps.Clone(base)
	for _, s := range steps {
		var bad bool
		now, bad = merge(s.from, now, s.to)
		conflict = conflict || bad
		trees = append(trees, now)
	}
	return trees, conflict
}

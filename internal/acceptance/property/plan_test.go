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
	bound   bool   // to the target being at onlyOn, which is empty where there is to be none
	onlyOn  object.OID
	stack   []step // the commits of which one is made that merges them
	apart   bool   // HEAD is not what lands
	// refused means that it must not land, and why, with code unless that is 0; unsure
	// that it need not.
	refused, unsure string
	code            int
	before          state
}

// A step is one commit that lands.
type step struct {
	from, to        tree
	message, author string
	second          object.OID // a further parent
	oid             object.OID // where it lands as it is
}

// refuse notes one reason more; which of several is told, and by which code, is not said.
func (p *plan) refuse(code int, why string) {
	if p.refused == "" {
		p.refused, p.code = why, code
	} else if code != p.code {
		p.code = 0
	}
}

// diff are the paths that the whole changes.
func (p *plan) diff() []string { return differing(p.steps[0].from, p.last()) }

// last is the tree of HEAD with the change.
func (p *plan) last() tree { return p.steps[len(p.steps)-1].to }

// message is that of a landing of the case.
func (c *caseOf) message() string { return fmt.Sprintf("ours %d-%d", c.n, c.r.IntN(1000000)) }

// draw makes a plan, and the repository ready for it.
func (c *caseOf) draw() *plan {
	p := &plan{}
	stack := 0
	switch roll := c.r.IntN(100); {
	case roll < 50:
		p.way = wayPaths
	case roll < 68:
		p.way = wayStaged
	default:
		p.way, stack = pick(c.r, []feature{wayCommits, wayCommits, waySquash, wayMerge, wayForward, wayHead}), 1+c.r.IntN(3)
	}
	if !p.commits() && c.r.IntN(8) == 0 {
		stack = 1
	}
	fork := c.head
	var steps []step
	if p.way == wayHead {
		steps = c.aside(stack)
	} else if steps = c.commits(stack); len(steps) > 0 && fork != "" && (p.way == wayCommits || p.way == wayMerge) && c.chance(15, guardMerge) {
		steps = append(steps, c.mergeSide(fork, steps[0].from))
		if p.way == wayCommits { // it is not rebased
			p.bound, p.onlyOn = true, fork
		}
	}
	if len(steps) == 0 && p.commits() {
		p.way = wayPaths
	}
	c.dirt(p)
	if p.way == wayStaged && len(steps) > 0 && len(differing(c.s.head, c.s.staged())) == 0 {
		p.way = wayCommits // for nothing is staged
	}
	c.has(p.way)
	p.before = c.s.clone()

	message := c.message()
	p.args = append(slices.Clone(landing), "-m", message)
	switch p.way {
	case wayPaths:
		p.scope = drawScope(c.r, c.s, c.sub)
		p.steps = []step{{from: c.s.head, to: c.s.chosen(p.scope.matches), message: message + "\n"}}
		c.drawPaths(p, steps)
	case wayStaged:
		p.steps = []step{{from: c.s.head, to: c.s.staged(), message: message + "\n"}}
		if len(steps) > 0 {
			c.has(wayStagedBeside)
			p.refuse(5, "commits that have not landed, and staged changes")
		}
	default:
		c.drawCommits(p, steps, fork, message+"\n")
	}
	if len(p.diff()) == 0 && !p.commits() {
		p.refuse(0, "nothing is chosen")
	}
	c.drawGuards(p)
	c.drawHooks(p)
	c.others(p)
	c.drawExpected(p)
	if p.way == wayPaths {
		p.args = append(append(p.args, "--"), p.scope.texts()...)
	}
	c.note("%s: git-land %q", p.way, p.args)
	return p
}

// commits reports whether commits of HEAD land, or of another commit.
func (p *plan) commits() bool { return p.way != wayPaths && p.way != wayStaged }

// makes reports whether one commit is made of what lands.
func (p *plan) makes() bool { return !p.commits() || p.way == waySquash || p.way == wayMerge }

// dirt leaves changes in files and index, by the way that something is to land.
func (c *caseOf) dirt(p *plan) {
	was, least := c.s.clone(), 1
	ops := slices.Concat(fileOps, indexOps)
	if p.commits() {
		least = 0
		if p.way != wayHead && c.r.IntN(10) > 0 {
			ops = fileOps
		}
	}
	c.change(&c.s, ops, least+c.r.IntN(6))
	if p.way == wayStaged {
		c.change(&c.s, indexOps, 1+c.r.IntN(3))
	}
	c.files(was.work, c.s.work)
	c.settleIntents(was.index)
	c.indexed(was.index, c.s.index)
}

// drawCommits is for a stack that stands on fork.
func (c *caseOf) drawCommits(p *plan, steps []step, fork object.OID, message string) {
	p.steps = steps
	if fork == "" && (p.way == waySquash || p.way == wayMerge) { // nothing in common with what others begin
		p.bound = true
	}
	whole := step{from: steps[0].from, to: p.last(), message: message}
	switch p.way {
	case waySquash:
		p.args = append(p.args, "--squash")
		whole.author = steps[0].author
		p.steps = []step{whole}
	case wayMerge:
		p.args = append(p.args, "--merge")
		if fork != "" { // else there is nothing to merge into
			whole.second = c.head
			p.stack, p.steps = steps, []step{whole}
		}
	case wayForward:
		p.args = append(p.args, "--ff-only")
		p.bound, p.onlyOn = true, fork
	case wayHead:
		p.args = append(p.args, "--head", "side")
		p.apart = true
		return
	}
	if len(differing(c.s.head, c.s.staged())) > 0 {
		p.refuse(5, "staged changes beside commits")
	}
}

// settleIntents has new entries that are to be added be as their files are by now.
func (c *caseOf) settleIntents(was map[string]indexed) {
	for path, e := range c.s.index {
		w, there := c.s.work[path]
		switch {
		case !e.intent || was[path].intent:
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
			found = found || is || was || onDisk && (!ignored(path) || one.contains(path))
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
			p.refuse(129, "a path that is not there")
		}
		for path := range c.s.work {
			if _, is := c.s.index[path]; !is && one.feature == scopePath && one.matches(path) && ignored(path) {
				p.unsure = "an ignored path is named"
			}
		}
	}
	diff := p.diff()
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
			p.refuse(5, "commits that have not landed change a chosen path")
		}
	}
}

// commit makes one commit of changes in a state; none where nothing is changed.
func (c *caseOf) commit(s *state, parent object.OID) (step, bool) {
	c.change(s, fileOps, 1+c.r.IntN(3))
	to := s.chosen(func(string) bool { return true })
	if len(differing(s.head, to)) == 0 {
		return step{}, false
	}
	made := step{from: s.head, to: to, message: fmt.Sprintf("%s, a commit\n\nWith a body.\n", c.message()),
		author: fmt.Sprintf("Grace <grace@example.com> 16%08d +0200", c.r.IntN(100000000))}
	var parents []object.OID
	if parent != "" {
		parents = []object.OID{parent}
	}
	made.oid = c.local.commit(to, parents, made.author, made.message)
	skipped := s.index
	s.head, s.index = to, map[string]indexed{}
	for path, e := range to {
		s.index[path] = indexed{entry: e, skip: skipped[path].skip}
	}
	return made, true
}

// commits makes commits on HEAD, which the target lacks.
func (c *caseOf) commits(n int) (steps []step) {
	s, tip := c.s.clone(), c.head
	for range n {
		if made, ok := c.commit(&s, tip); ok {
			steps, tip = append(steps, made), made.oid
		}
	}
	if len(steps) > 0 {
		c.advance(s, tip)
		c.note("%d commits", len(steps))
	}
	return steps
}

// mergeSide merges a branch that forked below the stack.
func (c *caseOf) mergeSide(fork object.OID, from tree) step {
	path := fmt.Sprintf("merged/%d", c.r.IntN(1000))
	side, to := maps.Clone(from), maps.Clone(c.s.head)
	put(side, path, entry{regular, c.newText()})
	put(to, path, side[path])
	made := step{from: c.s.head, to: to, message: c.message() + ", a merge\n", author: ada}
	made.second = c.local.commit(side, []object.OID{fork}, ada, "side\n")
	made.oid = c.local.commit(to, []object.OID{c.head, made.second}, ada, made.message)
	s := c.s.clone()
	s.head = to
	put(s.index, path, indexed{entry: to[path]})
	put(s.work, path, s.smudge(path, to[path]))
	c.advance(s, made.oid)
	return made
}

// advance brings HEAD, index and files to a state after a commit.
func (c *caseOf) advance(s state, head object.OID) {
	c.files(c.s.work, s.work)
	c.indexed(c.s.index, s.index)
	c.s, c.head = s, head
	if c.branch == "" {
		c.must(writeHead(c.own, string(head)))
	} else {
		setRef(c.t, c.gitDir, "refs/heads/"+c.branch, head)
	}
}

// aside makes commits on a branch that is checked out nowhere, from where HEAD is.
func (c *caseOf) aside(n int) (steps []step) {
	s := state{head: c.s.head, index: c.s.index, work: tree{}, late: strings.HasSuffix(c.s.head[".gitattributes"].data, lateRule)}
	for p, e := range s.head {
		if !s.index[p].skip {
			s.work[p] = s.smudge(p, e)
		}
	}
	tip := c.head
	for range n {
		if made, ok := c.commit(&s, tip); ok {
			steps, tip = append(steps, made), made.oid
		}
	}
	if len(steps) > 0 {
		setRef(c.t, c.gitDir, "refs/heads/side", tip)
		c.note("%d commits on side", len(steps))
	}
	return steps
}

// inTheWay reports whether others' part of what landed, in which it differs from HEAD
// with the change, meets something here.
func (p *plan) inTheWay(landed tree) bool {
	last, diff := p.last(), p.diff()
	for _, path := range differing(last, landed) {
		i, is := p.before.index[path]
		w, onDisk := p.before.work[path]
		want, inChange := last[path]
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
	last := p.last()
	after := p.before.clone()
	after.head = landed
	if p.way == wayPaths {
		for _, path := range p.diff() {
			if e, there := last[path]; there {
				put(after.index, path, indexed{entry: e, skip: p.before.index[path].skip})
			} else {
				delete(after.index, path)
			}
		}
	}
	for _, path := range differing(last, landed) {
		skip := after.index[path].skip
		if e, there := landed[path]; there {
			put(after.index, path, indexed{entry: e, skip: skip})
			if !skip {
				put(after.work, path, after.written(path, e))
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

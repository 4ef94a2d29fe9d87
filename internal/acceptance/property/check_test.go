package property

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gitland/internal/object"
)

// A sight is what was there before a landing.
type sight struct {
	index map[string]string
	files tree
	refs  map[string]string // of the clone
	their map[string]string // of the remote
	stash string            // its log
	tip   object.OID        // of the target, where others pushed before
}

// look sees what is there, and makes sure that it is what the model says.
func (c *caseOf) look() sight {
	c.t.Helper()
	s := sight{c.inIndex(), c.onDisk(), refs(c.t, c.gitDir), refs(c.t, c.remote), c.stashLog(), c.tip}
	want := map[string]string{}
	for p, e := range c.s.index {
		want[p] = c.detail(e)
	}
	c.same("before: index", want, s.index)
	c.same("before: file", shown(c.s.work), shown(s.files))
	if c.t.Failed() {
		c.t.FailNow()
	}
	return s
}

func (c *caseOf) stashLog() string {
	data, _ := os.ReadFile(filepath.Join(c.gitDir, "logs/refs/stash"))
	return string(data)
}

func shown(t tree) map[string]string {
	all := map[string]string{}
	for p, e := range t {
		all[p] = fmt.Sprintf("%s %q", e.mode, e.data)
	}
	return all
}

// same compares maps, of which a path may have several allowed values, each in a line of
// its own.
func (c *caseOf) same(what string, want, got map[string]string) {
	c.t.Helper()
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(strings.Split(want[p], "\n"), got[p]) {
			c.t.Errorf("%s %q:\n is %s\nnot %s", what, p, orNothing(got[p]), orNothing(want[p]))
		}
	}
}

func orNothing(text string) string {
	if text == "" {
		return "(nothing)"
	}
	return text
}

// A commit is one that has come to the target.
type commit struct {
	oid             object.OID
	parents         []string
	author, message string
	diff            []string // "old mode, new mode, old id, new id, path"
}

// arrived lists what has come to the target since a commit, oldest first.
func (c *caseOf) arrived(since object.OID) []commit {
	c.t.Helper()
	if refs(c.t, c.remote)["refs/heads/main"] == "" {
		return nil
	}
	span := "main"
	if since != "" {
		span = string(since) + "..main"
	}
	out := c.gitIn(c.remote, "log", "--reverse", "--first-parent", "-m", "-r", "-z", "--raw", "--root", "--no-renames", "--no-abbrev",
		"--date=raw", "--format=%x01%H%x02%P%x02%an <%ae> %ad%x02%B%x02", span)
	var commits []commit
	for _, text := range strings.Split(out, "\x01")[1:] {
		f := strings.SplitN(text, "\x02", 5)
		one := commit{object.OID(f[0]), strings.Fields(f[1]), f[2], f[3], nil}
		fields := strings.Split(strings.Trim(f[4], "\n\x00"), "\x00")
		for i := 0; i+1 < len(fields); i += 2 {
			d := strings.Fields(strings.TrimPrefix(strings.Trim(fields[i], "\n"), ":"))
			one.diff = append(one.diff, strings.Join(d[:4], " ")+" "+fields[i+1])
		}
		slices.Sort(one.diff)
		commits = append(commits, one)
	}
	return commits
}

// diff is how arrived shows the difference of two trees.
func (c *caseOf) diff(from, to tree) []string {
	side := func(e entry, there bool) (string, object.OID) {
		if !there {
			return "000000", c.image.format.Zero()
		}
		return e.mode, id(c.image.format, e)
	}
	var lines []string
	for _, p := range differing(from, to) {
		old, was := from[p]
		now, is := to[p]
		oldMode, oldID := side(old, was)
		newMode, newID := side(now, is)
		lines = append(lines, fmt.Sprintf("%s %s %s %s %s", oldMode, newMode, oldID, newID, p))
	}
	slices.Sort(lines)
	return lines
}

// An outcome is what the remote shows to have become of a landing.
type outcome struct {
	trees map[object.OID]tree // of each commit that has come
	ours  []commit
	tip   object.OID // of the target now
	tree  tree
	base  tree // on which ours landed; now's, where it did not
}

// outcome compares what has come with the plan.
func (c *caseOf) outcome(p *plan, seen sight) outcome {
	c.t.Helper()
	o := outcome{trees: map[object.OID]tree{}, tip: seen.tip, tree: c.there}
	var steps []step // that are left to land
	for _, one := range c.arrived(seen.tip) {
		i := slices.IndexFunc(p.moves, func(m move) bool { return m.oid == one.oid })
		switch {
		case i >= 0:
			o.tree = p.moves[i].tree
		case strings.HasPrefix(one.message, c.theirFile()):
			to := maps.Clone(o.tree)
			to[c.theirFile()] = entry{regular, text(c.theirFile())}
			c.lands(one, o.tip, o.tree, to)
			o.tree = to
		default:
			if o.ours == nil {
				o.base, steps = o.tree, c.remaining(p, o.tree)
			}
			o.ours = append(o.ours, one)
			if len(steps) == 0 {
				c.t.Errorf("landed, and is not of the change: %s %q", one.oid, one.message)
				return o
			}
			s := steps[0]
			steps = steps[1:]
			to, conflict := merge(s.from, o.tree, s.to)
			if conflict {
				c.t.Errorf("landed in spite of a conflict: %s", one.oid)
			}
			if one.message != s.message || s.author != "" && one.author != s.author {
				c.t.Errorf("landed with message %q, author %s; want %q, %s", one.message, one.author, s.message, s.author)
			}
			c.lands(one, o.tip, o.tree, to, s.second)
			if p.way == wayForward && one.oid != s.oid {
				c.t.Errorf("landed as %s, and not as it is: %s", one.oid, s.oid)
			}
			if c.drawn[signing] && one.oid != s.oid {
				c.checkSigned(one.oid)
			}
			o.tree = to
		}
		o.tip = one.oid
		o.trees[one.oid] = o.tree
	}
	if len(o.ours) > 0 && len(steps) > 0 {
		c.t.Errorf("%d commits landed, and %d more did not", len(o.ours), len(steps))
	}
	if o.ours == nil {
		o.base = o.tree
	}
	return o
}

// remaining are the steps that change anything of a target.
func (c *caseOf) remaining(p *plan, base tree) []step {
	var left []step
	for _, s := range p.steps {
		to, _ := merge(s.from, base, s.to)
		if len(differing(base, to)) > 0 {
			left = append(left, s)
		}
		base = to
	}
	return left
}

// lands compares one commit with what it is to change, and its parents.
func (c *caseOf) lands(one commit, parent object.OID, from, to tree, more ...object.OID) {
	c.t.Helper()
	want := c.diff(from, to)
	if !slices.Equal(one.diff, want) {
		c.t.Errorf("landed diff of %s:\n%q\nwant\n%q", one.oid, one.diff, want)
	}
	var parents []string
	for _, oid := range append([]object.OID{parent}, more...) {
		if oid != "" {
			parents = append(parents, string(oid))
		}
	}
	if !slices.Equal(one.parents, parents) {
		c.t.Errorf("%s has the parents %q, want %q", one.oid, one.parents, parents)
	}
}

// check compares remote and clone with the model, and reports whether a further landing
// can be tried in the case.
func (c *caseOf) check(p *plan, seen sight, end ending) bool {
	c.t.Helper()
	c.note("exit %d\n%s%s", end.Code, end.Stdout, end.Stderr)
	o := c.outcome(p, seen)
	c.checkEnd(p, o, end)
	after, moved := c.expected(p, seen, o)
	c.checkLocal(p, seen, after)
	c.checkRefs(seen, o)
	c.checkLeft()
	c.s, c.there, c.tip = after, o.tree, o.tip
	return moved && len(o.ours) > 0 && !c.t.Failed()
}

// checkEnd compares how the landing ended with what has become of it.
func (c *caseOf) checkEnd(p *plan, o outcome, end ending) {
	c.t.Helper()
	said := end.told()
	_, conflict := landedOn(o.base, p.steps)
	nothing := !conflict && len(c.remaining(p, o.base)) == 0
	switch {
	case len(o.ours) > 0:
		c.ends = append(c.ends, "landed")
		if p.refused != "" {
			c.t.Errorf("landed, but for %s", p.refused)
		}
		if p.bound && !slices.Contains(append(o.ours[0].parents, ""), string(p.onlyOn)) {
			c.t.Errorf("landed on %q, and not on %s", o.ours[0].parents, p.onlyOn)
		}
		if last := o.ours[len(o.ours)-1].oid; !end.interrupted && (end.Code != 0 || said.Status != "landed" || said.Commit != string(last)) {
			c.t.Errorf("landed as %s, and it said exit %d, %+v", last, end.Code, said)
		}
	case end.Code == 0 && said.Status == "already-landed" && (nothing || p.refused != ""):
		c.ends = append(c.ends, "there already")
	case end.Code == 0:
		c.t.Errorf("nothing landed, and it said exit 0, %+v", said)
	case p.bound && o.tip != p.onlyOn:
		c.ends = append(c.ends, "refused: the target has moved")
	case p.refused != "":
		c.ends = append(c.ends, "refused: "+p.refused)
		if p.code != 0 && end.Code != p.code && !conflict && p.unsure == "" {
			c.t.Errorf("to be refused with exit %d (%s), and it said exit %d, %+v", p.code, p.refused, end.Code, said)
		}
	case conflict:
		c.ends = append(c.ends, "refused: conflict")
		if end.Code != 5 {
			c.t.Errorf("a conflict, and it said exit %d, %+v", end.Code, said)
		}
	case p.unsure != "":
		c.ends = append(c.ends, "refused: "+p.unsure)
	case end.Code == 5 && movesDirectory(o.base, p.steps):
		c.ends = append(c.ends, "refused: a directory that git takes for renamed")
	case nothing:
		c.ends = append(c.ends, "refused: nothing to land")
	default:
		c.t.Errorf("nothing landed, and it said exit %d, %+v", end.Code, said)
	}
	if len(o.ours) == 0 && end.Code != 0 && (said.Error.Message == "" || end.Code != 9 && end.Code != 3 && end.Code != 4 && end.Code != 5 && end.Code != 129) {
		c.t.Errorf("refused with exit %d, %+v", end.Code, said)
	}
}

// movesDirectory reports whether all of a directory goes away in a step, while the target has
// a new file in it: where git takes it for renamed, it asks by a conflict whether the new
// file is to go there, too (merge.directoryRenames).
func movesDirectory(base tree, steps []step) bool {
	below := func(t tree, dir string, but tree) bool {
		for p := range t {
			if _, had := but[p]; !had && strings.HasPrefix(p, dir+"/") {
				return true
			}
		}
		return false
	}
	for _, s := range steps {
		for gone := range s.from {
			if dir := path.Dir(gone); dir != "." && !below(s.to, dir, nil) && below(base, dir, s.from) {
				return true
			}
		}
	}
	return false
}

// expected is what the worktree is to be now, and whether it has followed the target.
func (c *caseOf) expected(p *plan, seen sight, o outcome) (after state, moved bool) {
	c.t.Helper()
	branch, head := c.headNow()
	if branch != c.branch {
		c.t.Errorf("HEAD was on %q and is on %q", c.branch, branch)
	}
	before := c.head
	c.head = head
	if t, ok := o.trees[head]; ok && head != before {
		return p.followed(t), true
	}
	if head != before {
		c.t.Errorf("HEAD was at %s and is at %s", before, head)
	}
	forward := slices.ContainsFunc(o.ours, func(one commit) bool { return one.oid == head })
	if len(o.ours) > 0 && !forward && !p.apart && !p.inTheWay(o.tree) && !(p.way == wayPaths && c.drawn[wayPathsBeside]) {
		c.t.Errorf("the change has landed, nothing is in the way here, and HEAD is still at %s", head)
	}
	return p.before, forward
}

// checkLocal compares files and index with a state.
func (c *caseOf) checkLocal(p *plan, seen sight, after state) {
	c.t.Helper()
	c.same("file", shown(after.work), shown(c.onDisk()))
	want := map[string]string{}
	for path, e := range after.index {
		want[path] = c.detail(e)
	}
	if p.way == wayPaths && len(differing(p.before.head, after.head)) > 0 {
		last, diff := p.last(), p.diff()
		for path := range union(p.before) {
			if !p.scope.matches(path) || slices.Contains(diff, path) {
				continue
			}
			now := ""
			if e, there := last[path]; there {
				now = c.detail(indexed{entry: e})
			}
			want[path] += "\n" + now
		}
	}
	c.same("index", want, c.inIndex())
}

// mirrored are refs of the clone that say what was seen of the remote.
func mirrored(ref string) bool {
	return strings.HasPrefix(ref, "refs/lease-remote/") || strings.HasPrefix(ref, "refs/remotes/origin/")
}

// checkRefs makes sure that no other ref has moved, here or there.
func (c *caseOf) checkRefs(seen sight, o outcome) {
	c.t.Helper()
	now, there := refs(c.t, c.gitDir), refs(c.t, c.remote)
	for _, all := range []map[string]string{seen.refs, now} {
		maps.DeleteFunc(all, func(ref, _ string) bool { return mirrored(ref) || ref == "refs/heads/"+c.branch })
	}
	if main := "refs/heads/main"; now[main] != seen.refs[main] && c.drawn[repoTopic] || c.drawn[repoDetached] {
		if _, ok := o.trees[object.OID(now[main])]; ok { // it may follow its target
			delete(now, main)
			delete(seen.refs, main)
		}
	}
	c.same("ref here", seen.refs, now)
	if log := c.stashLog(); log != seen.stash {
		c.t.Errorf("the log of the stash was %q and is %q", seen.stash, log)
	}
	for _, all := range []map[string]string{seen.their, there} {
		maps.DeleteFunc(all, func(ref, _ string) bool {
			return ref == "refs/heads/main" || strings.HasPrefix(ref, "refs/lease/") || strings.HasPrefix(ref, "refs/notes/")
		})
	}
	c.same("ref there", seen.their, there)
}

// checkLeft makes sure that no journal, lock or copy of an index is left behind.
func (c *caseOf) checkLeft() {
	c.t.Helper()
	for _, dir := range []string{c.gitDir, c.remote} {
		c.must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(dir, path)
			switch {
			case name == "objects":
				return filepath.SkipDir
			case !d.IsDir() && (strings.HasPrefix(name, "lease/journal/") || strings.HasPrefix(d.Name(), "lease-index-") || strings.HasPrefix(d.Name(), "lease-message-") ||
				strings.HasSuffix(name, ".lock") && !strings.HasPrefix(name, "lease/")):
				c.t.Errorf("left behind: %s", path)
			}
			return nil
		}))
	}
}

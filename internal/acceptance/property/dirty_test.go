package property

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// An op changes something in a state, where it can. It is given a path that is there,
// and returns false where that is none for it.
type op struct {
	feature feature
	weight  int
	do      func(c *caseOf, s *state, p string) bool
}

// fileOps change files of the work tree, as people do.
var fileOps = []op{
	{edition, 24, (*caseOf).edit},
	{addition, 14, (*caseOf).add},
	{deletion, 8, (*caseOf).remove},
	{renaming, 8, (*caseOf).rename},
	{caseRenaming, 5, (*caseOf).renameCase},
	{modeChange, 7, (*caseOf).chmod},
	{linking, 6, (*caseOf).link},
	{dirForFile, 4, (*caseOf).directory},
	{fileForDir, 4, (*caseOf).flatten},
	{submoduleMove, 12, (*caseOf).moveSubmodule},
	{ignoredFile, 5, (*caseOf).addIgnored},
	{filterNew, 4, (*caseOf).newAttribute},
}

// indexOps change the index.
var indexOps = []op{
	{stagedPart, 20, (*caseOf).stage},
	{stagedOther, 8, (*caseOf).stageThenEdit},
	{stagedBack, 6, (*caseOf).stageThenRevert},
	{stagedGone, 6, (*caseOf).stageGone},
	{uncached, 5, (*caseOf).uncache},
	{intentToAdd, 8, (*caseOf).intend},
	{forcedIgnore, 5, (*caseOf).force},
}

// change applies n ops to a state.
func (c *caseOf) change(s *state, ops []op, n int) {
	total := 0
	for _, o := range ops {
		total += o.weight
	}
	for range n {
		for try := 0; try < 20; try++ {
			roll, i := c.r.IntN(total), 0
			for roll >= ops[i].weight {
				roll -= ops[i].weight
				i++
			}
			before := s.clone()
			if ops[i].do(c, s, c.anyPath(*s)) {
				c.has(ops[i].feature)
				c.note("%s: files %q, index %q", ops[i].feature, differing(before.work, s.work), differing(before.index, s.index))
				break
			}
		}
	}
}

func (c *caseOf) anyPath(s state) string {
	paths := slices.Sorted(maps.Keys(s.work))
	if len(paths) == 0 {
		return "nothing"
	}
	return pick(c.r, paths)
}

// ordinary reports whether a path may be changed: no file that means something to git,
// and nothing that must stay.
func (c *caseOf) ordinary(s *state, p string) bool {
	_, there := s.work[p]
	return there && !strings.HasPrefix(p, ".git") && p != "src/stays.ign" && s.work[p].mode != gitlink && !(c.drawn[repoSparse] && below("docs")(p))
}

func isFile(e entry) bool { return strings.HasPrefix(e.mode, "100") }

// room reports whether nothing is at a path, above it or below, that must stay.
func (c *caseOf) room(s *state, p string) bool {
	for _, paths := range [][]string{slices.Collect(maps.Keys(s.work)), slices.Collect(maps.Keys(s.head)), slices.Collect(maps.Keys(s.index))} {
		for _, other := range paths {
			if other == p || strings.HasPrefix(other, p+"/") || strings.HasPrefix(p, other+"/") {
				return false
			}
		}
	}
	return !(c.drawn[repoSparse] && below("docs")(p))
}

// ourLine is the line that our editions change, theirLine that of others. Between them
// is enough for git to merge.
const ourLine, theirLine = 1, 9

func editLine(data string, line int, with string) (string, bool) {
	lines := strings.Split(data, "\n")
	if len(lines) != 13 {
		return data, false
	}
	end := ""
	if strings.HasSuffix(lines[line], "\r") {
		end = "\r"
	}
	lines[line] = with + end
	return strings.Join(lines, "\n"), true
}

func (c *caseOf) edit(s *state, p string) bool {
	e := s.work[p]
	if !c.ordinary(s, p) || !isFile(e) {
		return false
	}
	data, ok := editLine(e.data, ourLine, fmt.Sprintf("ours %d", c.r.IntN(1000)))
	if !ok {
		return false
	}
	c.hasFilter(p)
	s.work[p] = entry{e.mode, data}
	return true
}

func (c *caseOf) hasFilter(p string) {
	switch path.Ext(p) {
	case ".crlf":
		c.has(filterCRLF)
	case ".rot":
		c.has(filterRun)
	}
}

// newNames are of new files; each is drawn with a number, so that there are many.
var newNames = []string{"new%d.txt", "src/new%d.txt", "src/deep/er/new%d.txt", "lib/new%d", "with space %d.txt", "new\nline%d", "\xff\xfe%d.txt", "star%d*", ":(top)%d",
	"-new%d", "[new]%d", "new%d.crlf", "new%d.rot", "\"new%d\"", "back\\slash%d"}

func (c *caseOf) newName() string {
	name := fmt.Sprintf(pick(c.r, newNames), c.r.IntN(20))
	for f, part := range map[feature]string{nameSpace: " ", nameNewline: "\n", nameBytes: "\xff"} {
		if strings.Contains(name, part) {
			c.has(f)
		}
	}
	if strings.ContainsAny(name, "*[:\\") {
		c.has(nameSpecial)
	}
	c.hasFilter(name)
	return name
}

// newText is like nothing else, so that git takes no file for a renamed one.
func (c *caseOf) newText() string {
	var b strings.Builder
	for range 12 {
		fmt.Fprintf(&b, "%x\n", c.r.Uint64())
	}
	return b.String()
}

func (c *caseOf) add(s *state, _ string) bool {
	p := c.newName()
	if !c.room(s, p) {
		return false
	}
	c.has(untracked)
	mode := regular
	if c.r.IntN(5) == 0 {
		mode = executable
	}
	put(s.work, p, s.smudge(p, entry{mode, c.newText()}))
	return true
}

func (c *caseOf) addIgnored(s *state, _ string) bool {
	p := fmt.Sprintf(pick(c.r, []string{"new%d.ign", "src/new%d.ign", "build/new%d"}), c.r.IntN(20))
	if !c.room(s, p) {
		return false
	}
	put(s.work, p, entry{regular, c.newText()})
	return true
}

func (c *caseOf) remove(s *state, p string) bool {
	if !c.ordinary(s, p) || !tracked(*s, p) {
		return false
	}
	delete(s.work, p)
	return true
}

func (c *caseOf) rename(s *state, p string) bool {
	to := c.newName()
	if !c.ordinary(s, p) || !tracked(*s, p) || !c.room(s, to) || path.Ext(to) != path.Ext(p) {
		return false
	}
	e := s.work[p]
	delete(s.work, p)
	put(s.work, to, e)
	return true
}

func (c *caseOf) renameCase(s *state, p string) bool {
	to := strings.ToUpper(p[:1]) + p[1:]
	if to == p {
		to = strings.ToLower(p[:1]) + p[1:]
	}
	if to == p || strings.Contains(p, "/") || !c.ordinary(s, p) || !tracked(*s, p) || !c.room(s, to) {
		return false
	}
	e := s.work[p]
	delete(s.work, p)
	put(s.work, to, e)
	return true
}

func (c *caseOf) chmod(s *state, p string) bool {
	e := s.work[p]
	if !c.ordinary(s, p) || !isFile(e) {
		return false
	}
	modes := slices.DeleteFunc([]string{"100644", "100755", "100600", "100700"}, func(m string) bool { return m == e.mode })
	s.work[p] = entry{pick(c.r, modes), e.data}
	return true
}

func (c *caseOf) link(s *state, p string) bool {
	e := s.work[p]
	if !c.ordinary(s, p) {
		return false
	}
	switch {
	case e.mode == symlink && c.r.IntN(2) == 0:
		s.work[p] = entry{regular, c.newText()}
	default:
		s.work[p] = entry{symlink, fmt.Sprintf("to/%d", c.r.IntN(1000))}
	}
	return true
}

// directory puts a directory in the place of a file.
func (c *caseOf) directory(s *state, p string) bool {
	if !c.ordinary(s, p) || !tracked(*s, p) || p == "src" {
		return false
	}
	put(s.work, p+"/inner.txt", entry{regular, c.newText()})
	return true
}

// flatten puts a file in the place of a directory.
func (c *caseOf) flatten(s *state, p string) bool {
	dir := path.Dir(p)
	if dir == "." || c.sub != "" && below(dir)(c.sub) || !c.ordinary(s, p) || c.drawn[repoSparse] || dir == "build" {
		return false
	}
	put(s.work, dir, entry{regular, c.newText()})
	return true
}

func (c *caseOf) moveSubmodule(s *state, _ string) bool {
	e, there := s.work["sub"]
	if !there || e.mode != gitlink || len(c.image.moved) == 0 {
		return false
	}
	s.work["sub"] = entry{gitlink, string(c.image.moved[1+c.r.IntN(len(c.image.moved)-1)])}
	return true
}

func (c *caseOf) newAttribute(s *state, _ string) bool {
	e, there := s.work[".gitattributes"]
	p := fmt.Sprintf("new%d.late", c.r.IntN(20))
	if !there || s.late || !c.room(s, p) {
		return false
	}
	s.late = true
	s.work[".gitattributes"] = entry{e.mode, e.data + lateRule}
	put(s.work, p, s.smudge(p, entry{regular, c.newText()}))
	return true
}

// stage is "git add" of a path that differs, a deletion among them.
func (c *caseOf) stage(s *state, _ string) bool {
	var candidates []string
	for _, p := range slices.Sorted(maps.Keys(union(*s))) {
		if w, onDisk := s.work[p]; s.dirty(p) && !(onDisk && ignored(p) && !tracked(*s, p)) && (!onDisk || s.index[p].entry != s.clean(p, w)) {
			candidates = append(candidates, p)
		}
	}
	if len(candidates) == 0 {
		return false
	}
	p := pick(c.r, candidates)
	if w, onDisk := s.work[p]; onDisk {
		put(s.index, p, indexed{entry: s.clean(p, w)})
	} else if _, was := s.index[p]; was {
		delete(s.index, p)
	} else {
		return false
	}
	return true
}

func (c *caseOf) stageThenEdit(s *state, p string) bool {
	if !tracked(*s, p) || !c.edit(s, p) {
		return false
	}
	put(s.index, p, indexed{entry: s.clean(p, s.work[p])})
	return c.edit(s, p)
}

func (c *caseOf) stageThenRevert(s *state, p string) bool {
	before := s.work[p]
	if h, ok := s.head[p]; !ok || s.clean(p, before) != h || !c.edit(s, p) {
		return false
	}
	put(s.index, p, indexed{entry: s.clean(p, s.work[p])})
	s.work[p] = before
	return true
}

func (c *caseOf) stageGone(s *state, p string) bool {
	if _, is := s.index[p]; !is || !c.ordinary(s, p) {
		return false
	}
	delete(s.work, p)
	delete(s.index, p)
	return true
}

func (c *caseOf) uncache(s *state, p string) bool {
	if _, is := s.index[p]; !is || !c.ordinary(s, p) {
		return false
	}
	delete(s.index, p)
	return true
}

func (c *caseOf) intend(s *state, _ string) bool {
	p := c.newName()
	if !c.room(s, p) {
		return false
	}
	put(s.work, p, s.smudge(p, entry{regular, c.newText()}))
	s.index[p] = indexed{entry: entry{mode: regular}, intent: true}
	return true
}

func (c *caseOf) force(s *state, _ string) bool {
	p := fmt.Sprintf("forced%d.ign", c.r.IntN(20))
	if !c.room(s, p) {
		return false
	}
	put(s.work, p, entry{regular, c.newText()})
	s.index[p] = indexed{entry: s.work[p]}
	return true
}

package property

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gitland/internal/gittest"
	"gitland/internal/object"
)

// A move is a commit of somebody else's on the target.
type move struct {
	oid  object.OID // "" where they land it, and its id is not known
	tree tree       // what it makes of the target as it was when it was made
	from tree
}

// theirFile is what others land in a round, and the message of that.
func (c *caseOf) theirFile() string { return fmt.Sprint("landed by others ", c.round) }

// others draws what others do, given what ours is to be.
func (c *caseOf) others(p *plan) {
	if c.chance(28, othersBefore) {
		p.moves = append(p.moves, c.theirs(p))
		c.push(p.moves[0])
	}
	switch roll := c.r.IntN(100); {
	case roll < 15:
		c.has(othersMeanwhile)
		m := c.theirs(p)
		p.moves = append(p.moves, m)
		c.pushMeanwhile(m)
	case roll < 23 && c.onto == "" && c.tip != "":
		c.has(othersLand)
		p.landing = true
	}
}

// theirs commits something on top of the target, without pushing it.
func (c *caseOf) theirs(p *plan) move {
	from := c.there
	if n := len(p.moves); n > 0 {
		from = p.moves[n-1].tree
	}
	to := maps.Clone(from)
	put(to, fmt.Sprintf("theirs/%d", c.r.IntN(1000)), entry{regular, c.newText()})
	touched := map[string]bool{}
	for _, s := range p.steps {
		for _, path := range differing(s.from, s.to) {
			touched[path] = true
		}
	}
	ours := p.last()
	edited := func(line int, with string, fits func(string) bool) bool {
		paths := slices.DeleteFunc(slices.Sorted(maps.Keys(to)), func(path string) bool {
			_, ok := editLine(to[path].data, line, with)
			return !ok || !isFile(to[path]) || to[path] != c.s.head[path] || strings.HasPrefix(path, ".git") || !fits(path)
		})
		if len(paths) == 0 {
			return false
		}
		path := pick(c.r, paths)
		data, _ := editLine(to[path].data, line, with)
		to[path] = entry{to[path].mode, data}
		c.note("others edit %q", path)
		return true
	}
	inPlace := func(path string) bool {
		now, there := ours[path]
		if !there || !touched[path] || !isFile(now) {
			return false
		}
		_, ok := editLine(now.data, theirLine, "")
		return ok
	}
	switch roll := c.r.IntN(100); {
	case roll < 30 && edited(theirLine, "theirs", func(path string) bool { return !touched[path] && !c.s.dirty(path) }):
	case roll < 50 && edited(theirLine, "theirs", inPlace):
		c.has(othersMerge)
	case roll < 62 && edited(ourLine, "theirs", func(path string) bool {
		return inPlace(path) && strings.Split(ours[path].data, "\n")[ourLine] != strings.Split(to[path].data, "\n")[ourLine]
	}):
		c.has(othersConflict)
	case roll < 75 && edited(theirLine, "theirs", func(path string) bool { return !touched[path] && c.s.dirty(path) }):
		c.has(othersInTheWay)
	case roll < 82:
		for _, path := range slices.Sorted(maps.Keys(touched)) {
			if e, there := ours[path]; there && isFile(e) && to[path] == c.s.head[path] && c.room(&state{head: to}, path) {
				to[path] = e
				c.has(othersSame)
				c.note("others have %q, too", path)
				break
			}
		}
	}
	var parents []object.OID
	if n := len(p.moves); n > 0 {
		parents = []object.OID{p.moves[n-1].oid}
	} else if c.tip != "" {
		parents = []object.OID{c.tip}
	}
	return move{c.server.commit(to, parents, theo, fmt.Sprintf("theirs %d\n", len(p.moves))), to, from}
}

func (c *caseOf) push(m move) { setRef(c.t, c.remote, "refs/heads/main", m.oid) }

// pushMeanwhile has the target move when the first push to it has arrived at the
// remote, and nothing of it is decided yet.
func (c *caseOf) pushMeanwhile(m move) {
	c.must(os.MkdirAll(filepath.Join(c.remote, "hooks"), 0o777))
	gittest.Script(c.t, filepath.Join(c.remote, "hooks/pre-receive"), fmt.Sprintf(`#!/bin/sh
while read -r _ _ ref; do
	[ "$ref" != refs/heads/main ] || hit=yes
done
[ -n "$hit" ] && [ ! -e moved-%[1]s ] || exit 0
: >moved-%[1]s
echo %[1]s >moving && mv moving refs/heads/main
`, m.oid))
}

// otherSeat is another clone, from which others land.
func (c *caseOf) otherSeat() string {
	dir := filepath.Join(c.root, fmt.Sprint("other-", c.round))
	gittest.CopyTree(c.t, filepath.Join(c.image.dir, "clone"), dir)
	c.replace(filepath.Join(dir, ".git/config"), c.image.dir+"/", c.root+"/")
	tried(c.t, filepath.Join(dir, ".git"), c.remote, !c.drawn[repoApart])
	gittest.Write(c.t, dir, map[string]string{c.theirFile(): text(c.theirFile())})
	return dir
}

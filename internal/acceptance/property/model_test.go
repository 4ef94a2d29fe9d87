package property

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// An entry is one path of a tree, of the index, or of the work tree. data is what a
// file holds, where a link leads to, or the commit of a submodule. In a work tree, mode
// has all permissions of a file, and data is what is on disk.
type entry struct{ mode, data string }

const (
	regular    = "100644"
	executable = "100755"
	symlink    = "120000"
	gitlink    = "160000"
)

// A tree holds entries by their path from the top.
type tree map[string]entry

// An indexed entry of the index.
type indexed struct {
	entry
	intent bool // "git add -N": there is to be one
	skip   bool // left out of the work tree by a sparse checkout
}

// A state is all that one worktree has.
type state struct {
	head  tree
	index map[string]indexed
	work  tree
	late  bool // the work tree's .gitattributes has lateRule
}

func (s state) clone() state {
	return state{maps.Clone(s.head), maps.Clone(s.index), maps.Clone(s.work), s.late}
}

// put sets a path, and takes away what cannot be there beside it.
func put[E any](t map[string]E, p string, e E) {
	for other := range t {
		if strings.HasPrefix(other, p+"/") || strings.HasPrefix(p, other+"/") {
			delete(t, other)
		}
	}
	t[p] = e
}

// within lists the paths of a tree below a directory.
func within[E any](t map[string]E, dir string) []string {
	var found []string
	for _, p := range slices.Sorted(maps.Keys(t)) {
		if strings.HasPrefix(p, dir+"/") {
			found = append(found, p)
		}
	}
	return found
}

// The attributes that every repository here begins with, and the one that a case adds.
const (
	attributes = "*.crlf text eol=crlf\n*.rot filter=rot\n*.bin filter=lfs -text\n"
	lateRule   = "*.late text eol=crlf\n"
	ignores    = "*.ign\n/build/\n"
)

// ignored reports whether git ignores a path that it does not track.
func ignored(p string) bool {
	return strings.HasSuffix(p, ".ign") || strings.Contains(p, ".ign/") || strings.HasPrefix(p, "build/")
}

// clean is what "git add" makes of a work tree's entry.
func (s state) clean(p string, e entry) entry {
	switch {
	case e.mode == symlink || e.mode == gitlink:
		return e
	case strings.ContainsAny(e.mode[3:4], "1357"):
		e.mode = executable
	default:
		e.mode = regular
	}
	switch {
	case s.eol(p):
		e.data = strings.ReplaceAll(e.data, "\r\n", "\n")
	case path.Ext(p) == ".rot":
		e.data = rot13(e.data)
	}
	return e
}

// smudge is what git checks out for an entry of a tree.
func (s state) smudge(p string, e entry) entry {
	switch {
	case e.mode == symlink || e.mode == gitlink:
	case s.eol(p):
		e.data = strings.ReplaceAll(e.data, "\n", "\r\n")
	case path.Ext(p) == ".rot":
		e.data = rot13(e.data)
	}
	return e
}

// written is what git writes into the work tree when it moves the index. It takes the
// attributes of that then, and those of the work tree only where the index has none
// (attr.c, GIT_ATTR_CHECKOUT).
func (s state) written(p string, e entry) entry {
	if i, tracked := s.index[".gitattributes"]; tracked {
		s.late = strings.HasSuffix(i.data, lateRule)
	}
	return s.smudge(p, e)
}

func (s state) eol(p string) bool {
	return path.Ext(p) == ".crlf" || path.Ext(p) == ".late" && s.late
}

func rot13(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, text)
}

// dirty reports whether a path differs anywhere from HEAD.
func (s state) dirty(p string) bool {
	i, tracked := s.index[p]
	h, there := s.head[p]
	w, onDisk := s.work[p]
	if tracked != there || i.intent || i.entry != h {
		return true
	}
	return !i.skip && (onDisk != there || onDisk && s.clean(p, w) != h)
}

// chosen is HEAD with the content of the chosen paths: of those that git tracks, and of
// those that it does not and does not ignore either, what the work tree has; of those
// that a sparse checkout leaves out, what the index has.
func (s state) chosen(scope func(string) bool) tree {
	result := maps.Clone(s.head)
	for p := range s.head {
		if _, tracked := s.index[p]; scope(p) && !(tracked && s.index[p].skip) {
			delete(result, p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(s.work)) {
		if _, tracked := s.index[p]; scope(p) && (tracked || !ignored(p)) {
			put(result, p, s.clean(p, s.work[p]))
		}
	}
	return result
}

// staged is the tree of the index.
func (s state) staged() tree {
	result := tree{}
	for p, e := range s.index {
		if !e.intent {
			result[p] = e.entry
		}
	}
	return result
}

// differing lists the paths in which two trees differ, in order.
func differing[E comparable](a, b map[string]E) []string {
	var paths []string
	for p := range a {
		if there, ok := b[p]; !ok || there != a[p] {
			paths = append(paths, p)
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// merge is what becomes of theirs when the change from base to ours is made in it.
func merge(base, theirs, ours tree) (merged tree, conflict bool) {
	merged = maps.Clone(theirs)
	for _, p := range differing(base, ours) {
		b, inBase := base[p]
		o, inOurs := ours[p]
		t, inTheirs := theirs[p]
		switch {
		case inTheirs == inOurs && t == o:
		case inTheirs == inBase && t == b && inOurs:
			for other := range theirs { // which would have to make room
				beside := strings.HasPrefix(other, p+"/") || strings.HasPrefix(p, other+"/")
				_, stays := ours[other]
				_, was := base[other]
				conflict = conflict || beside && (stays || !was)
			}
			put(merged, p, o)
		case inTheirs == inBase && t == b:
			if merged[p] == t { // else something was put in its place
				delete(merged, p)
			}
		case inBase && inOurs && inTheirs && isFile(b) && isFile(o) && isFile(t):
			lines, ok := mergeLines(b.data, t.data, o.data)
			mode := o.mode
			if mode == b.mode {
				mode = t.mode
			}
			merged[p] = entry{mode, lines}
			conflict = conflict || !ok
		default:
			conflict = true
		}
	}
	return merged, conflict
}

// mergeLines merges files of the same number of lines, of which whoever changed one
// left its neighbours alone, or conflicts.
func mergeLines(base, theirs, ours string) (string, bool) {
	b, t, o := strings.Split(base, "\n"), strings.Split(theirs, "\n"), strings.Split(ours, "\n")
	if len(b) != len(t) || len(b) != len(o) {
		return "", false
	}
	for i := range b {
		switch {
		case o[i] == b[i]:
			o[i] = t[i]
		case t[i] != b[i] && t[i] != o[i]:
			return "", false
		}
	}
	return strings.Join(o, "\n"), true
}

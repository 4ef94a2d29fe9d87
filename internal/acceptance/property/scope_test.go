package property

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// A spec is one of git's pathspecs, with what it means said once more.
type spec struct {
	text    string
	matches func(p string) bool
	exclude bool
	feature feature
	at      string // the path that it names, where it is no pattern
}

// contains reports whether the spec names a directory that p is in. Git takes such a one
// also where it finds only ignored files in it, and of those takes none (2.39 to 2.56).
func (s spec) contains(p string) bool {
	return s.at == "." || s.at != "" && strings.HasPrefix(p, s.at+"/")
}

// A scope is what stands behind "--".
type scope []spec

func (s scope) texts() []string {
	var texts []string
	for _, one := range s {
		texts = append(texts, one.text)
	}
	return texts
}

func (s scope) matches(p string) bool {
	is := func(one spec) bool { return one.matches(p) }
	included := slices.DeleteFunc(slices.Clone(s), func(one spec) bool { return one.exclude })
	excluded := slices.DeleteFunc(slices.Clone(s), func(one spec) bool { return !one.exclude })
	return (len(included) == 0 || slices.ContainsFunc(included, is)) && !slices.ContainsFunc(excluded, is)
}

func below(dir string) func(string) bool {
	return func(p string) bool { return p == dir || strings.HasPrefix(p, dir+"/") || dir == "." }
}

// wide pathspecs match several paths, or none.
func wide() []spec {
	suffix := func(dir, ext string, deep bool) func(string) bool {
		return func(p string) bool {
			rest, ok := strings.CutPrefix(p, dir)
			return ok && strings.HasSuffix(rest, ext) && (deep || !strings.Contains(rest, "/"))
		}
	}
	not := func(dir string) func(string) bool { return below(dir) }
	return []spec{
		{".", below("."), false, scopeDirectory, "."},
		{"src", below("src"), false, scopeDirectory, "src"},
		{"docs/", func(p string) bool { return strings.HasPrefix(p, "docs/") }, false, scopeDirectory, "docs"}, // no file of that name
		{"src/*.txt", suffix("src/", ".txt", true), false, scopeWildcard, ""},
		{"*.txt", suffix("", ".txt", true), false, scopeWildcard, ""},
		{"star*", func(p string) bool { return strings.HasPrefix(p, "star") }, false, scopeWildcard, ""},
		{"[ab]*", func(p string) bool { return p[0] == 'a' || p[0] == 'b' }, false, scopeWildcard, ""},
		{":(glob)src/*.txt", suffix("src/", ".txt", false), false, scopeMagic, ""},
		{":(glob)**/*.txt", suffix("", ".txt", true), false, scopeMagic, ""},
		{":(icase)README", func(p string) bool { return below("readme")(strings.ToLower(p)) }, false, scopeMagic, ""},
		{":(literal)star*", below("star*"), false, scopeMagic, "star*"},
		{":/", below("."), false, scopeMagic, "."},
		{":(top)src", below("src"), false, scopeMagic, "src"},
		{":!docs", not("docs"), true, scopeMagic, "docs"},
		{":(exclude)*.txt", suffix("", ".txt", true), true, scopeMagic, ""},
	}
}

// literal is the pathspec of one path, as a careful person writes it from a directory.
func literal(p, cwd string) spec {
	text, special := p, strings.ContainsAny(p, "*?[\\") || strings.HasPrefix(p, ":")
	switch {
	case special && cwd != "":
		text = ":(top,literal)" + p
	case special:
		text = ":(literal)" + p
	case cwd != "" && strings.HasPrefix(p, cwd+"/"):
		text = strings.TrimPrefix(p, cwd+"/")
	case cwd != "":
		text = strings.Repeat("../", strings.Count(cwd, "/")+1) + p
	}
	return spec{text, below(p), false, scopePath, p}
}

// drawScope chooses among the paths that are there, mostly those that are dirty, as a
// person would.
func drawScope(r *rand.Rand, s state, cwd string) scope {
	var dirty, all []string
	for _, p := range slices.Sorted(maps.Keys(union(s))) {
		all = append(all, p)
		if s.dirty(p) && !(ignored(p) && !tracked(s, p)) {
			dirty = append(dirty, p)
		}
	}
	var drawn scope
	for range 1 + r.IntN(3) {
		switch roll := r.IntN(20); {
		case roll < 12 && len(dirty) > 0:
			drawn = append(drawn, literal(pick(r, dirty), cwd))
		case roll < 13 && len(all) > 0:
			drawn = append(drawn, literal(pick(r, all), cwd))
		case roll < 14 && len(dirty) > 0 && path.Dir(dirty[0]) != ".":
			drawn = append(drawn, literal(path.Dir(dirty[0]), cwd))
		case cwd == "":
			drawn = append(drawn, pick(r, wide()))
		default:
			one := pick(r, wide())
			if strings.HasPrefix(one.text, ":/") || strings.HasPrefix(one.text, ":(top)") {
				drawn = append(drawn, one)
			}
		}
	}
	if len(drawn) == 0 {
		return scope{{":/", below("."), false, scopeMagic, "."}}
	}
	return drawn
}

func tracked(s state, p string) bool {
	_, is := s.index[p]
	_, was := s.head[p]
	return is || was
}

// union is every path that a state knows of.
func union(s state) map[string]bool {
	all := map[string]bool{}
	for p := range s.head {
		all[p] = true
	}
	for p := range s.index {
		all[p] = true
	}
	for p := range s.work {
		all[p] = true
	}
	return all
}

func pick[E any](r *rand.Rand, from []E) E { return from[r.IntN(len(from))] }

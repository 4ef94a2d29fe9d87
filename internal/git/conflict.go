package git

import (
	"fmt"
	"slices"
	"strings"

	"gitland/internal/object"
)

// A ConflictError lists the paths that a three-way merge could not settle.
type ConflictError struct {
	Paths     []string   // each once, in git's order
	Conflicts []Conflict // of the same paths, and of those by whose renaming they came
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%d conflicting paths: %s", len(e.Paths), strings.Join(e.Paths, ", "))
}

// A Conflict is what two sides did to some paths that cannot both be.
type Conflict struct {
	// Kind is git's short word for it, such as "content", "add/add" or "rename/delete".
	Kind string `json:"kind"`
	// Paths are as they were, or would be: the first is what it is about.
	Paths []string `json:"paths"`
}

// Kinds are what the conflicts of a path are, each once; those that it has a part in
// where it is the first of none.
func (e *ConflictError) Kinds(path string) []string {
	var own, other []string
	for _, c := range e.Conflicts {
		kinds := &other
		if c.Paths[0] == path {
			kinds = &own
		}
		if slices.Contains(c.Paths, path) && !slices.Contains(*kinds, c.Kind) {
			*kinds = append(*kinds, c.Kind)
		}
	}
	if len(own) > 0 {
		return own
	}
	return other
}

// All are the paths, and those of the conflicts that are not among them.
func (e *ConflictError) All() []string {
	all := slices.Clone(e.Paths)
	for _, c := range e.Conflicts {
		for _, path := range c.Paths {
			if !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	}
	return all
}

// conflictOf reads what "merge-tree -z --messages" prints behind the tree, given the
// commits that were merged: "<mode> <object> <stage>\t<path>" for each stage of each
// path, an empty field, and for each message the number of its paths, these, a short
// word that is the same in every version and language, and a text (git-merge-tree(1)).
func conflictOf(fields []string, merged ...object.OID) *ConflictError {
	// Where a file cannot have its path, git calls it "<path>~<commit>". These commits
	// are ours, and mean nothing to anybody.
	real := func(path string) string {
		for _, oid := range merged {
			if i := strings.LastIndex(path, "~"+string(oid)); i > 0 {
				return path[:i]
			}
		}
		return path
	}
	e := &ConflictError{}
	stages := map[string][4]stage{}
	i := 0
	for ; i < len(fields) && fields[i] != ""; i++ {
		head, path, _ := strings.Cut(fields[i], "\t")
		path = real(path)
		if f := strings.Fields(head); len(f) == 3 && f[2] >= "1" && f[2] <= "3" {
			of := stages[path]
			of[f[2][0]-'0'] = stage{f[0], f[1]}
			stages[path] = of
		}
		if !slices.Contains(e.Paths, path) {
			e.Paths = append(e.Paths, path)
		}
	}
	var found []Conflict
	for i++; i < len(fields); {
		var n int
		if _, err := fmt.Sscan(fields[i], &n); err != nil || n < 0 || i+n+2 >= len(fields) {
			break
		}
		c := Conflict{Kind: fields[i+n+1]}
		for _, path := range fields[i+1 : i+n+1] {
			if path = real(path); !slices.Contains(c.Paths, path) {
				c.Paths = append(c.Paths, path)
			}
		}
		i += n + 3
		kind, bracketed := strings.CutPrefix(c.Kind, "CONFLICT (")
		if !bracketed || len(c.Paths) == 0 { // it tells of a path that was merged
			continue
		}
		c.Kind = kindOf(strings.TrimSuffix(kind, ")"), stages[c.Paths[0]])
		found = append(found, c)
	}
	for _, c := range found {
		better := func(o Conflict) bool { return o.Kind != "content" && o.Paths[0] == c.Paths[0] }
		known := func(o Conflict) bool { return o.Kind == c.Kind && slices.Equal(o.Paths, c.Paths) }
		if c.Kind == "content" && slices.ContainsFunc(found, better) || slices.ContainsFunc(e.Conflicts, known) {
			continue // of one conflict git may tell in several messages
		}
		e.Conflicts = append(e.Conflicts, c)
	}
	return e
}

// A stage is what one side has at a path: 1 is what both began with, 2 and 3 are the
// sides.
type stage struct{ mode, oid string }

// kindOf is a word for a conflict that says more than git's.
func kindOf(kind string, of [4]stage) string {
	switch {
	case strings.HasPrefix(kind, "submodule"), kind == "contents" && (of[2].mode == submodule || of[3].mode == submodule):
		return "submodule"
	case kind == "contents" && of[2].oid == of[3].oid && of[2].mode != of[3].mode:
		return "mode"
	case kind == "contents" && of[1].mode == "":
		return "add/add"
	case kind == "contents":
		return "content"
	case kind == "distinct modes":
		return "type"
	}
	return kind
}

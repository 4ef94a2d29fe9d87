// Package hook decides, for git's hooks, whether refs may move.
//
// On the side of whoever pushes it owns the pre-push decision: a protected branch
// moves only for a session that holds its lease, or on the record. On the
// authority's side it owns the fence: there a branch moves only together with the
// event that names the move. It promises that a refusal names the ref and the way
// on, and that what it does not protect costs no connection. It refuses to repair
// anything: a hook that writes to a repository in the middle of somebody's push
// makes that push stale.
//
// What the two hooks cannot see is said in docs/design.md.
package hook

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"gitland/internal/event"
	"gitland/internal/object"
)

// protection is which branches may not be moved past a lease.
type protection struct {
	patterns []string     // of lease.protect
	branches []object.Ref // that stand for them; "" is none
}

// chosen reports whether somebody has said what is protected.
func (p protection) chosen() bool { return len(p.patterns) > 0 }

// protect is what patterns name; the branches given stand for them where there are none.
func protect(patterns []string, otherwise ...object.Ref) protection {
	if len(patterns) > 0 {
		return protection{patterns: patterns}
	}
	return protection{branches: otherwise}
}

// covers reports whether a branch is protected. A pattern is that of path.Match, on
// the name without refs/heads/; a "/**" at its end covers all that lies below.
func (p protection) covers(ref object.Ref) bool {
	name, isBranch := strings.CutPrefix(string(ref), "refs/heads/")
	if !isBranch {
		return false
	}
	if slices.Contains(p.branches, ref) {
		return true
	}
	for _, pattern := range p.patterns {
		if below, ok := strings.CutSuffix(pattern, "/**"); ok {
			// As many components as the pattern has must match; the rest is free.
			parts := strings.SplitN(name, "/", strings.Count(below, "/")+2)
			if n := len(parts); n > strings.Count(below, "/")+1 {
				if ok, _ := path.Match(below, strings.Join(parts[:n-1], "/")); ok {
					return true
				}
			}
			continue
		}
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// maxLine bounds one line of a hook's input. Git's own ref names are far shorter.
const maxLine = 16 << 10

// lines reads a hook's standard input to its end: git may take a closed pipe for
// a failure.
func lines(in io.Reader, each func(line string) error) error {
	defer io.Copy(io.Discard, in)
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 0, 4<<10), maxLine)
	for scanner.Scan() {
		if err := each(scanner.Text()); err != nil {
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read what git says is pushed: %w", err)
	}
	return nil
}

// objectID reads an id, of which all zeros stand for none.
func objectID(word string) (object.OID, error) {
	oid, err := object.ParseOID(word)
	if err != nil || oid.IsZero() {
		return "", err
	}
	return oid, nil
}

// describe is one update in a few words.
func describe(u event.Update) string {
	name := u.Ref.Branch()
	switch {
	case u.New == "":
		return "the deletion of " + name
	case u.Old == "":
		return name + " to be made at " + u.New.Short()
	}
	return fmt.Sprintf("%s from %s to %s", name, u.Old.Short(), u.New.Short())
}

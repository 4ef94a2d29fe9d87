package property

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gitland/internal/gittest"
	"gitland/internal/object"
)

// files takes the work tree on disk from one state to another.
func (c *caseOf) files(from, to tree) {
	c.t.Helper()
	paths := differing(from, to)
	for _, p := range slices.Backward(paths) {
		if _, was := from[p]; was && from[p].mode != gitlink {
			c.must(os.Remove(filepath.Join(c.top, p)))
			c.prune(filepath.Dir(p))
		}
	}
	for _, p := range paths {
		e, is := to[p]
		full := filepath.Join(c.top, p)
		if !is {
			continue
		}
		if e.mode == gitlink {
			c.must(os.WriteFile(filepath.Join(full, ".git/HEAD"), []byte(e.data+"\n"), 0o644))
			continue
		}
		c.must(os.MkdirAll(filepath.Dir(full), 0o777))
		if e.mode == symlink {
			c.must(os.Symlink(e.data, full))
			continue
		}
		perm, err := strconv.ParseUint(e.mode[3:], 8, 32)
		c.must(err)
		c.must(os.WriteFile(full, []byte(e.data), 0o600))
		c.must(os.Chmod(full, fs.FileMode(perm)))
	}
	if changed := filepath.Join(c.own, "changed"); c.drawn[repoFsmonitor] && len(paths) > 0 {
		f, err := os.OpenFile(changed, os.O_APPEND|os.O_WRONLY, 0)
		c.must(err)
		_, err = f.WriteString(strings.Join(paths, "\x00") + "\x00")
		c.must(errors.Join(err, f.Close()))
	}
}

// prune removes a directory that has become empty, and those above it.
func (c *caseOf) prune(dir string) {
	for ; dir != "." && dir != c.sub; dir = filepath.Dir(dir) {
		if os.Remove(filepath.Join(c.top, dir)) != nil {
			return
		}
	}
}

// indexed takes the index on disk from one state to another.
func (c *caseOf) indexed(from, to map[string]indexed) {
	c.t.Helper()
	var gone, set strings.Builder
	var intents []string
	for _, p := range slices.Sorted(maps.Keys(from)) {
		if e, is := to[p]; !is || e.intent && !from[p].intent {
			fmt.Fprintf(&gone, "0 %s\t%s\x00", c.image.format.Zero(), p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(to)) {
		switch e := to[p]; {
		case from[p] == e:
		case e.intent:
			intents = append(intents, p)
		default:
			fmt.Fprintf(&set, "%s %s\t%s\x00", e.mode, c.local.blob(e.entry), p)
		}
	}
	if gone.Len()+set.Len() > 0 {
		c.gitWith(c.env, c.top, gone.String()+set.String(), "update-index", "-z", "--index-info")
	}
	if len(intents) > 0 {
		env := gittest.With(c.env, "GIT_LITERAL_PATHSPECS=1")
		c.gitWith(env, c.top, "", append([]string{"add", "-N", "--"}, intents...)...)
	}
}

// onDisk reads the work tree.
func (c *caseOf) onDisk() tree {
	c.t.Helper()
	found := tree{}
	err := filepath.WalkDir(c.top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == c.top {
			return err
		}
		name, err := filepath.Rel(c.top, path)
		if err != nil {
			return err
		}
		if name == ".git" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			head, err := os.ReadFile(filepath.Join(path, ".git/HEAD"))
			if err != nil {
				return nil
			}
			found[name] = entry{gitlink, strings.TrimSpace(string(head))}
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			found[name] = entry{symlink, to}
			return err
		}
		data, err := os.ReadFile(path)
		found[name] = entry{fmt.Sprintf("100%03o", info.Mode().Perm()), string(data)}
		return err
	})
	c.must(err)
	return found
}

// inIndex reads the index: for each path, tag, mode, object id and stage.
func (c *caseOf) inIndex() map[string]string {
	c.t.Helper()
	index := map[string]string{}
	for line := range strings.SplitSeq(c.git("ls-files", "-z", "--stage", "-v"), "\x00") {
		if detail, p, ok := strings.Cut(line, "\t"); ok {
			index[p] += detail
		}
	}
	return index
}

// detail is how inIndex shows an entry.
func (c *caseOf) detail(e indexed) string {
	tag := "H"
	if e.skip {
		tag = "S"
	}
	oid := id(c.image.format, e.entry)
	if e.intent {
		oid = c.image.format.Hash(object.Blob, nil)
	}
	return fmt.Sprintf("%s %s %s 0", tag, e.mode, oid)
}

// headNow is what HEAD says: a branch, or nothing; and its commit.
func (c *caseOf) headNow() (branch string, oid object.OID) {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.own, "HEAD"))
	c.must(err)
	text := strings.TrimSpace(string(data))
	ref, on := strings.CutPrefix(text, "ref: ")
	if !on {
		return "", object.OID(text)
	}
	return strings.TrimPrefix(ref, "refs/heads/"), object.OID(refs(c.t, c.gitDir)[ref])
}

package main

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// prepare turns the fragments of the checkout into versions and notes.
func (t *tool) prepare() error {
	lease, err := t.leased()
	if err != nil {
		return err
	}
	switch op, finished, err := t.settle(); {
	case err != nil:
		return err
	case finished:
		fmt.Fprintf(os.Stderr, "finished what operation %s had begun to prepare; next: release publish\n", op.Lease)
		return nil
	}
	if err := t.clean(); err != nil {
		return err
	}
	files, err := t.checkout()
	if err != nil {
		return err
	}
	packs, err := files.packages()
	if err != nil {
		return err
	}
	list := bumps(packs)
	if len(list) == 0 {
		fmt.Fprintln(os.Stderr, "there is nothing to release: no package has a fragment in changes/")
		return nil
	}
	changes, err := files.changes(list)
	if err != nil {
		return err
	}
	if err := t.write(operation{Lease: lease, Changes: changes}); err != nil {
		return err
	}
	for _, b := range list {
		fmt.Printf("prepared %s %s (%s)\n", b.Name, b.To, b.Level)
	}
	fmt.Fprintln(os.Stderr, "next: release publish")
	return nil
}

// changes are all that the bumps do to files. The fragments go last: while one is left,
// check knows that a tree is not the whole of it.
func (files tree) changes(list []bump) ([]change, error) {
	to := map[string]string{}
	var changes []change
	put := func(path string, content []byte) {
		c := change{Path: path, Is: digest(content), content: content}
		if old, ok := files[path]; ok {
			c.Was = digest(old)
		}
		changes = append(changes, c)
	}
	for _, b := range list {
		to[b.Name] = b.To
		m := manifest{Name: b.Name, Version: b.To}
		for d, version := range b.pack.Dependencies {
			if m.Dependencies == nil {
				m.Dependencies = map[string]string{}
			}
			if m.Dependencies[d] = version; to[d] != "" {
				m.Dependencies[d] = to[d]
			}
		}
		text, err := m.encode()
		if err != nil {
			return nil, err
		}
		put(b.pack.manifestPath(), text)
		title := "# " + b.Name + "\n\n"
		earlier := strings.TrimPrefix(string(files[b.pack.notesPath()]), title)
		if earlier != "" {
			earlier = "\n" + earlier
		}
		put(b.pack.notesPath(), []byte(title+b.notes()+earlier))
	}
	for _, b := range list {
		for _, f := range b.pack.fragments {
			changes = append(changes, change{Path: f.path, Was: digest(files[f.path])})
		}
	}
	return changes, nil
}

// clean refuses a checkout that has changes, unless it was asked for one.
func (t *tool) clean() error {
	paths, err := t.changed()
	if err != nil || len(paths) == 0 || t.dirty {
		return err
	}
	if op, ok := t.ended(); ok && slices.ContainsFunc(op.Changes, func(c change) bool { return slices.Contains(paths, c.Path) }) {
		return &fault{refused, fmt.Sprintf("operation %s has prepared a release here, which is not published", op.Lease), "release publish"}
	}
	return &fault{refused, "the checkout has changes: " + some(paths), "commit or stash them, or do it all the same: release prepare --dirty"}
}

// changed are the paths that are not as HEAD has them, without files of our own.
func (t *tool) changed() ([]string, error) {
	text, err := t.git("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
	if err != nil {
		return nil, err
	}
	var paths []string
	for entry := range strings.SplitSeq(strings.TrimSuffix(text, "\x00"), "\x00") {
		if len(entry) > 3 && !strings.HasPrefix(entry[3:], ".release/") { // two letters and a space come first
			paths = append(paths, entry[3:])
		}
	}
	return paths, nil
}

// ours says of a path whether prepare changes such ones.
func ours(name string) bool {
	dir, base := path.Split(name)
	parts := strings.Split(path.Clean(dir), "/")
	switch {
	case len(parts) == 2 && parts[0] == "packages":
		return base == "package.json" || base == "NOTES.md"
	case len(parts) == 3 && parts[0] == "packages" && parts[2] == "changes":
		return path.Ext(base) == ".md"
	}
	return false
}

// some is a list of which one reads the beginning.
func some(paths []string) string {
	if len(paths) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:3], ", "), len(paths)-3)
	}
	return strings.Join(paths, ", ")
}

// quote writes a word so that a shell reads it as it is.
func quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

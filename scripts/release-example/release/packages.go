package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A manifest is packages/NAME/package.json. What it does not know it would lose in
// writing, and refuses.
type manifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Dependencies map[string]string `json:"dependencies,omitempty"` // of this monorepo, by their versions
}

// A fragment is packages/NAME/changes/*.md: its first line is the level, the rest is
// for the notes.
type fragment struct {
	path  string
	level level
	text  string
}

type pack struct {
	manifest
	fragments []fragment
}

func (p *pack) manifestPath() string { return path.Join("packages", p.Name, "package.json") }
func (p *pack) notesPath() string    { return path.Join("packages", p.Name, "NOTES.md") }
func (p *pack) id() string           { return p.Name + "@" + p.Version }

// encode is the manifest as we write it.
func (m manifest) encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	return append(text, '\n'), err
}

// checkout is the tree as it is on disk.
func (t *tool) checkout() (tree, error) {
	files := tree{}
	err := fs.WalkDir(os.DirFS(t.top), "packages", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(t.top, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a fragment that somebody uses up right now
		}
		files[name] = content
		return err
	})
	return files, err
}

// packages are those of a tree, dependencies before their dependents.
func (files tree) packages() ([]*pack, error) {
	byName := map[string]*pack{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		dir, base := path.Split(name)
		if base != "package.json" || path.Dir(path.Clean(dir)) != "packages" {
			continue
		}
		p := &pack{}
		decoder := json.NewDecoder(bytes.NewReader(files[name]))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&p.manifest); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if p.manifestPath() != name {
			return nil, fmt.Errorf("%s names the package %q", name, p.Name)
		}
		if _, err := parseVersion(p.Version); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		byName[p.Name] = p
	}
	var err error
	for _, p := range byName {
		if p.fragments, err = files.fragments(p.Name); err != nil {
			return nil, err
		}
	}
	return ordered(byName)
}

func (files tree) fragments(name string) ([]fragment, error) {
	var list []fragment
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if path.Dir(file) != path.Join("packages", name, "changes") || path.Ext(file) != ".md" {
			continue
		}
		first, text, _ := strings.Cut(string(files[file]), "\n")
		l, err := parseLevel(strings.TrimSpace(first))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if text = strings.TrimSpace(text); text == "" {
			return nil, fmt.Errorf("%s says nothing for the notes", file)
		}
		list = append(list, fragment{file, l, text})
	}
	return list, nil
}

// ordered puts each package behind those that it depends on, and by name where that
// leaves a choice.
func ordered(byName map[string]*pack) ([]*pack, error) {
	var order []*pack
	const open, done = 1, 2
	state := map[string]int{}
	var visit func(string) error
	visit = func(name string) error {
		p := byName[name]
		switch {
		case p == nil:
			return errors.New("there is no such package")
		case state[name] == open:
			return errors.New("it depends on itself")
		case state[name] == done:
			return nil
		}
		state[name] = open
		for _, d := range slices.Sorted(maps.Keys(p.Dependencies)) {
			if err := visit(d); err != nil {
				return fmt.Errorf("%s, of %s: %w", d, name, err)
			}
		}
		state[name] = done
		order = append(order, p)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

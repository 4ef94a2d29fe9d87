package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// A level is how much a release changes for those who use the package.
type level int

const (
	none level = iota
	patch
	minor
	major
)

func levels() []string { return []string{"none", "patch", "minor", "major"} }

func (l level) String() string { return levels()[l] }

func parseLevel(word string) (level, error) {
	l := slices.Index(levels(), word)
	if l < int(patch) {
		return none, fmt.Errorf("the first line is %q, not one of patch, minor, major", word)
	}
	return level(l), nil
}

func parseVersion(text string) (v [3]int, err error) {
	_, err = fmt.Sscanf(text, "%d.%d.%d", &v[0], &v[1], &v[2])
	if err != nil || formatVersion(v) != text {
		return v, fmt.Errorf("%q is no version such as 1.2.3", text)
	}
	return v, nil
}

func formatVersion(v [3]int) string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// raise is the version after a change of that level.
func raise(version string, l level) string {
	v, _ := parseVersion(version) // packages has looked
	switch l {
	case major:
		v = [3]int{v[0] + 1}
	case minor:
		v = [3]int{v[0], v[1] + 1}
	case patch:
		v[2]++
	}
	return formatVersion(v)
}

// A bump is a release of one package.
type bump struct {
	pack    *pack
	Name    string   `json:"name"`
	From    string   `json:"from"`
	To      string   `json:"to"`
	Level   string   `json:"level"`
	Follows []string `json:"follows,omitempty"` // bumped dependencies
	Changes []string `json:"changes,omitempty"` // paths of fragments
}

// bumps says what is to be released: packages with fragments, and those that depend on
// one that is, which need a release to name its new version.
func bumps(packs []*pack) []bump {
	list := []bump{} // a list in JSON, too, when it is empty
	to := map[string]string{}
	for _, p := range packs { // dependencies first
		b, l := bump{pack: p, Name: p.Name, From: p.Version}, none
		for _, f := range p.fragments {
			l = max(l, f.level)
			b.Changes = append(b.Changes, f.path)
		}
		for _, d := range slices.Sorted(maps.Keys(p.Dependencies)) {
			if to[d] != "" {
				l = max(l, patch)
				b.Follows = append(b.Follows, d+" "+to[d])
			}
		}
		if l == none {
			continue
		}
		b.Level, b.To = l.String(), raise(p.Version, l)
		to[p.Name] = b.To
		list = append(list, b)
	}
	return list
}

// notes is the section of a release in its package's notes.
func (b bump) notes() string {
	var text strings.Builder
	fmt.Fprintf(&text, "## %s\n\n", b.To)
	byLevel := slices.Clone(b.pack.fragments)
	slices.SortStableFunc(byLevel, func(x, y fragment) int { return int(y.level - x.level) })
	for _, f := range byLevel {
		fmt.Fprintf(&text, "- %s: %s\n", f.level, strings.ReplaceAll(f.text, "\n", "\n  "))
	}
	if len(b.Follows) > 0 {
		fmt.Fprintf(&text, "- follows %s\n", strings.Join(b.Follows, ", "))
	}
	return text.String()
}

func (t *tool) versions() error {
	packs, err := t.here()
	if err != nil {
		return err
	}
	if t.json {
		all := map[string]string{}
		for _, p := range packs {
			all[p.Name] = p.Version
		}
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, p := range packs {
		fmt.Fprintf(table, "%s\t%s\n", p.Name, p.Version)
	}
	return table.Flush()
}

func (t *tool) plan() error {
	packs, err := t.here()
	if err != nil {
		return err
	}
	list := bumps(packs)
	if t.json {
		return json.NewEncoder(os.Stdout).Encode(list)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, b := range list {
		why := b.Changes
		if len(b.Follows) > 0 {
			why = append(slices.Clone(why), "follows "+strings.Join(b.Follows, ", "))
		}
		fmt.Fprintf(table, "%s\t%s -> %s\t%s\t%s\n", b.Name, b.From, b.To, b.Level, strings.Join(why, ", "))
	}
	return table.Flush()
}

// here are the packages of the checkout, for those who only read.
func (t *tool) here() ([]*pack, error) {
	if t.isBegun() {
		fmt.Fprintln(os.Stderr, "note: a preparation is under way, or stopped half way, which release prepare mends")
	}
	files, err := t.checkout()
	if err != nil {
		return nil, err
	}
	return files.packages()
}

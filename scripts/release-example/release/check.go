package main

import (
	"fmt"
	"slices"
	"strings"
)

// check says whether the tree that it is run in is a whole release: of these versions,
// each dependency by the version that it has, with notes, and with no fragment left over,
// which is how a preparation that is half done looks, or one that somebody added to.
func (t *tool) check() error {
	files, err := t.checkout()
	if err != nil {
		return err
	}
	packs, err := files.packages()
	if err != nil {
		return err
	}
	var wrong []string
	version := map[string]string{}
	for _, p := range packs {
		version[p.Name] = p.Version
		for _, f := range p.fragments {
			wrong = append(wrong, f.path+" is not released")
		}
		for d, v := range p.Dependencies {
			if v != version[d] {
				wrong = append(wrong, fmt.Sprintf("%s depends on %s %s, which is %s", p.Name, d, v, version[d]))
			}
		}
		if notes, ok := files[p.notesPath()]; ok && !strings.Contains(string(notes), "\n## "+p.Version+"\n") {
			wrong = append(wrong, fmt.Sprintf("%s says nothing of %s", p.notesPath(), p.Version))
		}
	}
	if have := ids(packs); !slices.Equal(have, t.args) {
		wrong = append(wrong, fmt.Sprintf("the versions are %s, and not %s", strings.Join(have, " "), strings.Join(t.args, " ")))
	}
	if len(wrong) > 0 {
		return &fault{failed, "this is no whole release: " + strings.Join(wrong, "; "), "git stash -u && git pull && release prepare"}
	}
	return nil
}

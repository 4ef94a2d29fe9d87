package main

import (
	"fmt"
	"slices"
	"strings"
)

// publish lands what was prepared. Git land takes the lease, asks check of the very tree
// that would land, pushes, and goes through the steps; from then on the release is its
// motion, which git land resume ends. Nothing here writes anything.
func (t *tool) publish() error {
	if t.isBegun() {
		return &fault{refused, "a preparation is under way, or stopped half way", "release prepare   (which finishes it)"}
	}
	paths, err := t.changed()
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(paths), ours)
	if len(others) > 0 && !t.dirty {
		return &fault{refused, "the checkout has other changes than those of a release: " + some(others), "commit or stash them, or leave them out: release publish --dirty"}
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return !ours(p) })
	now, err := t.checkout()
	if err != nil {
		return err
	}
	all, released, err := t.released("HEAD", now)
	if err != nil {
		return err
	}
	if len(released) == 0 {
		return t.nothingPrepared()
	}
	for _, p := range released {
		if _, used, err := t.ask(p); err != nil {
			return err
		} else if used {
			return &fault{refused, "the registry has " + p.id() + " already, and no version is used twice", "git pull   (somebody may have released since)"}
		}
	}
	return t.become(t.landing(all, released, paths))
}

// nothingPrepared says why there is nothing to publish: it may have landed.
func (t *tool) nothingPrepared() error {
	s, err := t.status()
	switch {
	case err != nil:
		return err
	case len(s.Unfinished) > 0:
		return &fault{held, "operation " + s.Unfinished[0].Operation + " has landed a release, and has not ended", s.Unfinished[0].Next}
	}
	return &fault{refused, "nothing is prepared: each package has the version that HEAD has",
		"release prepare" + t.givenUp("upload", "NAME")}
}

// resume goes on, in this clone, with a release of another one, which git lease break
// --acquire has taken over. In the clone that began it git land resume knows the steps.
func (t *tool) resume() error {
	s, err := t.status()
	if err != nil {
		return err
	}
	if _, own := s.holds(); s.Hold != nil && !own && len(s.Unfinished) == 0 {
		take := slices.Concat([]string{"git", "lease", "break"}, t.at(), []string{quote(s.Lease), "--operation", s.Hold.Operation, "--reason", "WHY", "--acquire"})
		return &fault{held, s.notOurs(), fmt.Sprintf("if that is dead: eval \"$(%s)\" && %s", strings.Join(take, " "), t.call("resume", t.args...))}
	}
	now, err := t.committed(s.Base) // under a held lease nothing else has landed since
	if err != nil {
		return err
	}
	_, released, err := t.released(s.Base+"^", now)
	if err != nil {
		return err
	}
	return t.become(slices.Concat([]string{"git", "land", "resume", t.args[0]}, t.at(), t.steps(released)))
}

// released are all packages of a tree, and those with another version than in a commit
// before.
func (t *tool) released(before string, now tree) (all, released []*pack, err error) {
	if all, err = now.packages(); err != nil {
		return nil, nil, err
	}
	old, err := t.committedPackages(before)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range all {
		if !slices.ContainsFunc(old, func(b *pack) bool { return b.id() == p.id() }) {
			released = append(released, p)
		}
	}
	return all, released, nil
}

func (t *tool) committedPackages(commit string) ([]*pack, error) {
	files, err := t.committed(commit)
	if err != nil {
		return nil, err
	}
	return files.packages()
}

// landing is the command line of git land.
func (t *tool) landing(all, released []*pack, paths []string) []string {
	message := "Release " + strings.Join(ids(released), ", ")
	return slices.Concat([]string{"git", "land", "-m", message}, t.at(),
		[]string{"--check", "release", "-x", t.call("check", ids(all)...)}, t.steps(released), []string{"--"}, paths)
}

// steps are the options that tell git land what follows: all tags, and then the uploads,
// dependencies first. Each has a check, so that whoever resumes does nothing twice.
func (t *tool) steps(released []*pack) []string {
	var names, options []string
	for _, p := range released {
		names = append(names, p.Name)
	}
	step := func(name, run, check string) {
		options = append(options, "--step", name+"="+run, "--step-check", name+"="+check)
	}
	step("tag", t.call("tag", names...), t.call("tagged", names...))
	for _, name := range names {
		step("upload-"+name, t.call("upload", name), t.call("uploaded", name))
	}
	return options
}

// call is the command line of this program, for a shell.
func (t *tool) call(command string, operands ...string) string {
	words := slices.Concat([]string{self(), command}, t.at(), operands)
	for i, w := range words {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

func ids(packs []*pack) []string {
	var list []string
	for _, p := range packs {
		list = append(list, p.id())
	}
	return list
}

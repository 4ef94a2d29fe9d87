package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
)

// landed are the packages of these names in the commit whose landing we are a step of.
func (t *tool) landed() (commit string, packs []*pack, err error) {
	commit = os.Getenv("GIT_LAND_COMMIT")
	if commit == "" {
		return "", nil, &fault{refused, "this is a step of a landing, and there is none", "release publish"}
	}
	all, err := t.committedPackages(commit)
	if err != nil {
		return "", nil, err
	}
	for _, name := range t.args {
		i := slices.IndexFunc(all, func(p *pack) bool { return p.Name == name })
		if i < 0 {
			return "", nil, fmt.Errorf("there is no package %q in %s", name, commit)
		}
		packs = append(packs, all[i])
	}
	return commit, packs, nil
}

func (t *tool) tag() error {
	commit, packs, err := t.landed()
	if err != nil {
		return err
	}
	if _, err := t.demand(); err != nil {
		return err
	}
	argv := []string{"push", "--quiet", "--no-follow-tags", os.Getenv("GIT_LEASE_REMOTE")}
	for _, p := range packs {
		argv = append(argv, commit+":refs/tags/"+p.id()) // without force no tag is moved
	}
	_, err = t.git(argv...)
	return err
}

func (t *tool) tagged() error {
	commit, packs, err := t.landed()
	if err != nil {
		return err
	}
	argv := []string{"ls-remote", os.Getenv("GIT_LEASE_REMOTE")}
	for _, p := range packs {
		argv = append(argv, "refs/tags/"+p.id())
	}
	text, err := t.git(argv...)
	if err != nil {
		return err
	}
	at := map[string]string{} // tags, by commit
	for line := range strings.Lines(text) {
		oid, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		at[ref] = oid
	}
	for _, p := range packs {
		if there := at["refs/tags/"+p.id()]; there != "" && there != commit {
			return fmt.Errorf("the tag %s is at %s, and not at %s", p.id(), there, commit)
		}
	}
	for _, p := range packs {
		if at["refs/tags/"+p.id()] == "" {
			return &fault{failed, "there is no tag " + p.id(), ""}
		}
	}
	return nil
}

func (t *tool) upload() error {
	commit, packs, err := t.landed()
	if err != nil {
		return err
	}
	if _, err := t.demand(); err != nil {
		return err
	}
	p := packs[0]
	if _, used, err := t.ask(p); err != nil {
		return err
	} else if used {
		return &fault{refused, "the registry has " + p.id() + " already, and no version is used twice", "release uploaded " + p.Name}
	}
	content, err := t.archive(commit, "packages/"+p.Name)
	if err != nil {
		return err
	}
	return t.put(p, content)
}

func (t *tool) uploaded() error {
	commit, packs, err := t.landed()
	if err != nil {
		return err
	}
	p := packs[0]
	there, ok, err := t.ask(p)
	if err != nil {
		return err
	}
	if !ok {
		return &fault{failed, "the registry does not have " + p.id(), ""}
	}
	content, err := t.archive(commit, "packages/"+p.Name)
	if err == nil && !bytes.Equal(content, there) {
		err = fmt.Errorf("the registry has another %s than %s", p.id(), commit)
	}
	return err
}

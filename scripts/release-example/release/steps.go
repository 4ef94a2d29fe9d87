package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// A subject is what a step, or a question, is about: the packages that the operands name,
// in the commit that has landed.
type subject struct {
	status
	commit string
	packs  []*pack
}

// mine is the subject of a step, which changes something and so demands the lease. What
// has stayed undone when a landing was given up is done by hand with the same variable.
func (t *tool) mine() (subject, error) {
	commit := os.Getenv("GIT_LAND_COMMIT")
	if commit == "" {
		return subject{}, &fault{refused, "this is a step of a landing, and GIT_LAND_COMMIT does not say of which", "release publish" + t.givenUp(t.name, t.args...)}
	}
	s, err := t.demand()
	if err != nil {
		return subject{}, err
	}
	return t.subject(s, commit)
}

// asked is the subject of a question, which anybody may ask: by hand it is of what has
// landed last.
func (t *tool) asked() (subject, error) {
	s, err := t.status()
	if err != nil {
		return subject{}, err
	}
	return t.subject(s, cmp.Or(os.Getenv("GIT_LAND_COMMIT"), s.Base))
}

func (t *tool) subject(s status, commit string) (subject, error) {
	commit, err := t.git("rev-parse", "--verify", commit+"^{commit}")
	if err != nil {
		return subject{}, err
	}
	all, err := t.committedPackages(commit)
	if err != nil {
		return subject{}, err
	}
	of := subject{status: s, commit: commit}
	for _, name := range t.args {
		i := slices.IndexFunc(all, func(p *pack) bool { return p.Name == name })
		if i < 0 {
			return subject{}, fmt.Errorf("there is no package %q in %s", name, commit)
		}
		of.packs = append(of.packs, all[i])
	}
	return of, nil
}

func (t *tool) tag() error {
	of, err := t.mine()
	if err != nil {
		return err
	}
	argv := []string{"push", "--quiet", "--no-follow-tags", of.Remote}
	for _, p := range of.packs {
		argv = append(argv, of.commit+":refs/tags/"+p.id()) // without force no tag is moved
	}
	_, err = t.git(argv...)
	return err
}

func (t *tool) tagged() error {
	of, err := t.asked()
	if err != nil {
		return err
	}
	argv := []string{"ls-remote", of.Remote}
	for _, p := range of.packs {
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
	for _, p := range of.packs {
		if there := at["refs/tags/"+p.id()]; there != "" && there != of.commit {
			return fmt.Errorf("the tag %s is at %s, and not at %s", p.id(), there, of.commit)
		}
	}
	for _, p := range of.packs {
		if at["refs/tags/"+p.id()] == "" {
			return &fault{failed, "there is no tag " + p.id(), ""}
		}
	}
	fmt.Printf("the tags %s are at %s\n", strings.Join(ids(of.packs), " "), of.commit)
	return nil
}

func (t *tool) upload() error {
	of, err := t.mine()
	if err != nil {
		return err
	}
	p := of.packs[0]
	if _, used, err := t.ask(p); err != nil {
		return err
	} else if used {
		return &fault{refused, "the registry has " + p.id() + " already, and no version is used twice", "release uploaded " + p.Name}
	}
	content, err := t.archive(of.commit, "packages/"+p.Name)
	if err != nil {
		return err
	}
	chain, err := t.chain(of.status)
	if err != nil {
		return err
	}
	return t.put(p, content, chain, of.Hold.Fence)
}

func (t *tool) uploaded() error {
	of, err := t.asked()
	if err != nil {
		return err
	}
	p := of.packs[0]
	there, ok, err := t.ask(p)
	if err != nil {
		return err
	}
	if !ok {
		return &fault{failed, "the registry does not have " + p.id(), ""}
	}
	content, err := t.archive(of.commit, "packages/"+p.Name)
	if err != nil {
		return err
	}
	if !bytes.Equal(content, there) {
		return fmt.Errorf("the registry has another %s than %s", p.id(), of.commit)
	}
	fmt.Printf("the registry has %s of %s\n", p.id(), of.commit)
	return nil
}

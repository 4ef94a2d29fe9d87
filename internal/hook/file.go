package hook

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gitland/internal/fault"
)

// before is added to the name of a hooks directory for the one beside it that has the
// hooks which were there before ours.
const before = ".before-git-lease"

// What other installers call a hook that they find. pre-commit goes on running it,
// lefthook does not.
const (
	legacy    = ".legacy"
	displaced = ".old"
)

// A file is a hook in a directory of hooks.
//
// One that was there before ours is kept under its own name, in a directory beside
// this one that has links to all else in it: husky's takes from $0 which hook it is and
// where its script is, pre-commit's where the hook is that it found itself.
type file struct {
	dir, name string
	// shown means that the directory is in a work tree, where git shows what is new.
	shown bool
}

func (f file) path() string { return filepath.Join(f.dir, f.name) }
func (f file) kept() string { return filepath.Join(f.dir+before, f.name) }

// ours is where our hook is so that git runs it: at its place, or where pre-commit found
// it. Empty for none.
func (f file) ours() string {
	has, _ := os.ReadFile(f.path())
	if isOurs(has) {
		return f.path()
	}
	if maker(has) == "pre-commit" && executable(f.path()) && f.isOurs(legacy) {
		return f.path() + legacy
	}
	return ""
}

func (f file) isOurs(suffix string) bool {
	has, err := os.ReadFile(f.path() + suffix)
	return err == nil && isOurs(has)
}

// next is the hook that ours runs after itself; empty for none.
func (f file) next() string {
	next := f.kept()
	if f.ours() == f.path()+legacy && made(next) == "pre-commit" {
		next += legacy // it runs already
	}
	if !exists(next) {
		return ""
	}
	return next
}

func (f file) install(tool string) (Change, error) {
	c := Change{Hook: f.name, Path: f.path()}
	want, err := stub(f.name, tool)
	if err != nil {
		return c, err
	}
	if !exists(f.dir) {
		if err := os.MkdirAll(f.dir, 0o777); err != nil {
			return c, err
		}
		if f.shown { // what names a place on this machine is nothing to land
			if err := os.WriteFile(filepath.Join(f.dir, ".gitignore"), f.ignoring(), 0o666); err != nil {
				return c, err
			}
		}
	}
	if err := f.migrate(); err != nil {
		return c, err
	}
	if at := f.ours(); at != "" {
		c.Path = at
	} else if exists(f.path()) { // a dangling link is one that was there, too
		if err := f.keep(); err != nil {
			return c, err
		}
	}
	c.Done, err = write(c.Path, want)
	c.Before = f.next()
	return c, err
}

// keep keeps the hook that is there, beside its place: it is there until ours replaces it.
func (f file) keep() error {
	if err := f.withdraw(); err != nil {
		return err
	}
	if exists(f.kept()) && !f.remade() {
		return fault.New(fault.Conflict, "%s is a hook that is not ours, and %s was kept from an earlier one", f.path(), f.kept()).
			WithHint("%s   (once %s does what that one does, too; then install again)", fault.Command("rm", f.kept()), f.path())
	}
	if err := f.mirror(); err != nil {
		return err
	}
	return link(f.path(), f.kept())
}

// remade reports whether the tool that made the kept hook has made the one at its place.
func (f file) remade() bool {
	is, err := os.ReadFile(f.path())
	was, wasErr := os.ReadFile(f.kept())
	return err == nil && wasErr == nil && (bytes.Equal(is, was) || maker(is) != "" && maker(is) == maker(was))
}

// withdraw takes our hook from where lefthook has put it away, and never runs it. What it
// kept is there then: without us it would be, unless lefthook made it.
func (f file) withdraw() error {
	if !f.isOurs(displaced) {
		return nil
	}
	if exists(f.kept()) && !f.remade() {
		return os.Rename(f.kept(), f.path()+displaced)
	}
	return os.Remove(f.path() + displaced)
}

func (f file) uninstall() (Change, error) {
	c := Change{Hook: f.name, Path: f.path(), Done: "removed"}
	at := f.ours()
	if at == "" {
		if !f.isOurs(displaced) {
			c.Done = "absent"
		}
		if err := f.withdraw(); err != nil {
			return c, err
		}
		switch {
		case !exists(f.kept()):
		case !exists(f.path()): // somebody has removed ours by hand
			c.Done, c.Before = "removed", f.path()
			if err := os.Rename(f.kept(), f.path()); err != nil {
				return c, err
			}
		case f.remade():
			if err := os.Remove(f.kept()); err != nil {
				return c, err
			}
		}
		f.tidy()
		if exists(f.kept()) {
			c.Left = f.kept()
		}
		return c, nil
	}
	if err := f.migrate(); err != nil {
		return c, err
	}
	c.Path = at
	next := f.next()
	if next == "" {
		if err := os.Remove(at); err != nil {
			return c, err
		}
	} else {
		c.Before = at
		if err := os.Rename(next, at); err != nil {
			return c, err
		}
	}
	if at != f.path() { // pre-commit's own has been remade
		if err := os.Remove(f.kept()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
	}
	f.tidy()
	return c, nil
}

// migrate brings what an older version of ours has kept to where it is kept now.
func (f file) migrate() error {
	was := f.path() + before
	if !exists(was) || exists(f.kept()) {
		return nil
	}
	if err := f.mirror(); err != nil {
		return err
	}
	return os.Rename(was, f.kept())
}

// ignoring is the .gitignore of a directory in which ours is the first hook.
func (f file) ignoring() []byte { return []byte("/.gitignore\n/" + f.name + "\n") }

// mirror makes the directory for what is kept, with links to what a kept hook may look
// for beside itself. Git is not to show it where it is in a work tree.
func (f file) mirror() error {
	dir := f.dir + before
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o666); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, from, to := e.Name(), filepath.Join(f.dir, e.Name()), filepath.Join(dir, e.Name())
		has, _ := os.ReadFile(from)
		switch {
		case exists(to) || isOurs(has) || slices.Contains(slices.Concat(Client, Server), name):
			// A link to ours would be taken for a kept one.
		case name == ".gitignore" || slices.Contains([]string{".sample", ".tmp", before}, filepath.Ext(name)):
		case name == f.name+legacy:
			// Pre-commit may come again, and put ours over it.
			if err := link(from, to); err != nil {
				return err
			}
		default:
			if err := os.Symlink(filepath.Join("..", filepath.Base(f.dir), name), to); err != nil {
				return err
			}
		}
	}
	return nil
}

// tidy removes the directories that were made for ours, where nothing is in them any more.
func (f file) tidy() {
	ignore := filepath.Join(f.dir, ".gitignore")
	if has, err := os.ReadFile(ignore); err == nil && bytes.Equal(has, f.ignoring()) {
		os.Remove(ignore)
		os.Remove(f.dir) // else somebody else has put something there
	}
	dir := f.dir + before
	for _, name := range slices.Concat(Client, Server) {
		if exists(filepath.Join(dir, name)) {
			return
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		to, _ := os.Readlink(path)
		if e.Name() == ".gitignore" || e.Name() == f.name+legacy || to == filepath.Join("..", filepath.Base(f.dir), e.Name()) {
			os.Remove(path)
		}
	}
	os.Remove(dir)
}

// link gives a file a second name, in place of whatever has it; a symbolic link, which
// not every system can do that with, is made again.
func link(from, to string) error {
	tmp := to + ".tmp"
	os.Remove(tmp)
	target, err := os.Readlink(from)
	if err == nil {
		err = os.Symlink(target, tmp)
	} else {
		err = os.Link(from, tmp)
	}
	if err != nil { // no hard links there
		return os.Rename(from, to)
	}
	return os.Rename(tmp, to)
}

// maker names the tool whose hook this is, if it is one that makes its hooks anew and
// nobody writes into.
func maker(content []byte) string {
	switch {
	case bytes.Contains(content, []byte("\n# File generated by pre-commit")):
		return "pre-commit"
	case bytes.Contains(content, []byte("LEFTHOOK")): // as lefthook tells them
		return "lefthook"
	case bytes.HasSuffix(bytes.TrimSpace(content), []byte(`. "$(dirname "$0")/h"`)):
		return "husky"
	}
	return ""
}

func made(path string) string {
	content, _ := os.ReadFile(path)
	return maker(content)
}

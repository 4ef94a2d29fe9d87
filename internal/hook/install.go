package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gitland/hooks"
	"gitland/internal/fault"
	"gitland/internal/git"
)

// The hooks, by git's names for them (githooks(5)).
const (
	PrePush              = "pre-push"
	PreReceive           = "pre-receive"
	ReferenceTransaction = "reference-transaction"
)

// Client and Server are what is installed where.
var (
	Client = []string{PrePush}
	Server = []string{PreReceive, ReferenceTransaction}
)

// before is added to the name of a hook that was there before ours, which runs it.
const before = ".before-git-lease"

// mark begins the second line of every hook of ours.
const mark = "# git lease's "

// A Change is what became of one hook.
type Change struct {
	Hook string `json:"hook"`
	Path string `json:"path"`
	// Done is "installed", "updated" (it was ours, of another version or place),
	// "unchanged", "removed" or "absent".
	Done string `json:"done"`
	// Before is the hook that was there, and runs after ours; empty for none.
	Before string `json:"before,omitempty"`
}

// Install puts hooks into the directory where git looks for them (git rev-parse
// --git-path hooks). tool is the absolute path of git-lease. A hook that is there already
// stays, under another name, and is run after ours. Done twice it changes
// nothing. The error is a fault of class Conflict where two earlier hooks would have to be kept.
func Install(ctx context.Context, repo *git.Repo, tool string, names []string) ([]Change, error) {
	dir, err := repo.HooksDir(ctx)
	if err != nil {
		return nil, err
	}
	if !within(dir, repo.CommonDir) && !within(dir, repo.Top) {
		return nil, fault.New(fault.Conflict, "%s, where git looks for hooks by core.hooksPath, is not of this repository alone: others would get the hook as well", dir).
			WithHint("git config --local core.hooksPath %s   (then again)", fault.Command(filepath.Join(repo.CommonDir, "hooks")))
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	var changes []Change
	for _, name := range names {
		c, err := install(filepath.Join(dir, name), name, tool)
		if err != nil {
			return changes, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func install(path, name, tool string) (Change, error) {
	c := Change{Hook: name, Path: path, Done: "installed"}
	want, err := stub(name, tool)
	if err != nil {
		return c, err
	}
	has, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !exists(path): // a dangling link is one that was there
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return c, err
	case bytes.Equal(has, want):
		c.Done = "unchanged"
	case isOurs(has):
		c.Done = "updated"
	default:
		if exists(path + before) {
			return c, fault.New(fault.Conflict, "%s is a hook that is not ours, and %s was kept from an earlier one", path, path+before).
				WithHint("put together what both do in %s, and remove the other", path)
		}
		if err := os.Rename(path, path+before); err != nil {
			return c, err
		}
	}
	if exists(path + before) {
		c.Before = path + before
	}
	if c.Done == "unchanged" {
		return c, nil
	}
	return c, replace(path, want)
}

// Uninstall takes our hooks out, and puts what was there before back as it was.
func Uninstall(ctx context.Context, repo *git.Repo, names []string) ([]Change, error) {
	dir, err := repo.HooksDir(ctx)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, name := range names {
		c, err := uninstall(filepath.Join(dir, name), name)
		if err != nil {
			return changes, err
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func uninstall(path, name string) (Change, error) {
	c := Change{Hook: name, Path: path, Done: "removed"}
	has, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !isOurs(has):
		c.Done = "absent"
		return c, nil
	case err != nil:
		return c, err
	}
	if exists(path + before) {
		c.Before = path
		return c, os.Rename(path+before, path)
	}
	return c, os.Remove(path)
}

// stub is a hook as it is installed.
func stub(name, tool string) ([]byte, error) {
	text, err := hooks.Files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(tool) || strings.ContainsAny(tool, "\n\x00") {
		return nil, fmt.Errorf("%q is not the absolute path of git-lease", tool)
	}
	quoted := "'" + strings.ReplaceAll(tool, "'", `'\''`) + "'"
	return bytes.Replace(text, []byte("\ntool=git-lease\n"), []byte("\ntool="+quoted+"\n"), 1), nil
}

func isOurs(content []byte) bool {
	_, rest, _ := bytes.Cut(content, []byte("\n"))
	return bytes.HasPrefix(rest, []byte(mark))
}

// within reports whether a directory lies below another one, and not at it.
func within(dir, top string) bool {
	rest, err := filepath.Rel(resolved(top), resolved(dir))
	return top != "" && err == nil && rest != "." && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}

// resolved is path without symbolic links, as far as it exists.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// replace writes a hook beside its place, and moves it there: git may be about to
// run what it replaces.
func replace(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(content)
	if err := errors.Join(err, tmp.Chmod(0o755), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

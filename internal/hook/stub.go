package hook

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gitland/hooks"
)

// mark begins the second line of every hook of ours.
const mark = "# git lease's "

// stub is a hook as it is installed. tool is the absolute path of git-lease.
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

// write makes path a stub, and returns what it took: "installed", "updated" or "unchanged".
func write(path string, want []byte) (string, error) {
	has, err := os.ReadFile(path)
	done := "installed"
	switch {
	case err == nil && bytes.Equal(has, want) && executable(path):
		return "unchanged", nil
	case err == nil && isOurs(has):
		done = "updated"
	}
	return done, replace(path, want)
}

// stubState is "active", "outdated", "inactive" or "gone" (see State) for a stub of ours.
func stubState(path, name, tool string) (string, error) {
	has, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	want, err := stub(name, tool)
	switch {
	case err != nil:
		return "", err
	case !executable(path):
		return "inactive", nil
	case !bytes.Equal(has, want):
		return "outdated", nil
	case !exists(tool):
		return "gone", nil
	}
	return "active", nil
}

func isOurs(content []byte) bool {
	_, rest, _ := bytes.Cut(content, []byte("\n"))
	return bytes.HasPrefix(rest, []byte(mark))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
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

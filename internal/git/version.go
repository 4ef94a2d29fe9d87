package git

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// MinVersion is the oldest git that works: "merge-tree --write-tree" came with 2.38.
const MinVersion = "2.38"

// An OldError says that the git on the PATH is older than MinVersion.
type OldError struct{ Found string }

func (e *OldError) Error() string {
	return fmt.Sprintf("git %s is too old: install git %s or newer", e.Found, MinVersion)
}

// ErrNoGit says that there is no git on the PATH.
var ErrNoGit = errors.New("git is not on the PATH: install git " + MinVersion + " or newer")

// Version is git's own, "2.39.5".
func (r *Repo) Version(ctx context.Context) (string, error) {
	out, err := r.run(ctx, command{reading: true, args: []string{"version"}})
	if err != nil {
		return "", err
	}
	found, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(out), "git version "), " ")
	return found, checkVersion(out)
}

func (r *Repo) checkVersion(ctx context.Context) error {
	out, err := r.run(ctx, command{reading: true, args: []string{"version"}})
	if errors.Is(err, exec.ErrNotFound) {
		return ErrNoGit
	}
	if err != nil {
		return err
	}
	return checkVersion(out)
}

// checkVersion reads "git version 2.39.5 (Apple Git-154)" and its like.
func checkVersion(out string) error {
	found, ok := strings.CutPrefix(out, "git version ")
	found, _, _ = strings.Cut(strings.TrimSpace(found), " ")
	major, minor, err := majorMinor(found)
	if !ok || err != nil {
		return fmt.Errorf("git version: unexpected answer %q", out)
	}
	if major < 2 || major == 2 && minor < 38 {
		return &OldError{Found: found}
	}
	return nil
}

// majorMinor reads "2.39.5", "2.54.0.windows.1", "2.56.GIT" and their like.
func majorMinor(version string) (major, minor int, err error) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, 0, fmt.Errorf("git version: unexpected answer %q", version)
	}
	major, majorErr := strconv.Atoi(parts[0])
	minor, minorErr := strconv.Atoi(parts[1])
	if majorErr != nil || minorErr != nil {
		return 0, 0, fmt.Errorf("git version: unexpected answer %q", version)
	}
	return major, minor, nil
}

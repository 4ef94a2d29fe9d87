package git

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
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

var versionPattern = regexp.MustCompile(`^git version ((\d+)\.(\d+)\S*)`)

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

func checkVersion(out string) error {
	m := versionPattern.FindStringSubmatch(out)
	if m == nil {
		return fmt.Errorf("git version: unexpected answer %q", out)
	}
	major, _ := strconv.Atoi(m[2])
	minor, _ := strconv.Atoi(m[3])
	if major < 2 || major == 2 && minor < 38 {
		return &OldError{Found: m[1]}
	}
	return nil
}

package land

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gitland/internal/fault"
	"gitland/internal/git"
)

// again is the command that brings the local side along once what was in its way is gone:
// git land itself, which stages and stashes nothing. Of commits it only says that they have
// landed.
func (s *follower) again() string {
	if s.change.kind == fromCommits || s.l.IsLocal() {
		return rebaseCommand(s.l, s.target)
	}
	asked := s.change.asked
	asked.ExpectHead = ""
	return withSelection(s.l, asked.landing(), asked)
}

// inPlaceOf is the command that brings the local side along where files are in the way.
func (s *follower) inPlaceOf(ctx context.Context, err error) string {
	if move := moveAway(s.l.Repo, s.l.Repo.Top, err); move != "" {
		return move + s.again()
	}
	return s.rebase(ctx)
}

// moveAway begins a command line, to be typed where repo is, by moving away what git does
// not know below top and would overwrite, of which err tells; it is "" where err tells of
// something else. Git rebase would overwrite what is ignored, and does not stash it.
func moveAway(repo *git.Repo, top string, err error) string {
	unknown, ok := errors.AsType[*git.InTheWayError](err)
	switch {
	case !ok:
		return ""
	case len(unknown.Paths)+len(unknown.Submodules) > maxAgain:
		return fmt.Sprintf("move away the %d files that git does not know, then: ", len(unknown.Paths)+len(unknown.Submodules))
	}
	commands, here, taken := "", filepath.Join(repo.Top, repo.Prefix), map[string]bool{}
	for _, p := range slices.Concat(unknown.Submodules, unknown.Paths) {
		from := filepath.Join(top, p)
		mine := from + ".mine"
		if place, ok := unknown.Inside[p]; ok { // no directory is left there
			mine = filepath.Join(top, filepath.Dir(place), filepath.Base(p)+".mine")
		}
		to := mine
		for n := 2; there(to) || taken[to]; n++ {
			to = fmt.Sprint(mine, n)
		}
		taken[to] = true
		commands += fault.Command("mv", "--", near(here, from), near(here, to)) + " && "
	}
	return commands
}

// near is a file as it is named from a directory, where that is shorter.
func near(dir, file string) string {
	if name, err := filepath.Rel(dir, file); err == nil && len(name) < len(file) {
		return name
	}
	return file
}

func there(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

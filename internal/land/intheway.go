package land

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
func (s *follower) inPlaceOf(err error) string {
	if move := moveAway(s.l.Repo, s.l.Repo.Top, err); move != "" {
		return move + s.again()
	}
	return s.rebase()
}

// moveAway begins a command line, to be typed where repo is, by moving away what git does
// not know below top and would overwrite, of which err tells; it is "" where err tells of
// something else. Git rebase would overwrite what is ignored, and does not stash it.
func moveAway(repo *git.Repo, top string, err error) string {
	unknown, ok := errors.AsType[*git.InTheWayError](err)
	switch {
	case !ok:
		return ""
	case len(unknown.Paths) > maxAgain:
		return fmt.Sprintf("move away the %d files that git does not know, then: ", len(unknown.Paths))
	}
	commands, here := "", filepath.Join(repo.Top, repo.Prefix)
	for _, p := range unknown.Paths {
		from := filepath.Join(top, p)
		to := from + ".mine"
		for n := 2; there(to); n++ {
			to = fmt.Sprint(from, ".mine", n)
		}
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

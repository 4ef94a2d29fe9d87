package acceptance

import (
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// force lands without a verification, with the arguments given.
func (s seat) force(args ...string) gittest.Result {
	s.t.Helper()
	return s.exits(0, "git-land", append([]string{"--force-unverified", "--reason", "a test", "-m", "change"}, args...)...)
}

// HEAD stands on the target and has a merge of a branch that forked earlier:
// nothing needs to be rebased, so it lands as it is.
func TestMergeOnTopOfTheTargetLandsAsItIs(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.git("checkout", "-q", "-b", "feature")
	gittest.Commit(t, s.dir, "feature", map[string]string{"feature": "f\n"})
	s.git("checkout", "-q", "main")
	gittest.Commit(t, s.dir, "on main", map[string]string{"main": "m\n"})
	s.git("push", "-q", "origin", "main")
	s.git("merge", "-q", "--no-ff", "-m", "merge", "feature")
	s.force()
	if head, tip := s.git("rev-parse", "HEAD"), gittest.Git(t, remote, "rev-parse", "main"); head != tip {
		t.Errorf("landed %s, want %s as it is", tip, head)
	}
}

func TestLandPathsOfWhichOneIsNotThere(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.git("config", "--add", "land.paths", "notes")
	s.git("config", "--add", "land.paths", "docs")
	s.write(map[string]string{"docs/page": "p\n", "other": "o\n"})
	s.force()
	if got := gittest.Git(t, remote, "ls-tree", "-r", "--name-only", "main"); got != "README\ndocs/page" {
		t.Errorf("landed %q", got)
	}
}

// "git add -N" says that a file will be added. That is no content to land.
func TestIntentToAddIsNotStaged(t *testing.T) {
	t.Parallel()
	for _, paths := range []string{"", "docs"} {
		t.Run("land.paths="+paths, func(t *testing.T) {
			t.Parallel()
			remote := gittest.Remote(t)
			s := clone(t, remote)
			if paths != "" {
				s.git("config", "land.paths", paths)
			}
			s.write(map[string]string{"docs/later": "later\n", "docs/now": "now\n"})
			s.git("add", "-N", "docs/later")
			s.git("add", "docs/now")
			s.force()
			if got := gittest.Git(t, remote, "ls-tree", "-r", "--name-only", "main"); got != "README\ndocs/now" {
				t.Errorf("landed %q", got)
			}
			if got := strings.TrimSpace(s.git("status", "--porcelain")); got != "A docs/later" {
				t.Errorf("status after landing: %q", got)
			}
		})
	}
	t.Run("chosen, in a stale clone", func(t *testing.T) {
		t.Parallel()
		remote := gittest.Remote(t)
		s, other := clone(t, remote), clone(t, remote)
		other.write(map[string]string{"theirs": "t\n"})
		other.force("--", "theirs")
		s.write(map[string]string{"sub/later": "later\n"})
		s.git("add", "-N", "sub/later")
		s.at("sub").force("--", "later")
		if got := s.git("status", "--porcelain"); got != "" {
			t.Errorf("status after landing: %q", got)
		}
	})
	t.Run("beside commits", func(t *testing.T) {
		t.Parallel()
		remote := gittest.Remote(t)
		s := clone(t, remote)
		gittest.Commit(t, s.dir, "a commit", map[string]string{"committed": "c\n"})
		s.write(map[string]string{"later": "later\n"})
		s.git("add", "-N", "later")
		s.force()
		if got := gittest.Git(t, remote, "ls-tree", "-r", "--name-only", "main"); got != "README\ncommitted" {
			t.Errorf("landed %q", got)
		}
	})
}

// In a remote without branches everything goes where this clone is, also when
// a verification or a lease was there before the first landing.
func TestFirstLandingInAnEmptyRemote(t *testing.T) {
	t.Parallel()
	remote := gittest.Bare(t)
	s := clone(t, remote).with("GIT_LEASE_SESSION=mine")
	s.write(map[string]string{"new": "n\n"})
	s.verify("new")
	s.exits(0, "git-lease", "acquire")
	s.exits(0, "git-land", "-m", "new", "--", "new")
	if got := gittest.Git(t, remote, "show", "main:new"); got != "n" {
		t.Errorf("landed %q", got)
	}
}

// A HEAD that was on a branch, and is on none now, is no remote that is down.
func TestHeadOfTheRemoteIsNowhere(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.exits(0, "git-lease", "show")
	gittest.Git(t, remote, "symbolic-ref", "HEAD", "refs/heads/gone")
	s.exits(129, "git-lease", "show")
	s.git("config", "land.onto", "main")
	s.exits(0, "git-lease", "show")
}

// What is staged in the middle of a merge is two parents' content. Landed as one
// commit, the merge would be lost.
func TestMergeUnderWay(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	s.git("checkout", "-q", "-b", "feature")
	gittest.Commit(t, s.dir, "feature", map[string]string{"feature": "f\n"})
	s.git("checkout", "-q", "main")
	s.git("merge", "-q", "--no-ff", "--no-commit", "feature")
	s.exits(5, "git-land", "-m", "merged")
	s.git("commit", "-q", "-m", "merged")
	s.force()
}

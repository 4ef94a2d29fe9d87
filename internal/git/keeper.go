package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"gitland/internal/object"
)

// A Keeper is a worktree whose user works on a branch, so that nobody else may move it.
type Keeper struct {
	Path string
	// Doing is "rebase" or "bisect" where that will go back to the branch, and "" where
	// it is checked out.
	Doing string
}

// HasOtherWorktrees reports whether the repository has more than this one. It costs no
// process.
func (r *Repo) HasOtherWorktrees() bool {
	return r.GitDir != r.CommonDir || len(r.linked()) > 0
}

// linked are the git directories of the linked worktrees.
func (r *Repo) linked() []string {
	entries, _ := os.ReadDir(filepath.Join(r.CommonDir, "worktrees")) // mostly there is none
	var dirs []string
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(r.CommonDir, "worktrees", e.Name()))
	}
	return dirs
}

// Keepers are the other worktrees to which the branch belongs; this one, too, where it is
// in the middle of something that will go back to it. It starts a process only where
// another worktree seems to have the branch checked out.
func (r *Repo) Keepers(ctx context.Context, branch object.Ref) ([]Keeper, error) {
	var keepers []Keeper
	if doing := goingBack(r.GitDir, branch); doing != "" {
		keepers = append(keepers, Keeper{r.Top, doing})
	}
	ask := false
	for _, dir := range append(r.linked(), r.CommonDir) {
		if dir == r.GitDir {
			continue
		}
		if doing := goingBack(dir, branch); doing != "" {
			keepers = append(keepers, Keeper{workTreeOf(dir), doing})
		}
		ask = ask || mayBeOn(dir, branch)
	}
	if !ask {
		return keepers, nil
	}
	all, err := r.Worktrees(ctx)
	for i, w := range all {
		if w.Branch == branch && !w.Bare && !r.isOwn(i, w) {
			keepers = append(keepers, Keeper{Path: w.Path})
		}
	}
	return keepers, err
}

// isOwn reports whether this is worktree i of the list. core.worktree can put the files of
// the main one anywhere, and git lists it first, by where its git directory is.
func (r *Repo) isOwn(i int, w Worktree) bool {
	if r.GitDir == r.CommonDir {
		return i == 0
	}
	own, err := os.Stat(workTreeOf(r.GitDir))
	if err != nil {
		return w.Path == r.Top
	}
	other, err := os.Stat(w.Path)
	return err == nil && os.SameFile(own, other)
}

// mayBeOn reports whether the HEAD of a worktree may be on the branch. Where it says
// false that is certain: most other worktrees are those of other topics, or detached as
// those for verification are, and git is not asked about them.
func mayBeOn(gitDir string, branch object.Ref) bool {
	file := filepath.Join(gitDir, "HEAD")
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() { // core.preferSymlinkRefs
		return true
	}
	head, err := os.ReadFile(file)
	ref, symbolic := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
	switch {
	case err != nil, ref == "refs/heads/.invalid": // what a repository with reftable has there
		return true
	case symbolic:
		return ref == string(branch)
	}
	_, err = object.ParseOID(ref)
	return err != nil
}

// workTreeOf is where the files of a worktree are, by its git directory.
func workTreeOf(gitDir string) string {
	file, err := os.ReadFile(filepath.Join(gitDir, "gitdir"))
	if err != nil {
		return filepath.Dir(gitDir) // the main one
	}
	path := strings.TrimSuffix(string(file), "\n")
	if !filepath.IsAbs(path) { // extensions.relativeWorktrees, git 2.48
		path = filepath.Join(gitDir, path)
	}
	return filepath.Dir(path)
}

// goingBack says what the worktree with this git directory is in the middle of that goes
// back to the branch at its end, as git itself finds it out before it moves a branch
// (prepare_checked_out_branches in its branch.c).
func goingBack(gitDir string, branch object.Ref) string {
	first := func(name string) string {
		data, _ := os.ReadFile(filepath.Join(gitDir, name))
		line, _, _ := strings.Cut(string(data), "\n")
		return line
	}
	for _, name := range []string{"rebase-merge/head-name", "rebase-apply/head-name"} {
		if first(name) == string(branch) {
			return "rebase"
		}
	}
	// Of each branch that the rebase moves along: its name, and two ids.
	data, _ := os.ReadFile(filepath.Join(gitDir, "rebase-merge/update-refs"))
	for line := range strings.Lines(string(data)) {
		if strings.TrimSuffix(line, "\n") == string(branch) {
			return "rebase"
		}
	}
	if start := first("BISECT_START"); start != "" && start == branch.Branch() {
		return "bisect"
	}
	return ""
}

// Doing is what git is in the middle of in this worktree, as its command is called:
// "merge", "rebase", "am", "cherry-pick" or "revert"; "" for nothing.
func (r *Repo) Doing() string {
	for _, state := range []struct{ file, doing string }{
		{"rebase-merge", "rebase"}, // which has a CHERRY_PICK_HEAD, too
		{"rebase-apply/applying", "am"},
		{"rebase-apply", "rebase"},
		{"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"},
	} {
		if r.hasState(state.file) {
			return state.doing
		}
	}
	// Between two commits of several that are picked, or reverted, there is only this.
	todo, _ := os.ReadFile(filepath.Join(r.GitDir, "sequencer/todo"))
	switch next, _, _ := strings.Cut(string(todo), " "); next {
	case "pick", "p":
		return "cherry-pick"
	case "revert":
		return "revert"
	}
	return ""
}

// Bisecting reports whether a bisection is under way in this worktree.
func (r *Repo) Bisecting() bool { return r.hasState("BISECT_LOG") }

func (r *Repo) hasState(file string) bool {
	_, err := os.Stat(filepath.Join(r.GitDir, file))
	return err == nil
}

package git

import (
	"context"
	"fmt"
	"strings"

	"gitland/internal/object"
)

// A Worktree is one work tree of the repository.
type Worktree struct {
	Path   string
	Branch object.Ref // empty when detached
	Bare   bool
	Gone   bool // its directory was removed, and nothing keeps git from forgetting it
}

// Worktrees lists the work trees, the main one first.
func (r *Repo) Worktrees(ctx context.Context) ([]Worktree, error) {
	out, err := r.run(ctx, command{reading: true, args: []string{"worktree", "list", "--porcelain", "-z"}})
	if err != nil {
		return nil, err
	}
	var list []Worktree
	for field := range strings.SplitSeq(out, "\x00") {
		key, value, _ := strings.Cut(field, " ")
		if key == "worktree" {
			list = append(list, Worktree{Path: value})
			continue
		}
		if len(list) == 0 {
			continue
		}
		w := &list[len(list)-1]
		switch key {
		case "bare":
			w.Bare = true
		case "prunable":
			w.Gone = true
		case "branch":
			if w.Branch, err = object.ParseRef(value); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// private is configuration for work trees that only we look at: no hook of the
// user's, no reflog that keeps every tree for months, all files whatever the
// user's own work tree is limited to, no daemon left behind, and submodules as
// they are.
func (r *Repo) private() []string {
	return append(r.withoutConfiguredHooks(), "core.hooksPath=/dev/null", "core.logAllRefUpdates=false", "core.sparseCheckout=false",
		"core.fsmonitor=false", "submodule.recurse=false")
}

// AddWorktree makes a new work tree with a detached HEAD at commit and no files;
// CheckoutClean fills it. path must be empty or absent; a work tree that was
// registered there before is forgotten.
//
// Two of them at once disturb each other, and their callers must not let them:
// git reads what it knows of all work trees and dies of one that is half
// registered ("failed to read commondir", seen with 2.39).
func (r *Repo) AddWorktree(ctx context.Context, path string, commit object.OID) error {
	c := *r
	// Git would hand an index that the environment names down to the new work tree.
	c.environ = append(WithoutRepoEnv(r.environ), "GIT_DIR="+r.GitDir)
	_, err := c.run(ctx, command{config: r.private(), args: []string{"worktree", "add", "--quiet", "--detach", "--no-checkout",
		"--force", "--force", // once for a registered path, once more for a locked one
		"--end-of-options", path, string(commit)}})
	if err != nil {
		return fmt.Errorf("make a work tree for verification: %w", err)
	}
	return nil
}

// CheckoutClean makes this work tree equal to commit, without running hooks:
// tracked files are reset, untracked ones are removed, and ignored ones, such as
// caches and installed dependencies, stay.
func (r *Repo) CheckoutClean(ctx context.Context, commit object.OID) error {
	_, err := r.run(ctx, command{config: r.private(), dir: r.Top, args: []string{"checkout", "--quiet", "--force", "--detach", string(commit), "--"}})
	if err != nil {
		return err
	}
	_, err = r.run(ctx, command{config: r.private(), dir: r.Top, args: []string{"clean", "--quiet", "-ffd"}})
	return err
}

// Park moves the detached HEAD of this work tree from one commit to another and
// leaves index and files as they are, without running hooks. "git log --all"
// shows what the HEAD of any work tree is at.
func (r *Repo) Park(ctx context.Context, from, to object.OID) error {
	_, err := r.run(ctx, command{config: r.private(), args: []string{"update-ref", "--no-deref", "HEAD", string(to), string(from)}})
	return err
}

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
		case "branch":
			if w.Branch, err = object.ParseRef(value); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// AddWorktree makes a new work tree with a detached HEAD at commit.
func (r *Repo) AddWorktree(ctx context.Context, path string, commit object.OID) error {
	_, err := r.run(ctx, command{args: []string{"worktree", "add", "--quiet", "--detach", "--end-of-options", path, string(commit)}})
	if err != nil {
		return fmt.Errorf("make a work tree for verification: %w", err)
	}
	return nil
}

// CheckoutClean makes this work tree equal to commit: tracked files are reset,
// untracked ones are removed, and ignored ones, such as caches and installed
// dependencies, stay.
func (r *Repo) CheckoutClean(ctx context.Context, commit object.OID) error {
	if _, err := r.run(ctx, command{args: []string{"checkout", "--quiet", "--force", "--detach", string(commit), "--"}}); err != nil {
		return err
	}
	_, err := r.run(ctx, command{args: []string{"clean", "--quiet", "-ffd"}})
	return err
}

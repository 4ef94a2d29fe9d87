package git

import (
	"context"
	"strings"
)

// Differing lists the paths of the work tree, relative to its top, that are not
// as the copy has them: changed, missing, and those that the copy lacks, unless
// git ignores them. A submodule differs too when something in it was changed.
// So does a path whose changes the index hides (assume-unchanged,
// skip-worktree), whatever its content: git does not look at it. A directory of
// which nothing is in the copy stands for all that is in it.
//
// Unlike Add it stores no object.
func (t *TempIndex) Differing(ctx context.Context) ([]string, error) {
	var paths []string
	// "<tag> <path>": git-ls-files(1) has the tag S for skip-worktree, and any
	// tag in lower case for assume-unchanged.
	out, err := t.repo.run(ctx, command{reading: true, dir: t.repo.Top, args: []string{"ls-files", "-v", "-z"}})
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(out, "\x00") {
		if tag, path, ok := strings.Cut(line, " "); ok && (tag == "S" || tag != strings.ToUpper(tag)) {
			paths = append(paths, path)
		}
	}
	// "XY <path>", where Y compares the work tree with the index.
	out, err = t.repo.run(ctx, command{reading: true, dir: t.repo.Top, args: []string{"status", "--porcelain=v1", "-z",
		"--untracked-files=normal", "--ignore-submodules=none", "--no-renames"}})
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(out, "\x00") {
		if len(line) > 3 && line[1] != ' ' {
			paths = append(paths, line[3:])
		}
	}
	return paths, nil
}

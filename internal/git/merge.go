package git

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"gitland/internal/object"
)

// A MergeOption is a setting of git's for one merge.
type MergeOption string

// InPlace leaves new files where they are, also where a side has moved all else of their
// directory.
const InPlace MergeOption = "merge.directoryRenames=false"

// MergeTrees merges the change from base to theirs into ours and returns the
// resulting tree. It touches neither index nor work tree, and returns a
// *ConflictError where the sides disagree.
//
// The trees are wrapped into throw-away commits that share a parent, since
// "merge-tree --merge-base" came with git 2.40 and takes trees only from 2.45.
func (r *Repo) MergeTrees(ctx context.Context, base, ours, theirs object.OID, options ...MergeOption) (object.OID, error) {
	switch {
	case ours == theirs, base == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	// Before git 2.44 merge-tree took a tree that is missing for an empty one.
	for _, tree := range []object.OID{base, ours, theirs} {
		if o, err := r.Lookup(ctx, string(tree)); err != nil || o.Kind != object.Tree {
			return "", cmp.Or(err, fmt.Errorf("merge: %s is a %s, not a tree", tree.Short(), o.Kind))
		}
	}
	wrap := func(tree object.OID, parents ...object.OID) object.Object {
		const nobody = "gitland <> 0 +0000"
		return r.Format.New(object.Commit, object.CommitData{
			Tree: tree, Parents: parents, Author: nobody, Committer: nobody}.Encode())
	}
	b := wrap(base)
	o, t := wrap(ours, b.OID), wrap(theirs, b.OID)
	if err := r.Write(ctx, b, o, t); err != nil {
		return "", err
	}
	return r.mergeTree(ctx, o.OID, t.OID, options...)
}

// MergeCommits is MergeTrees for two commits, from what they have in common, as git
// merge finds that; there must be something.
func (r *Repo) MergeCommits(ctx context.Context, ours, theirs object.OID) (object.OID, error) {
	return r.mergeTree(ctx, ours, theirs)
}

func (r *Repo) mergeTree(ctx context.Context, ours, theirs object.OID, options ...MergeOption) (object.OID, error) {
	var config []string
	if moves, err := r.Config.Bool("merge.directoryrenames", false); err == nil && moves {
		config = append(config, "merge.directoryRenames=conflict") // it is asked, and no file goes elsewhere than it was put
	}
	for _, o := range options {
		config = append(config, string(o))
	}
	out, err := r.run(ctx, command{dir: r.Top, config: config, args: []string{"merge-tree", "--write-tree", "-z",
		"--messages", string(ours), string(theirs)}})
	// Exit code 1 means a conflict, but also a bad revision; only the former
	// prints a tree.
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	tree, parseErr := object.ParseOID(fields[0])
	if err != nil && (ExitCode(err) != 1 || parseErr != nil) {
		return "", err
	}
	if parseErr != nil {
		return "", fmt.Errorf("merge-tree: %w", parseErr)
	}
	if err != nil {
		return "", conflictOf(fields[1:], ours, theirs)
	}
	return tree, nil
}

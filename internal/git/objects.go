package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gitland/internal/object"
)

// Write stores objects, all in one process. It hands git a pack stream,
// because "git unpack-objects" is the one command that takes objects of every
// kind at once; the ids are computed by the caller and need no answer.
func (r *Repo) Write(ctx context.Context, objs ...object.Object) error {
	if len(objs) == 0 {
		return nil
	}
	pack, err := r.pack(objs)
	if err != nil {
		return err
	}
	_, err = r.run(ctx, command{args: []string{"unpack-objects", "-q"}, stdin: pack})
	return err
}

// pack writes the format of gitformat-pack(5), version 2, without deltas, and
// without compression: git compresses what it stores itself, and a compressor of
// our own would cost more than all the rest of a landing.
func (r *Repo) pack(objs []object.Object) ([]byte, error) {
	types := map[object.Kind]byte{object.Commit: 1, object.Tree: 2, object.Blob: 3}
	var b bytes.Buffer
	b.WriteString("PACK")
	binary.Write(&b, binary.BigEndian, [2]uint32{2, uint32(len(objs))})
	z, err := zlib.NewWriterLevel(&b, zlib.NoCompression)
	if err != nil {
		return nil, err
	}
	for _, o := range objs {
		size := len(o.Data)
		c := types[o.Kind]<<4 | byte(size&15)
		for size >>= 4; size > 0; size >>= 7 {
			b.WriteByte(c | 0x80)
			c = byte(size & 0x7f)
		}
		b.WriteByte(c)
		z.Reset(&b)
		if _, err := z.Write(o.Data); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
	}
	b.Write(r.Format.Sum(b.Bytes()))
	return b.Bytes(), nil
}

// Author is who a commit would be by, with the date, as git would write it now.
func (r *Repo) Author() (string, error) { return r.author() }

// A NewCommit is a commit to be made by "git commit-tree", which applies the
// user's identity and, when asked, signature.
type NewCommit struct {
	Tree    object.OID
	Parents []object.OID
	Author  string // "Name <email> seconds zone"; empty is the user, now
	Message string
	Sign    bool // commit.gpgSign is ignored by commit-tree
}

// CommitTree makes a commit and returns its id.
func (r *Repo) CommitTree(ctx context.Context, c NewCommit) (object.OID, error) {
	args := []string{"commit-tree"}
	for _, p := range c.Parents {
		args = append(args, "-p", string(p))
	}
	if c.Sign {
		args = append(args, "-S")
	}
	args = append(args, "-F", "-", string(c.Tree))
	run := command{args: args, stdin: []byte(c.Message)}
	if c.Author != "" {
		run.env = identEnv("AUTHOR", c.Author)
	}
	out, err := r.run(ctx, run)
	if err != nil {
		return "", err
	}
	return object.ParseOID(strings.TrimSpace(out))
}

// IsAncestor reports whether a is b or one of its ancestors. A commit that is not
// here is no ancestor of one that is, of which git keeps the whole history (but
// for a shallow clone's, which is not looked at beyond its boundary). The error
// is ErrNotFound when b is not here.
func (r *Repo) IsAncestor(ctx context.Context, a, b object.OID) (bool, error) {
	if a == b {
		return true, nil
	}
	_, err := r.run(ctx, command{reading: true, args: []string{"merge-base", "--is-ancestor", string(a), string(b)}})
	if ExitCode(err) == 1 { // git-merge-base(1): 1 is "no", errors are others
		return false, nil
	}
	if err == nil {
		return true, nil
	}
	if _, missing := r.Lookup(ctx, string(b)); missing != nil {
		return false, errors.Join(err, missing)
	}
	if _, missing := r.Lookup(ctx, string(a)); errors.Is(missing, ErrNotFound) {
		return false, nil
	}
	return false, err
}

// A RevListEntry is a commit and its parents.
type RevListEntry struct {
	OID     object.OID
	Parents []object.OID

	// Alike means that the other side has a commit which looks like it, by
	// --cherry-mark: its patch is the same but for white space, and for where in the
	// files it is.
	Alike bool
}

// Unlanded lists the commits of head that neither base nor any of landed has, parents
// first. An empty base has nothing. Those that look like one of base's are marked.
func (r *Repo) Unlanded(ctx context.Context, base, head object.OID, landed ...object.OID) ([]RevListEntry, error) {
	if base == head {
		return nil, nil
	}
	args := []string{string(head)}
	if base != "" {
		args = []string{"--cherry-mark", "--right-only", string(base) + "..." + string(head)}
	}
	for _, oid := range landed {
		args = append(args, "^"+string(oid))
	}
	return r.revList(ctx, args...)
}

// Alike lists the commits of base that head lacks and that look like one of head's,
// parents first.
func (r *Repo) Alike(ctx context.Context, base, head object.OID) ([]RevListEntry, error) {
	list, err := r.revList(ctx, "--cherry-mark", "--left-only", string(base)+"..."+string(head))
	return slices.DeleteFunc(list, func(e RevListEntry) bool { return !e.Alike }), err
}

// FirstParentTree is the tree of a commit's first parent; the empty one of a first commit.
func (r *Repo) FirstParentTree(ctx context.Context, c object.CommitData) (object.OID, error) {
	if len(c.Parents) == 0 {
		return r.Format.EmptyTree(), nil
	}
	parent, err := r.Commit(ctx, c.Parents[0])
	return parent.Tree, err
}

// Between lists the commits of head that base lacks, parents first. An empty base has
// nothing.
func (r *Repo) Between(ctx context.Context, base, head object.OID) ([]RevListEntry, error) {
	if base == "" {
		return r.revList(ctx, string(head))
	}
	return r.revList(ctx, string(base)+".."+string(head))
}

// ChangesNothing reports whether a commit has its first parent's tree, or is a first one
// without files.
func (r *Repo) ChangesNothing(ctx context.Context, e RevListEntry) (bool, error) {
	before := r.Format.EmptyTree()
	if len(e.Parents) > 0 {
		parent, err := r.Commit(ctx, e.Parents[0])
		if err != nil {
			return false, err
		}
		before = parent.Tree
	}
	commit, err := r.Commit(ctx, e.OID)
	return commit.Tree == before, err
}

// FirstParents lists at most max commits from tip down, newest first, by first
// parents, without those of excluded.
func (r *Repo) FirstParents(ctx context.Context, tip, excluded object.OID, max int) ([]object.OID, error) {
	args := []string{"rev-list", "--first-parent", "--max-count=" + strconv.Itoa(max), string(tip)}
	if excluded != "" {
		args = append(args, "^"+string(excluded))
	}
	return r.oidList(ctx, command{args: args})
}

// LastTouched is the newest commit below tip that changed a path of the scope;
// empty when there is none.
func (r *Repo) LastTouched(ctx context.Context, tip object.OID, scope Scope) (object.OID, error) {
	list, err := r.oidList(ctx, r.in(scope, command{args: []string{"rev-list", "--max-count=1", string(tip)}}))
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0], nil
}

// Touching lists at most max commits of tip that excluded, which may be empty, lacks and
// that changed a path of the scope, newest first.
func (r *Repo) Touching(ctx context.Context, excluded, tip object.OID, scope Scope, max int) ([]object.OID, error) {
	args := []string{"rev-list", "--max-count=" + strconv.Itoa(max), string(tip)}
	if excluded != "" {
		args = append(args, "^"+string(excluded))
	}
	return r.oidList(ctx, r.in(scope, command{args: args}))
}

// BroughtBy is the merge by which a commit came to the line of first parents of tip: the
// oldest of that line which has it. It is "" where the commit is on the line itself, or is no
// part of tip.
func (r *Repo) BroughtBy(ctx context.Context, commit, tip object.OID) (object.OID, error) {
	if tip.IsZero() || commit.IsZero() {
		return "", nil
	}
	line, err := r.oidList(ctx, command{args: []string{"rev-list", "--first-parent", "--ancestry-path", string(tip), "^" + string(commit)}})
	if err != nil || len(line) == 0 {
		return "", err
	}
	merge := line[len(line)-1]
	c, err := r.Commit(ctx, merge)
	if err != nil || len(c.Parents) == 0 || c.Parents[0] == commit {
		return "", err
	}
	return merge, nil
}

func (r *Repo) oidList(ctx context.Context, c command) ([]object.OID, error) {
	c.reading = true
	out, err := r.run(ctx, c)
	if err != nil {
		return nil, err
	}
	var list []object.OID
	for line := range strings.Lines(out) {
		oid, err := object.ParseOID(strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		list = append(list, oid)
	}
	return list, nil
}

// MergeBase is the best common ancestor of two commits, empty when there is none.
func (r *Repo) MergeBase(ctx context.Context, a, b object.OID) (object.OID, error) {
	out, err := r.run(ctx, command{reading: true, args: []string{"merge-base", string(a), string(b)}})
	if ExitCode(err) == 1 { // git-merge-base(1): no common ancestor
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return object.ParseOID(strings.TrimSpace(out))
}

func (r *Repo) revList(ctx context.Context, args ...string) ([]RevListEntry, error) {
	out, err := r.run(ctx, command{reading: true, args: append([]string{"rev-list", "--topo-order", "--reverse", "--parents"}, args...)})
	if err != nil {
		return nil, err
	}
	var list []RevListEntry
	for line := range strings.Lines(out) {
		var e RevListEntry
		line, e.Alike = strings.CutPrefix(strings.TrimPrefix(line, "+"), "=")
		for i, f := range strings.Fields(line) {
			oid, err := object.ParseOID(f)
			if err != nil {
				return nil, fmt.Errorf("rev-list: %w", err)
			}
			if i == 0 {
				e.OID = oid
			} else {
				e.Parents = append(e.Parents, oid)
			}
		}
		list = append(list, e)
	}
	return list, nil
}

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gitland/internal/object"
)

// Head is the one ref name outside refs/ that can be updated: a detached HEAD.
const Head object.Ref = "HEAD"

// An Expect is what a ref must be for an update of it to happen. There is no
// way to say "whatever it is": the zero Expect is refused.
type Expect struct {
	oid   object.OID
	valid bool
}

// MustBe expects the ref to be at oid.
func MustBe(oid object.OID) Expect { return Expect{oid: oid, valid: !oid.IsZero()} }

// MustNotExist expects that there is no such ref.
func MustNotExist() Expect { return Expect{valid: true} }

// Was is MustBe(oid), or MustNotExist for the empty id.
func Was(oid object.OID) Expect {
	if oid.IsZero() {
		return MustNotExist()
	}
	return MustBe(oid)
}

// OID is the expected object, empty where the ref must not exist.
func (e Expect) OID() object.OID { return e.oid }

// A Move is the update of one ref. An empty New deletes it.
type Move struct {
	Ref object.Ref
	New object.OID
	Old Expect
}

// MoveRefs updates refs of this repository in one transaction: all or none.
// message becomes the reflog line.
func (r *Repo) MoveRefs(ctx context.Context, message string, moves ...Move) error {
	if len(moves) == 0 {
		return nil
	}
	var in bytes.Buffer
	for _, m := range moves {
		if !m.Old.valid {
			return fmt.Errorf("update %s: no expectation was given", m.Ref)
		}
		old := m.Old.oid
		if old.IsZero() {
			old = r.Format.Zero()
		}
		switch {
		case m.New.IsZero():
			fmt.Fprintf(&in, "delete %s\x00%s\x00", m.Ref, old)
		default:
			fmt.Fprintf(&in, "update %s\x00%s\x00%s\x00", m.Ref, m.New, old)
		}
	}
	args := []string{"update-ref", "-m", message, "--no-deref", "--stdin", "-z"}
	_, err := r.run(ctx, command{args: args, stdin: in.Bytes()})
	if endedBy(err) != 0 && r.moved(context.WithoutCancel(ctx), moves) { // the signal came when it was done
		return nil
	}
	return err
}

// moved reports whether all refs are where the moves have them go.
func (r *Repo) moved(ctx context.Context, moves []Move) bool {
	return !slices.ContainsFunc(moves, func(m Move) bool {
		out, err := r.run(ctx, command{reading: true, args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", string(m.Ref)}})
		if ExitCode(err) == 1 {
			return !m.New.IsZero()
		}
		return err != nil || strings.TrimSpace(out) != string(m.New)
	})
}

// Refs lists the refs that are named by, or lie below, one of the given full
// names. Unlike a look-up by name it never falls back to another ref.
func (r *Repo) Refs(ctx context.Context, names ...string) (map[object.Ref]object.OID, error) {
	args := append([]string{"for-each-ref", "--format=%(objectname) %(refname)"}, names...)
	out, err := r.run(ctx, command{reading: true, args: args})
	if err != nil {
		return nil, err
	}
	refs := map[object.Ref]object.OID{}
	for line := range strings.Lines(out) {
		oid, ref, err := parseRefLine(strings.TrimSuffix(line, "\n"), " ")
		if err != nil {
			continue // a name that we could not use anyway
		}
		refs[ref] = oid
	}
	return refs, nil
}

// SymbolicRefs lists the refs below refs/ that stand for others.
func (r *Repo) SymbolicRefs(ctx context.Context) (map[object.Ref]object.Ref, error) {
	out, err := r.run(ctx, command{reading: true, args: []string{"for-each-ref", "--format=%(if)%(symref)%(then)%(refname) %(symref)%(end)"}})
	refs := map[object.Ref]object.Ref{}
	for line := range strings.Lines(out) {
		if name, target, found := strings.Cut(strings.TrimSuffix(line, "\n"), " "); found {
			refs[object.Ref(name)] = object.Ref(target)
		}
	}
	return refs, err
}

func parseRefLine(line, sep string) (object.OID, object.Ref, error) {
	id, name, _ := strings.Cut(line, sep)
	oid, err := object.ParseOID(id)
	if err != nil {
		return "", "", err
	}
	if name == string(Head) {
		return oid, Head, nil
	}
	ref, err := object.ParseRef(name)
	return oid, ref, err
}

// Resolve reads refs by their full names, of which those that are absent are
// left out. It is for names of ours: where one is absent, git would also accept
// it below refs/heads or refs/tags.
func (r *Repo) Resolve(ctx context.Context, names ...object.Ref) (map[object.Ref]object.OID, error) {
	asked := make([]string, len(names))
	for i, name := range names {
		asked[i] = string(name)
	}
	found, err := r.objects.askAll(ctx, "info", asked...)
	if err != nil {
		return nil, err
	}
	refs := map[object.Ref]object.OID{}
	for i, name := range names {
		if found[i].OID != "" {
			refs[name] = found[i].OID
		}
	}
	return refs, nil
}

// A Position is where HEAD is.
type Position struct {
	Branch object.Ref // empty when detached
	Commit object.OID // empty when unborn
	Tree   object.OID // of Commit; the empty tree when unborn

	stamp string // of what says which branch HEAD is on
}

// HeadIsStill reports whether HEAD is on the branch, or detached, as it was at p for
// certain. It looks at the time of a file, and starts no process; where it says false
// HeadBranch knows.
func (r *Repo) HeadIsStill(p Position) bool {
	return p.stamp != "" && p.stamp == r.headStamp(time.Time{})
}

// headStamp changes whenever HEAD is put onto another branch, and sometimes when it is
// not. It is "" where that may have been done since the given time: who asked after
// that, without knowing it, would not find out.
func (r *Repo) headStamp(since time.Time) string {
	const coarse = 10 * time.Millisecond // of the clock that files get their times from
	stamp := ""
	// In a repository with reftable the first says nothing, and the second changes with
	// every ref.
	for _, name := range []string{"HEAD", "reftable/tables.list"} {
		info, err := os.Lstat(filepath.Join(r.GitDir, name))
		if err != nil {
			continue
		}
		if !since.IsZero() && info.ModTime().Add(coarse).After(since) {
			return ""
		}
		inode := uint64(0)
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			inode = s.Ino
		}
		stamp += fmt.Sprintln(name, info.ModTime().UnixNano(), info.Size(), inode)
	}
	return stamp
}

// Start is where HEAD was when the repository was opened.
func (r *Repo) Start(ctx context.Context) (Position, error) {
	if r.opened != nil {
		return *r.opened, nil
	}
	p := Position{Tree: r.Format.EmptyTree(), stamp: r.headStamp(time.Now())}
	head, err := r.Object(ctx, "HEAD^{commit}")
	switch {
	case errors.Is(err, ErrNotFound): // unborn
	case err != nil:
		return p, err
	default:
		commit, err := object.ReadCommit(head.Data)
		if err != nil {
			return p, err
		}
		p.Commit, p.Tree = head.OID, commit.Tree
	}
	p.Branch, err = r.HeadBranch(ctx)
	return p, err
}

// Reread makes Start ask again: HEAD was moved since the repository was opened.
func (r *Repo) Reread() { r.opened = nil }

// HeadBranch is the branch that HEAD is on now, and "" when HEAD is detached.
func (r *Repo) HeadBranch(ctx context.Context) (object.Ref, error) {
	return r.SymbolicRef(ctx, Head)
}

// SymbolicRef is what a ref points to by name, and "" where it does not, or is not
// there.
func (r *Repo) SymbolicRef(ctx context.Context, name object.Ref) (object.Ref, error) {
	out, err := r.run(ctx, command{reading: true, args: []string{"symbolic-ref", "--quiet", string(name)}})
	if ExitCode(err) == 1 { // git-symbolic-ref(1): with --quiet, 1 means that it is none
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return object.ParseRef(strings.TrimSpace(out))
}

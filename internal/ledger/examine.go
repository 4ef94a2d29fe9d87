package ledger

import (
	"context"
	"fmt"
	"strings"

	"gitland/internal/git"
	"gitland/internal/object"
)

// An Examination is what a remote can do, as found out now.
type Examination struct {
	Atomic bool // it moves several refs all or none
	// Fenced: it refuses a ref that no lease can have, beside others that it takes,
	// as the hooks of git lease hook install --server do.
	Fenced bool
}

// Examine tries the remote anew, whatever this clone remembers of it: whether our
// refs are writable, whether its compare-and-swap is one, and whether somebody
// watches over our refs there. The error is that of Ready.
func (l *Ledger) Examine(ctx context.Context) (Examination, error) {
	if l.IsLocal() {
		return Examination{Atomic: true}, nil
	}
	k, err := l.knowledge()
	if err != nil {
		return Examination{}, err
	}
	k.CompareAndSwap = false
	if k.Atomic, err = l.probe(ctx); err != nil {
		return Examination{}, err
	}
	k.CompareAndSwap, k.Probed = true, l.spaces.probes
	if err := l.saveKnowledge(k); err != nil {
		return Examination{}, err
	}
	fenced, err := l.isFenced(ctx)
	return Examination{Atomic: k.Atomic, Fenced: fenced}, err
}

// isFenced pushes a ref that is no lease's and no probe's into the namespace of
// leases, and takes it away again where that was taken.
func (l *Ledger) isFenced(ctx context.Context) (bool, error) {
	stamp, err := l.Repo.Stamp(l.Now())
	if err != nil {
		return false, err
	}
	tree := l.Repo.Format.New(object.Tree, nil)
	commit := l.Repo.Format.New(object.Commit, object.CommitData{Tree: tree.OID, Author: stamp, Committer: stamp, Message: "lease: is anybody watching?\n"}.Encode())
	if err := l.Repo.Write(ctx, tree, commit); err != nil {
		return false, err
	}
	// "%t" is no escape of an encoded name.
	ref, err := object.ParseRef(fmt.Sprintf("%s%%try-%s", l.spaces.leases, strings.ToLower(l.NewID().String())))
	if err != nil {
		return false, err
	}
	result, err := l.Repo.Push(ctx, git.Push{Remote: l.remote, Moves: []git.Move{{Ref: ref, New: commit.OID, Old: git.MustNotExist()}}})
	if err != nil || result.Rejected {
		return err == nil, err
	}
	result, err = l.Repo.Push(context.WithoutCancel(ctx), git.Push{Remote: l.remote, Moves: []git.Move{{Ref: ref, Old: git.MustBe(commit.OID)}}})
	if err == nil && !result.Complete {
		l.Notice("%s could not be deleted from %s: %v", ref, l.Remote, saidOf(result))
	}
	return false, err
}

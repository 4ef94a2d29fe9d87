package ledger

import (
	"context"

	"gitland/internal/fault"
	"gitland/internal/object"
)

// signKey is the user's own wish to have events and notes signed. The key is the one of
// the user's commits: user.signingKey, gpg.format and what belongs to them.
const signKey = "lease.sign"

// A madeCommit is a commit of ours. A signed one is written already, since it is git that
// signs, and another has to be.
type madeCommit struct {
	object.Object
	written bool
}

// commit makes a commit of ours, signed where lease.sign says so. parts are what it is of
// and nobody has written yet, which is then done. what names it in a fault, which is of
// class Failed where it cannot be signed.
func (l *Ledger) commit(ctx context.Context, what string, raw []byte, parts ...object.Object) (madeCommit, error) {
	sign, err := l.Repo.Config.Bool(signKey, false)
	if err != nil {
		return madeCommit{}, fault.New(fault.Usage, "%w", err).WithHint("git config %s true", signKey)
	}
	if !sign {
		return madeCommit{Object: l.Repo.Format.New(object.Commit, raw)}, nil
	}
	c, err := object.ParseCommit(raw)
	if err != nil {
		return madeCommit{}, err
	}
	if err := l.Repo.Write(ctx, parts...); err != nil {
		return madeCommit{}, err
	}
	oid, err := l.Repo.WriteSigned(ctx, c)
	if err != nil {
		return madeCommit{}, fault.New(fault.Failed, "%s is to be signed, and could not be: %w", what, err).
			WithHint("mend user.signingKey, gpg.format or what belongs to them   (or, to have events and notes unsigned: git config %s false)", signKey)
	}
	return madeCommit{Object: object.Object{OID: oid, Kind: object.Commit}, written: true}, nil
}

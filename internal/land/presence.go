package land

import (
	"context"
	"errors"

	"gitland/internal/event"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// A presence tells of landings, newest first, whether the branch still has them, and
// if not, whether one of the overrides that were met took them off. It asks git only
// where the events do not chain.
type presence struct {
	l     *ledger.Ledger
	base  object.OID // where the branch is
	has   object.OID // a commit that the branch has, older than what was met
	moves []taking
}

// A taking is what an override may have taken off.
type taking struct {
	update event.Update
	next   object.OID // the newest commit that was on the branch then, not met yet
}

func newPresence(l *ledger.Ledger, v ledger.View) *presence {
	return &presence{l: l, base: v.Base, has: v.Base}
}

// moved is told of an override of the branch.
func (p *presence) moved(u event.Update) {
	if u.Old != "" {
		p.moves = append(p.moves, taking{u, u.Old})
	}
}

// lacks reports whether the branch does not have a landing, and whether an override
// took it off. In a shallow clone that is not known, and it has.
func (p *presence) lacks(ctx context.Context, landed event.Landing) (gone, removed bool, err error) {
	in := landed.Commit == p.has
	if !in {
		if in, err = p.in(ctx, landed.Commit, p.base); err != nil {
			return false, false, err
		}
	}
	if in || p.l.Repo.IsShallow() {
		p.has = landed.Base // which is there with it
	} else {
		gone = true
	}
	for i := range p.moves {
		m := &p.moves[i]
		had := m.next == landed.Commit
		if had {
			m.next = landed.Base
		}
		if !gone || removed {
			continue
		}
		if !had {
			if had, err = p.in(ctx, landed.Commit, m.update.Old); err != nil {
				return gone, false, err
			}
		}
		kept := false
		if had {
			if kept, err = p.in(ctx, landed.Commit, m.update.New); err != nil {
				return gone, false, err
			}
		}
		removed = had && !kept
	}
	return gone, removed, nil
}

func (p *presence) in(ctx context.Context, commit, tip object.OID) (bool, error) {
	in, err := isIn(ctx, p.l, commit, tip)
	if errors.Is(err, git.ErrNotFound) {
		return false, nil // not in this clone, which has all of the branch
	}
	return in, err
}

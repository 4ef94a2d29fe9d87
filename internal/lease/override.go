package lease

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

// An Overriding moves refs of the authority past the lease, on the record.
type Overriding struct {
	Want   ledger.Want
	Reason string // required
	// Updates are the moves. With Announce their old objects count as they are;
	// else each is what the authority has when it is asked, and what stands here is not looked at.
	Updates []event.Update
	// Rewrite are those of their refs that may lose what they have, as with "+" in git push.
	Rewrite []object.Ref
	// Announce only writes the event: who calls moves the refs, as git does after
	// a pre-push hook. An announcement that the same person has just made, and that is
	// the newest event, is not made again: git may run two hooks for one push, and a
	// push may be tried again.
	Announce bool
}

// An Overridden is an override that stands on the chain.
type Overridden struct {
	Event event.Event
	// Already means that it stood there before, and that the refs are where it says.
	Already bool
}

// Override appends an override event, and moves the refs in the same transaction.
// It needs no lease, and stops for none: not for a holder, not for a freeze. Run
// again it finds that it was made, and makes nothing. It
// returns a fault of class Usage without a reason, for no refs, and for those that
// are ours or would not change; of class Conflict for one that would lose what it
// has, and is not to be rewritten; and of class Unreachable when the authority refuses.
// Where it is not known whether it arrived, a journal of it stays: see Dead.
func Override(ctx context.Context, l *ledger.Ledger, o Overriding) (Overridden, error) {
	reason, err := Reason(o.Reason, "an override is", "why it cannot go by git land")
	if err != nil {
		return Overridden{}, err
	}
	if err := o.check(ctx, l); err != nil {
		return Overridden{}, err
	}
	if err := l.Ready(ctx); err != nil {
		return Overridden{}, err
	}
	atomic, err := l.Atomic()
	if err != nil {
		return Overridden{}, err
	}
	if o.Want, err = o.keeper(ctx, l); err != nil {
		return Overridden{}, err
	}
	p := &past{l: l, o: o, seen: map[object.Ref]object.OID{}, together: atomic && !o.Announce}
	p.o.Reason, p.journal.Operation, p.journal.Apart = reason, l.NewID(), !p.together
	e, err := l.Append(ctx, o.Want, func(v ledger.View, d *ledger.Draft) error { return p.compose(ctx, v, d) })
	if e == nil && p.made != nil && errors.Is(err, errMade) {
		return Overridden{*p.made, true}, p.ended(nil)
	}
	if e == nil {
		return Overridden{}, p.ended(err)
	}
	if p.together || o.Announce {
		return Overridden{Event: *e}, p.ended(nil)
	}
	return Overridden{Event: *e}, p.ended(moveApart(ctx, l, *e, p.journal.Updates))
}

// A past is an override under way.
type past struct {
	l        *ledger.Ledger
	o        Overriding
	together bool // event and refs move in one transaction
	journal  overrideJournal
	witness  *session.Witness
	seen     map[object.Ref]object.OID // at the first look: who rewrites has decided on that
	made     *event.Event              // by which it was made before
}

// errMade ends an override that was made before.
var errMade = errors.New("the override was made before")

// compose adds the override to a draft on what was just fetched.
func (p *past) compose(ctx context.Context, v ledger.View, d *ledger.Draft) error {
	updates := p.o.Updates
	for _, u := range updates {
		if role, name := p.l.RoleOf(u.Ref); role == ledger.Chain && name == v.Name {
			return fault.New(fault.Usage, "%s cannot have on its own log that it is deleted", u.Ref).
				WithHint("name another lease's branch with --onto")
		}
	}
	if err := p.o.branchIsThere(ctx, p.l, v); err != nil {
		return err
	}
	if !p.o.Announce {
		refs, err := p.l.Refs(ctx)
		if err != nil {
			return err
		}
		if p.made, err = p.o.madeBefore(ctx, p.l, v, refs); err != nil || p.made != nil {
			return cmp.Or(err, errMade)
		}
		if updates, err = p.o.present(ctx, p.l, refs, p.seen); err != nil {
			return err
		}
	}
	if v.Tip == nil {
		if err := adopt(ctx, d, v); err != nil {
			return err
		}
	}
	e, err := d.Add(ctx, event.Event{Kind: event.Override, By: event.By{Operation: p.journal.Operation, Reason: p.o.Reason, Updates: updates, Announced: !p.together}})
	if err == nil && p.o.Announce && repeats(e, v.Tip) {
		p.made = v.Tip
		return errMade
	}
	if err != nil || p.o.Announce {
		return err
	}
	if p.together {
		d.With(movesOf(updates)...)
	}
	return p.write(v, d.Attempt(), updates)
}

// branchIsThere refuses to begin a lease for a branch that there is not, and that the
// override does not make: it was misspelt.
func (o Overriding) branchIsThere(ctx context.Context, l *ledger.Ledger, v ledger.View) error {
	if v.Tip != nil || v.Base != "" || v.Branch == "" || slices.ContainsFunc(o.Updates, func(u event.Update) bool { return u.Ref == v.Branch }) {
		return nil
	}
	return l.NoBranch(ctx, v, func(there object.Ref) string {
		words := []string{"git", "land", "override", "--onto", there.Branch(), "--reason", o.Reason}
		for _, u := range o.Updates {
			words = append(words, string(u.New)+":"+string(u.Ref))
		}
		return l.Command(words...)
	})
}

// repeats reports whether e announces what the newest event, tip, announced already: the
// same person, from the same place, moves the same refs in the same way for the same reason.
func repeats(e event.Event, tip *event.Event) bool {
	return tip != nil && tip.Kind == e.Kind && tip.By.Announced && tip.Actor == e.Actor && tip.By.Host == e.By.Host &&
		tip.By.Reason == e.By.Reason && slices.Equal(tip.By.Updates, e.By.Updates)
}

// madeBefore is the newest override on the chain that names these very moves, where
// the refs are where it says.
func (o Overriding) madeBefore(ctx context.Context, l *ledger.Ledger, v ledger.View, refs map[object.Ref]object.OID) (made *event.Event, err error) {
	if slices.ContainsFunc(o.Updates, func(u event.Update) bool { return refs[u.Ref] != u.New }) || v.Tip == nil {
		return nil, nil
	}
	n := 0
	err = Walk(ctx, l, v, func(e event.Event) bool {
		if e.Kind == event.Override && sameMoves(e.By.Updates, o.Updates) {
			made = &e
		}
		n++
		return made == nil && n < lookBack
	})
	return made, err
}

// sameMoves reports whether the same refs move to the same objects.
func sameMoves(a, b []event.Update) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(u event.Update) bool {
		return !slices.ContainsFunc(b, func(o event.Update) bool { return o.Ref == u.Ref && o.New == u.New })
	})
}

// check refuses what no override may move.
func (o Overriding) check(ctx context.Context, l *ledger.Ledger) error {
	if len(o.Updates) == 0 {
		return fault.New(fault.Usage, "no ref is to move").WithHint("git land override --reason TEXT main")
	}
	for i, u := range o.Updates {
		if slices.ContainsFunc(o.Updates[:i], func(other event.Update) bool { return other.Ref == u.Ref }) {
			return fault.New(fault.Usage, "%s is named twice", u.Ref.Branch()).WithHint("name each ref once")
		}
		if role, _ := l.RoleOf(u.Ref); role == ledger.Probe || role == ledger.Stray && u.New != "" || role == ledger.Chain && u.New != "" {
			return fault.New(fault.Usage, "%s is not for pushing by hand", u.Ref).WithHint("git lease -h")
		}
	}
	return o.unoccupied(ctx, l)
}

// keeper is what to want for the lease on whose log the override belongs: the one
// that keeps the branches, or has the records, that move; else the one that branches
// without a lease would be under, unless a branch was asked for; else the target's.
func (o Overriding) keeper(ctx context.Context, l *ledger.Ledger) (ledger.Want, error) {
	type belonging struct {
		lease string
		ref   object.Ref
	}
	var kept, begun []belonging
	for _, u := range o.Updates {
		role, name := l.RoleOf(u.Ref)
		switch {
		case role == ledger.Notes && name != "":
			kept = append(kept, belonging{name, u.Ref})
		case role == ledger.Foreign && strings.HasPrefix(string(u.Ref), "refs/heads/"):
			v, err := Keeper(ctx, l, ledger.Want{Name: o.Want.Name}, u)
			switch {
			case err != nil:
				return o.Want, err
			case v.Keeps(u.Ref):
				kept = append(kept, belonging{v.Name, u.Ref})
			case o.Want.Branch == "" && (u.New != "" || v.Tip != nil): // what goes away begins no lease
				begun = append(begun, belonging{v.Name, u.Ref})
			}
		}
	}
	all := append(kept, begun...)
	if len(all) == 0 {
		return o.Want, nil
	}
	first := all[0]
	for i, b := range all {
		if b.lease == first.lease {
			continue
		}
		f := fault.New(fault.Usage, "%s is of the lease %s, and %s of %s: an override is on the log of one", first.ref.Branch(), first.lease, b.ref.Branch(), b.lease)
		if i < len(kept) || !strings.HasPrefix(string(first.ref), "refs/heads/") {
			return o.Want, f.WithHint("override them one by one")
		}
		return o.Want, f.WithHint("%s   (on the log of %s; or override them one by one)",
			l.Command(OverrideWords(first.ref, o.Reason, o.Updates, o.Rewrite)...), first.lease)
	}
	w := ledger.Want{Name: first.lease, Branch: o.Want.Branch}
	if strings.HasPrefix(string(first.ref), "refs/heads/") {
		w.Branch = first.ref
	}
	return w, nil
}

// Keeper is the lease that keeps the branch of u, as FetchKeeper has it; where u makes
// the branch, the one that the policy which it brings names.
func Keeper(ctx context.Context, l *ledger.Ledger, w ledger.Want, u event.Update) (ledger.View, error) {
	w.Branch = u.Ref
	v, err := l.FetchKeeper(ctx, w)
	if err != nil {
		return v, err
	}
	return Begins(ctx, l, v, u)
}

// Begins is Keeper where v was fetched already.
func Begins(ctx context.Context, l *ledger.Ledger, v ledger.View, u event.Update) (ledger.View, error) {
	if v.Base != "" || u.New == "" || v.Keeps(u.Ref) {
		return v, nil
	}
	c, err := l.Repo.Commit(ctx, u.New)
	if err != nil {
		return v, ctx.Err() // no commit: the authority will say so
	}
	p, err := l.PolicyIn(ctx, c.Tree)
	if err != nil || p.Lease == "" || p.Lease == v.Name {
		return v, err
	}
	return l.Fetch(ctx, ledger.Want{Name: p.Lease, Branch: u.Ref})
}

// OverrideWords are the words of the command that moves refs past the lease, those of
// rewrite also where they lose what they have. onto may be empty.
func OverrideWords(onto object.Ref, reason string, updates []event.Update, rewrite []object.Ref) []string {
	words := []string{"git", "land", "override"}
	if onto != "" {
		words = append(words, "--onto", onto.Branch())
	}
	words = append(words, "--reason", reason)
	for _, u := range updates {
		plus := ""
		if slices.Contains(rewrite, u.Ref) {
			plus = "+"
		}
		words = append(words, plus+string(u.New)+":"+string(u.Ref))
	}
	return words
}

// unoccupied refuses to move a branch of this repository, where it is itself the
// authority, under a work tree that has it checked out.
func (o Overriding) unoccupied(ctx context.Context, l *ledger.Ledger) error {
	if !l.IsLocal() {
		return nil
	}
	trees, err := l.Repo.Worktrees(ctx)
	if err != nil {
		return err
	}
	for _, w := range trees {
		if w.Bare || w.Gone || !slices.ContainsFunc(o.Updates, func(u event.Update) bool { return u.Ref == w.Branch }) {
			continue
		}
		return fault.New(fault.Conflict, "%s is checked out in %s, whose files would be left behind", w.Branch.Branch(), w.Path).
			WithHint("%s   (and again)", fault.Command("git", "-C", w.Path, "switch", "--detach"))
	}
	return nil
}

// present gives updates with the old objects that the authority has now, if they
// lose nothing that they may not.
func (o Overriding) present(ctx context.Context, l *ledger.Ledger, refs, seen map[object.Ref]object.OID) ([]event.Update, error) {
	var now []event.Update
	for _, u := range o.Updates {
		u.Old = refs[u.Ref]
		if u.Old == u.New {
			return nil, fault.New(fault.Usage, "%s at %s is at %s already", u.Ref.Branch(), l.Remote, cmp.Or(u.New.Short(), "nothing")).WithHint("leave it out, or name another commit: git land override --reason WHY COMMIT:%s", u.Ref.Branch())
		}
		if first, again := seen[u.Ref]; again && first != u.Old {
			return nil, fault.New(fault.Conflict, "%s at %s has moved meanwhile, to %s", u.Ref.Branch(), l.Remote, u.Old.Short()).
				WithHint("git fetch %s   (and look again)", l.Remote)
		}
		seen[u.Ref] = u.Old
		if u.Old != "" && u.New != "" && !slices.Contains(o.Rewrite, u.Ref) {
			if err := loses(ctx, l, u); err != nil {
				return nil, err
			}
		}
		now = append(now, u)
	}
	return now, nil
}

// loses refuses an update by which a ref would lose what it has. Git does so for
// branches and tags, and for what it does not know at all.
func loses(ctx context.Context, l *ledger.Ledger, u event.Update) error {
	branch := strings.HasPrefix(string(u.Ref), "refs/heads/")
	if branch {
		if in, err := l.Repo.IsAncestor(ctx, u.Old, u.New); in || err != nil {
			return err
		}
	}
	why := "is there already"
	if branch {
		why = "has commits that " + u.New.Short() + " lacks"
	}
	return fault.New(fault.Conflict, "%s at %s, which is at %s, %s: the override would drop what it has", u.Ref.Branch(), l.Remote, u.Old.Short(), why).
		WithHint("git fetch %s   (and build on it; or, to drop it: +%s:%s in the place of that refspec)", l.Remote, u.New.Short(), u.Ref.Branch())
}

func movesOf(updates []event.Update) []git.Move {
	var moves []git.Move
	for _, u := range updates {
		moves = append(moves, git.Move{Ref: u.Ref, New: u.New, Old: git.Was(u.Old)})
	}
	return moves
}

// moveApart moves the refs one by one, after the event: the authority cannot move
// several at once. The error is a ledger.UnsettledError where one of them may have been.
func moveApart(ctx context.Context, l *ledger.Ledger, e event.Event, updates []event.Update) error {
	var all error
	for _, m := range movesOf(updates) {
		out, err := l.Publish(ctx, ledger.Publication{Moves: []git.Move{m}, Hooks: true, Message: "land: override",
			Environ: ledger.HookEnviron(e.By.Operation, e.OID)})
		if err == nil && !out.Done {
			err = ledger.Unsettled(fault.New(fault.Unreachable, "%s did not say that it moved %s: %w", l.Remote, m.Ref.Branch(), out.Said).
				WithHint("%s", l.Command("git", "land", "resume", e.By.Operation.String())))
		}
		all = errors.Join(all, err)
	}
	return all
}

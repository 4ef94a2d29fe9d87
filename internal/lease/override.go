package lease

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
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
	// a pre-push hook.
	Announce bool
}

// Override appends an override event, and moves the refs in the same transaction.
// It needs no lease, and stops for none: not for a holder, not for a freeze. It
// returns a fault of class Usage without a reason, for no refs, and for those that
// are ours or would not change; of class Conflict for one that would lose what it
// has, and is not to be rewritten; and of class Unreachable when the authority refuses.
func Override(ctx context.Context, l *ledger.Ledger, o Overriding) (event.Event, error) {
	reason, err := Reason(o.Reason, "an override is", "why it cannot go by git land")
	if err != nil {
		return event.Event{}, err
	}
	if len(o.Updates) == 0 {
		return event.Event{}, fault.New(fault.Usage, "no ref is to move").WithHint("git land override --reason TEXT main")
	}
	for i, u := range o.Updates {
		if slices.ContainsFunc(o.Updates[:i], func(other event.Update) bool { return other.Ref == u.Ref }) {
			return event.Event{}, fault.New(fault.Usage, "%s is named twice", u.Ref.Branch()).WithHint("name each ref once")
		}
		if role, _ := l.RoleOf(u.Ref); role == ledger.Probe || role == ledger.Stray && u.New != "" || role == ledger.Chain && u.New != "" {
			return event.Event{}, fault.New(fault.Usage, "%s is not for pushing by hand", u.Ref).WithHint("git lease -h")
		}
	}
	if err := o.unoccupied(ctx, l); err != nil {
		return event.Event{}, err
	}
	if err := l.Ready(ctx); err != nil {
		return event.Event{}, err
	}
	together, err := l.Atomic()
	if err != nil {
		return event.Event{}, err
	}
	together = together && !o.Announce
	if o.Want, err = o.keeper(ctx, l); err != nil {
		return event.Event{}, err
	}
	var moves []git.Move
	seen := map[object.Ref]object.OID{} // at the first look: who rewrites has decided on that
	e, err := l.Append(ctx, o.Want, func(v ledger.View, d *ledger.Draft) error {
		updates := o.Updates
		for _, u := range updates {
			if role, name := l.RoleOf(u.Ref); role == ledger.Chain && name == v.Name {
				return fault.New(fault.Usage, "%s cannot have on its own log that it is deleted", u.Ref).
					WithHint("name another lease's branch with --onto")
			}
		}
		if !o.Announce {
			var err error
			if updates, err = o.present(ctx, l, seen); err != nil {
				return err
			}
		}
		if v.Tip == nil {
			if err := adopt(ctx, d, v); err != nil {
				return err
			}
		}
		_, err := d.Add(event.Event{Kind: event.Override, By: event.By{Operation: l.NewID(), Reason: reason, Updates: updates}})
		moves = movesOf(updates)
		if together {
			d.With(moves...)
		}
		return err
	})
	if e == nil {
		return event.Event{}, err
	}
	if together || o.Announce {
		return *e, nil
	}
	return *e, moveApart(ctx, l, *e, moves)
}

// keeper is what to want for the lease on whose log the override belongs: the one
// that keeps the branches, or has the records, that move; else the one asked for.
func (o Overriding) keeper(ctx context.Context, l *ledger.Ledger) (ledger.Want, error) {
	w := o.Want
	var kept object.Ref // by the lease w.Name
	for _, u := range o.Updates {
		role, name := l.RoleOf(u.Ref)
		switch {
		case role == ledger.Foreign && strings.HasPrefix(string(u.Ref), "refs/heads/"):
			v, err := l.FetchKeeper(ctx, ledger.Want{Name: o.Want.Name, Branch: u.Ref})
			if err != nil {
				return w, err
			}
			if name = v.Name; !v.Keeps(u.Ref) {
				name = ""
			}
		case role != ledger.Notes:
			name = ""
		}
		switch {
		case name == "":
		case kept != "" && name != w.Name:
			return w, fault.New(fault.Usage, "%s is of the lease %s, and %s of %s: an override is on the log of one", kept.Branch(), w.Name, u.Ref.Branch(), name).
				WithHint("override them one by one")
		default:
			w.Name, kept = name, u.Ref
			if strings.HasPrefix(string(u.Ref), "refs/heads/") {
				w.Branch = u.Ref
			}
		}
	}
	return w, nil
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
func (o Overriding) present(ctx context.Context, l *ledger.Ledger, seen map[object.Ref]object.OID) ([]event.Update, error) {
	refs, err := l.Refs(ctx)
	if err != nil {
		return nil, err
	}
	var now []event.Update
	for _, u := range o.Updates {
		u.Old = refs[u.Ref]
		if u.Old == u.New {
			return nil, fault.New(fault.Usage, "%s is at %s already", u.Ref.Branch(), l.Remote).WithHint("leave it out")
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
// several at once. An event without its moves is a move that was announced.
func moveApart(ctx context.Context, l *ledger.Ledger, e event.Event, moves []git.Move) error {
	var all error
	for _, m := range moves {
		out, err := l.Publish(ctx, ledger.Publication{Moves: []git.Move{m}, Hooks: true, Message: "land: override",
			Environ: ledger.HookEnviron(e.By.Operation, e.OID)})
		if err == nil && !out.Done {
			err = fault.New(fault.Unreachable, "%s did not say that it moved %s: %w", l.Remote, m.Ref.Branch(), out.Said).
				WithHint("%s", fault.Command("git", "ls-remote", l.Remote, string(m.Ref)))
		}
		all = errors.Join(all, err)
	}
	return all
}

// A Refspec is an update as people write it, as in git-push(1): "[+]SOURCE:REF",
// a branch's name alone, or ":REF" for a deletion.
type Refspec string

// Rewrites reports whether the ref may lose what it has: with "+", and where it is
// to be deleted.
func (r Refspec) Rewrites() bool { return strings.HasPrefix(string(r), "+") }

// Update resolves a refspec in this clone. The error is of class Usage.
func (r Refspec) Update(ctx context.Context, repo *git.Repo) (event.Update, error) {
	source, target, explicit := strings.Cut(strings.TrimPrefix(string(r), "+"), ":")
	bad := func(format string, args ...any) (event.Update, error) {
		return event.Update{}, fault.New(fault.Usage, "refspec %q: "+format, append([]any{string(r)}, args...)...).
			WithHint("git land override --reason TEXT HEAD:main")
	}
	if strings.ContainsAny(string(r), "*\n\x00") {
		return bad("one ref at a time")
	}
	// A name without a slash to begin with is a branch, else a tag, as it is here.
	here := func(name string) (string, error) {
		for _, full := range []string{name, "refs/heads/" + name, "refs/tags/" + name} {
			if !strings.HasPrefix(full, "refs/") {
				continue
			}
			if _, err := repo.Lookup(ctx, full); !errors.Is(err, git.ErrNotFound) {
				return full, err
			}
		}
		return "", nil
	}
	var u event.Update
	full, err := here(source)
	switch {
	case err != nil:
		return u, err
	case !explicit && full == "":
		return bad("there is no branch or tag %s here", source)
	case !explicit:
		source, target = full, full
	case full != "":
		source = full
	}
	switch {
	case target == "HEAD" || target == "@":
		return bad("HEAD is where somebody stands, and no ref to push to")
	case strings.HasPrefix(target, "heads/") || strings.HasPrefix(target, "tags/"):
		target = "refs/" + target
	case !strings.HasPrefix(target, "refs/") && strings.HasPrefix(full, "refs/tags/"):
		target = "refs/tags/" + target
	case !strings.HasPrefix(target, "refs/"):
		target = "refs/heads/" + target
	}
	if u.Ref, err = object.ParseRef(target); err != nil {
		return bad("%w", err)
	}
	if explicit && source == "" {
		return u, nil
	}
	kind := "" // a tag goes as it is
	if strings.HasPrefix(string(u.Ref), "refs/heads/") {
		kind = "^{commit}"
	}
	o, err := repo.Lookup(ctx, source+kind)
	if errors.Is(err, git.ErrNotFound) {
		return bad("there is no %s here", source)
	}
	u.New = o.OID
	return u, err
}

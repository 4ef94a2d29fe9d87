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
	reason := event.CleanText(o.Reason, event.MaxText)
	if strings.TrimSpace(reason) == "" {
		return event.Event{}, fault.New(fault.Usage, "an override is on the record: the reason is empty").
			WithHint("add --reason 'why it cannot go by git land'")
	}
	if len(o.Updates) == 0 {
		return event.Event{}, fault.New(fault.Usage, "no ref is to move").WithHint("git land override --reason TEXT main")
	}
	for _, u := range o.Updates {
		if role, _ := l.RoleOf(u.Ref); role == ledger.Probe || role == ledger.Stray || role == ledger.Chain && u.New != "" {
			return event.Event{}, fault.New(fault.Usage, "%s is not for pushing by hand", u.Ref).WithHint("git lease -h")
		}
	}
	if err := l.Ready(ctx); err != nil {
		return event.Event{}, err
	}
	together, err := l.Atomic()
	if err != nil {
		return event.Event{}, err
	}
	together = together && !o.Announce
	var moves []git.Move
	e, err := l.Append(ctx, o.Want, func(v ledger.View, d *ledger.Draft) error {
		updates := o.Updates
		if !o.Announce {
			var err error
			if updates, err = o.present(ctx, l); err != nil {
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

// present gives updates with the old objects that the authority has now, if they
// lose nothing that they may not.
func (o Overriding) present(ctx context.Context, l *ledger.Ledger) ([]event.Update, error) {
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
	if !explicit {
		target = source
	}
	bad := func(format string, args ...any) (event.Update, error) {
		return event.Update{}, fault.New(fault.Usage, "refspec %q: "+format, append([]any{string(r)}, args...)...).
			WithHint("git land override --reason TEXT HEAD:main")
	}
	if strings.ContainsAny(string(r), "*\n\x00") {
		return bad("one ref at a time")
	}
	var u event.Update
	var err error
	if strings.HasPrefix(target, "refs/") {
		u.Ref, err = object.ParseRef(target)
	} else {
		u.Ref, err = object.BranchRef(target)
	}
	if err != nil {
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

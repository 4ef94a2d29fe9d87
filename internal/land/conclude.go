package land

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/session"
)

// concludeDead brings the landings of this worktree that died to their end:
// what reached the authority is finished, what did not is made unable to.
func concludeDead(ctx context.Context, l *ledger.Ledger, r Request) error {
	list, err := unfinished(l.Dir)
	if err != nil {
		return err
	}
	for _, u := range list {
		if u.gitDir != placeOf(l.Repo) {
			continue
		}
		witness, err := l.Dir.Witness(u.Operation)
		if errors.Is(err, session.ErrAlive) {
			return fault.New(fault.Held, "a landing of this worktree is under way, operation %s", u.Operation).
				WithHint("wait for it, then run git land again")
		}
		if err != nil {
			return err
		}
		j, err := loadJournal(l.Dir, u.Operation)
		if errors.Is(err, fs.ErrNotExist) { // it ended between the look and the lock
			if err := witness.Remove(); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			err = concludeAt(ctx, l, j, r)
			l.Repo.Reread() // it may have moved HEAD
		}
		if err != nil {
			witness.Close()
			return err
		}
		l.Repo.SweepTempIndex(u.Operation.String())
		if err := l.Dir.Journal().Remove(u.Operation); err != nil {
			return err
		}
		if err := witness.Remove(); err != nil {
			return err
		}
	}
	return nil
}

// concludeAt ends one dead landing at the authority to which it was made, which
// need not be the one that the user lands to now.
func concludeAt(ctx context.Context, l *ledger.Ledger, j journal, r Request) error {
	if j.Remote != l.Remote {
		other, err := ledger.Open(l.Repo, ledger.Options{Remote: j.Remote, Now: l.Now, Notice: l.Notice})
		if err != nil {
			return fmt.Errorf("operation %s was landing to %s and did not end: %w", j.Operation, j.Remote, err)
		}
		l = other
	}
	return conclude(ctx, l, j, r)
}

// conclude ends one dead landing. After it returns nil nothing of the operation
// can still arrive.
func conclude(ctx context.Context, l *ledger.Ledger, j journal, r Request) error {
	want := ledger.Want{Name: j.Lease, Branch: j.Branch}
	root, err := j.root()
	if err != nil {
		return err
	}
	brought, err := r.Session.Load()
	if err != nil && !errors.Is(err, session.ErrNoToken) {
		return err
	}
	a, err := outrun(ctx, l, want, j, root, brought.Root)
	if err != nil {
		return err
	}
	if a == nil {
		l.Notice("operation %s had died before it landed; it can no longer arrive", j.Operation)
		return nil
	}
	v, err := l.Fetch(ctx, want)
	if err != nil {
		return err
	}
	if v, err = completeRecord(ctx, l, want, v, *a); err != nil {
		return err
	}
	in, err := isIn(ctx, l, a.Commit, v.Base)
	if err != nil {
		return err
	}
	if !in { // nothing of it is left to be done, and it must not be in the way for ever
		l.Notice("operation %s had died after it landed %s on %s; that branch was rewritten since, and does not have it any more",
			j.Operation, a.Commit.Short(), j.Branch.Branch())
		return nil
	}
	l.Notice("operation %s had died after it landed %s on %s; finished it", j.Operation, a.Commit.Short(), j.Branch.Branch())
	c, err := j.change(ctx, l.Repo)
	if err != nil {
		return err
	}
	branch, err := l.Repo.HeadBranch(ctx)
	if err != nil {
		return err
	}
	s := &follower{l: l, change: c, target: j.Branch, base: v.Base, commit: a.Commit, tree: a.Tree}
	outcome, hint, moves := s.bring(ctx, branch)
	if hint != "" {
		l.Notice("the local branch was left where it is: %s; hint: %s", outcome, hint)
	}
	return errors.Join(l.Flush(ctx, "land: "+j.Unit, moves...), bringOthers(ctx, l, j.Branch, *a))
}

// bringOthers takes the other worktrees that have the target checked out along,
// where the landing has moved their HEAD and died before it came to their files.
func bringOthers(ctx context.Context, l *ledger.Ledger, branch object.Ref, a attempt) error {
	if !l.IsLocal() {
		return nil
	}
	_, others, err := otherWorktrees(ctx, l.Repo, branch)
	if err != nil {
		return err
	}
	from := l.Repo.Format.EmptyTree()
	if base := a.base(branch); base != "" {
		commit, err := l.Repo.Commit(ctx, base)
		if err != nil {
			return err
		}
		from = commit.Tree
	}
	for _, w := range others {
		w.Refresh(ctx)
		// One that has followed already stays as it is.
		if err := w.MoveWorkTree(ctx, from, a.Tree, false); err != nil {
			l.Notice("the worktree %s could not follow: %v", w.Top, err)
		}
	}
	return nil
}

// outrun advances the chain past every push of a landing that has not arrived,
// and returns the attempt that has, if one did. Under a lease that the landing
// had acquired with root, it ends the hold; from a free chain, and under the lease
// that the session brought, it appends a void. Where the branch moved and the
// chain did not, because the server died between the two, it appends the
// landing's event instead.
func outrun(ctx context.Context, l *ledger.Ledger, want ledger.Want, j journal, root, brought session.Root) (*attempt, error) {
	var arrived *attempt
	_, err := l.Append(ctx, want, func(v ledger.View, d *ledger.Draft) error {
		arrived = nil
		fate, err := l.Trace(ctx, v, j.attempts())
		if err != nil {
			return err
		}
		if landed(fate) {
			if a, ok := j.byEvent(fate.Arrived.OID); ok {
				arrived = &a
			}
			return errSettled
		}
		by := event.By{Operation: j.Operation, Reason: "operation " + j.Operation.String() + " ended before it landed"}
		act := event.Event{Kind: event.Void, By: by}
		hold, own := v.Hold(), lease.Owns(root, v.Tip)
		half, err := halfLanded(ctx, l, v, j, fate)
		if err == nil && half != nil {
			act, err = relanding(ctx, l, v, *half)
		}
		switch {
		case err != nil:
			return err
		case half != nil && hold != nil && hold.Operation != act.By.Operation:
			return fault.New(fault.Held, "%s of operation %s is on %s, but its event is not on the chain, and the lease %s is held by %s",
				half.Commit.Short(), j.Operation, v.Branch.Branch(), v.Name, lease.Describe(*hold, l.Now())).
				WithHint("run git land again when the lease is free: it adds the event first")
		case half != nil:
			arrived = half
		case own:
			act.Kind = event.Abort
		case fate.Pending && lease.Owns(brought, v.Tip):
			act.By.Operation = hold.Operation
		case fate.Pending && hold != nil:
			return fault.New(fault.Held, "the push of operation %s may still arrive, and the lease %s is held by %s",
				j.Operation, v.Name, lease.Describe(*hold, l.Now())).
				WithHint("run git land in the session that holds it, or: %s   (then run git land again)",
					l.Command("git", "lease", "release", v.Name))
		case hold != nil, !fate.Pending && j.Token == "":
			return errSettled // the chain has moved past the push by itself
		}
		if own {
			act.By.Secret = lease.SecretOf(root, v.Tip)
		}
		if err := d.Adopt(ctx, v.Branch, v.Base); err != nil {
			return err
		}
		_, err = d.Add(act)
		return err
	})
	if errors.Is(err, errSettled) {
		err = nil
	}
	return arrived, err
}

// halfLanded is an attempt whose commit is on the branch although the chain has
// no event for it: the server died between the two refs. Others may have landed
// on top of it since.
func halfLanded(ctx context.Context, l *ledger.Ledger, v ledger.View, j journal, fate ledger.Fate) (*attempt, error) {
	if landed(fate) {
		return nil, nil
	}
	for i, a := range slices.Backward(j.Attempts) {
		if v.Base == a.base(v.Branch) {
			continue // it has not moved, most often
		}
		in, err := isIn(ctx, l, a.Commit, v.Base)
		if err != nil {
			return nil, err
		}
		if !in {
			continue
		}
		others, err := broughtBy(ctx, l, v.Branch, a.Commit, fate.Others)
		if err != nil {
			return nil, err
		}
		if !others {
			return &j.Attempts[i], nil
		}
	}
	return nil, nil
}

// broughtBy reports whether one of the events is of a landing that brought the
// commit to the branch: of somebody else, who had the same commits.
func broughtBy(ctx context.Context, l *ledger.Ledger, branch object.Ref, commit object.OID, events []event.Event) (bool, error) {
	for _, e := range events {
		if e.Kind != event.Land || e.By.Land.Branch != branch {
			continue
		}
		in, err := isIn(ctx, l, commit, e.By.Land.Commit)
		if errors.Is(err, git.ErrNotFound) {
			continue // its landing is not on the branch any more
		}
		if err != nil {
			return false, err
		}
		if in {
			before, err := isIn(ctx, l, commit, e.By.Land.Base)
			return !before, err
		}
	}
	return false, nil
}

// relanding is the landing's event once more, to be put where the chain is now.
func relanding(ctx context.Context, l *ledger.Ledger, v ledger.View, a attempt) (event.Event, error) {
	e, err := l.Event(ctx, a.Events[len(a.Events)-1], v.Name)
	if err != nil {
		return e, err
	}
	return event.Event{Kind: event.Land, By: event.By{Operation: e.By.Operation, Land: e.By.Land}}, nil
}

// errSettled ends an append that has nothing left to do.
var errSettled = errors.New("settled")

// complete makes sure that a landing whose event stands on the chain is whole:
// a server that died between two refs, or that hides one of them, can have left
// the record out.
func complete(ctx context.Context, l *ledger.Ledger, want ledger.Want, v ledger.View, a attempt) error {
	v, err := completeRecord(ctx, l, want, v, a)
	if err != nil {
		// Its journal stays, and with it the way to complete it later.
		return &openError{fault.New(fault.Unreachable, "%s landed, but it is not known whether its record is there: %w", a.Commit.Short(), err).
			WithHint("run git land again: it completes the record first")}
	}
	in, err := isIn(ctx, l, a.Commit, v.Base)
	if err == nil && !in {
		err = fmt.Errorf("the chain and the record say that %s landed on %s, but the branch does not have it", a.Commit.Short(), v.Branch.Branch())
	}
	if err != nil {
		return &openError{fault.New(fault.Unreachable, "%w", err).
			WithHint("%s", fault.Command("git", "ls-remote", l.Remote, string(v.Branch)))}
	}
	return nil
}

// completeRecord writes the record where it is missing, and returns what was
// last seen of the authority.
func completeRecord(ctx context.Context, l *ledger.Ledger, want ledger.Want, v ledger.View, a attempt) (ledger.View, error) {
	var said error
	for range maxRepeats {
		has, err := hasRecord(ctx, l, v, a)
		if err != nil || has {
			return v, err
		}
		notes, err := l.AppendNotes(ctx, v.Records, "landing "+a.Commit.Short()+" (completed)", []ledger.NoteLine{{On: a.Commit, Text: a.Record}})
		if err != nil {
			return v, err
		}
		if err := l.Repo.Write(ctx, notes.Objects...); err != nil {
			return v, err
		}
		records, err := l.RecordsRef(v.Name)
		if err != nil {
			return v, err
		}
		out, err := l.Publish(ctx, ledger.Publication{Message: "land: complete a record",
			Moves: []git.Move{{Ref: records, New: notes.Tip, Old: git.Was(v.Records)}}})
		if err != nil || out.Done {
			return v, err
		}
		said = out.Said
		if v, err = l.Fetch(ctx, want); err != nil {
			return v, err
		}
	}
	return v, fault.New(fault.Unreachable, "%s refused the record: %w", l.Remote, said)
}

func isIn(ctx context.Context, l *ledger.Ledger, commit, tip object.OID) (bool, error) {
	if tip == "" {
		return false, nil
	}
	return l.Repo.IsAncestor(ctx, commit, tip)
}

// hasRecord reports whether the note on the landed commit has the landing's line.
func hasRecord(ctx context.Context, l *ledger.Ledger, v ledger.View, a attempt) (bool, error) {
	blob, err := l.Note(ctx, v.Records, a.Commit)
	if err != nil {
		return false, fmt.Errorf("read the record: %w", err)
	}
	return slices.ContainsFunc(note.ParseRecords(blob), func(line note.Line[note.Record]) bool { return line.Raw == a.Record }), nil
}

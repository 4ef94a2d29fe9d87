package land

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
	"gitland/internal/session"
	"gitland/internal/step"
	"gitland/internal/verify"
)

// Look tells what would land now, and what stands in its way. It changes
// nothing. What keeps it from landing is in Outlook.Problem; the error is for
// what could not be read at all.
func Look(ctx context.Context, l *ledger.Ledger, s Selection, from session.Source) (Outlook, error) {
	o := Outlook{Remote: l.Remote}
	var err error
	if o.Unfinished, err = ListUnfinished(l.Dir); err != nil {
		return o, err
	}
	waiting, err := l.Dir.Outbox().List()
	if err != nil {
		return o, err
	}
	o.Unpublished = len(waiting)
	v, err := l.Fetch(ctx, s.Want)
	if err != nil {
		return o, err
	}
	o.Lease, o.Branch, o.Base, o.Hold = v.Name, v.Branch, v.Base, v.Hold()
	if err := o.over(ctx, l, v); err != nil {
		return o, err
	}
	if o.Frost, err = lease.FrostOf(ctx, l, v); err != nil {
		return o, err
	}
	if o.Rewound, err = rewound(ctx, l, v, s.Want); err != nil {
		return o, err
	}
	if held, err := from.Load(); err == nil {
		o.OwnHold = lease.Owns(held.Root, v.Tip)
		if o.Lost, err = takenOff(ctx, l, v, from, held); err != nil && v.Problem == nil {
			return o, err
		}
	} else if !errors.Is(err, session.ErrNoToken) {
		return o, err
	}
	o.VerifyWith = verifyCommand(l, s, v.Policy)
	o.Problem = o.foresee(ctx, l, v, s)
	if o.Problem != nil && fault.ClassOf(o.Problem) == "" {
		return o, o.Problem
	}
	if v.Problem != nil {
		o.Ambiguous, o.chain = true, v.Problem
		o.Problem = errors.Join(o.Problem, v.Problem)
	}
	if o.Hold != nil {
		o.inTheWay = lease.Held(l, v, false).Hint
	}
	o.Next = o.next(l, s)
	return o, nil
}

// over finds out which of the unfinished operations others have brought to their end.
func (o *Outlook) over(ctx context.Context, l *ledger.Ledger, v ledger.View) error {
	for i := range o.Unfinished {
		u := &o.Unfinished[i]
		if !u.Stepping || u.Alive || u.Lease != v.Name || v.Problem != nil {
			continue
		}
		m, err := step.Find(ctx, l, v, u.landing)
		if err != nil {
			return err
		}
		u.Over = m != nil && m.Ended != nil
	}
	return nil
}

func (o *Outlook) foresee(ctx context.Context, l *ledger.Ledger, v ledger.View, s Selection) error {
	id, done := watched(l)
	defer done()
	c, err := readChange(ctx, l, s, v.Policy.Paths, id.String())
	if err != nil {
		return err
	}
	defer c.drop()
	o.Head, o.Kind, o.Paths = c.name(), string(c.kind), c.paths()
	p, err := makePlan(ctx, l, v, c)
	if err != nil {
		if c.kind == fromCommits && len(p.stack) == 0 {
			o.Kind = nothing
		}
		return err
	}
	for _, e := range p.stack {
		o.Commits, o.Mode = append(o.Commits, e.OID), p.mode
	}
	if p.already != "" {
		o.Kind, o.Already = nothing, p.already
		return nil
	}
	o.Tree = p.tree
	var stepsErr error
	o.Steps, stepsErr = stepsAfter(l, v, o.OwnHold)
	wants, err := demanded(v.Policy, "", "")
	if err != nil {
		return err
	}
	found, err := judge(ctx, l, p, wants)
	o.Judgement, o.Verified, o.Merged = found.judgement, found.judgement.Pass, found.merged
	if err != nil {
		return err
	}
	for _, v := range o.Judgement.Failing {
		if out := verify.OutputOf(l.Dir, v.ID); out != nil {
			o.Outputs = append(o.Outputs, *out)
		}
	}
	if v.Policy.Problem != nil {
		return notUnderstood(v.Policy, "what a landing needs is not known")
	}
	if i := slices.IndexFunc(wants, func(w note.Want) bool { return w.Command == "" && !o.Judgement.Passed(w) }); i >= 0 {
		o.VerifyWith = recordCommand(l, wants[i].Check, p.tree)
	}
	run, blocked := lacking(o.Judgement, wants)
	o.runs = !o.Verified && !blocked && len(run) > 0
	return cmp.Or(p.guard(ctx, l), stepsErr, soundPolicy(ctx, l, s, p))
}

// Log lists the newest landings of a lease's chain, and the overrides that moved a
// ref past it, newest first: at most n of both, or all when n is 0, with the
// landings whose event is a repair.
func Log(ctx context.Context, l *ledger.Ledger, w ledger.Want, n int) ([]Entry, error) {
	var entries []Entry
	var failed error
	var v ledger.View
	v, err := l.Fetch(ctx, w)
	if err != nil {
		return nil, err
	}
	if err := l.NoStory(ctx, v, "git", "land", "log"); err != nil {
		return nil, err
	}
	seen := newPresence(l, v)
	stepped := map[ulid.ULID][]event.StepResult{} // by motion, newest first
	at := v.Base                                  // where the branch was after the event, as far as is known
	err = lease.Walk(ctx, l, v, func(e event.Event) bool {
		entry := Entry{Event: e}
		if s := e.By.Step; s != nil {
			stepped[s.Motion] = append(stepped[s.Motion], *s)
		}
		switch {
		case e.Kind == event.Override:
			for _, u := range e.By.Updates {
				if u.Ref != v.Branch {
					continue
				}
				shown := true
				if e.By.Announced {
					if shown, failed = lease.Shows(ctx, l.Repo, u, at); failed != nil {
						return false
					}
					entry.Unseen = !shown
				}
				if shown {
					seen.moved(u)
				}
			}
		case e.By.Land == nil || e.Kind == event.Intent:
			return true
		default:
			if entry, failed = entryOf(ctx, l, v, e); failed != nil {
				return false
			}
			entry.Steps = stepsOf(*e.By.Land, stepped[e.By.Land.ID])
			if e.By.Land.Branch == v.Branch {
				if entry.Gone, entry.Removed, failed = seen.lacks(ctx, *e.By.Land); failed != nil {
					return false
				}
			}
		}
		if was, moved := lease.Expected(e, v.Branch); moved {
			at = was
		}
		entries = append(entries, entry)
		return n == 0 || len(entries) < n
	})
	return entries, errors.Join(failed, err)
}

// stepsOf are the steps that follow a landing, as the results, newest first, say.
func stepsOf(landing event.Landing, results []event.StepResult) (steps []note.Step) {
	for _, name := range strings.Fields(landing.Steps) {
		s := note.Step{Name: name}
		if i := slices.IndexFunc(results, func(r event.StepResult) bool { return r.Name == name }); i >= 0 {
			s.Outcome, s.DurationMS = results[i].Outcome, results[i].Took
		}
		steps = append(steps, s)
	}
	return steps
}

func entryOf(ctx context.Context, l *ledger.Ledger, v ledger.View, e event.Event) (Entry, error) {
	landing := e.By.Land
	entry := Entry{Event: e}
	blob, err := l.Note(ctx, v.Records, landing.Commit)
	if err != nil {
		return entry, err
	}
	entry.Record = note.Standing(note.ParseRecords(blob), landing.ID)
	if entry.Others, err = otherVerdicts(ctx, l, v, landing.Tree, entry.Record); err != nil {
		return entry, err
	}
	if c, err := l.Repo.Commit(ctx, landing.Commit); err == nil { // a shallow clone may lack it, and the log goes on
		entry.Subject, _, _ = strings.Cut(c.Message, "\n")
		entry.Author = c.Author[:strings.LastIndex(c.Author, ">")+1] // without the time
	}
	return entry, nil
}

// otherVerdicts are those on a tree that the record, which may be nil, does not have.
func otherVerdicts(ctx context.Context, l *ledger.Ledger, v ledger.View, tree object.OID, r *note.Record) ([]note.Verification, error) {
	blob, err := l.Note(ctx, v.Verifications, tree)
	if err != nil {
		return nil, err
	}
	var others []note.Verification
	for _, line := range note.ParseVerifications(blob) {
		recorded := func(v note.Verification) bool { return v.ID == line.Value.ID }
		if line.Err == nil && line.Value.Tree == tree && (r == nil || !slices.ContainsFunc(r.Verifications, recorded)) {
			others = append(others, line.Value)
		}
	}
	return others, nil
}

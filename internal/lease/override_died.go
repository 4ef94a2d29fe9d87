package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

// OverrideFormat is the format of an override's journal. It stands among those of
// landings, which have format 1: who knows that alone keeps its hands off it.
const OverrideFormat = 2

// An overrideJournal is what an override writes down before its push, so that
// another process can find out what became of that. Its first fields are those of
// every journal of this clone.
type overrideJournal struct {
	Format    int            `json:"format"`
	Operation ulid.ULID      `json:"operation"`
	Origin    session.Origin `json:"origin"`
	GitDir    string         `json:"git_dir"`
	Remote    string         `json:"remote"`
	Address   string         `json:"address"`
	Lease     string         `json:"lease"`
	Branch    object.Ref     `json:"branch"`

	Reason  string           `json:"reason"`
	Updates []event.Update   `json:"override"`
	Rewrite []object.Ref     `json:"rewrite,omitempty"`
	Apart   bool             `json:"refs_follow,omitempty"`
	Tries   []ledger.Attempt `json:"attempts"`
}

// write puts the journal on disk before a push that is about to be made.
func (p *past) write(v ledger.View, a ledger.Attempt, updates []event.Update) (err error) {
	j := &p.journal
	if p.witness == nil {
		if p.witness, err = p.l.Dir.Witness(j.Operation); err != nil {
			return err
		}
		if j.Origin, err = p.l.Dir.Origin(j.Operation); err != nil {
			return err
		}
		j.Format, j.GitDir, j.Remote, j.Address = OverrideFormat, p.l.Repo.Place(), p.l.Remote, p.l.Address()
		j.Lease, j.Branch, j.Reason, j.Rewrite = v.Name, v.Branch, p.o.Reason, p.o.Rewrite
	}
	j.Updates, j.Tries = updates, append(j.Tries, a)
	return p.l.Dir.Journal().Write(j.Operation, j)
}

// ended takes the journal away, unless it is not known what became of the override:
// then err names the command that finds out.
func (p *past) ended(err error) error {
	if p.witness == nil {
		return err
	}
	if !ledger.IsUnsettled(err) {
		return errors.Join(err, p.l.Dir.Journal().Remove(p.journal.Operation), p.witness.Remove())
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		resume := p.l.Command("git", "land", "resume", p.journal.Operation.String()) + "   (it asks what became of the override)"
		if f.Class == fault.Ambiguous { // the chain has to be mended first
			resume = f.Hint + "   (then: " + resume + ")"
		}
		f.WithHint("%s", resume)
	}
	return errors.Join(err, p.witness.Close())
}

// A DeadOverride is an override whose process died before it knew what became of its
// push, as its journal tells.
type DeadOverride struct {
	Want      ledger.Want // its lease and branch
	Operation ulid.ULID
	Updates   []event.Update
	Reason    string
	Rewrite   []object.Ref
	// Apart means that the refs follow the event, each in a push of its own.
	Apart bool
	Tries []ledger.Attempt // its pushes
}

// Again is the command line that makes it anew, on the same log.
func (o DeadOverride) Again(l *ledger.Ledger) string {
	var onto object.Ref
	if slices.ContainsFunc(o.Updates, func(u event.Update) bool {
		return u.Ref != o.Want.Branch && strings.HasPrefix(string(u.Ref), "refs/heads/")
	}) {
		onto = o.Want.Branch
	}
	return l.Command(OverrideWords(onto, o.Reason, o.Updates, o.Rewrite)...)
}

// A Settlement is what became of an override.
type Settlement struct {
	// Made means that it stands on the chain and has moved its refs. Otherwise, where it
	// is not Announced, nothing of it is there, and nothing can come: the chain has moved
	// past its push.
	Made bool
	// ByOthers means that its refs have what it was to bring, and that no event of its own
	// says so: somebody else's does, or others have gone on from there.
	ByOthers bool
	// Announced means that its event stands there, and that its refs were to follow.
	Announced bool
	// Left have not moved, as it was given up, and a push of the dead process may move
	// them still. Missed were moved elsewhere by others, and so can be no more.
	Left, Missed []event.Update
}

// Settle finds out what became of the override. Where a server took only a part, it adds
// the rest; what is not there it keeps from coming, by a void if need be, which gives why. Refs that
// follow their event are moved now, unless why says that the override is given up.
//
// The error is of class Held where it is not known yet, since the push may still
// arrive, and the lease is somebody else's, or frozen. from is the session that asks.
func (o DeadOverride) Settle(ctx context.Context, l *ledger.Ledger, from session.Source, why string) (Settlement, error) {
	brought, err := from.Load()
	if err != nil && !errors.Is(err, session.ErrNoToken) {
		return Settlement{}, err
	}
	e, others, err := o.outrun(ctx, l, brought.Root, why)
	if err != nil || e != nil && !o.Apart {
		return Settlement{Made: e != nil}, err
	}
	// In a connection of its own, after the chain: one listing is no snapshot.
	refs, err := l.Refs(ctx)
	if err != nil {
		return Settlement{}, err
	}
	if e == nil {
		made, err := o.complete(ctx, l, refs, others)
		if err != nil || made {
			return Settlement{Made: made}, err
		}
		for _, u := range o.Updates {
			if there, err := o.shown(ctx, l, u, refs[u.Ref]); err != nil || !there {
				return Settlement{}, err
			}
		}
		return Settlement{ByOthers: true}, nil
	}
	s := Settlement{Announced: true}
	for _, u := range e.By.Updates {
		moved, err := o.shown(ctx, l, u, refs[u.Ref])
		switch {
		case err != nil:
			return s, err
		case moved:
		case refs[u.Ref] == u.Old:
			s.Left = append(s.Left, u)
		default:
			s.Missed = append(s.Missed, u)
		}
	}
	if why == "" {
		if err := moveApart(ctx, l, *e, s.Left); err != nil {
			return s, err
		}
		s.Left = nil
	}
	s.Made = len(s.Left)+len(s.Missed) == 0
	return s, nil
}

// shown reports whether a ref that is at at has made a move that was announced, though
// others may have gone on from there.
func (o DeadOverride) shown(ctx context.Context, l *ledger.Ledger, u event.Update, at object.OID) (bool, error) {
	if at == u.New || at == u.Old || !strings.HasPrefix(string(u.Ref), "refs/heads/") {
		return at == u.New, nil
	}
	if v, err := l.Fetch(ctx, ledger.Want{Name: o.Want.Name, Branch: u.Ref}); err != nil || v.Base == "" {
		return false, err
	}
	return Shows(ctx, l.Repo, u, at)
}

// outrun moves the chain past the pushes of the override, unless one has arrived:
// that event is returned. others are those that came meanwhile.
func (o DeadOverride) outrun(ctx context.Context, l *ledger.Ledger, brought session.Root, why string) (arrived *event.Event, others []event.Event, err error) {
	reason := fmt.Sprintf("operation %s ended before its override was made", o.Operation)
	if why != "" {
		reason = event.CleanText(fmt.Sprintf("operation %s given up: %s", o.Operation, why), event.MaxText)
	}
	_, err = l.Append(ctx, o.Want, func(v ledger.View, d *ledger.Draft) error {
		fate, err := l.Trace(ctx, v, o.Tries)
		if err != nil {
			return err
		}
		if arrived, others = fate.Arrived, fate.Others; arrived != nil || !fate.Pending {
			return errMade
		}
		refs, err := l.Refs(ctx)
		if err != nil {
			return err
		}
		if o.moved(refs) {
			return errMade // the event that is missing moves the chain
		}
		act := event.Event{Kind: event.Void, By: event.By{Operation: o.Operation, Reason: reason}}
		switch hold := v.Hold(); {
		case v.Phase() == event.Frozen:
			err := InFrost(ctx, l, v)
			if f, ok := errors.AsType[*fault.Error](err); ok {
				f.What = fmt.Sprintf("the override of operation %s may still arrive, and %s", o.Operation, f.What)
				f.Hint += "   (then: " + l.Command("git", "land", "resume", o.Operation.String()) + ")"
			}
			return err
		case hold == nil:
		case Owns(brought, v.Tip) && hold.Intent.IsZero():
			act.By.Operation = hold.Operation
		default:
			f := Held(l, v, false)
			f.What = fmt.Sprintf("the override of operation %s may still arrive: %s", o.Operation, f.What)
			return f.WithHint("%s   (makes it now; or, when the lease is free: %s)", o.Again(l), l.Command("git", "land", "resume", o.Operation.String()))
		}
		if v.Tip == nil {
			if err := adopt(ctx, d, v); err != nil {
				return err
			}
		}
		_, err = d.Add(ctx, act)
		return err
	})
	if errors.Is(err, errMade) {
		err = nil
	}
	return arrived, others, err
}

// moved reports whether all refs are where the override was to move them.
func (o DeadOverride) moved(refs map[object.Ref]object.OID) bool {
	return !slices.ContainsFunc(o.Updates, func(u event.Update) bool { return refs[u.Ref] != u.New })
}

// complete appends the event of an override whose refs have moved without it: the
// server died between them. Where another event names a move, that brought it.
func (o DeadOverride) complete(ctx context.Context, l *ledger.Ledger, refs map[object.Ref]object.OID, others []event.Event) (bool, error) {
	named := func(e event.Event) bool {
		return slices.ContainsFunc(o.Updates, func(u event.Update) bool {
			return slices.ContainsFunc(e.By.Updates, func(x event.Update) bool { return x.Ref == u.Ref && x.New == u.New }) ||
				e.By.Land != nil && e.By.Land.Branch == u.Ref && e.By.Land.Commit == u.New
		})
	}
	if !o.moved(refs) || slices.ContainsFunc(others, named) {
		return false, nil
	}
	_, err := l.Append(ctx, o.Want, func(v ledger.View, d *ledger.Draft) error {
		if v.Tip == nil {
			if err := adopt(ctx, d, v); err != nil {
				return err
			}
		}
		_, err := d.Add(ctx, event.Event{Kind: event.Override, By: event.By{Operation: o.Operation, Reason: o.Reason, Updates: o.Updates}})
		return err
	})
	// A fence takes no override of what has moved already.
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Class == fault.Unreachable && !ledger.IsUnsettled(err) {
		f.WithHint("%s   (it writes down that the refs have moved; then: %s)", l.Command("git", "land", "reconcile", "--fix", "--reason", "WHY"), l.Command("git", "land", "resume", o.Operation.String()))
	}
	return err == nil, err
}

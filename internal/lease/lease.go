// Package lease owns the life of a lease: taking it, giving it back, running a
// command under it, breaking and recovering it, and beginning or mending its
// chain.
//
// It promises that a lease has at most one holder, that only the session with
// the token gives it back, and that whoever loses it is told who took it and
// why. It refuses to free a lease because of a PID alone, a host, a user name or
// the time that has passed.
package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/session"
)

// A Grant is a lease that was taken.
type Grant struct {
	Remote    string
	Name      string
	Operation ulid.ULID
	Fence     uint64 // the sequence of the event that took it; only ever grows
	Event     event.Event
}

// at is where the lease of a grant is.
func (g Grant) at() session.LeaseAt { return session.LeaseAt{Remote: g.Remote, Lease: g.Name} }

// Environ are the variables that prove and describe the grant to a command.
func (g Grant) Environ(root session.Root) []string {
	return []string{
		"GIT_LEASE_TOKEN=" + root.Hex(),
		"GIT_LEASE_OPERATION=" + g.Operation.String(),
		"GIT_LEASE_NAME=" + g.Name,
		"GIT_LEASE_REMOTE=" + g.Remote,
		fmt.Sprintf("GIT_LEASE_FENCE=%d", g.Fence),
	}
}

// Owns reports whether the session with the given token holds the lease after e.
func Owns(root session.Root, e *event.Event) bool {
	if e == nil || e.State.Hold == nil || root.IsZero() {
		return false
	}
	return event.Digest(SecretOf(root, e)) == e.State.Hold.Digest
}

// SecretOf is the secret that root has for the hold after e, whether or not it
// is the one that opens it.
func SecretOf(root session.Root, e *event.Event) string {
	return event.Secret(root.Bytes(), e.State.Hold.TakenBy, e.Root())
}

// An Acquisition asks for a lease.
type Acquisition struct {
	Want    ledger.Want
	Purpose string
	Root    session.Root // of the session; required
	Waiting Waiting
	// Operation is the id to take it under; the zero id makes a new one.
	Operation ulid.ULID
	// Unknown is the operation of an earlier Acquire with this Root of which it was not
	// known whether it had taken the lease; mostly zero. If it has, that is the grant.
	Unknown ulid.ULID
	// Motion and Steps announce steps that are to come under the hold, as in event.Hold.
	Motion ulid.ULID
	Steps  string
	// Chain is the first event that the chain has to have; empty for any, and for none.
	Chain object.OID
	// Tie is the PID of a process that the hold is to last as long as, so that
	// Recover can free it after that; 0 for none.
	Tie int
}

// Acquire takes a lease with one compare-and-swap at the authority. It returns
// a fault of class Held when somebody else, or this very session, has it and
// the wait is over, and at once when it is frozen; nothing has been changed then. When ctx ends it leaves
// nothing behind. After a ledger.UnsettledError the lease may be held, or come to be:
// the grant then has all but event and fence.
func Acquire(ctx context.Context, l *ledger.Ledger, a Acquisition) (Grant, error) {
	if a.Tie == 0 {
		return acquire(ctx, l, a, nil)
	}
	r := &recorder{ledger: l, tie: a.Tie} // which is of use when nobody has the witness locked
	grant, err := acquire(ctx, l, a, r)
	return grant, errors.Join(err, r.dismiss(err))
}

// acquire is Acquire; with a recorder it leaves a record of the operation in this clone.
func acquire(ctx context.Context, l *ledger.Ledger, a Acquisition, r *recorder) (Grant, error) {
	if a.Operation.IsZero() {
		a.Operation = l.NewID()
	}
	wait := NewWaiter(a.Waiting)
	for {
		var busy *event.Hold
		var own bool
		e, err := l.Append(ctx, a.Want, func(v ledger.View, d *ledger.Draft) error {
			a.Want.Name, a.Want.Branch = v.Name, v.Branch
			if a.Chain != "" && (v.Tip == nil || v.Tip.Root() != a.Chain) {
				return begunAnew(l, v)
			}
			if busy = v.Hold(); busy != nil {
				own = Owns(a.Root, v.Tip)
				if own && busy.Operation == a.Unknown {
					return errHeldSince
				}
				return Held(l, v, own)
			}
			if err := InFrost(ctx, l, v); err != nil {
				return err
			}
			if wait.yields(l, v, d.Actor()) {
				return errAfterYou
			}
			if r != nil { // before anything of it can be seen
				if err := r.takes(a.Operation, session.LeaseAt{Remote: l.Remote, Lease: v.Name}); err != nil {
					return err
				}
			}
			return Take(ctx, d, v, a)
		})
		if errors.Is(err, errAfterYou) {
			if err := wait.yield(ctx); err != nil {
				return Grant{}, err
			}
			continue
		}
		if errors.Is(err, errHeldSince) {
			return taken(ctx, l, a.Want, busy)
		}
		if e != nil && err != nil { // ctx ended just after it was taken
			err = errors.Join(err, giveBack(ctx, l, a.Want, a.Root))
		}
		if ledger.IsUnsettled(err) {
			return Grant{Remote: l.Remote, Name: a.Want.Name, Operation: a.Operation}, err
		}
		if e != nil && err != nil {
			return Grant{}, err
		}
		if err == nil {
			tidy(l, l.Dir.Sweep(session.LeaseAt{Remote: l.Remote, Lease: e.Name}, a.Operation))
			return Grant{Remote: l.Remote, Name: e.Name, Operation: a.Operation, Fence: e.Seq, Event: *e}, nil
		}
		if busy == nil || own || fault.ClassOf(err) != fault.Held || !wait.Again(ctx, *busy) {
			return Grant{}, errors.Join(err, ctx.Err())
		}
	}
}

// errHeldSince ends an acquire by the finding that an earlier one has the lease.
var errHeldSince = errors.New("an earlier acquire has taken it")

// taken is the grant of a hold, as it was given.
func taken(ctx context.Context, l *ledger.Ledger, w ledger.Want, h *event.Hold) (Grant, error) {
	g := Grant{Remote: l.Remote, Name: w.Name, Operation: h.Operation, Fence: h.Fence}
	v, err := l.Fetch(ctx, w)
	if err != nil {
		return g, err
	}
	err = Walk(ctx, l, v, func(e event.Event) bool {
		if e.ID == h.TakenBy {
			g.Event = e
		}
		return g.Event.OID == ""
	})
	return g, err
}

// NotKnown is the fault of a lease of which it is not known whether g came to be. again
// is the command line that finds out.
func NotKnown(g Grant, cause error, again string) error {
	f := fault.New(fault.Unreachable, "it is not known whether operation %s has taken the lease %s: %w", g.Operation, g.Name, cause).
		WithHint("%s", again)
	if told, ok := errors.AsType[*fault.Error](cause); ok && told.Class == fault.Ambiguous { // the chain has to be mended first
		f.Class, f.Facts = told.Class, told.Facts
		f.WithHint("%s   (then: %s)", told.Hint, again)
	}
	return f
}

// Take adds to a draft the events by which a takes the free lease of v,
// beginning its chain where there is none.
func Take(ctx context.Context, d *ledger.Draft, v ledger.View, a Acquisition) error {
	if err := adopt(ctx, d, v); err != nil {
		return err
	}
	return taking(ctx, d, v, a, event.Event{Kind: event.Acquire})
}

// adopt puts the target branch under the lease that is named after it. A lease
// of another name is for something else, and has no branch.
func adopt(ctx context.Context, d *ledger.Draft, v ledger.View) error {
	branch, tip := v.Branch, v.Base
	if v.Name != v.Branch.Branch() {
		branch, tip = "", ""
	}
	return d.Adopt(ctx, branch, tip)
}

// taking adds an event after which a's operation holds the lease.
func taking(ctx context.Context, d *ledger.Draft, v ledger.View, a Acquisition, act event.Event) error {
	act.ID = d.NewID()
	act.By.Operation = a.Operation
	act.State.Hold = &event.Hold{
		Operation: a.Operation,
		Holder:    d.Actor(),
		Host:      d.Host(),
		Purpose:   event.CleanText(a.Purpose, event.MaxText),
		Digest:    event.Digest(event.Secret(a.Root.Bytes(), act.ID, d.Tip().Root())),
		Motion:    a.Motion,
		Steps:     a.Steps,
	}
	_, err := d.Add(ctx, act)
	return err
}

// Held is the fault of a lease that is in the way. own says that it is this
// session's.
func Held(l *ledger.Ledger, v ledger.View, own bool) *fault.Error {
	h := v.Hold()
	facts := map[string]any{
		"lease": v.Name, "remote": l.Remote, "state": event.Held, "operation": h.Operation.String(), "holder": h.Holder, "host": h.Host,
		"purpose": h.Purpose, "since": h.Since, "age_seconds": int(l.Now().Sub(h.Since).Seconds()), "fence": h.Fence, "own": own,
	}
	coming := ""
	if h.Steps != "" {
		facts["motion"], facts["steps"], facts["stuck"] = h.Motion.String(), h.Pending(), h.Stuck
		coming = ", " + Coming(*h)
	}
	if own && coming != "" {
		return fault.New(fault.Held, "the lease %s is held by this session already, as operation %s%s", v.Name, h.Operation, coming).
			WithHint("%s", StepsCommands(l, *h)).WithFacts(facts)
	}
	if own {
		return fault.New(fault.Held, "the lease %s is held by this session already, as operation %s", v.Name, h.Operation).
			WithHint("%s", l.Command("git", "lease", "release", v.Name)).WithFacts(facts)
	}
	return fault.New(fault.Held, "the lease %s is held by %s%s", v.Name, Describe(*h, l.Now()), coming).
		WithHint("if that operation is dead: %s", FreeCommand(l, v)).
		WithFacts(facts)
}

// isFree is the fault of a lease that is free, so that there is nothing to end: to
// thaw, say. It is of class Held, as where the lease stands otherwise than it would have
// to; its facts tell them apart.
func isFree(l *ledger.Ledger, v ledger.View, what string) *fault.Error {
	return fault.New(fault.Held, "the lease %s is free: there is nothing to %s", v.Name, what).
		WithHint("%s", l.Command("git", "lease", "show", v.Name)).
		WithFacts(map[string]any{"lease": v.Name, "remote": l.Remote, "state": event.Free})
}

// FreeCommand is the command by which somebody else's lease is freed, if its
// operation is dead: by the end of its landing, where that has a journal here; with
// proof, where this clone may have it; else by breaking it, and so that what it
// announced, or the steps that are to come, can be taken over.
func FreeCommand(l *ledger.Ledger, v ledger.View) string {
	h := v.Hold()
	if here, ok := landingHere(l, *h); ok {
		return l.Command("git", "land", "resume", here.operation.String())
	}
	switch {
	case h.Steps != "":
		return TakeCommand(l, v)
	case l.Dir.Recorded(h.Operation):
		return l.Command("git", "lease", "recover", v.Name)
	case !h.Intent.IsZero():
		return TakeCommand(l, v)
	}
	return BreakCommand(l, v)
}

// BreakCommand is the whole command that takes the lease off its holder.
func BreakCommand(l *ledger.Ledger, v ledger.View) string { return breakCommand(l, v, "WHY", false) }

// TakeCommand is the whole command that takes the lease off its holder, for the
// session that gives it.
func TakeCommand(l *ledger.Ledger, v ledger.View) string { return breakCommand(l, v, "WHY", true) }

func breakCommand(l *ledger.Ledger, v ledger.View, reason string, take bool) string {
	words := []string{"git", "lease", "break", v.Name, "--operation", v.Hold().Operation.String(), "--reason", reason}
	if !take {
		return l.Command(words...)
	}
	return Eval(l.Command(append(words, "--acquire")...))
}

// A landingLeft is a landing that has a journal in this clone.
type landingLeft struct {
	operation ulid.ULID
	alive     bool // it is under way
}

// landingHere looks for the landing of a hold: that which took the lease, or that
// which was announced under it, or whose steps are to come.
func landingHere(l *ledger.Ledger, h event.Hold) (landingLeft, bool) {
	ids, err := l.Dir.Journal().List()
	if err != nil {
		return landingLeft{}, false // it is worth a hint, and no failure
	}
	for _, id := range ids {
		var j struct{ Hold ulid.ULID }
		if id != h.Operation && (h.Intent.IsZero() && h.Motion.IsZero() || l.Dir.Journal().Load(id, &j) != nil || j.Hold != h.Operation) {
			continue
		}
		alive, _ := l.Dir.Alive(id)
		return landingLeft{id, alive}, true
	}
	return landingLeft{}, false
}

// Eval is a command whose output a shell has to evaluate. It does no harm where
// nothing is printed because the session's file keeps the token.
func Eval(command string) string { return fmt.Sprintf(`eval "$(%s)"`, command) }

// Describe says who holds a lease, in one line.
func Describe(h event.Hold, now time.Time) string {
	text := h.Holder
	if h.Host != "" {
		text += " on " + h.Host
	}
	if h.Purpose != "" {
		text += fmt.Sprintf(" (%s)", h.Purpose)
	}
	return fmt.Sprintf("%s for %s, operation %s", text, Age(now.Sub(h.Since)), h.Operation)
}

// Age is a duration as people say it, "3m"; clocks differ, so it is never
// negative and never decides anything.
func Age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

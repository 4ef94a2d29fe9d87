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
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
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

// Environ are the variables that prove and describe the grant to a command; with the zero
// root, of one that is somebody else's, they prove nothing.
func (g Grant) Environ(root session.Root) []string {
	environ := []string{
		"GIT_LEASE_OPERATION=" + g.Operation.String(),
		"GIT_LEASE_NAME=" + g.Name,
		"GIT_LEASE_REMOTE=" + g.Remote,
		fmt.Sprintf("GIT_LEASE_FENCE=%d", g.Fence),
	}
	if !root.IsZero() {
		environ = append(environ, "GIT_LEASE_TOKEN="+root.Hex())
	}
	return environ
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
		return TakeCommand(l, v) + " && " + l.Command("git", "land", "resume", h.Operation.String())
	case l.Dir.Recorded(h.Operation):
		return l.Command("git", "lease", "recover", v.Name)
	case !h.Intent.IsZero():
		return TakeCommand(l, v) + " && " + l.Command("git", "land", "resume", h.Operation.String())
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

package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
)

// A Publication moves refs of the authority, all or none.
type Publication struct {
	Moves []git.Move
	// Hooks runs the user's pre-push hook; for landings.
	Hooks   bool
	Environ []string // added to git's environment, for hooks
	// Message is the reflog line where the authority is this repository.
	Message string
}

// HookEnviron tells a pre-push hook of ours which operation pushes, and which event
// accounts for what moves.
func HookEnviron(op ulid.ULID, event object.OID) []string {
	return []string{"GIT_LEASE_OPERATION=" + op.String(), "GIT_LEASE_EVENT=" + string(event)}
}

// An Outcome is how a publication went as far as its own answer tells.
type Outcome struct {
	// Done means that every ref moved. Without it nothing is known: the
	// authority has to be read.
	Done bool
	// Said is what git or the remote said of a publication that is not done.
	Said error
	// Unsent means that nothing was sent: a pre-push hook of this clone refused.
	Unsent bool
	// Refused means that the authority has answered for every ref that it did not
	// move it. It has to be read all the same: a server can be wrong about what it
	// did. But what is found unmoved then cannot be moved by this publication later.
	Refused bool
	// Declined means that it was refused in the words of a rule, so that the same
	// again would be in vain. Nothing else is decided by words.
	Declined bool
}

// Publish moves refs of the authority. The error is for a publication that
// could not be tried.
func (l *Ledger) Publish(ctx context.Context, p Publication) (Outcome, error) {
	if l.IsLocal() {
		err := l.Repo.MoveRefs(ctx, p.Message, p.Moves...)
		return Outcome{Done: err == nil, Said: err}, nil
	}
	result, err := l.Repo.Push(ctx, git.Push{Remote: l.remote, Moves: p.Moves,
		Atomic: len(p.Moves) > 1, Hooks: p.Hooks, Environ: p.Environ})
	if err != nil {
		return Outcome{}, err
	}
	if result.Complete {
		return Outcome{Done: true}, nil
	}
	if len(p.Moves) > 1 && result.Err != nil && strings.Contains(result.Err.Error(), "does not support --atomic push") {
		return Outcome{Said: saidOf(result), Unsent: result.Unsent}, l.notAtomic()
	}
	return Outcome{Said: saidOf(result), Unsent: result.Unsent, Refused: result.Rejected, Declined: result.Rejected && declined(result)}, nil
}

// rules are words in which servers say no by a rule of theirs: a hook, a
// protected branch, a missing permission. Their words for a race are others.
var rules = []string{"declined", "prohibited", "denied", "deny ", "not permitted", "not allowed", "protected", "permission", "checked out"}

func declined(result git.PushResult) bool {
	for _, status := range result.Refs {
		if slices.ContainsFunc(rules, func(word string) bool { return strings.Contains(strings.ToLower(status.Reason()), word) }) {
			return true
		}
	}
	return false
}

// saidOf gathers what a push said, for people.
func saidOf(result git.PushResult) error {
	if result.Rejected {
		return wordsOf(result)
	}
	var parts []string
	for ref, status := range result.Refs {
		if !status.OK {
			parts = append(parts, fmt.Sprintf("%s %s", ref, status.Summary))
		}
	}
	slices.Sort(parts)
	if result.Err != nil {
		parts = append(parts, result.Err.Error())
	}
	return errors.New(strings.Join(parts, "; "))
}

// wordsOf are the words in which a remote refused a push: its reason, or reasons,
// and whatever its hooks said, line by line.
func wordsOf(result git.PushResult) error {
	reasons := map[string][]string{}
	for ref, status := range result.Refs {
		reasons[status.Reason()] = append(reasons[status.Reason()], string(ref))
	}
	var parts []string
	for reason, refs := range reasons {
		slices.Sort(refs)
		if len(reasons) > 1 {
			reason += " (" + strings.Join(refs, ", ") + ")"
		}
		parts = append(parts, reason)
	}
	slices.Sort(parts)
	text := strings.Join(parts, "; ")
	if e, ok := errors.AsType[*git.Error](result.Err); ok {
		for line := range strings.Lines(e.Stderr) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "remote:") {
				text += "\n" + line
			}
		}
	}
	return errors.New(text)
}

// A refusal is a write that the authority has refused, and that cannot arrive.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// IsRefusal reports whether err says that the authority refused a write by its
// own answer, and was read and found unmoved after that: nothing has been changed,
// nor can it be by that write later.
func IsRefusal(err error) bool {
	_, refused := errors.AsType[*refusal](err)
	return refused
}

// refused is the fault of a push to ref that the authority does not take.
func (l *Ledger) refused(said error, ref object.Ref) *fault.Error {
	return fault.New(fault.Unreachable, "%s refused the write to %s: %w", l.Remote, ref, said).
		WithHint("have %s take pushes to %s, by whoever keeps it, then run this again", l.Remote, ref)
}

package land

import (
	"context"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/session"
)

// takenOff is the fault, of class Lost, to tell a session that was given the lease
// of v and had it broken or recovered since; nil for any other.
func takenOff(ctx context.Context, l *ledger.Ledger, v ledger.View, from session.Source, s session.Session) (*fault.Error, error) {
	if lease.Owns(s.Root, v.Tip) || !believes(l, v, from, s) {
		return nil, nil
	}
	end, err := lease.Ending(ctx, l, v, s.Root)
	if err != nil || end == nil {
		return nil, err
	}
	f := end.Lost(l)
	if f == nil {
		return nil, nil // it gave the lease back itself
	}
	if from.Kind() == session.FromVar {
		return f.WithHint("unset GIT_LEASE_TOKEN   (then run git land again, as somebody who holds nothing)"), nil
	}
	return f.WithHint("%s   (it forgets the hold; then run git land again)", l.Command("git", "lease", "release", v.Name)), nil
}

// believes reports whether the session was given the lease, as far as its
// environment or its file remember. A bare token may be of any lease.
func believes(l *ledger.Ledger, v ledger.View, from session.Source, s session.Session) bool {
	if from.Kind() == session.FromVar && len(s.Holds) == 0 {
		return true
	}
	return slices.ContainsFunc(s.Holds, func(h session.HoldNote) bool { return h.Name == v.Name && h.Remote == l.Remote })
}

// next is the one thing to do next, a command or a sentence with it: the first of
// what git land would stop at. It is "" where there is nothing to land.
func (o Outlook) next(l *ledger.Ledger, s Selection) string {
	for _, u := range o.Unfinished {
		switch {
		case u.gitDir != l.Repo.Place(), (u.checking || u.Override) && (u.Alive || u.Doubt != ""):
		case u.Alive:
			return "wait until operation " + u.Operation.String() + " has ended"
		case u.Doubt != "":
			return u.Next
		default:
			return "git land resume"
		}
	}
	landing := []string{"git", "land"}
	if o.Kind != string(fromCommits) {
		landing = append(landing, "-m", Message)
	}
	switch f, told := o.Problem.(*fault.Error); {
	case o.Ambiguous:
		return o.chain.Hint
	case o.Lost != nil:
		return o.Lost.Hint
	case told:
		return f.Hint
	case o.Kind == nothing:
		return ""
	case o.Frost != nil:
		return "when that is over: " + o.Frost.Thaw
	case !o.Verified && !o.runs:
		return o.VerifyWith
	case o.Hold != nil && !o.OwnHold:
		return withSelection(l, append(landing, "--timeout", "10m"), s) + "   (or, " + o.inTheWay + ")"
	}
	return withSelection(l, landing, s)
}

// Message stands in hints for a commit message, and is none.
const Message = "what the change does"

// nothing is what would land where there is nothing to land.
const nothing = "nothing"

// again is the whole command that lands the change of j once more, as far as its
// journal tells; "" where it does not.
func (j journal) again(ctx context.Context, l *ledger.Ledger) string {
	s := Selection{Allow: j.Allow, Mode: j.Mode, Head: j.Rev, ExpectBase: j.ExpectBase, ExpectHead: j.ExpectHead}
	words := []string{"git", "land"}
	if n := len(j.Attempts); n > 0 && j.Attempts[n-1].Land.Unverified != "" {
		words = append(words, "--force-unverified", "--reason", j.Attempts[n-1].Land.Reason)
	}
	if j.Command != "" {
		if !onLine(j.Command) {
			return ""
		}
		words = append(words, "-x", j.Command)
		if j.Check != "" && j.Check != DefaultCheck {
			words = append(words, "--check", j.Check)
		}
	}
	if j.NoVerify {
		words = append(words, "--no-verify")
	}
	for _, word := range stepWords(j.Typed) {
		if !onLine(word) {
			return ""
		}
		words = append(words, word)
	}
	if j.Text != "" {
		for paragraph := range strings.SplitSeq(strings.TrimSpace(j.Text), "\n\n") {
			if !onLine(paragraph) {
				return ""
			}
			words = append(words, "-m", paragraph)
		}
	} else if j.Kind != fromCommits {
		return ""
	}
	if j.Unit != j.Landing.String() && j.Unit != j.Local.Branch() {
		s.Unit = j.Unit
	}
	s.Want.Branch = j.Branch // which need not be what would be landed on without it
	if j.Kind == fromPaths {
		c, err := j.change(ctx, l.Repo)
		if err != nil {
			return ""
		}
		s.Paths = c.paths()
		if len(s.Paths) > maxAgain {
			return ""
		}
		s.Paths = pathspecs(l.Repo, s.Paths)
	}
	return withSelection(l, words, s)
}

// pathspecs are paths from the top as they have to be typed here.
func pathspecs(repo *git.Repo, paths []string) []string {
	var specs []string
	for _, p := range paths {
		switch {
		case strings.ContainsAny(p, "*?[\\") || strings.HasPrefix(p, ":"):
			p = ":(top,literal)" + p
		case repo.Prefix != "":
			p = ":/" + p
		}
		specs = append(specs, p)
	}
	return specs
}

// onLine reports whether a word is fit for a command line to copy.
func onLine(word string) bool { return !strings.Contains(word, "\n") && len(word) <= 200 }

// maxAgain is how many paths a command line to copy may have.
const maxAgain = 20

// OperationOf is the fault, of class Usage, to tell somebody who gave word where an
// operation is wanted, and it names something else of one: a landing's id, or its
// unit. It is nil where word means nothing here. A reason means that it was to be
// given up.
func OperationOf(ctx context.Context, l *ledger.Ledger, v ledger.View, word, reason string) error {
	var op ulid.ULID
	what := ""
	list, _ := ListUnfinished(l.Dir)
	for _, u := range list {
		switch word {
		case u.landing.String():
			op, what = u.Operation, "the id of a landing"
		case u.unit:
			op, what = u.Operation, "the unit of a landing"
		}
	}
	if what == "" {
		op, what = lease.Named(ctx, l, v, word)
	}
	if what == "" {
		return nil
	}
	command := l.Command("git", "land", "resume", op.String())
	if reason != "" {
		command = l.Command("git", "land", "abort", op.String(), "--reason", reason)
	}
	return fault.New(fault.Usage, "%q is %s, of operation %s, and no operation", word, what, op).WithHint("%s", command)
}

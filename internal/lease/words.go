package lease

import (
	"context"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/ledger"
)

// placeholders stand in our hints and usages for words that only the user has.
var placeholders = []string{"WHY", "REASON", "TEXT", "NOTE", "MESSAGE", "...", "…"}

// Stands reports whether text only stands for words that the user was to give: it
// was copied from a hint or a usage, as it is or in small letters.
func Stands(text string) bool {
	text = strings.TrimSpace(text)
	return slices.ContainsFunc(placeholders, func(p string) bool { return strings.EqualFold(p, text) })
}

// Reason is a reason as it goes on the record. It refuses (Usage) an empty one, and
// one that is only copied from a hint: act is what is done on the record ("a lease
// is broken"), and like an example of a reason.
func Reason(text, act, like string) (string, error) {
	text = strings.TrimSpace(event.CleanText(text, event.MaxText))
	switch {
	case text == "":
		return "", fault.New(fault.Usage, "%s on the record: the reason is empty", act).WithHint("add --reason '%s'", like)
	case Stands(text) || text == like:
		return "", fault.New(fault.Usage, "%s on the record: %q only stands for the reason", act, text).
			WithHint("say why in its place: --reason '%s'", like)
	}
	return text, nil
}

// noLease is the fault, of class Usage, of a name under which the authority has no
// lease, where somebody gave that name, and of one that they may have meant.
func noLease(ctx context.Context, l *ledger.Ledger, v ledger.View) error {
	f := fault.New(fault.Usage, "there is no lease %s at %s", v.Name, l.Remote)
	begin := l.Command("git", "lease", "adopt", v.Name)
	names, err := l.Names(ctx)
	if err != nil {
		return err
	}
	if v.Branch != "" {
		names = append(names, v.Branch.Branch())
	}
	for _, n := range names {
		if Misspelt(v.Name, n) {
			return f.WithHint("did you mean %s?   (or, to begin the lease %s: %s)", n, v.Name, begin)
		}
	}
	return f.WithHint("git lease   (it lists those there are; or, to begin the lease %s: %s)", v.Name, begin)
}

// named reports whether v is of a name that was given, and is nothing's yet. The
// target branch's own is begun by whoever comes first.
func named(v ledger.View, given string) bool {
	return given != "" && v.Tip == nil && v.Problem == nil && v.Name != v.Branch.Branch()
}

// Misspelt reports whether a is b with one letter too many, too few or wrong, or
// with two neighbours exchanged.
func Misspelt(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) || a[i+1:] == b[i+1:] {
		return i < len(a)
	}
	return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// lookForWord bounds the search for what a word names, in events.
const lookForWord = 1000

// Named finds the operation that somebody may have meant who gave another word of
// a chain: the id or the unit of a landing, or the id of an event. what says which
// of them it is, and is "" when it is none, or of long ago.
func Named(ctx context.Context, l *ledger.Ledger, v ledger.View, word string) (op ulid.ULID, what string) {
	n := 0
	_ = Walk(ctx, l, v, func(e event.Event) bool { // what cannot be read names nothing
		switch land := e.By.Land; {
		case land != nil && land.ID.String() == word:
			op, what = e.By.Operation, "the id of a landing"
		case land != nil && land.Unit == word:
			op, what = e.By.Operation, "the unit of a landing"
		case e.ID.String() == word || string(e.OID) == word:
			op, what = e.By.Operation, "the id of an event"
		}
		n++
		return what == "" && n < lookForWord
	})
	if op.IsZero() { // an adopt has none
		what = ""
	}
	return op, what
}

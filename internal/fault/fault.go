// Package fault owns how a refusal is told: its class, one sentence, the way
// on, and the facts that a program may want. Commands map the class to an exit
// code; no other package knows exit codes.
//
// An error that is not a *Error is an unexpected failure.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Class says why something was refused. The words are stable: they are the
// "code" of --json output.
type Class string

// The classes. The comment gives the exit code that both tools use for it.
const (
	Failed      Class = "failed"      // 1: an expected failure of something we ran, such as a step
	Held        Class = "held"        // 3: the lease is held, frozen, not provably gone, or free already
	Unverified  Class = "unverified"  // 4: no passing verification, or the check just failed
	Conflict    Class = "conflict"    // 5: conflict with the base, a guard, an ambiguous choice
	Lost        Class = "lost"        // 6: the lease was broken or recovered while in use
	Disagree    Class = "disagree"    // 7: reconcile found disagreements
	Ambiguous   Class = "ambiguous"   // 8: chain malformed, rewritten, deleted, of a newer format
	Unreachable Class = "unreachable" // 9: authority unreachable, refused the write, cannot compare and swap
	Usage       Class = "usage"       // 129
)

// An Error is a refusal as a user meets it.
type Error struct {
	Class Class
	// What is one sentence without a full stop: what happened, to what.
	What string
	// Details are further lines on what happened, shown below What, one by one; mostly
	// there are none. What a program wants of them is in Facts.
	Details []string
	// Hint is the whole next command, or a sentence with it; may be empty.
	Hint string
	// Facts are for --json, merged into the "error" object; may be nil. Keys
	// are snake_case.
	Facts map[string]any
	// Err is the cause, already told in What; may be nil.
	Err error
}

func (e *Error) Error() string { return e.What }

func (e *Error) Unwrap() error { return e.Err }

// New makes an Error with a formatted sentence. The operand of a %w becomes
// the cause, as with fmt.Errorf.
func New(class Class, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Class: class, What: err.Error(), Err: errors.Unwrap(err)}
	if _, several := err.(interface{ Unwrap() []error }); several {
		e.Err = err
	}
	return e
}

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithDetails adds lines to the details and returns e.
func (e *Error) WithDetails(lines ...string) *Error {
	e.Details = append(e.Details, lines...)
	return e
}

// WithFacts sets the facts and returns e.
func (e *Error) WithFacts(facts map[string]any) *Error {
	e.Facts = facts
	return e
}

// ClassOf returns the class of the first *Error in err's chain, or "".
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ""
}

// Command joins words into a command line that can be copied from a terminal into a
// shell, for hints: a word that a terminal does not show as it is stands there spelt out.
// Empty words are left out.
func Command(words ...string) string {
	var quoted []string
	for _, w := range words {
		switch {
		case w == "":
		case strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,") == "":
			quoted = append(quoted, w)
		case !utf8.ValidString(w) || strings.ContainsFunc(w, Hostile):
			quoted = append(quoted, spelt(w))
		default:
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
	}
	return strings.Join(quoted, " ")
}

// spelt is a word of bytes that no terminal shows, for a shell. $'...' would be shorter,
// but dash (before 0.5.13) takes it for another word, without an error: only what a
// substitution drops, which are newlines at the end, is written so.
func spelt(word string) string {
	text := strings.TrimRight(word, "\n")
	var b strings.Builder
	if text != "" {
		b.WriteString(`"$(printf '`)
		for i := 0; i < len(text); {
			r, size := utf8.DecodeRuneInString(text[i:])
			switch {
			case r == '\n':
				b.WriteString(`\n`)
			case r == utf8.RuneError && size == 1, Hostile(r), strings.ContainsRune(notPrintf, r), r == '-' && i == 0:
				for _, c := range []byte(text[i : i+size]) {
					fmt.Fprintf(&b, `\%03o`, c)
				}
			default:
				b.WriteRune(r)
			}
			i += size
		}
		b.WriteString(`')"`)
	}
	if newlines := len(word) - len(text); newlines > 0 {
		b.WriteString("$'" + strings.Repeat(`\n`, newlines) + "'")
	}
	return b.String()
}

// notPrintf are what printf, or a shell, takes for its own; bash has its history even here.
const notPrintf = `'%\!`

// Hostile reports whether a terminal would obey r instead of showing it: the
// control characters (C0, DEL, C1), line and paragraph separators, and the
// marks and overrides of bidirectional text.
func Hostile(r rune) bool {
	switch {
	case unicode.IsControl(r):
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

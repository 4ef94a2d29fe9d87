package event

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"gitland/internal/object"
)

// MaxText is the most bytes that one text field of an event may have.
const MaxText = 1 << 10

// maxUnix is the last second of the year 9999, the last that has four digits.
const maxUnix = 253402300799

// CleanText makes any text fit for an event: one line of at most max bytes of
// UTF-8, without control characters, without those that reorder the text
// around them, and without space at its ends. Cleaning clean text changes
// nothing.
func CleanText(s string, max int) string {
	if len(s) <= max && isPlain(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if misleads(r) {
			return ' '
		}
		return r // the bytes of invalid UTF-8 arrive here as U+FFFD
	}, s)
	s = strings.TrimSpace(s)
	if len(s) > max {
		end := 0
		for end < max {
			_, size := utf8.DecodeRuneInString(s[end:])
			if end+size > max {
				break
			}
			end += size
		}
		s = strings.TrimSpace(s[:end])
	}
	return s
}

// isPlain reports whether s is clean for a reason that is quickly seen: printable
// ASCII, with no space at its ends.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s == "" || s[0] != ' ' && s[len(s)-1] != ' '
}

// misleads reports whether r breaks a line, drives a terminal, or makes a
// reader see text in another order than it has (U+202A-202E, U+2066-2069).
func misleads(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' ||
		r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// ParseIdent splits an identity as git prints it ("git var
// GIT_COMMITTER_IDENT"), "Name <email> seconds zone", into what Event.Actor
// and Event.Time hold. The actor is cleaned.
func ParseIdent(ident string) (actor string, when time.Time, err error) {
	bad := func(what string) (string, time.Time, error) {
		return "", time.Time{}, fmt.Errorf("identity %q: %s", clip(ident), what)
	}
	name, rest, ok := strings.Cut(ident, " <")
	email, date, ok2 := strings.Cut(rest, "> ")
	if !ok || !ok2 || strings.ContainsAny(name+email+date, "<>") {
		return bad("want Name <email> seconds zone")
	}
	if name = CleanText(name, MaxText); name == "" {
		return bad("the name is empty")
	}
	if actor = name + " <" + CleanText(email, MaxText) + ">"; strings.HasPrefix(ident, actor) {
		actor = ident[:len(actor)] // which is there anyway
	}
	if len(actor) > MaxText {
		return bad("longer than " + strconv.Itoa(MaxText) + " bytes")
	}
	seconds, zone, _ := strings.Cut(date, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || unix < 0 || unix > maxUnix {
		return bad("the date is out of range")
	}
	if zone == "+0000" {
		return actor, time.Unix(unix, 0).In(utc), nil
	}
	// The layout takes a zone of up to 24 hours and 60 minutes.
	at, err := time.Parse("-0700", zone)
	if err != nil {
		return bad("the zone is not four digits with a sign")
	}
	_, offset := at.Zone()
	return actor, time.Unix(unix, 0).In(time.FixedZone("", offset)), nil
}

// utc is a zone without a name, as every zone of git's is.
var utc = time.FixedZone("", 0)

// Ident is the identity that git would write for e's author, the inverse of
// ParseIdent.
func (e Event) Ident() string { return string(e.appendIdent(nil)) }

func (e *Event) appendIdent(b []byte) []byte {
	b = append(append(b, e.Actor...), ' ')
	b = append(strconv.AppendInt(b, e.Time.Unix(), 10), ' ')
	return e.Time.AppendFormat(b, "-0700")
}

// Secret is what proves that a hold is one's own: derived from the session's
// root for one taking event of one chain, so that revealing it opens no other
// hold and no other chain.
func Secret(root [32]byte, takenBy ulid.ULID, chainFirst object.OID) string {
	mac := hmac.New(sha256.New, root[:])
	mac.Write([]byte(takenBy.String()))
	mac.Write([]byte(chainFirst))
	return hex.EncodeToString(mac.Sum(nil))
}

// Digest is what a chain shows of a secret while its hold lasts.
func Digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// clip keeps error messages short, whatever somebody pushed.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

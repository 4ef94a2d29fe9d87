package session

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// redacted is what every text has in place of a token.
const redacted = "[token]"

// A Root is the token of a session: 256 random bits from which the secret of
// each of its holds is derived. It prints as "[token]" however it is printed,
// and cannot be encoded by accident: Hex is the only way to its text.
//
// The zero Root is no token. Roots are compared with Equal.
type Root struct {
	// In a closure, since fmt does not ask the methods of a value in an
	// unexported field: it would print the bytes of an array, and of one behind
	// a pointer for a verb that does not fit. It also rules out ==.
	key func() [32]byte
}

// NewRoot makes a token.
func NewRoot() Root {
	var key [32]byte
	rand.Read(key[:]) // never fails, it ends the program instead
	return rootOf(key)
}

// ParseRoot reads a token as Hex writes it. Its error does not quote the text,
// which may be a token but for one character.
func ParseRoot(text string) (Root, error) {
	var key [32]byte
	if len(text) != hex.EncodedLen(len(key)) || strings.ToLower(text) != text {
		return Root{}, errNotRoot
	}
	if _, err := hex.Decode(key[:], []byte(text)); err != nil {
		return Root{}, errNotRoot
	}
	return rootOf(key), nil
}

func rootOf(key [32]byte) Root { return Root{func() [32]byte { return key }} }

var errNotRoot = errors.New("token: want 64 lower-case hexadecimal digits")

// IsZero reports whether r is no token.
func (r Root) IsZero() bool { return r.key == nil }

// Equal compares two tokens in constant time. No token equals the zero Root,
// not even itself.
func (r Root) Equal(other Root) bool {
	if r.IsZero() || other.IsZero() {
		return false
	}
	a, b := r.key(), other.key()
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Hex is the token in clear, for GIT_LEASE_TOKEN and for a private file. It
// panics on the zero Root, as Bytes does: a secret must not be derived from
// nothing.
func (r Root) Hex() string {
	key := r.Bytes()
	return hex.EncodeToString(key[:])
}

// Bytes is the token as the key of which secrets are derived.
func (r Root) Bytes() [32]byte {
	if r.IsZero() {
		panic("session: use of the zero Root")
	}
	return r.key()
}

// String is "[token]".
func (Root) String() string { return redacted }

// GoString is "[token]".
func (Root) GoString() string { return redacted }

// Format prints "[token]" for every verb.
func (Root) Format(s fmt.State, _ rune) { io.WriteString(s, redacted) }

// MarshalJSON refuses. It does not redact: a journal with a redacted token
// would be found worthless only when it is needed.
func (Root) MarshalJSON() ([]byte, error) { return nil, errEncode }

// MarshalText refuses, as MarshalJSON does.
func (Root) MarshalText() ([]byte, error) { return nil, errEncode }

var errEncode = errors.New("token: refusing to encode, store Hex where it belongs")

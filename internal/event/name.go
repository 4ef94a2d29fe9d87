package event

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// maxName is the most bytes of an encoded name. With the namespace before it
// and ".lock" after it, it stays within what file systems take for one name.
const maxName = 200

// EncodeName turns a lease's name into one component of a ref name. No two
// names share an encoding, not even on a disk that folds case or composes
// Unicode; no encoding is a file that Windows keeps for a device, or one that
// git refuses. What is not [a-z0-9._-], and a dot or letter in a bad place,
// becomes %xx.
func EncodeName(name string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("the name of a lease is empty")
	}
	if name != CleanText(name, MaxText) {
		return "", fmt.Errorf("lease name %q is not clean text", clip(name))
	}
	var b strings.Builder
	stem, _, _ := strings.Cut(name, ".")
	for i, c := range []byte(name) {
		keep := false
		switch {
		case c == '.':
			// git takes no leading, trailing or double dot, and no ".lock".
			keep = i > 0 && i < len(name)-1 && name[i-1] != '.' && name[i:] != ".lock"
		case c >= 'a' && c <= 'z':
			keep = i > 0 || !isDevice(stem)
		default:
			keep = c >= '0' && c <= '9' || c == '_' || c == '-'
		}
		if keep {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	if b.Len() > maxName {
		return "", fmt.Errorf("lease name %q is longer than %d bytes when encoded", clip(name), maxName)
	}
	return b.String(), nil
}

// isDevice reports whether Windows keeps the file name for a device, with any
// extension. Names in upper case are escaped anyway.
func isDevice(stem string) bool {
	switch stem {
	case "con", "prn", "aux", "nul":
		return true
	}
	port, ok := strings.CutPrefix(stem, "com")
	if !ok {
		port, ok = strings.CutPrefix(stem, "lpt")
	}
	return ok && len(port) == 1 && port[0] >= '0' && port[0] <= '9'
}

// DecodeName is the inverse of EncodeName. It accepts only what EncodeName
// gives: another spelling of a name would be a second lease of that name.
func DecodeName(encoded string) (string, error) {
	var b strings.Builder
	for rest := encoded; rest != ""; {
		plain, escaped, found := strings.Cut(rest, "%")
		b.WriteString(plain)
		if !found {
			break
		}
		if len(escaped) < 2 {
			return "", fmt.Errorf("encoded name %q ends in half an escape", clip(encoded))
		}
		c, err := hex.DecodeString(escaped[:2])
		if err != nil {
			return "", fmt.Errorf("encoded name %q: %w", clip(encoded), err)
		}
		b.Write(c)
		rest = escaped[2:]
	}
	name := b.String()
	if again, err := EncodeName(name); err != nil {
		return "", fmt.Errorf("encoded name %q: %w", clip(encoded), err)
	} else if again != encoded {
		return "", fmt.Errorf("encoded name %q is not the encoding of %q", clip(encoded), clip(name))
	}
	return name, nil
}

package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"gitland/internal/event"
)

// maxCommand bounds a command of the file, in bytes.
const maxCommand = 4 << 10

const hidden = "is more than one line, or has characters that a terminal would not show: put it into a script"

// showable reports whether whoever is asked to accept the command sees all of it.
func (c Command) showable() bool {
	return !c.Shared || event.CleanText(c.Text, maxCommand) == c.Text && strings.IndexFunc(c.Text+c.Key, unseen) < 0
}

// unseen reports whether a character takes no ink, but for the space: it could be a part
// of what is run that nobody who reads it sees.
func unseen(r rune) bool {
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || r == '\u2800'
}

// pathspecMagic are the words of the magic of gitglossary(7) that a pathspec may have here.
var pathspecMagic = []string{"", "top", "literal", "icase", "glob", "exclude"}

// badPathspec says why git would not take a pathspec from the top of the tree; "" where
// it would.
func badPathspec(spec string, shared bool) string {
	const no = "is no pathspec that every git takes"
	rest := spec
	switch magic, short := strings.CutPrefix(spec, ":"); {
	case !short:
	case strings.HasPrefix(magic, "("):
		words, after, closed := strings.Cut(magic[1:], ")")
		for word := range strings.SplitSeq(words, ",") {
			if !closed || !slices.Contains(pathspecMagic, word) {
				return no
			}
		}
		if strings.Contains(words, "literal") && strings.Contains(words, "glob") {
			return no
		}
		rest = after
	default:
		rest = strings.TrimLeft(magic, "/!^")
		if rest != "" && strings.ContainsRune("\"#%&',-;<=>@_`~", rune(rest[0])) {
			return no // magic that git has kept for later
		}
		rest = strings.TrimPrefix(rest, ":")
	}
	if clean := path.Clean(rest); clean == ".." || strings.HasPrefix(clean, "../") || shared && path.IsAbs(clean) {
		return "leads out of the tree"
	}
	return ""
}

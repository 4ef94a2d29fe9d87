package verify

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/session"
)

// The bounds of what is kept of a check's output, in bytes: how it began, and how it
// ended.
const (
	keptHead = 128 << 10
	keptTail = 384 << 10
)

// A recorder hands on what a check prints, and keeps its beginning and its end. The
// check so writes into a pipe, also where we have a terminal.
type recorder struct {
	to   io.Writer // nil once it takes nothing any more
	head []byte
	tail []byte // at most twice what is kept of it
	left int64  // bytes between the two that are not kept
}

// Write never fails: that nobody reads along any more is no reason for the check to end.
func (r *recorder) Write(p []byte) (int, error) {
	if r.to != nil {
		if _, err := r.to.Write(p); err != nil {
			r.to = nil
		}
	}
	n := len(p)
	room := min(keptHead-len(r.head), n)
	r.head = append(r.head, p[:room]...)
	r.tail = append(r.tail, p[room:]...)
	if over := len(r.tail) - keptTail; over > keptTail {
		r.cut(over)
	}
	return n, nil
}

func (r *recorder) cut(n int) {
	r.left += int64(n)
	r.tail = append([]byte(nil), r.tail[n:]...)
}

// text is what was kept.
func (r *recorder) text() []byte {
	if over := len(r.tail) - keptTail; over > 0 {
		r.cut(over)
	}
	if r.left == 0 {
		return append(r.head, r.tail...)
	}
	return fmt.Appendf(nil, "%s\n[git land: %d bytes were left out here]\n%s", r.head, r.left, r.tail)
}

// An Output is what a check printed that failed in this clone.
type Output struct {
	Verification ulid.ULID `json:"verification"`
	Path         string    `json:"path"`
	Tail         []string  `json:"tail"` // its last lines
}

// The bounds of a tail.
const (
	tailLines = 10
	tailLine  = 200
)

// OutputOf is the output of a check that failed, where this clone has it still; nil
// where it has not.
func OutputOf(dir session.Dir, id ulid.ULID) *Output {
	text, err := dir.Output(id)
	if err != nil {
		return nil
	}
	return &Output{Verification: id, Path: dir.OutputPath(id), Tail: tail(text)}
}

// sequences are those by which a terminal is told of colours, titles and places
// (ECMA-48): they say nothing in a line that is only read.
var sequences = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[ -/]*[0-~])`)

// tail is the last lines of a text that say something, as a terminal would have left
// them there. Whoever prints them cleans them.
func tail(text []byte) []string {
	text = text[max(0, len(text)-tailLines*64*tailLine):]
	var lines []string
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		line = sequences.ReplaceAll(bytes.TrimRight(line, " \t\r"), nil)
		if i := bytes.LastIndexByte(line, '\r'); i >= 0 { // a line that was written over
			line = line[i+1:]
		}
		if s := strings.TrimRight(strings.ToValidUTF8(string(line), "\ufffd"), " \t"); s != "" {
			lines = append(lines, short(s))
		}
	}
	return lines[max(0, len(lines)-tailLines):]
}

// short bounds a line.
func short(line string) string {
	if len(line) <= tailLine {
		return line
	}
	return strings.ToValidUTF8(line[:tailLine], "") + "…"
}

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"

	"gitland/internal/fault"
)

// A stream is where text leaves the program. It is the one place that writes,
// and so the one that cleans: every argument of printf that is text may have
// been written by anyone who can push, and a terminal obeys what it is sent.
type stream struct {
	w       io.Writer
	colour  bool
	mu      sync.Mutex // notes may come from several goroutines
	failure error      // of the first write that failed
}

// printf formats and writes. The format is ours; the text in args is cleaned.
func (s *stream) printf(format string, args ...any) {
	for i, arg := range args {
		args[i] = s.safe(arg)
	}
	s.write(fmt.Sprintf(format, args...))
}

// write writes text as it is.
func (s *stream) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		_, s.failure = io.WriteString(s.w, text)
	}
}

// safe is arg, fit to be printed.
func (s *stream) safe(arg any) any {
	switch v := arg.(type) {
	case painted:
		if s.colour {
			return string(v.style) + clean(v.text) + string(plain)
		}
		return clean(v.text)
	case error:
		return indent(v.Error())
	case fmt.Stringer:
		return clean(v.String())
	}
	if v := reflect.ValueOf(arg); v.Kind() == reflect.String {
		return clean(v.String())
	}
	return arg
}

// indent cleans text of several lines, such as git's, line by line. The further
// ones are indented, so that none of them can pass for a line of ours.
func indent(text string) string {
	var lines []string
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimRight(line, " \t"); line != "" {
			lines = append(lines, clean(line))
		}
	}
	return strings.Join(lines, "\n    ")
}

// A style is an escape sequence of terminals.
type style string

const (
	plain  style = "\x1b[m"
	bold   style = "\x1b[1m"
	faint  style = "\x1b[2m"
	red    style = "\x1b[31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
)

// painted is text in a style, where there are colours.
type painted struct {
	style style
	text  string
}

func paint(s style, text string) painted { return painted{s, text} }

// clean makes text that anyone may have written fit for a terminal: one line,
// valid UTF-8, and in place of everything that moves a cursor, changes a
// colour or turns the direction of writing, what it is.
func clean(text string) string {
	if !strings.ContainsFunc(text, fault.Hostile) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text { // an invalid byte arrives as U+FFFD
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case fault.Hostile(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// json writes v as one object on a line of its own. What is hostile can stand
// in strings alone, and is escaped there.
func (s *stream) json(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // commands must stay readable
	if err := enc.Encode(v); err != nil {
		return err
	}
	var line strings.Builder
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if fault.Hostile(r) {
			fmt.Fprintf(&line, `\u%04x`, r)
		} else {
			line.WriteRune(r)
		}
	}
	s.write(line.String() + "\n")
	return nil
}

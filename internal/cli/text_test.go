package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"gitland/internal/object"

	"gitland/internal/fault"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, Ünïcödé 日本":                "plain, Ünïcödé 日本",
		"two\nlines\tand a tab":            "two lines and a tab",
		"\x1b[31mred\x1b[m":                `\u001b[31mred\u001b[m`,
		"bell\a delete\x7f null\x00":       `bell\u0007 delete\u007f null\u0000`,
		"return\rhint: rm -rf":             `return\u000dhint: rm -rf`,
		"c1 \u009b31m":                     `c1 \u009b31m`,
		"over\u202eedirr":                  `over\u202eedirr`,
		"isolate\u2066 mark\u200f":         `isolate\u2066 mark\u200f`,
		"arabic mark\u061c":                `arabic mark\u061c`,
		"line\u2028 paragraph\u2029":       `line\u2028 paragraph\u2029`,
		"bad \xff\xfe bytes":               "bad \ufffd\ufffd bytes",
		"a raw \x9b C1 byte":               "a raw \ufffd C1 byte",
		"emoji \U0001f468\u200d\U0001f4bb": "emoji \U0001f468\u200d\U0001f4bb",
	} {
		if got := clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b]0;title\a\u202e\xff\u2028")
	f.Fuzz(func(t *testing.T, text string) {
		got := clean(text)
		if strings.ContainsFunc(got, fault.Hostile) || !utf8.ValidString(got) {
			t.Errorf("clean(%q) = %q", text, got)
		}
		if again := clean(got); again != got {
			t.Errorf("clean(%q) = %q, and again %q", text, got, again)
		}
		var b bytes.Buffer
		s := &stream{w: &b}
		if err := s.json(map[string]string{"text": text}); err != nil {
			t.Fatal(err)
		}
		line := strings.TrimSuffix(b.String(), "\n")
		if strings.ContainsFunc(line, fault.Hostile) {
			t.Errorf("json of %q has %q", text, line)
		}
		var back map[string]string
		if err := json.Unmarshal([]byte(line), &back); err != nil || back["text"] != strings.ToValidUTF8(text, "\ufffd") && utf8.ValidString(text) {
			t.Errorf("json of %q reads back as %q, %v", text, back["text"], err)
		}
	})
}

// Whatever the type of an argument, its text is cleaned; and what is printed in
// a style keeps the style, and nothing of its own.
func TestPrintfCleansEveryArgument(t *testing.T) {
	t.Parallel()
	const bad = "\x1b[2J"
	args := []any{bad, errors.New(bad), object.Ref(bad), paint(red, bad), stringer(bad), fmt.Errorf("at %w", errors.New(bad))}
	for _, colour := range []bool{false, true} {
		for _, arg := range args {
			var b bytes.Buffer
			(&stream{w: &b, colour: colour}).printf("%v\n", arg)
			got := strings.NewReplacer(string(red), "", string(plain), "").Replace(b.String())
			if strings.Contains(got, "\x1b") || !strings.Contains(got, `\u001b[2J`) {
				t.Errorf("printf(%T) with colour %v wrote %q", arg, colour, b.String())
			}
		}
	}
	var b bytes.Buffer
	(&stream{w: &b}).printf("%s %d %v %v", ulid.ULID{}, 7, true, 2*time.Second)
	if want := "00000000000000000000000000 7 true 2s"; b.String() != want {
		t.Errorf("printf wrote %q, want %q", b.String(), want)
	}
}

type stringer string

func (s stringer) String() string { return string(s) }

func TestErrorsOfSeveralLinesCannotForgeOne(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	(&stream{w: &b}).printf("%v\n", errors.New("fatal: no\r\nhint: rm -rf /\n\n  error: x\t\n"))
	if want := "fatal: no\n    hint: rm -rf /\n      error: x\n"; b.String() != want {
		t.Errorf("wrote %q, want %q", b.String(), want)
	}
}

func TestColour(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tty     bool
		environ []string
		want    bool
	}{
		{true, nil, true},
		{true, []string{"NO_COLOR="}, true},
		{true, []string{"TERM=xterm"}, true},
		{true, []string{"NO_COLOR=1"}, false},
		{true, []string{"TERM=dumb"}, false},
		{false, []string{"TERM=xterm"}, false},
	} {
		if got := colours(Env{Environ: c.environ}, c.tty); got != c.want {
			t.Errorf("terminal %v, %q: colour %v", c.tty, c.environ, got)
		}
	}
}

func TestEnvGet(t *testing.T) {
	t.Parallel()
	e := Env{Environ: []string{"A=1", "AB=2", "A=3=4", "EMPTY="}}
	for name, want := range map[string]string{"A": "3=4", "AB": "2", "EMPTY": "", "B": ""} {
		if got := e.Get(name); got != want {
			t.Errorf("Get(%q) = %q, want %q", name, got, want)
		}
	}
}

package verify

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What is kept of an output is how it began and how it ended, however it comes.
func TestRecorder(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	r := &recorder{to: &printed}
	var all []byte
	for n := range 3000 {
		line := []byte(strings.Repeat("x", n%700) + "\n")
		all = append(all, line...)
		if n, err := r.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	if !bytes.Equal(printed.Bytes(), all) {
		t.Error("not all of it was handed on")
	}
	text := r.text()
	head, rest, _ := bytes.Cut(text, []byte("\n[git land: "))
	number, tail, _ := bytes.Cut(rest, []byte(" bytes were left out here]\n"))
	if !bytes.HasPrefix(all, head) || !bytes.HasSuffix(all, tail) || len(head) != keptHead || len(tail) != keptTail {
		t.Errorf("kept %d and %d bytes", len(head), len(tail))
	}
	if left := strconv.Itoa(len(all) - len(head) - len(tail)); string(number) != left {
		t.Errorf("%s bytes left out, want %s", number, left)
	}
	one := &recorder{}
	one.Write(all[:keptHead+10])
	if !bytes.Equal(one.text(), all[:keptHead+10]) {
		t.Error("what fits is not kept whole")
	}
	whole := &recorder{to: broken{}}
	for range 2 {
		if n, err := whole.Write(all); n != len(all) || err != nil {
			t.Error(n, err)
		}
	}
	if len(whole.tail) > 2*keptTail {
		t.Errorf("%d bytes in memory", len(whole.tail))
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

// A tail is the last lines as they were to be read.
func TestTail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"\n\n  \r\n", nil},
		{"one\ntwo", []string{"one", "two"}},
		{"\x1b[31;1mFAIL\x1b[0m x\r\n\x1b]0;title\x07name\x1b(B\n", []string{"FAIL x", "name"}},
		{" 10%\r 50%\r100%\n", []string{"100%"}},
		{"\xff\n", []string{"\ufffd"}},
		{strings.Repeat("é", 150) + "\n", []string{strings.Repeat("é", 100) + "…"}},
		{strings.Repeat("a\n", 30) + "b\n", append(slices.Repeat([]string{"a"}, 9), "b")},
		{"\x1b[\n\x1b", []string{"\x1b"}}, // cut off: whoever prints it cleans it
	} {
		if got := tail([]byte(tt.text)); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

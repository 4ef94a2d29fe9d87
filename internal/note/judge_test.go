package note_test

import (
	"slices"
	"strings"
	"testing"

	"gitland/internal/note"
	"gitland/internal/object"
)

// lines makes verifications of one tree from words such as "+test:go", which
// is a pass of the check test by the command go, or "-lint:". A word that ends
// in "@d" is of another tree.
func lines(words string) []note.Verification {
	var out []note.Verification
	for i, word := range strings.Fields(words) {
		v := verification()
		// Clocks run backwards here: the order of lines is what counts.
		v.ID, v.Time = id(byte(100+i)), at(50-i)
		if word[0] == '-' {
			v.Verdict = note.Fail
		}
		word, tree, _ := strings.Cut(word[1:], "@")
		if tree != "" {
			v.Tree = oid(tree)
		}
		v.Check, v.Command, _ = strings.Cut(word, ":")
		out = append(out, v)
	}
	return out
}

// words is the inverse of lines, as check:command#index-of-line.
func words(vs []note.Verification) string {
	var out []string
	for _, v := range vs {
		out = append(out, v.Check+":"+v.Command+"#"+string('0'+v.ID[15]-100))
	}
	return strings.Join(out, " ")
}

func TestJudge(t *testing.T) {
	t.Parallel()
	want := []note.Want{{Check: "test", Command: "go"}}
	both := append(want[:1:1], note.Want{Check: "ci"})
	for _, tt := range []struct {
		lines            string
		want             []note.Want
		passing, failing string
		missing          string
		earlier, flaky   string
	}{
		{"", nil, "", "", "any", "", ""},
		{"+test:go", nil, "test:go#0", "", "", "", ""},
		{"+test:go@d", nil, "", "", "any", "", ""},
		{"-test:go", nil, "", "test:go#0", "test", "", ""},
		{"-test:go +test:go", nil, "test:go#1", "", "", "test:go#0", "test"},
		{"+test:go -test:go", nil, "", "test:go#1", "test", "test:go#0", ""},
		{"+test:go -test:make", nil, "test:go#0", "test:make#1", "test", "", ""},
		{"-test:go -test:make", nil, "", "test:go#0 test:make#1", "test", "", ""},
		{"+test:go +lint:vet +test:go", nil, "lint:vet#1 test:go#2", "", "", "test:go#0", ""},
		{"+test:go -lint:vet -doc:", nil, "test:go#0", "lint:vet#1 doc:#2", "lint doc", "", ""},
		{"+test:go -test:go@d", nil, "test:go#0", "", "", "", ""},
		{"-test:go -test:go +test:go +lint:vet", nil, "test:go#2 lint:vet#3", "", "", "test:go#0 test:go#1", "test"},
		{"-test:go@d +test:go", nil, "test:go#1", "", "", "", ""},
		{"-test:make +test:go +test:make", nil, "test:go#1 test:make#2", "", "", "test:make#0", "test"},

		{"", want, "", "", "test", "", ""},
		{"+test:go", want, "test:go#0", "", "", "", ""},
		{"+test:make", want, "", "", "test", "test:make#0", ""},
		{"+lint:vet", want, "lint:vet#0", "", "test", "", ""},
		{"-test:make +test:go", want, "test:go#1", "", "", "test:make#0", ""},
		{"+test:go -test:make", want, "test:go#0", "", "", "test:make#1", ""},
		{"+test:make -test:go", want, "", "test:go#1", "test", "test:make#0", ""},
		{"+test:go -lint:vet", want, "test:go#0", "lint:vet#1", "lint", "", ""},
		{"-lint:vet", want, "", "lint:vet#0", "lint test", "", ""},
		{"+test:go +lint:vet", want, "test:go#0 lint:vet#1", "", "", "", ""},

		{"", both, "", "", "test ci", "", ""},
		{"+test:go", both, "test:go#0", "", "ci", "", ""},
		{"+test:go +ci:", both, "test:go#0 ci:#1", "", "", "", ""},
		{"+test:go +ci:make", both, "test:go#0", "", "ci", "ci:make#1", ""},
		{"+test:go -ci:", both, "test:go#0", "ci:#1", "ci", "", ""},
		{"+test:go -ci: +ci:", both, "test:go#0 ci:#2", "", "", "ci:#1", "ci"},
		{"+ci: -test:go", both, "ci:#0", "test:go#1", "test", "", ""},
		{"+test:go +ci: -lint:vet", both, "test:go#0 ci:#1", "lint:vet#2", "lint", "", ""},
		{"+test:go@d", want, "", "", "test", "", ""},
	} {
		got := note.Judge(lines(tt.lines), oid("c"), tt.want...)
		missing := strings.Join(got.Missing, " ")
		if words(got.Passing) != tt.passing || words(got.Failing) != tt.failing || missing != tt.missing {
			t.Errorf("%q, want %v: passing %q, failing %q, missing %q; want %q, %q, %q", tt.lines, tt.want,
				words(got.Passing), words(got.Failing), missing, tt.passing, tt.failing, tt.missing)
		}
		if words(got.Earlier) != tt.earlier || strings.Join(got.Flaky(), " ") != tt.flaky {
			t.Errorf("%q, want %v: earlier %q, flaky %q; want %q, %q", tt.lines, tt.want, words(got.Earlier), got.Flaky(), tt.earlier, tt.flaky)
		}
		if got.Pass != (tt.missing == "") {
			t.Errorf("%q, want %v: pass is %v", tt.lines, tt.want, got.Pass)
		}
	}
}

// A verdict that this version does not know is no pass.
func TestJudgeFailsClosed(t *testing.T) {
	t.Parallel()
	v := verification()
	v.Verdict = "splendid"
	if got := note.Judge([]note.Verification{v}, v.Tree); got.Pass || len(got.Failing) != 1 {
		t.Errorf("judgement %+v", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, v := range verifications() {
		line, err := note.EncodeLine(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(line + "\n\nnoise\n" + line))
	}
	for _, r := range records() {
		line, err := note.EncodeLine(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(line))
		f.Add([]byte(strings.Replace(line, `"format":1`, `"format":2`, 1)))
	}
	f.Fuzz(func(t *testing.T, blob []byte) {
		verifications := note.ParseVerifications(blob)
		again(t, blob, verifications)
		again(t, blob, note.ParseRecords(blob))
		var values []note.Verification
		trees := []object.OID{""}
		for _, line := range verifications {
			values = append(values, line.Value)
			trees = append(trees, line.Value.Tree)
		}
		for _, tree := range trees {
			got := note.Judge(values, tree)
			if got.Pass != (len(got.Missing) == 0) || got.Pass && (len(got.Passing) == 0 || len(got.Failing) > 0) {
				t.Fatalf("judgement %+v", got)
			}
		}
	})
}

// again checks that the lines are those of the blob, and that each good one is
// what its value encodes to.
func again[T note.Record | note.Verification](t *testing.T, blob []byte, lines []note.Line[T]) {
	var raw []string
	for _, line := range lines {
		raw = append(raw, line.Raw)
		got, err := note.EncodeLine(line.Value)
		if line.Err == nil && !line.Newer && (err != nil || got != line.Raw) {
			t.Fatalf("%q encodes to %q, %v", line.Raw, got, err)
		}
		if line.Newer && err == nil {
			t.Fatalf("the newer line %q is written as %q", line.Raw, got)
		}
	}
	want := slices.DeleteFunc(strings.Split(string(blob), "\n"), func(s string) bool { return s == "" })
	if !slices.Equal(raw, want) {
		t.Fatalf("lines %q, want %q", raw, want)
	}
}

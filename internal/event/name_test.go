package event_test

import (
	"strings"
	"testing"

	"gitland/internal/event"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

func TestEncodeName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"main":         "main",
		"release/1.x":  "release%2f1.x",
		"a-b_c.9":      "a-b_c.9",
		"-x":           "-x",
		"Main":         "%4dain",
		"100%":         "100%25",
		"a b":          "a%20b",
		"é":            "%c3%a9",
		"e\u0301":      "e%cc%81",
		".hidden":      "%2ehidden",
		"end.":         "end%2e",
		"a..b":         "a.%2eb",
		"...":          "%2e%2e%2e",
		".":            "%2e",
		"main.lock":    "main%2elock",
		"main.lock.x":  "main.lock.x",
		".lock":        "%2elock",
		"a..lock":      "a.%2elock",
		"con":          "%63on",
		"con.d":        "%63on.d",
		"CON":          "%43%4f%4e",
		"cons":         "cons",
		"com1":         "%63om1",
		"lpt9.txt":     "%6cpt9.txt",
		"com":          "com",
		"com10":        "com10",
		"nul.tar.gz":   "%6eul.tar.gz",
		"%probe-1":     "%25probe-1",
		"@":            "%40",
		"refs/heads/x": "refs%2fheads%2fx",
	} {
		got, err := event.EncodeName(name)
		if err != nil || got != want {
			t.Errorf("EncodeName(%q) = %q, %v, want %q", name, got, err, want)
		}
		if back, err := event.DecodeName(got); err != nil || back != name {
			t.Errorf("DecodeName(%q) = %q, %v, want %q", got, back, err, name)
		}
	}
	for _, name := range []string{
		"", " ", " x", "x ", "a\nb", "a\x00b", "\xff", "a\u202eb", strings.Repeat("x", 201), strings.Repeat("X", 67),
	} {
		if got, err := event.EncodeName(name); err == nil {
			t.Errorf("EncodeName(%q) = %q, want an error", name, got)
		}
	}
}

func TestDecodeNameRefusesOtherSpellings(t *testing.T) {
	t.Parallel()
	for _, encoded := range []string{
		"", "%", "%2", "a%2", "%zz", "%6d", "%6dain", "release%2F1.x", "Main", "a/b", "%probe-01KYYK41G00000000000000002",
		"a..b", "a%2e%2eb", "main.lock", "con", "é", "%00", "%ff", "%20x", "a b",
	} {
		if name, err := event.DecodeName(encoded); err == nil {
			t.Errorf("DecodeName(%q) = %q, want an error", encoded, name)
		}
	}
}

// git takes every encoded name for a ref, and all of them side by side.
func TestGitTakesEncodedNames(t *testing.T) {
	t.Parallel()
	dir := gittest.Remote(t)
	names := []string{"main", "Main", "main/x", "main.lock", ".", "..", "...", "con", "-x", "@", "@{0}", "é", "e\u0301",
		"%6dain", "%4dain", strings.Repeat("/", 66)}
	for _, name := range names {
		encoded, err := event.EncodeName(name)
		if err != nil {
			t.Fatal(err)
		}
		gittest.Git(t, dir, "update-ref", "refs/lease/"+encoded, "refs/heads/main", "")
	}
	refs := gittest.Git(t, dir, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/lease/")
	if got := strings.Split(refs, "\n"); len(got) != len(names) {
		t.Errorf("%d refs for %d names: %q", len(got), len(names), got)
	}
}

func FuzzEncodeName(f *testing.F) {
	for _, name := range []string{"main", "release/1.x", "Main", ".a..b.lock", "con.x", "100%", "é", "a\x00", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		encoded, err := event.EncodeName(name)
		if err != nil {
			return
		}
		if back, err := event.DecodeName(encoded); err != nil || back != name {
			t.Fatalf("%q becomes %q, which becomes %q, %v", name, encoded, back, err)
		}
		if _, err := object.ParseRef("refs/lease/" + encoded); err != nil {
			t.Fatal(err)
		}
		if len(encoded) > 200 || strings.ContainsAny(encoded, "/ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			t.Fatalf("%q becomes %q", name, encoded)
		}
	})
}

func FuzzDecodeName(f *testing.F) {
	for _, encoded := range []string{"main", "release%2f1.x", "%4dain", "%6dain", "%2", "%probe-x", "a..b", ""} {
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		name, err := event.DecodeName(encoded)
		if err != nil {
			return
		}
		if again, err := event.EncodeName(name); err != nil || again != encoded {
			t.Fatalf("%q means %q, which becomes %q, %v", encoded, name, again, err)
		}
		if strings.HasPrefix(encoded, "%probe-") {
			t.Fatalf("%q names a lease, %q", encoded, name)
		}
	})
}

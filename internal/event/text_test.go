package event_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"gitland/internal/event"
	"gitland/internal/object"
)

func TestCleanText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		max  int
		want string
	}{
		{"plain", 10, "plain"},
		{"  spaces at the ends\n", 100, "spaces at the ends"},
		{"two\nlines\r\nand\ttabs", 100, "two lines  and tabs"},
		{"esc\x1b[31mape\x7f\u0085", 100, "esc [31mape"},
		{"a\u202eb\u2066c\u2028d", 100, "a b c d"},
		{"bad \xff\xfe byte", 100, "bad \ufffd\ufffd byte"},
		{"right-to-left marks stay\u200f", 100, "right-to-left marks stay\u200f"},
		{"cut", 2, "cu"},
		{"cut é", 5, "cut"},
		{"cut é", 6, "cut é"},
		{"\xff", 2, ""},
		{"x", 0, ""},
		{"x", -1, ""},
	} {
		if got := event.CleanText(tt.in, tt.max); got != tt.want {
			t.Errorf("CleanText(%q, %d) = %q, want %q", tt.in, tt.max, got, tt.want)
		}
	}
}

func FuzzCleanText(f *testing.F) {
	f.Add("plain", 10)
	f.Add("\xff\n é \u202e", 5)
	f.Add("ééééé", 3)
	f.Fuzz(func(t *testing.T, in string, max int) {
		got := event.CleanText(in, max)
		if len(got) > 0 && len(got) > max || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00\x1b") {
			t.Fatalf("CleanText(%q, %d) = %q", in, max, got)
		}
		if again := event.CleanText(got, max); again != got {
			t.Fatalf("clean text %q becomes %q", got, again)
		}
	})
}

func TestParseIdent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ ident, actor, again string }{
		{"Ada <a@x> 1785587520 +0230", "Ada <a@x>", "Ada <a@x> 1785587520 +0230"},
		{"Ada <> 0 -1130", "Ada <>", "Ada <> 0 -1130"},
		{"A  B  <a@x> 1 -0000", "A  B <a@x>", "A  B <a@x> 1 +0000"},
		{"J\xf6rg <j@x> 1 +0000", "J\ufffdrg <j@x>", "J\ufffdrg <j@x> 1 +0000"},
	} {
		actor, when, err := event.ParseIdent(tt.ident)
		if err != nil || actor != tt.actor {
			t.Errorf("ParseIdent(%q) = %q, %v, want %q", tt.ident, actor, err, tt.actor)
		}
		if got := (event.Event{Actor: actor, Time: when}).Ident(); got != tt.again {
			t.Errorf("ParseIdent(%q) gives the identity %q, want %q", tt.ident, got, tt.again)
		}
	}
	for _, ident := range []string{
		"", "Ada", "Ada <a@x>", "Ada <a@x> ", "Ada <a@x> now +0000", "Ada <a@x> 1", "Ada <a@x> 1 UTC", "Ada <a@x> -1 +0000",
		"Ada <a@x> 253402300800 +0000", "Ada <a@x> 1 +0000 x", "Ada <a@x> 1 +000", " <a@x> 1 +0000", "\x01 <a@x> 1 +0000",
		"A<da <a@x> 1 +0000", "Ada <a@x>> 1 +0000", "Ada <a@x> 1 +9900", "Ada <" + strings.Repeat("x", 1024) + "> 1 +0000",
	} {
		if actor, _, err := event.ParseIdent(ident); err == nil {
			t.Errorf("ParseIdent(%q) = %q, want an error", ident, actor)
		}
	}
}

// The secrets of two holds and of two chains are not each other's, and neither
// they nor the digest ever change: other versions have to compute the same.
func TestSecret(t *testing.T) {
	t.Parallel()
	chain := oid(object.SHA1, "1")
	secret := event.Secret(root(), id(2), chain)
	if want := "28844f37684686b92879f28703607ca3641cec70536f1d228fe1ab606c8c9cad"; secret != want {
		t.Errorf("secret %s, want %s", secret, want)
	}
	if got, want := event.Digest(secret), "1e5004753e99fbbf303a2dc1dc818c8167101cca760b8a8de2bee8e6ac2ba67f"; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	for _, other := range []string{
		event.Secret(root(), id(3), chain),
		event.Secret(root(), id(2), oid(object.SHA1, "2")),
		event.Secret([32]byte{}, id(2), chain),
	} {
		if other == secret {
			t.Error("two holds have one secret")
		}
	}
}

package session_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/session"
)

// Whatever prints a token, alone or inside of anything, must not show it.
func TestRootIsNeverPrinted(t *testing.T) {
	t.Parallel()
	root := session.NewRoot()
	type inner struct{ Root session.Root }
	type outer struct {
		root  session.Root
		ptr   *session.Root
		inner inner
	}
	key := root.Bytes()
	leaks := []string{
		root.Hex()[:8], strings.ToUpper(root.Hex()[:8]),
		fmt.Sprintf("%d %d %d", key[0], key[1], key[2]),
		fmt.Sprintf("%#x, %#x, %#x", key[0], key[1], key[2]),
	}
	values := map[string]any{
		"root": root, "pointer": &root, "session": session.Session{Root: root},
		"unexported": outer{root, &root, inner{root}}, "slice": []session.Root{root},
		"map": map[string]session.Root{"k": root}, "error": fmt.Errorf("%v", root),
	}
	for name, v := range values {
		texts := []string{fmt.Sprint(v), fmt.Sprintln(v), slog.AnyValue(v).String()}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%o", "%b", "%c", "%U", "%t", "%p"} {
			texts = append(texts, fmt.Sprintf(verb, v))
		}
		if data, err := json.Marshal(v); err == nil {
			texts = append(texts, string(data))
		}
		for _, text := range texts {
			for _, leak := range leaks {
				if strings.Contains(text, leak) {
					t.Errorf("%s prints as %s", name, text)
				}
			}
		}
	}
	for _, text := range []string{root.String(), root.GoString(), fmt.Sprintf("%x", root)} {
		if text != "[token]" {
			t.Errorf("got %q, want [token]", text)
		}
	}
}

func TestRootIsNotEncoded(t *testing.T) {
	t.Parallel()
	root := session.NewRoot()
	for _, v := range []any{root, &root, session.Session{Root: root}, []session.Root{root}} {
		if data, err := json.Marshal(v); err == nil {
			t.Errorf("%T: got %s, want an error", v, data)
		}
	}
	if _, err := root.MarshalText(); err == nil {
		t.Error("text: no error")
	}
}

func TestRootText(t *testing.T) {
	t.Parallel()
	root := session.NewRoot()
	again, err := session.ParseRoot(root.Hex())
	if err != nil || !again.Equal(root) || again.Bytes() != root.Bytes() {
		t.Fatalf("the text does not give the token back: %v", err)
	}
	if root.Equal(session.NewRoot()) {
		t.Error("two new tokens are equal")
	}
	if (session.Root{}).Equal(session.Root{}) || root.Equal(session.Root{}) || !(session.Root{}).IsZero() {
		t.Error("no token is a token")
	}
	for _, text := range []string{
		"", "x", root.Hex()[1:], root.Hex() + "0", root.Hex()[1:] + "g", root.Hex()[1:] + "F", " " + root.Hex()[1:],
	} {
		got, err := session.ParseRoot(text)
		if err == nil || !got.IsZero() {
			t.Errorf("%q is taken for a token", text)
		} else if len(text) > 1 && strings.Contains(err.Error(), text[:8]) {
			t.Errorf("the error quotes the text: %v", err)
		}
	}
}

func TestZeroRootIsNotUsed(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	(session.Root{}).Hex()
}

func TestNewID(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	seen := map[ulid.ULID]bool{}
	for range 1000 {
		id := session.NewID(now)
		if seen[id] {
			t.Fatal("the same id twice")
		}
		seen[id] = true
		if !id.Timestamp().Equal(now) {
			t.Fatalf("got %v, want %v", id.Timestamp(), now)
		}
	}
	// A clock that is far off gives an id all the same.
	for _, now := range []time.Time{{}, time.Unix(-1, 0), time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if one, other := session.NewID(now), session.NewID(now); one == other {
			t.Errorf("%v: the same id twice", now)
		}
	}
}

package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"gitland/internal/fault"
	"gitland/internal/gittest"
)

func TestNew(t *testing.T) {
	t.Parallel()
	cause := fmt.Errorf("open x: %w", fs.ErrNotExist)
	err := fault.New(fault.Conflict, "%d paths: %w", 2, cause).WithHint("git %s", "status").WithFacts(map[string]any{"paths": 2})
	if err.Error() != "2 paths: open x: file does not exist" || err.Class != fault.Conflict || err.Hint != "git status" || err.Facts["paths"] != 2 {
		t.Errorf("got %+v", err)
	}
	if !errors.Is(err, fs.ErrNotExist) || errors.Unwrap(err) != cause {
		t.Errorf("the cause is %v", errors.Unwrap(err))
	}
	if err := fault.New(fault.Usage, "100%% of %s", "%w"); err.Error() != "100% of %w" || errors.Unwrap(err) != nil {
		t.Errorf("got %+v", err)
	}
	// Two causes are both found.
	both := fault.New(fault.Failed, "%w, and %w", cause, os.ErrClosed)
	if !errors.Is(both, fs.ErrNotExist) || !errors.Is(both, os.ErrClosed) || both.Error() != "open x: file does not exist, and file already closed" {
		t.Errorf("got %+v", both)
	}
}

func TestClassOf(t *testing.T) {
	t.Parallel()
	held := fault.New(fault.Held, "held")
	for _, test := range []struct {
		err  error
		want fault.Class
	}{
		{nil, ""}, {errors.New("x"), ""}, {held, fault.Held}, {fmt.Errorf("land: %w", held), fault.Held},
		{errors.Join(errors.New("x"), held), fault.Held}, {fault.New(fault.Lost, "lost: %w", held), fault.Lost},
	} {
		if got := fault.ClassOf(test.err); got != test.want {
			t.Errorf("%v: got %q, want %q", test.err, got, test.want)
		}
	}
}

func TestClassesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[fault.Class]bool{}
	for _, c := range []fault.Class{fault.Failed, fault.Held, fault.Unverified, fault.Conflict, fault.Lost, fault.Disagree,
		fault.Ambiguous, fault.Unreachable, fault.Usage} {
		if c == "" || seen[c] || strings.Trim(string(c), "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("class %q", c)
		}
		seen[c] = true
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"":                            nil,
		"git land status":             {"git", "land", "", "status"},
		"git land -m 'two words'":     {"git", "land", "-m", "two words"},
		`git land -m 'it'\''s'`:       {"git", "land", "-m", "it's"},
		"git land --onto=release/1.x": {"git", "land", "--onto=release/1.x"},
		"cd '~' 'é' '*' '#'":          {"cd", "~", "é", "*", "#"},
		// What a terminal would not show as it is.
		`rm "$(printf 'a\nb')" "$(printf '\055\377\033[m é�\342\200\256\047\045\134')"`: {"rm", "a\nb", "-\xff\x1b[m é�\u202e'%\\"},
		`rm "$(printf '\011')"$'\n\n' $'\n'`:                                            {"rm", "\t\n\n", "\n"},
	} {
		if got := fault.Command(words...); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Whatever the words are, a shell makes them of the command again.
func FuzzCommand(f *testing.F) {
	env, dir := gittest.Env(f)
	f.Add("plain", "two words")
	f.Add("'", `\`)
	f.Add("$HOME `id` $(id)", "a\nb\t")
	f.Add("{a,b}", "!x ~ * ? [a] ; & | < > # = %")
	f.Add("-n", "\xff\u202e")
	f.Add("-\x1b%s'!\xef(", "\n\\\a\n\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, 0) || a == "" || b == "" {
			return
		}
		line := fault.Command("printf", `%s\n`, a, b)
		if strings.ContainsFunc(line, fault.Hostile) || !utf8.ValidString(line) {
			t.Errorf("a terminal does not show %q", line)
		}
		shell := "sh"
		if strings.HasSuffix(a, "\n") || strings.HasSuffix(b, "\n") {
			shell = "bash" // sh may be a dash that reads it in no way
		}
		r := gittest.Run(t, gittest.Command(t, env, dir, shell, "-c", line))
		if want := a + "\n" + b + "\n"; r.Stdout != want || r.Code != 0 {
			t.Errorf("got %q, want %q", r.Stdout, want)
		}
	})
}

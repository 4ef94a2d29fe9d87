package session_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gitland/internal/fault"
	"gitland/internal/session"
)

func TestFromEnv(t *testing.T) {
	t.Parallel()
	root := session.NewRoot()
	id := session.NewID(time.Now())
	token := "GIT_LEASE_TOKEN=" + root.Hex()
	operation := "GIT_LEASE_OPERATION=" + id.String()
	tests := []struct {
		name  string
		env   []string
		kind  session.Kind
		holds []session.HoldNote
	}{
		{name: "nothing", kind: session.NoSource},
		{name: "empty", env: []string{"GIT_LEASE_TOKEN=", "GIT_LEASE_SESSION="}, kind: session.NoSource},
		{name: "session", env: []string{"GIT_LEASE_SESSION=s"}, kind: session.FromFile},
		{name: "token", env: []string{token}, kind: session.FromVar},
		{name: "token before session", env: []string{"GIT_LEASE_SESSION=s", token}, kind: session.FromVar},
		{name: "what acquire prints", env: []string{token, operation, "GIT_LEASE_NAME=main", "GIT_LEASE_REMOTE=origin"},
			kind: session.FromVar, holds: []session.HoldNote{{Remote: "origin", Name: "main", Operation: id}}},
		{name: "an operation of no lease", env: []string{token, operation}, kind: session.FromVar},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := session.Open(t.TempDir())
			source, err := d.FromEnv(environment(test.env...))
			if err != nil || source.Kind() != test.kind {
				t.Fatalf("got %v, %v, want %v", source.Kind(), err, test.kind)
			}
			got, err := source.Load()
			if test.kind != session.FromVar {
				if !errors.Is(err, session.ErrNoToken) {
					t.Errorf("load: got %v, want ErrNoToken", err)
				}
				return
			}
			if err != nil || !got.Root.Equal(root) || !slices.Equal(got.Holds, test.holds) {
				t.Errorf("load: got %v, %v, want %v", got, err, test.holds)
			}
			if again, err := source.Ensure(); err != nil || !again.Root.Equal(root) {
				t.Errorf("ensure: %v", err)
			}
			hold := session.HoldNote{Remote: ".", Name: "x", Operation: id}
			if err := errors.Join(source.Note(hold), source.Forget(hold)); err != nil {
				t.Error(err)
			}
			if paths := tree(t, d.Path()); len(paths) > 1 {
				t.Errorf("created %q", paths)
			}
		})
	}
}

func TestFromEnvRefuses(t *testing.T) {
	t.Parallel()
	root := session.NewRoot()
	for name, env := range map[string][]string{
		"token":     {"GIT_LEASE_TOKEN=" + root.Hex()[1:], "GIT_LEASE_SESSION=s"},
		"operation": {"GIT_LEASE_TOKEN=" + root.Hex(), "GIT_LEASE_NAME=main", "GIT_LEASE_OPERATION=x"},
	} {
		_, err := session.Open(t.TempDir()).FromEnv(environment(env...))
		if fault.ClassOf(err) != fault.Usage {
			t.Errorf("%s: got %v, want a usage error", name, err)
		} else if strings.Contains(err.Error(), root.Hex()[1:9]) {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
}

func TestNoSourceHasNoToken(t *testing.T) {
	t.Parallel()
	source, err := session.Open(t.TempDir()).FromEnv(environment())
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"ensure": second(source.Ensure()), "note": source.Note(session.HoldNote{}), "forget": source.Forget(session.HoldNote{}),
	} {
		if !errors.Is(err, session.ErrNoToken) {
			t.Errorf("%s: got %v, want ErrNoToken", name, err)
		}
	}
}

func TestSessionFile(t *testing.T) {
	t.Parallel()
	d := session.Open(t.TempDir())
	source, err := namedSession(d)
	if err != nil {
		t.Fatal(err)
	}
	made, err := source.Ensure()
	if err != nil || made.Root.IsZero() {
		t.Fatalf("ensure: %v", err)
	}
	hold := func(remote, name string) session.HoldNote {
		return session.HoldNote{Remote: remote, Name: name, Operation: session.NewID(time.Now())}
	}
	old, other, elsewhere := hold("origin", "main"), hold("origin", "release/1.x"), hold(".", "main")
	renewed := hold("origin", "main")
	for _, h := range []session.HoldNote{old, other, elsewhere, renewed} {
		if err := source.Note(h); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...session.HoldNote) {
		t.Helper()
		got, err := source.Ensure()
		if err != nil || !got.Root.Equal(made.Root) || !slices.Equal(got.Holds, want) {
			t.Errorf("got %v, %v, want %v and the same token", got.Holds, err, want)
		}
	}
	check(other, elsewhere, renewed)
	if err := source.Forget(old); err != nil { // forgetting late must not forget the newer
		t.Fatal(err)
	}
	check(other, elsewhere, renewed)
	for _, h := range []session.HoldNote{renewed, other, elsewhere} {
		if err := source.Forget(h); err != nil {
			t.Fatal(err)
		}
	}
	check()

	another, err := d.FromEnv(environment("GIT_LEASE_SESSION=agent-2"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := another.Ensure(); err != nil || got.Root.Equal(made.Root) {
		t.Errorf("two sessions share a token: %v", err)
	}
	for _, path := range tree(t, d.Path()) {
		if strings.Contains(path, "agent") {
			t.Errorf("%s has the session's name in its own", path)
		}
	}
}

// sessionPath is the only session's file.
func sessionPath(t *testing.T, d session.Dir) string {
	t.Helper()
	paths, err := filepath.Glob(d.Path("session", "*.json"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("got %q, %v, want one session file", paths, err)
	}
	return paths[0]
}

func TestSessionFileOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	d := session.Open(t.TempDir())
	source, err := namedSession(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Ensure(); err != nil {
		t.Fatal(err)
	}
	path := sessionPath(t, d)
	hold := session.HoldNote{Remote: ".", Name: "main", Operation: session.NewID(time.Now())}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o602, 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"load": second(source.Load()), "ensure": second(source.Ensure()), "note": source.Note(hold), "forget": source.Forget(hold),
		} {
			want := fmt.Sprintf("session file %s has mode %#o: others may read or change its token", path, mode)
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Error() != want || f.Hint != "chmod 600 '"+path+"'" {
				t.Errorf("%s, mode %o: got %v, want %s", name, mode, err, want)
			}
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Load(); err != nil {
		t.Errorf("after the hint: %v", err)
	}
}

func TestBadSessionFileIsNamedAndKept(t *testing.T) {
	t.Parallel()
	d := session.Open(t.TempDir())
	source, err := namedSession(d)
	if err != nil {
		t.Fatal(err)
	}
	made, err := source.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	path, token := sessionPath(t, d), made.Root.Hex()
	for name, text := range map[string]string{
		"empty":     "",
		"half":      `{"format":1,"token":"` + token,
		"no token":  `{"format":1,"holds":[]}`,
		"bad token": `{"format":1,"token":"` + token[1:] + `","holds":[]}`,
		"bad hold":  `{"format":1,"token":"` + token + `","holds":[{"remote":".","name":"main","operation":"x"}]}`,
		"newer":     `{"format":2,"token":"` + token + `"}`,
		"too big":   strings.Repeat(" ", 1<<20) + `{"format":1,"token":"` + token + `"}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{second(source.Load()), second(source.Ensure())} {
			if err == nil || !strings.Contains(err.Error(), path) || errors.Is(err, session.ErrNoToken) {
				t.Errorf("%s: got %v, want an error that names %s", name, err, path)
			} else if strings.Contains(err.Error(), token[1:9]) {
				t.Errorf("%s: the error shows the token: %v", name, err)
			}
		}
		if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
			t.Errorf("%s: the file was touched: %v", name, err)
		}
	}
}

func TestEnsureAtOnce(t *testing.T) {
	t.Parallel()
	common := t.TempDir()
	var tokens []string
	for _, p := range crowd(t, 8, "ensure", nil, common) {
		tokens = append(tokens, p.line(t))
		p.end(t)
	}
	if slices.Sort(tokens); len(slices.Compact(tokens)) != 1 {
		t.Error("one session got several tokens")
	}
}

func TestNoteAtOnce(t *testing.T) {
	t.Parallel()
	common := t.TempDir()
	source, err := namedSession(session.Open(common))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Ensure(); err != nil {
		t.Fatal(err)
	}
	for _, p := range crowd(t, 8, "note", nil, common) {
		p.end(t)
	}
	if got, err := source.Load(); err != nil || len(got.Holds) != 8 {
		t.Errorf("got %d holds, %v, want all 8", len(got.Holds), err)
	}
}

// GIT_LEASE_HOLDS names further leases, but only beside the one that GIT_LEASE_NAME has.
func TestHoldsVar(t *testing.T) {
	d, op := session.Open(t.TempDir()), session.NewID(time.Now())
	holds := func(lines string) ([]session.HoldNote, error) {
		vars := map[string]string{"GIT_LEASE_TOKEN": session.NewRoot().Hex(), "GIT_LEASE_OPERATION": op.String(), "GIT_LEASE_NAME": "my docs",
			"GIT_LEASE_REMOTE": "origin", session.HoldsVar: lines}
		source, err := d.FromEnv(func(name string) string { return vars[name] })
		if err != nil {
			return nil, err
		}
		have, err := source.Load()
		return have.Holds, err
	}
	docs, main := session.HoldNote{Remote: "origin", Name: "my docs", Operation: op}, session.HoldNote{Remote: ".", Name: "main", Operation: op}
	both := session.HoldLine(7, ".", "main") + "\n" + session.HoldLine(9, "origin", "my docs")
	for lines, want := range map[string][]session.HoldNote{
		"": {docs}, both: {docs, main}, both + "\n": {docs, main}, session.HoldLine(7, ".", "main"): {docs},
	} {
		if got, err := holds(lines); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", lines, got, err)
		}
	}
	if got, err := holds("7 . main"); fault.ClassOf(err) != fault.Usage {
		t.Errorf("without tabs: %v, %v", got, err)
	}
}

package git

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gitland/internal/object"
)

func TestParseConfig(t *testing.T) {
	t.Parallel()
	c := parseConfig("core.bare\nfalse\x00core.flag\x00remote.a.b.url\nfile:///x\x00remote.a.b.url\ny\nz\x00" +
		"remote.lone.pushurl\nx\x00remote.Z.url\nx\x00remote.url\nx\x00empty.value\n\x00")
	for key, want := range map[string][]string{
		"core.bare":      {"false"},
		"core.flag":      {"true"},
		"remote.a.b.url": {"file:///x", "y\nz"},
		"empty.value":    {""},
		"absent.value":   nil,
	} {
		if got := c.All(key); !slices.Equal(got, want) {
			t.Errorf("All(%q) = %q, want %q", key, got, want)
		}
		last := ""
		if len(want) > 0 {
			last = want[len(want)-1]
		}
		if got := c.Get(key); got != last {
			t.Errorf("Get(%q) = %q, want %q", key, got, last)
		}
	}
	if got, want := c.Remotes(), []string{"Z", "a.b"}; !slices.Equal(got, want) {
		t.Errorf("Remotes() = %q, want %q", got, want)
	}
	// Git lists section and variable in lower case; people write them as they like.
	c = parseConfig("lease.notesnamespace\nrefs/x\x00remote.Up.pushurl\nu\x00")
	if c.Get("lease.notesNamespace") != "refs/x" || c.Get("Remote.Up.pushURL") != "u" || c.Get("remote.up.pushurl") != "" {
		t.Errorf("keys are not looked up as git spells them: %v", c)
	}
	if got := parseConfig("").Remotes(); len(got) > 0 {
		t.Errorf("Remotes() of nothing = %q", got)
	}
}

func TestConfigBool(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"true": true, "Yes": true, "ON": true, "1": true, "false": false, "no": false, "off": false, "0": false, "": false,
	} {
		c := parseConfig("a.b\n" + value + "\x00")
		if got, err := c.Bool("a.b", !want); got != want || err != nil {
			t.Errorf("%q: got %v, %v", value, got, err)
		}
	}
	if got, err := parseConfig("a.b\x00").Bool("a.b", false); !got || err != nil {
		t.Errorf("without a value: got %v, %v", got, err)
	}
	for _, fallback := range []bool{true, false} {
		if got, err := parseConfig("").Bool("a.b", fallback); got != fallback || err != nil {
			t.Errorf("absent: got %v, %v", got, err)
		}
	}
	if _, err := parseConfig("a.b\nmaybe\x00").Bool("a.b", false); err == nil || !strings.Contains(err.Error(), "a.b") {
		t.Errorf("maybe: got %v", err)
	}
}

func TestConfigDuration(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{"30s": 30 * time.Second, "2m": 2 * time.Minute, "0": 0, "": time.Hour} {
		if got, err := parseConfig("a.b\n"+value+"\x00").Duration("a.b", time.Hour); got != want || err != nil {
			t.Errorf("%q: got %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"30", "-1s", "soon"} {
		if got, err := parseConfig("a.b\n"+value+"\x00").Duration("a.b", time.Hour); err == nil {
			t.Errorf("%q: got %v", value, got)
		}
	}
}

func TestCheckVersion(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"git version 2.38.0\n", "git version 2.39.5 (Apple Git-154)\n", "git version 2.38.0.windows.1\n",
		"git version 2.56.0-rc1\n", "git version 2.38.GIT\n", "git version 3.0.0\n", "git version 10.1\n",
	} {
		if err := checkVersion(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for out, found := range map[string]string{
		"git version 2.37.9\n": "2.37.9", "git version 1.99.0\n": "1.99.0", "git version 2.9.5 (Apple Git-1)\n": "2.9.5",
	} {
		old, ok := errors.AsType[*OldError](checkVersion(out))
		if !ok || old.Found != found {
			t.Errorf("%q: got %v, want %s to be too old", out, old, found)
		}
	}
	for _, bad := range []string{"", "hub version 2.40.0\n", "git version two\n", "git version 2\n"} {
		err := checkVersion(bad)
		if _, old := errors.AsType[*OldError](err); err == nil || old {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestParsePorcelain(t *testing.T) {
	t.Parallel()
	got := parsePorcelain("hello from a hook\nTo file:///x\n" +
		" \trefs/heads/a:refs/heads/a\t1..2\n" +
		"+\tHEAD~1:refs/heads/b\t1...2 (forced update)\n" +
		"*\t1234:refs/heads/c\t[new branch]\n" +
		"-\t:refs/heads/d\t[deleted]\n" +
		"=\t1234:refs/heads/e\t[up to date]\n" +
		"!\t1234:refs/heads/f\t[rejected] (stale info)\n" +
		"!\t1234:refs/heads/j\t[remote rejected] (pre-receive hook declined (really))\n" +
		"?\t1234:refs/heads/g\tunheard of\n" +
		"!\trefs/heads/h:nonsense\t[rejected]\n" +
		"two\tcolumns\n\t\n" +
		"=\t1:2:refs/heads/i\n" +
		"Done\n")
	want := map[object.Ref]RefStatus{
		"refs/heads/a": {OK: true, Summary: "1..2"},
		"refs/heads/b": {OK: true, Summary: "1...2 (forced update)"},
		"refs/heads/c": {OK: true, Summary: "[new branch]"},
		"refs/heads/d": {OK: true, Summary: "[deleted]"},
		"refs/heads/e": {OK: true, Summary: "[up to date]"},
		"refs/heads/f": {Summary: "[rejected] (stale info)"},
		"refs/heads/j": {Rejected: true, Summary: "[remote rejected] (pre-receive hook declined (really))"},
		"refs/heads/g": {Summary: "unheard of"},
		"refs/heads/i": {OK: true, Summary: ""},
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for ref, reason := range map[object.Ref]string{"refs/heads/f": "stale info", "refs/heads/j": "pre-receive hook declined (really)", "refs/heads/c": "[new branch]"} {
		if got := got[ref].Reason(); got != reason {
			t.Errorf("%s: reason %q", ref, got)
		}
	}
}

func FuzzParsePorcelain(f *testing.F) {
	f.Add("*\t1234:refs/heads/c\t[new branch]\n")
	f.Add("\t\n!\t:\t\n")
	f.Fuzz(func(t *testing.T, out string) {
		for ref := range parsePorcelain(out) {
			if _, err := object.ParseRef(string(ref)); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestParseRaw(t *testing.T) {
	t.Parallel()
	a, b, zero := object.OID(strings.Repeat("a", 40)), object.OID(strings.Repeat("b", 40)), object.SHA1.Zero()
	raw := ":100644 100755 " + string(a) + " " + string(b) + " M\x00 odd\tname\n\x00" +
		":100644 000000 " + string(a) + " " + string(zero) + " D\x00gone\x00" +
		":000000 160000 " + string(zero) + " " + string(b) + " A\x00module\x00" +
		":100644 000000 " + string(a) + " " + string(zero) + " U\x00torn\x00"
	got, err := parseRaw(raw)
	want := []Change{
		{Path: " odd\tname\n", OldMode: "100644", NewMode: "100755", Old: a, New: b},
		{Path: "gone", OldMode: "100644", NewMode: "000000", Old: a, New: zero},
		{Path: "module", OldMode: "000000", NewMode: "160000", Old: zero, New: b},
		{Path: "torn", OldMode: "100644", NewMode: "000000", Old: a, New: zero, Unmerged: true},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if !got[1].Deleted() || got[0].Deleted() || !got[2].IsSubmodule() || got[0].IsSubmodule() {
		t.Error("deleted or submodule: wrong")
	}
	if got, err := parseRaw(""); err != nil || len(got) > 0 {
		t.Errorf("nothing: got %v, %v", got, err)
	}
	for _, bad := range []string{"x", ":1 2 3 4\x00path\x00", ":1 2 3 4 M\x00path\x00:1"} {
		if got, err := parseRaw(bad); err == nil {
			t.Errorf("%q: got %v", bad, got)
		}
	}
}

func TestExpect(t *testing.T) {
	t.Parallel()
	oid := object.OID(strings.Repeat("a", 40))
	for _, test := range []struct {
		expect Expect
		oid    object.OID
		valid  bool
	}{
		{Expect{}, "", false},
		{MustBe(""), "", false},
		{MustBe(object.SHA1.Zero()), object.SHA1.Zero(), false},
		{MustBe(oid), oid, true},
		{MustNotExist(), "", true},
		{Was(""), "", true},
		{Was(object.SHA256.Zero()), "", true},
		{Was(oid), oid, true},
	} {
		if test.expect.OID() != test.oid || test.expect.valid != test.valid {
			t.Errorf("got %+v, want %q, %v", test.expect, test.oid, test.valid)
		}
	}
}

func TestWithoutRepoEnv(t *testing.T) {
	t.Parallel()
	environ := []string{"GIT_DIR=x", "HOME=h", "GIT_INDEX_FILE=x", "GIT_CONFIG_PARAMETERS='a.b=c'", "GIT_CONFIG_COUNT=1",
		"GIT_WORK_TREE=", "GIT_DIRS=y", "GIT_PREFIX=x", "GIT_AUTHOR_NAME=Ada"}
	kept := slices.Clone(environ)
	want := []string{"HOME=h", "GIT_CONFIG_PARAMETERS='a.b=c'", "GIT_CONFIG_COUNT=1", "GIT_DIRS=y", "GIT_AUTHOR_NAME=Ada"}
	if got := WithoutRepoEnv(environ); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Equal(environ, kept) {
		t.Error("the argument was changed")
	}
}

func TestIdentName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Ada <a@x> 1 +0000": "Ada <a@x>", "Ada <>": "Ada <>", "nobody": "nobody",
	} {
		if got := IdentName(in); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

func TestLimited(t *testing.T) {
	t.Parallel()
	l := limited{max: 5}
	for _, part := range []string{"abc", "def", "ghi"} {
		if n, err := l.Write([]byte(part)); n != 3 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	}
	if l.String() != "abcde" || !l.cut {
		t.Errorf("got %q, %v", l.String(), l.cut)
	}
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	if got := Namespace("refs/notes/landing/main"); got != "refs/notes/landing/" {
		t.Errorf("got %q", got)
	}
}

package object_test

import (
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gitland/internal/gittest"
	"gitland/internal/object"
)

const (
	sha1Text   = "0123456789abcdef0123456789abcdef01234567"
	sha256Text = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

func TestParseOID(t *testing.T) {
	t.Parallel()
	for _, good := range []string{sha1Text, sha256Text, strings.Repeat("0", 40), strings.Repeat("f", 64)} {
		if got, err := object.ParseOID(good); string(got) != good || err != nil {
			t.Errorf("%q: got %q, %v", good, got, err)
		}
	}
	for _, bad := range []string{
		"", "0", sha1Text[1:], sha1Text + "0", sha256Text[1:], strings.ToUpper(sha1Text), sha1Text[1:] + "g", " " + sha1Text[1:],
		sha1Text[1:] + "\n", strings.Repeat("é", 20), strings.Repeat("x", 10000),
	} {
		got, err := object.ParseOID(bad)
		if err == nil || got != "" {
			t.Errorf("%q: got %q, %v", bad, got, err)
		} else if len(err.Error()) > 200 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	}
}

func TestOID(t *testing.T) {
	t.Parallel()
	for oid, want := range map[object.OID]bool{
		"": true, object.SHA1.Zero(): true, object.SHA256.Zero(): true, sha1Text: false, object.OID(strings.Repeat("0", 39) + "1"): false,
	} {
		if got := oid.IsZero(); got != want {
			t.Errorf("%q: got %v", oid, got)
		}
	}
	for oid, want := range map[object.OID]string{"": "", "0123": "0123", sha1Text: "0123456789ab", sha256Text: "0123456789ab"} {
		if got := oid.Short(); got != want {
			t.Errorf("%q: got %q", oid, got)
		}
	}
}

func TestParseFormat(t *testing.T) {
	t.Parallel()
	for text, size := range map[string]int{"sha1": 20, "sha256": 32} {
		f, err := object.ParseFormat(text)
		if string(f) != text || err != nil || f.Size() != size || len(f.Zero()) != 2*size {
			t.Errorf("%s: got %q, %v, %d, %s", text, f, err, f.Size(), f.Zero())
		}
	}
	for _, bad := range []string{"", "SHA1", "sha1\n", "sha-256"} {
		if got, err := object.ParseFormat(bad); err == nil {
			t.Errorf("%q: got %q", bad, got)
		}
	}
}

// The ids are those that git computes.
func TestHash(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format object.Format
		kind   object.Kind
		data   string
		want   object.OID
	}{
		{object.SHA1, object.Tree, "", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"},
		{object.SHA1, object.Blob, "", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"},
		{object.SHA1, object.Blob, "hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"},
		{object.SHA256, object.Tree, "", "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"},
		{object.SHA256, object.Blob, "", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"},
	} {
		if got := test.format.Hash(test.kind, []byte(test.data)); got != test.want {
			t.Errorf("%s %s %q: got %s", test.format, test.kind, test.data, got)
		}
		if got := test.format.New(test.kind, []byte(test.data)); got.OID != test.want || got.Kind != test.kind || string(got.Data) != test.data {
			t.Errorf("%s %s %q: got %+v", test.format, test.kind, test.data, got)
		}
	}
	if object.SHA1.EmptyTree() != "4b825dc642cb6eb9a060e54bf8d69288fbee4904" {
		t.Error("the empty tree is another one")
	}
	if got := hex.EncodeToString(object.SHA1.Sum([]byte("abc"))); got != "a9993e364706816aba3e25717850c26c9cd0d89d" {
		t.Errorf("sum: got %s", got)
	}
	if got := len(object.SHA256.Sum(nil)); got != 32 {
		t.Errorf("sum: got %d bytes", got)
	}
}

// What is a ref name is git's to say.
func TestParseRefAsGitDoes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"refs/heads/main", "refs/heads/a/b/c", "refs/x", "refs/heads/é", "refs/heads/a.b", "refs/heads/a.lock.b", "refs/heads/lock",
		"refs/heads/@", "refs/heads/a@b", "refs/heads/{", "refs/heads/%probe", "refs/heads/-a", "refs/heads/a-", "refs/heads/\xff",
		"refs/heads/a'b\"c$d;e|f&g", "refs/heads/HEAD", "refs/heads/a]",
		"refs/", "refs/heads/", "refs//heads", "/refs/heads/a", "refs/heads/.a", "refs/heads/a/.b", "refs/heads/a..b", "refs/heads/a.",
		"refs/heads/a.lock", "refs/heads/a.lock/b", "refs/heads/a b", "refs/heads/a~b", "refs/heads/a^b", "refs/heads/a:b",
		"refs/heads/a?b", "refs/heads/a*b", "refs/heads/a[b", "refs/heads/a\\b", "refs/heads/a@{b", "refs/heads/a\x01b", "refs/heads/a\x7fb",
		"refs/heads/a\tb", "refs/heads/a\nb", "refs/heads/..", "refs/heads/.", "refs/.lock", "refs/heads/a/", "refs/heads/a./b", "refs/heads/@{",
	} {
		_, err := object.ParseRef(name)
		git := gittest.TryGit(t, t.TempDir(), "check-ref-format", name).Code == 0
		if (err == nil) != git {
			t.Errorf("%q: got %v, git says %v", name, err, git)
		}
	}
	for _, name := range []string{"", "HEAD", "main", "heads/main", "Refs/heads/main", "refs", "refs/heads/" + strings.Repeat("x", 1024)} {
		if got, err := object.ParseRef(name); err == nil || got != "" || len(err.Error()) > 300 {
			t.Errorf("%q: got %q, %v", name, got, err)
		}
	}
}

func TestBranchRef(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]object.Ref{
		"main": "refs/heads/main", "refs/heads/main": "refs/heads/main", "release/1.x": "refs/heads/release/1.x",
		"refs/tags/x": "refs/heads/refs/tags/x", "": "", "a b": "", "-": "refs/heads/-",
	} {
		if got, err := object.BranchRef(in); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
	for in, want := range map[object.Ref]string{"refs/heads/a/b": "a/b", "refs/tags/a": "refs/tags/a", "refs/heads": "refs/heads"} {
		if got := in.Branch(); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

const commitText = "tree " + sha1Text + "\nparent " + sha1Text + "\nparent " + sha1Text + "\n" +
	"author Ada <a@x> 1 +0000\ncommitter Bo <b@x> 2 -0130\nencoding ISO-8859-1\n" +
	"mergetag object " + sha1Text + "\n type commit\n \n tagger x\ngpgsig -----BEGIN-----\n \n abc\n -----END-----\nx \n\nsubject\n\nbody\n\nTrailer: x\n"

func TestParseCommit(t *testing.T) {
	t.Parallel()
	got, err := object.ParseCommit([]byte(commitText))
	want := object.CommitData{Tree: sha1Text, Parents: []object.OID{sha1Text, sha1Text},
		Author: "Ada <a@x> 1 +0000", Committer: "Bo <b@x> 2 -0130", Message: "subject\n\nbody\n\nTrailer: x\n",
		Extra: []object.Header{{"encoding", "ISO-8859-1"}, {"mergetag", "object " + sha1Text + "\ntype commit\n\ntagger x"},
			{"gpgsig", "-----BEGIN-----\n\nabc\n-----END-----"}, {"x", ""}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
	}
	if again := string(got.Encode()); again != commitText {
		t.Errorf("got %q, want %q", again, commitText)
	}
}

func TestParseCommitRefuses(t *testing.T) {
	t.Parallel()
	const tree, author, committer = "tree " + sha1Text + "\n", "author A <> 1 +0000\n", "committer A <> 1 +0000\n"
	if _, err := object.ParseCommit([]byte(tree + author + committer + "\n")); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", "\n\n", tree, tree + author + committer, author + committer + "\n", tree + committer + author + "\n", tree + author + "\n",
		"tree x\n" + author + committer + "\n", "tree " + sha1Text + "0\n" + author + committer + "\n",
		tree + "parent x\n" + author + committer + "\n", " " + tree + author + committer + "\n", tree + author + "x\n" + committer + "\n",
		tree + author + committer + "nothing\n\n", tree + " more\n" + author + committer + "\n",
		tree + author + " more\n" + committer + "\n", tree + author + committer + " more\n\n",
	} {
		if got, err := object.ParseCommit([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v", bad, got)
		}
	}
}

func TestReadCommit(t *testing.T) {
	t.Parallel()
	const head = "tree " + sha1Text + "\nauthor A <> 1 +0000\ncommitter A <> 1 +0000\n"
	for text, want := range map[string]object.CommitData{
		head:                              {},
		head[:len(head)-1]:                {},
		head + "nothing\n\nmessage\n":     {Extra: []object.Header{{Key: "nothing"}}, Message: "message\n"},
		head + "nothing\n more\n\nb\n\nc": {Extra: []object.Header{{Key: "nothing", Value: "\nmore"}}, Message: "b\n\nc"},
	} {
		got, err := object.ReadCommit([]byte(text))
		if err != nil || got.Tree != sha1Text || got.Message != want.Message || want.Extra != nil && !reflect.DeepEqual(got.Extra, want.Extra) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
		if _, err := object.ParseCommit([]byte(text)); err == nil {
			t.Errorf("%q is taken where all has to be strict", text)
		}
	}
	for _, bad := range []string{"", "\n", "tree\n" + head, head[1:]} {
		if got, err := object.ReadCommit([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v", bad, got)
		}
	}
}

func FuzzCommit(f *testing.F) {
	f.Add([]byte(commitText))
	f.Add([]byte("tree " + sha256Text + "\nauthor \ncommitter \n\n"))
	f.Add([]byte("tree " + sha1Text + "\nauthor A\n B\ncommitter C\n\n"))
	f.Add([]byte("tree " + sha1Text + "\nauthor A\ncommitter C\nparent x\n  y\n\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := object.ParseCommit(data)
		if err != nil {
			return
		}
		if again := c.Encode(); string(again) != string(data) {
			t.Errorf("got %q, want %q", again, data)
		}
		for _, oid := range append(c.Parents, c.Tree) {
			if _, err := object.ParseOID(string(oid)); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTree(t *testing.T) {
	t.Parallel()
	for _, format := range []object.Format{object.SHA1, object.SHA256} {
		oid := format.Hash(object.Blob, nil)
		want := []object.TreeEntry{
			{"100644", "a", oid}, {"100755", "a b", oid}, {"40000", "d", oid}, {"120000", "é\n", oid}, {"160000", "\xff", oid}, {"100664", "~", oid}}
		data, err := object.EncodeTree(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := format.ParseTree(data)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
		if got[0].IsTree() || !got[2].IsTree() || got[4].IsTree() {
			t.Error("what is a tree is not")
		}
		for _, bad := range []string{"1", "100644", "100644 ", "100644 a", "100644 a\x00", "100644 a\x00" + strings.Repeat("x", format.Size()-1),
			"100648 a\x00" + strings.Repeat("x", format.Size()), " a\x00" + strings.Repeat("x", format.Size()),
			"100644 \x00" + strings.Repeat("x", format.Size()), "100644 a/b\x00" + strings.Repeat("x", format.Size()), string(data) + "1"} {
			if got, err := format.ParseTree([]byte(bad)); err == nil {
				t.Errorf("%q: got %+v", bad, got)
			}
		}
		if got, err := format.ParseTree(nil); got != nil || err != nil {
			t.Errorf("nothing: got %+v, %v", got, err)
		}
	}
	for _, bad := range []object.TreeEntry{
		{"100644", "a", ""}, {"100644", "a", "01"}, {"100644", "a", sha1Text + "00"}, {"100644", "", sha1Text}, {"100644", "a/b", sha1Text},
		{"100644", "a\x00b", sha1Text}, {"", "a", sha1Text}, {"644 x", "a", sha1Text}, {"9", "a", sha1Text},
	} {
		if got, err := object.EncodeTree([]object.TreeEntry{bad}); err == nil {
			t.Errorf("%+v: got %q", bad, got)
		}
	}
}

func FuzzTree(f *testing.F) {
	f.Add([]byte("100644 a\x00"+strings.Repeat("x", 20)), true)
	f.Add([]byte("40000 a b\x00"+strings.Repeat("x", 32)), false)
	f.Add([]byte("00 \x00"+strings.Repeat("x", 20)), true)
	f.Fuzz(func(t *testing.T, data []byte, short bool) {
		format := object.SHA256
		if short {
			format = object.SHA1
		}
		entries, err := format.ParseTree(data)
		if err != nil {
			return
		}
		again, err := object.EncodeTree(entries)
		if err != nil || string(again) != string(data) {
			t.Errorf("got %q, %v, want %q", again, err, data)
		}
	})
}

func FuzzRef(f *testing.F) {
	for _, s := range []string{"refs/heads/main", "refs/heads/a..b", "refs/heads/\xff", "refs/heads/.lock"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := object.ParseRef(s)
		if err != nil {
			return
		}
		if string(ref) != s || strings.ContainsAny(s, "\x00\n :?*[\\^~") || strings.Contains(s, "..") || strings.HasSuffix(s, "/") {
			t.Errorf("%q became %q", s, ref)
		}
		if again, err := object.BranchRef(ref.Branch()); strings.HasPrefix(s, "refs/heads/") && (again != ref || err != nil) {
			t.Errorf("%q became %q, %v", s, again, err)
		}
	})
}

// The order is that of git, which refuses trees of another one.
func TestTreeLess(t *testing.T) {
	t.Parallel()
	var lines []string
	entries := []object.TreeEntry{}
	for _, name := range []string{"a", "a-b", "a.b", "a0", "ab", "b", "B", "\xc3\xa9", "~"} {
		for _, mode := range []string{"100644", "40000"} {
			if (mode == "40000") == (len(name)%2 == 0) {
				continue // one name, one entry
			}
			e := object.TreeEntry{Mode: mode, Name: name, OID: object.SHA1.EmptyTree()}
			kind := "tree"
			if !e.IsTree() {
				e.OID, kind = object.SHA1.Hash(object.Blob, nil), "blob"
			}
			entries = append(entries, e)
			lines = append(lines, e.Mode+" "+kind+" "+string(e.OID)+"\t"+name+"\x00")
		}
	}
	slices.SortFunc(entries, func(a, b object.TreeEntry) int {
		if object.TreeLess(a, b) {
			return -1
		}
		return 1
	})
	data, err := object.EncodeTree(entries)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "--quiet")
	env, _ := gittest.Env(t)
	cmd := gittest.Command(t, env, dir, "git", "mktree", "--missing", "-z")
	cmd.Stdin = strings.NewReader(strings.Join(lines, ""))
	got := gittest.Run(t, cmd)
	if want := object.SHA1.Hash(object.Tree, data); strings.TrimSpace(got.Stdout) != string(want) {
		t.Errorf("git made %+v, we %s", got, want)
	}
}

// Package object owns the vocabulary that every other package shares with git:
// object ids, hash formats, full ref names, and the raw form of commits and
// trees.
//
// It promises that a value of type OID or Ref that came out of this package is
// well formed, and that parsing followed by encoding gives back the same
// bytes. It refuses everything else: text that is nearly an object id is not
// one. It does no input or output.
package object

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
)

// An OID is the lower-case hexadecimal name of an object, 40 digits long in a
// SHA-1 repository and 64 in a SHA-256 one. The empty OID means "no object".
type OID string

// ParseOID accepts a full object id of either format and nothing else.
func ParseOID(s string) (OID, error) {
	if len(s) != 2*sha1.Size && len(s) != 2*sha256.Size {
		return "", fmt.Errorf("object id %q: want 40 or 64 hexadecimal digits", clip(s))
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", fmt.Errorf("object id %q: want lower-case hexadecimal digits", clip(s))
		}
	}
	return OID(s), nil
}

// IsZero reports whether o names no object: the empty OID, or git's all-zero
// id, which stands for an absent ref.
func (o OID) IsZero() bool { return strings.Trim(string(o), "0") == "" }

// Short is the abbreviation for people, twelve digits. It is never parsed.
func (o OID) Short() string {
	if len(o) <= 12 {
		return string(o)
	}
	return string(o[:12])
}

// A Format is a repository's hash function, in git's words: "sha1" or
// "sha256" (extensions.objectFormat).
type Format string

// The formats that git has.
const (
	SHA1   Format = "sha1"
	SHA256 Format = "sha256"
)

// ParseFormat accepts the output of "git rev-parse --show-object-format".
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case SHA1, SHA256:
		return f, nil
	}
	return "", fmt.Errorf("object format %q: want sha1 or sha256", clip(s))
}

func (f Format) newHash() hash.Hash {
	if f == SHA256 {
		return sha256.New()
	}
	return sha1.New()
}

// Size is the length of a raw object id in bytes.
func (f Format) Size() int {
	if f == SHA256 {
		return sha256.Size
	}
	return sha1.Size
}

// Zero is the id that git writes for an absent ref.
func (f Format) Zero() OID { return OID(strings.Repeat("0", 2*f.Size())) }

// EmptyTree is the id of the tree without entries.
func (f Format) EmptyTree() OID {
	if f == SHA256 {
		return emptyTree256
	}
	return emptyTree
}

var emptyTree, emptyTree256 = SHA1.Hash(Tree, nil), SHA256.Hash(Tree, nil)

// Hash computes the id under which git stores data as an object of kind k.
func (f Format) Hash(k Kind, data []byte) OID {
	h := f.newHash()
	fmt.Fprintf(h, "%s %d\x00", k, len(data))
	h.Write(data)
	return OID(hex.EncodeToString(h.Sum(nil)))
}

// Sum is the bare hash of data, as it closes a pack file.
func (f Format) Sum(data []byte) []byte {
	h := f.newHash()
	h.Write(data)
	return h.Sum(nil)
}

// A Kind is the type of an object.
type Kind string

// The kinds of object that this project reads and writes.
const (
	Blob   Kind = "blob"
	Tree   Kind = "tree"
	Commit Kind = "commit"
)

// An Object is one object of the database. OID is filled by whoever read or
// hashed it.
type Object struct {
	OID  OID
	Kind Kind
	Data []byte
}

// New hashes data into an Object.
func (f Format) New(k Kind, data []byte) Object {
	return Object{OID: f.Hash(k, data), Kind: k, Data: data}
}

// A Ref is a full ref name: it begins with "refs/" and passes the rules of
// git-check-ref-format(1).
type Ref string

// ParseRef accepts a full ref name of at most 1024 bytes.
func ParseRef(s string) (Ref, error) {
	if !strings.HasPrefix(s, "refs/") || len(s) > 1024 {
		return "", fmt.Errorf("ref %q: want a full name that begins with refs/", clip(s))
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return "", fmt.Errorf("ref %q: component %q is not allowed", clip(s), clip(part))
		}
	}
	if strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.HasSuffix(s, ".") {
		return "", fmt.Errorf("ref %q: not a valid ref name", clip(s))
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c == 0x7f || strings.IndexByte("~^:?*[\\", c) >= 0 {
			return "", fmt.Errorf("ref %q: byte %#x is not allowed", clip(s), c)
		}
	}
	return Ref(s), nil
}

// BranchRef turns a branch as a person writes it ("main", "refs/heads/main")
// into its full name.
func BranchRef(branch string) (Ref, error) {
	if !strings.HasPrefix(branch, "refs/heads/") {
		branch = "refs/heads/" + branch
	}
	return ParseRef(branch)
}

// Branch is the short name of a branch, and the full name of any other ref.
func (r Ref) Branch() string { return strings.TrimPrefix(string(r), "refs/heads/") }

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// A CommitData is a commit in git's raw form. Headers that are not named here
// are kept, in order, in Extra.
type CommitData struct {
	Tree      OID
	Parents   []OID
	Author    string // "Name <email> seconds zone"
	Committer string
	Extra     []Header
	Message   string
}

// A Header is one further header of a commit, such as "encoding" or "gpgsig".
// Value has git's continuation spaces removed.
type Header struct{ Key, Value string }

// ParseCommit reads a commit object, strictly: tree, parents, author and
// committer in git's order, each well formed.
func ParseCommit(data []byte) (CommitData, error) { return parseCommit(data, true) }

// ReadCommit is ParseCommit for a commit of anybody's making. As git does, it takes a
// header without a value, and headers without a message behind them.
func ReadCommit(data []byte) (CommitData, error) { return parseCommit(data, false) }

func parseCommit(data []byte, strict bool) (CommitData, error) {
	var c CommitData
	head, message, found := strings.Cut(string(data), "\n\n")
	if !found {
		if strict {
			return c, fmt.Errorf("commit: no blank line after the headers")
		}
		head = strings.TrimSuffix(head, "\n")
	}
	c.Message = message
	headers := make([]Header, 0, 5) // as most commits have
	for line := range strings.SplitSeq(head, "\n") {
		if strings.HasPrefix(line, " ") && len(headers) > 0 {
			headers[len(headers)-1].Value += "\n" + line[1:]
			continue
		}
		key, value, ok := strings.Cut(line, " ")
		if key == "" || !ok && strict {
			return c, fmt.Errorf("commit: header %q has no value", clip(line))
		}
		headers = append(headers, Header{key, value})
	}
	next := func(key string) (string, bool) {
		if len(headers) == 0 || headers[0].Key != key {
			return "", false
		}
		v := headers[0].Value
		headers = headers[1:]
		return v, true
	}
	tree, ok := next("tree")
	if !ok {
		return c, fmt.Errorf("commit: first header is not tree")
	}
	var err error
	if c.Tree, err = ParseOID(tree); err != nil {
		return c, fmt.Errorf("commit: tree: %w", err)
	}
	for {
		parent, ok := next("parent")
		if !ok {
			break
		}
		oid, err := ParseOID(parent)
		if err != nil {
			return c, fmt.Errorf("commit: parent: %w", err)
		}
		c.Parents = append(c.Parents, oid)
	}
	if c.Author, ok = next("author"); !ok {
		return c, fmt.Errorf("commit: no author")
	}
	if c.Committer, ok = next("committer"); !ok {
		return c, fmt.Errorf("commit: no committer")
	}
	if strings.Contains(c.Author+c.Committer, "\n") {
		return c, fmt.Errorf("commit: an identity of several lines")
	}
	if len(headers) > 0 {
		c.Extra = headers
	}
	return c, nil
}

// Encode is the inverse of ParseCommit.
func (c CommitData) Encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n", c.Author, c.Committer)
	for _, h := range c.Extra {
		fmt.Fprintf(&b, "%s %s\n", h.Key, strings.ReplaceAll(h.Value, "\n", "\n "))
	}
	b.WriteString("\n")
	b.WriteString(c.Message)
	return b.Bytes()
}

// A TreeEntry is one line of a tree. Mode is git's octal spelling without
// leading zeros, such as "100644" or "40000".
type TreeEntry struct {
	Mode string
	Name string
	OID  OID
}

// IsTree reports whether the entry is a directory.
func (e TreeEntry) IsTree() bool { return e.Mode == "40000" }

// wellFormed reports whether the entry can stand in a tree at all.
func (e TreeEntry) wellFormed() bool {
	_, err := strconv.ParseUint(e.Mode, 8, 32)
	return err == nil && e.Name != "" && !strings.ContainsAny(e.Name, "/\x00")
}

// ParseTree reads a raw tree object.
func (f Format) ParseTree(data []byte) ([]TreeEntry, error) {
	var entries []TreeEntry
	for len(data) > 0 {
		mode, rest, ok := bytes.Cut(data, []byte(" "))
		if !ok {
			return nil, fmt.Errorf("tree: entry %d has no mode", len(entries))
		}
		name, rest, ok := bytes.Cut(rest, []byte{0})
		if !ok || len(rest) < f.Size() {
			return nil, fmt.Errorf("tree: entry %d is cut short", len(entries))
		}
		e := TreeEntry{Mode: string(mode), Name: string(name), OID: OID(hex.EncodeToString(rest[:f.Size()]))}
		if !e.wellFormed() {
			return nil, fmt.Errorf("tree: entry %d, %q of mode %q", len(entries), clip(e.Name), clip(e.Mode))
		}
		entries = append(entries, e)
		data = rest[f.Size():]
	}
	return entries, nil
}

// EncodeTree is the inverse of ParseTree. The entries must stand in git's
// order, in which a directory sorts as if its name ended in a slash.
func EncodeTree(entries []TreeEntry) ([]byte, error) {
	var b bytes.Buffer
	for _, e := range entries {
		if !e.wellFormed() {
			return nil, fmt.Errorf("tree: entry %q of mode %q", clip(e.Name), clip(e.Mode))
		}
		if _, err := ParseOID(string(e.OID)); err != nil {
			return nil, fmt.Errorf("tree: entry %q: %w", clip(e.Name), err)
		}
		raw, err := hex.DecodeString(string(e.OID))
		if err != nil {
			return nil, fmt.Errorf("tree: entry %q: %w", clip(e.Name), err)
		}
		fmt.Fprintf(&b, "%s %s\x00", e.Mode, e.Name)
		b.Write(raw)
	}
	return b.Bytes(), nil
}

// TreeLess is git's order of tree entries (base_name_compare in git's read-cache.c).
func TreeLess(a, b TreeEntry) bool { return sortName(a) < sortName(b) }

func sortName(e TreeEntry) string {
	if e.IsTree() {
		return e.Name + "/"
	}
	return e.Name
}

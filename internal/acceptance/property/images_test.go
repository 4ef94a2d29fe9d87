package property

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gitland/internal/gittest"
	"gitland/internal/object"
)

// What remotes begin with.
const (
	ada  = "Ada <ada@example.com> 1700000000 +0000"
	theo = "Theo <theo@example.com> 1700000000 +0000"
)

// text is a file of twelve lines.
func text(name string) string {
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, "%s, line %d\n", name, i)
	}
	return b.String()
}

// base is the tree that the remote's target has.
func base() tree {
	t := tree{
		".gitattributes": {regular, attributes},
		".gitignore":     {regular, ignores},
		"run.sh":         {executable, "#!/bin/sh\necho run\n"},
		"link":           {symlink, "README"},
		"bin/tool":       {executable, "#!/bin/sh\necho tool\n"},
	}
	for _, name := range []string{"README", "Case.txt", "src/a.txt", "src/b.txt", "src/sub/c.txt", "docs/guide.txt", "docs/x y.txt", "lib/one", "lib/two",
		"new\nline.txt", "caf\xe9.txt", "star*", "starfish", ":colon", "-dash", `"quoted"`, "dos.crlf", "secret.rot", "kept.ign", "apart.txt"} {
		t[name] = entry{regular, text(strings.ToValidUTF8(name, "?"))}
	}
	return t
}

// A kind of image: what git has to make, since it cannot be had by writing files.
type kind string

const (
	plain     kind = "plain"
	sha256ed  kind = "sha256"
	shallow   kind = "shallow"
	partial   kind = "partial"
	submodule kind = "submodule"
	empty     kind = "empty"
)

// images are directories with a remote (origin.git) and a clone of it (clone), made
// once, and copied for each case.
type images struct {
	t    *testing.T
	env  []string
	key  string // to sign with; "" where the machine has no ssh-keygen
	mu   sync.Mutex
	made map[kind]*image
}

type image struct {
	dir    string
	format object.Format
	base   tree
	tip    object.OID   // of the remote's target
	moved  []object.OID // commits of the submodule; base has the first one, its remote lacks the last one
}

func newImages(t *testing.T) *images {
	env, _ := gittest.Env(t)
	im := &images{t: t, env: gittest.WithPath(env, bin), made: map[kind]*image{}}
	if _, err := exec.LookPath("ssh-keygen"); err == nil {
		im.key = filepath.Join(t.TempDir(), "key")
		im.run(t.TempDir(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", im.key)
		public := gittest.Read(t, filepath.Dir(im.key), "key.pub")
		gittest.Write(t, filepath.Dir(im.key), map[string]string{"key.allowed": "ada@example.com " + public})
	}
	return im
}

func (im *images) of(k kind) *image {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.made[k] == nil {
		im.made[k] = im.build(k)
	}
	return im.made[k]
}

func (im *images) git(dir string, args ...string) string {
	im.t.Helper()
	return im.run(dir, "git", args...)
}

func (im *images) run(dir, name string, args ...string) string {
	im.t.Helper()
	r := gittest.Run(im.t, gittest.Command(im.t, im.env, dir, name, args...))
	if r.Code != 0 {
		im.t.Fatalf("%s %q: exit %d\n%s%s", name, args, r.Code, r.Stdout, r.Stderr)
	}
	return strings.TrimSpace(r.Stdout)
}

func (im *images) build(k kind) *image {
	im.t.Helper()
	made := &image{dir: filepath.Join(im.t.TempDir(), string(k)), format: object.SHA1, base: tree{}}
	if k == sha256ed {
		made.format = object.SHA256
	}
	remote := filepath.Join(made.dir, "origin.git")
	im.git(im.t.TempDir(), "init", "--quiet", "--bare", "--initial-branch=main", "--object-format="+string(made.format), remote)
	im.git(remote, "config", "uploadpack.allowFilter", "true")
	im.git(remote, "config", "uploadpack.allowAnySHA1InWant", "true")
	if k == submodule {
		made.moved = im.submodule(made)
	}
	if k != empty {
		im.begin(made, remote)
	}
	args := []string{"clone", "--quiet", "-c", "filter.rot.clean=tr a-zA-Z n-za-mN-ZA-M", "-c", "filter.rot.smudge=tr a-zA-Z n-za-mN-ZA-M"}
	switch k {
	case shallow:
		args = append(args, "--depth=1")
	case partial:
		args = append(args, "--filter=blob:none")
	}
	im.git(made.dir, append(args, gittest.URL(remote), "clone")...)
	if k == submodule {
		im.git(made.dir, "clone", "--quiet", gittest.URL(filepath.Join(made.dir, "sub.git")), "clone/sub")
		im.git(made.dir+"/clone/sub", "checkout", "--quiet", "--detach", string(made.moved[0]))
		local := store{im.t, filepath.Join(made.dir, "clone/sub/.git"), made.format}
		made.moved = append(made.moved, local.commit(tree{"file": {regular, "not pushed\n"}}, made.moved[:1], ada, "not pushed\n"))
	}
	for _, repository := range []string{"origin.git", "clone/.git", "clone/sub/.git", "sub.git"} {
		os.RemoveAll(filepath.Join(made.dir, repository, "hooks"))
	}
	return made
}

// submodule makes the repository of a submodule, with commits to choose from.
func (im *images) submodule(made *image) []object.OID {
	dir := filepath.Join(made.dir, "sub.git")
	im.git(im.t.TempDir(), "init", "--quiet", "--bare", "--initial-branch=main", dir)
	s := store{im.t, dir, made.format}
	var commits, parents []object.OID
	for i := range 3 {
		oid := s.commit(tree{"file": {regular, fmt.Sprintln("version", i)}}, parents, theo, fmt.Sprintln("version", i))
		commits, parents = append(commits, oid), []object.OID{oid}
	}
	setRef(im.t, dir, "refs/heads/main", commits[2])
	return commits
}

// begin gives a remote its first commits, one of which has landed.
func (im *images) begin(made *image, remote string) {
	made.base = base()
	if made.moved != nil {
		made.base["sub"] = entry{gitlink, string(made.moved[0])}
		made.base[".gitmodules"] = entry{regular, "[submodule \"sub\"]\n\tpath = sub\n\turl = ../sub.git\n"}
	}
	s := store{im.t, remote, made.format}
	first := s.commit(tree{"README": {regular, "soon\n"}}, nil, theo, "first\n")
	setRef(im.t, remote, "refs/heads/main", s.commit(made.base, []object.OID{first}, theo, "second\n"))
	aside := filepath.Join(im.t.TempDir(), "aside")
	im.git(made.dir, "clone", "--quiet", "--no-checkout", gittest.URL(remote), aside)
	im.git(aside, "read-tree", "HEAD")
	gittest.Write(im.t, aside, map[string]string{"landed": text("landed")})
	im.run(aside, "git-land", append(landing, "-m", "landed", "--", "landed")...)
	made.base["landed"] = entry{regular, text("landed")}
	made.tip = object.OID(refs(im.t, remote)["refs/heads/main"])
}

// landing is what every landing here has before it.
var landing = []string{"--json", "--force-unverified", "--reason", "nobody checks this"}

// put copies the image to a directory that is not there yet.
func (im *image) put(t *testing.T, dir string) {
	t.Helper()
	gittest.CopyTree(t, im.dir, dir)
	for _, config := range []string{"clone/.git/config", "clone/sub/.git/config"} {
		path := filepath.Join(dir, config)
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.ReplaceAll(string(data), im.dir+"/", dir+"/")), 0o666)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// tried writes down in a clone what one finds out once about a remote.
func tried(t *testing.T, gitDir, remote string, atomic bool) {
	t.Helper()
	key := sha256.Sum256([]byte(gittest.URL(remote) + "\x00"))
	name := sha256.Sum256([]byte(hex.EncodeToString(key[:])))
	text := fmt.Sprintf(`{"format":1,"head":"refs/heads/main","compare_and_swap":true,"atomic":%v,`+
		`"probed":["refs/lease/","refs/notes/landing/","refs/notes/"],"when":"2026-01-01T00:00:00Z"}`, atomic)
	path := filepath.Join(gitDir, "lease/probe", hex.EncodeToString(name[:])+".json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

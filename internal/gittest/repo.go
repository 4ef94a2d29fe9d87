package gittest

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Bare makes an empty bare repository and returns its directory. The
// arguments go to git init: "--object-format=sha256", say.
func Bare(t T, initArgs ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "origin.git")
	imageFor(t, "bare "+strings.Join(initArgs, " "), func() string { return initBare(t, initArgs) }).put(t, dir)
	return dir
}

func initBare(t T, initArgs []string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "origin.git")
	Git(t, filepath.Dir(dir), append(append([]string{"init", "--quiet", "--bare", "--initial-branch=main"}, initArgs...), dir)...)
	return dir
}

// Remote is Bare with one commit on main, which holds the file README.
func Remote(t T, initArgs ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "origin.git")
	remoteImage(t, initArgs).put(t, dir)
	return dir
}

func remoteImage(t T, initArgs []string) image {
	t.Helper()
	return imageFor(t, "remote "+strings.Join(initArgs, " "), func() string {
		dir, seed := initBare(t, initArgs), t.TempDir()
		Git(t, seed, append(append([]string{"init", "--quiet", "--initial-branch=main"}, initArgs...), ".")...)
		Commit(t, seed, "begin", map[string]string{"README": "A repository to try things on.\n"})
		Git(t, seed, "push", "--quiet", dir, "main")
		return dir
	})
}

// URL is the file:// URL of a repository's directory: with it git talks to a
// server process, as it would over a network.
func URL(dir string) string { return "file://" + filepath.ToSlash(dir) }

// Clone clones url and returns the directory. The arguments go to git clone. A
// clone of a Remote on which nothing has happened yet is put down as git made the
// first one.
func Clone(t T, url string, cloneArgs ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	from, local := strings.CutPrefix(url, "file://")
	if local && len(cloneArgs) == 0 {
		if remote := remoteImage(t, nil); remote.stands(from) {
			im := imageFor(t, "clone", func() string { return gitClone(t, url, filepath.Join(t.TempDir(), "clone")) })
			im.replaced(im.origin(), url).put(t, dir)
			Git(t, dir, "update-index", "-q", "--refresh") // its files are others'
			return dir
		}
	}
	return gitClone(t, url, dir, cloneArgs...)
}

func gitClone(t T, url, dir string, cloneArgs ...string) string {
	t.Helper()
	args := append([]string{"clone", "--quiet"}, cloneArgs...)
	Git(t, filepath.Dir(dir), append(args, url, dir)...)
	return dir
}

// Write puts files, named relative to dir with slashes, into place.
func Write(t T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatalf("gittest: %v", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatalf("gittest: %v", err)
		}
	}
}

// Script writes an executable file: a hook, say.
func Script(t T, path, content string) {
	t.Helper()
	Unforked(func() {
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatalf("gittest: %v", err)
		}
	})
}

// Unforked keeps other goroutines from forking while write writes an executable file: a
// child that is born with the file open for writing makes "text file busy" of its first use.
func Unforked(write func()) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	write()
}

// Read returns a file's content.
func Read(t T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	return string(content)
}

// Commit writes files, commits exactly them on the branch that is checked out,
// and returns the commit's object id.
func Commit(t T, dir, message string, files map[string]string) string {
	t.Helper()
	Write(t, dir, files)
	args := []string{"commit", "--quiet", "--allow-empty", "--message=" + message}
	if len(files) > 0 {
		paths := append([]string{"--"}, slices.Sorted(maps.Keys(files))...)
		Git(t, dir, append([]string{"add"}, paths...)...)
		args = append(append(args, "--only"), paths...)
	}
	Git(t, dir, args...)
	return Git(t, dir, "rev-parse", "HEAD")
}

// Refs returns every ref of a repository with its object id, HEAD's branch
// under "HEAD". Two maps that are equal mean that nothing moved.
func Refs(t T, dir string) map[string]string {
	t.Helper()
	refs := map[string]string{}
	if branch := head(t, dir); branch != "" {
		refs["HEAD"] = branch
	}
	for line := range strings.Lines(Git(t, dir, "for-each-ref", "--format=%(refname) %(objectname)")) {
		name, oid, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refs[name] = oid
	}
	return refs
}

// head is the branch that HEAD is on, if any.
func head(t T, dir string) string {
	t.Helper()
	for _, name := range []string{"HEAD", ".git/HEAD"} { // of no linked worktree
		if text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			branch, _ := strings.CutPrefix(strings.TrimSpace(string(text)), "ref: ")
			if strings.HasPrefix(branch, "refs/") {
				return branch
			}
			return ""
		}
	}
	return strings.TrimSpace(TryGit(t, dir, "symbolic-ref", "--quiet", "HEAD").Stdout)
}

// Index returns the index of a working tree: for each path the tag (skip
// worktree, assume unchanged), mode, object id and stage of its entries.
func Index(t T, dir string) map[string]string {
	t.Helper()
	index := map[string]string{}
	for entry := range strings.SplitSeq(Git(t, dir, "ls-files", "-z", "--stage", "-v"), "\x00") {
		if detail, path, ok := strings.Cut(entry, "\t"); ok {
			index[path] += detail + "\n"
		}
	}
	return index
}

// Files returns every file below dir outside .git: its mode, and its SHA-256
// or where it links to.
func Files(t T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" && d.IsDir() {
			return filepath.SkipDir
		}
		if d.IsDir() {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(name)], err = describe(path, d)
		return err
	})
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	return files
}

func describe(path string, d fs.DirEntry) (string, error) {
	info, err := d.Info()
	if err != nil {
		return "", err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(path)
		return info.Mode().String() + " " + to, err
	}
	content, err := os.ReadFile(path)
	sum := sha256.Sum256(content)
	return info.Mode().String() + " " + hex.EncodeToString(sum[:]), err
}

package git_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

func TestMoveRefs(t *testing.T) {
	t.Parallel()
	for _, format := range formats {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			dir := initRepo(t, "--object-format="+string(format))
			a := object.OID(gittest.Commit(t, dir, "a", nil))
			b := object.OID(gittest.Commit(t, dir, "b", nil))
			r := open(t, dir)
			move := func(moves ...git.Move) error { return r.MoveRefs(t.Context(), "test", moves...) }
			ok := func(moves ...git.Move) {
				t.Helper()
				if err := move(moves...); err != nil {
					t.Error(err)
				}
			}
			refused := func(moves ...git.Move) {
				t.Helper()
				before := gittest.Refs(t, dir)
				if err := move(moves...); err == nil {
					t.Errorf("%+v was not refused", moves)
				}
				if after := gittest.Refs(t, dir); !maps.Equal(after, before) {
					t.Errorf("%+v moved refs: %v", moves, after)
				}
			}
			ok()
			ok(git.Move{Ref: "refs/x/one", New: a, Old: git.MustNotExist()}, git.Move{Ref: "refs/x/two", New: a, Old: git.Was("")})
			refused(git.Move{Ref: "refs/x/one", New: b})
			refused(git.Move{Ref: "refs/x/one", New: b, Old: git.MustBe("")})
			refused(git.Move{Ref: "refs/x/one"})
			refused(git.Move{Ref: "refs/x/one", New: b, Old: git.MustNotExist()})
			refused(git.Move{Ref: "refs/x/one", New: b, Old: git.MustBe(b)})
			refused(git.Move{Ref: "refs/x/three", New: b, Old: git.MustBe(a)})
			refused(git.Move{Ref: "refs/x/three", New: b, Old: git.MustNotExist()}, git.Move{Ref: "refs/x/one", New: b, Old: git.MustBe(b)})
			refused(git.Move{Ref: "refs/x/one", Old: git.MustBe(b)})
			ok(git.Move{Ref: "refs/x/one", New: b, Old: git.MustBe(a)}, git.Move{Ref: "refs/x/two", Old: git.MustBe(a)})
			got := must(r.Refs(t.Context(), "refs/x"))(t)
			if want := map[object.Ref]object.OID{"refs/x/one": b}; !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			ok(git.Move{Ref: "refs/heads/main", New: a, Old: git.MustBe(b)})
			if got := gittest.Git(t, dir, "log", "--walk-reflogs", "--format=%gs", "-1", "main"); got != "test" {
				t.Errorf("reflog: %q", got)
			}
		})
	}
}

// A signal to the whole process group may find a git that has done its work already: what
// it has moved has moved.
func TestMoveRefsThatASignalEnds(t *testing.T) {
	dir := initRepo(t)
	a := object.OID(gittest.Commit(t, dir, "a", nil))
	b := object.OID(gittest.Commit(t, dir, "b", nil))
	gittest.Git(t, dir, "update-ref", "refs/x/gone", string(b))
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	gittest.Script(t, filepath.Join(bin, "git"), `#!/bin/sh
case " $* " in
*" update-ref "*)
	[ "$WHEN" = before ] || "`+real+`" "$@"
	kill -TERM $$ ;;
esac
exec "`+real+`" "$@"
`)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")) // in which we look for git
	moves := []git.Move{{Ref: "refs/heads/main", New: a, Old: git.MustBe(b)}, {Ref: "refs/x/gone", Old: git.MustBe(b)}, {Ref: "refs/x/new", New: b, Old: git.MustNotExist()}}
	before := gittest.Refs(t, dir)
	if err := open(t, dir, "WHEN=before").MoveRefs(t.Context(), "test", moves...); !git.Terminated(err) {
		t.Errorf("ended before: %v", err)
	}
	if after := gittest.Refs(t, dir); !maps.Equal(after, before) {
		t.Fatalf("moved before: %v", after)
	}
	if err := open(t, dir).MoveRefs(t.Context(), "test", moves...); err != nil {
		t.Errorf("ended after: %v", err)
	}
	if main := revParse(t, dir, "main"); main != a {
		t.Errorf("main is at %s, want %s", main, a)
	}
}

func TestDetachedHead(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	a := object.OID(gittest.Commit(t, dir, "a", nil))
	b := object.OID(gittest.Commit(t, dir, "b", nil))
	r := open(t, dir)
	if got := must(r.HeadBranch(t.Context()))(t); got != "refs/heads/main" {
		t.Errorf("got %q", got)
	}
	gittest.Git(t, dir, "checkout", "--quiet", "--detach")
	if got := must(r.HeadBranch(t.Context()))(t); got != "" {
		t.Errorf("got %q", got)
	}
	if err := r.MoveRefs(t.Context(), "test", git.Move{Ref: git.Head, New: a, Old: git.MustBe(b)}); err != nil {
		t.Fatal(err)
	}
	if head, main := revParse(t, dir, "HEAD"), revParse(t, dir, "main"); head != a || main != b {
		t.Errorf("HEAD is %s, main %s", head, main)
	}
	gittest.Git(t, dir, "checkout", "--quiet", "--orphan", "unborn")
	if got := must(r.HeadBranch(t.Context()))(t); got != "refs/heads/unborn" {
		t.Errorf("got %q", got)
	}
}

// A name is itself or what is below it, and never the end of another one.
func TestRefsAreExact(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	a := object.OID(gittest.Commit(t, dir, "a", nil))
	for _, ref := range []string{"refs/heads/refs/lease/main", "refs/lease/main", "refs/lease/main2", "refs/other/main/x"} {
		gittest.Git(t, dir, "update-ref", ref, string(a))
	}
	r := open(t, dir)
	got := must(r.Refs(t.Context(), "refs/lease/main", "refs/other/main", "refs/lease/absent", "main"))(t)
	if want := map[object.Ref]object.OID{"refs/lease/main": a, "refs/other/main/x": a}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := must(open(t, initRepo(t)).Refs(t.Context()))(t); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// A ref that somebody else is just writing is waited for, longer than git would
// by itself.
func TestMoveRefsWaitsForLocks(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	a := object.OID(gittest.Commit(t, dir, "a", nil))
	b := object.OID(gittest.Commit(t, dir, "b", nil))
	lock := filepath.Join(dir, ".git", "refs", "heads", "main.lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	done := make(chan error, 1)
	go func() {
		done <- r.MoveRefs(t.Context(), "test", git.Move{Ref: "refs/heads/main", New: a, Old: git.MustBe(b)})
	}()
	// Git's own patience would be over by the time that another git has failed.
	if r := gittest.TryGit(t, dir, "update-ref", "refs/heads/main", string(a)); r.Code == 0 {
		t.Fatal("the lock locks nothing")
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	a := object.OID(gittest.Commit(t, dir, "a", map[string]string{"file": "x\n"}))
	blob := revParse(t, dir, "HEAD:file")
	gittest.Git(t, dir, "update-ref", "refs/x/blob", string(blob))
	gittest.Git(t, dir, "tag", "-a", "-m", "tag", "v1")
	r := open(t, dir)
	resolve := func(want map[object.Ref]object.OID) {
		t.Helper()
		got := must(r.Resolve(t.Context(), "refs/heads/main", "refs/x/blob", "refs/x/absent", "refs/tags/v1"))(t)
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	want := map[object.Ref]object.OID{"refs/heads/main": a, "refs/x/blob": blob, "refs/tags/v1": revParse(t, dir, "v1")}
	resolve(want)
	// What moved meanwhile is seen, though the reader is the same, packed or not.
	want["refs/heads/main"] = object.OID(gittest.Commit(t, dir, "b", nil))
	resolve(want)
	gittest.Git(t, dir, "pack-refs", "--all")
	want["refs/heads/main"] = object.OID(gittest.Commit(t, dir, "c", nil))
	gittest.Git(t, dir, "gc", "--quiet", "--prune=now")
	resolve(want)
	gittest.Git(t, dir, "update-ref", "-d", "refs/x/blob")
	delete(want, "refs/x/blob")
	resolve(want)
}

func TestStart(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	start := func(from string, want git.Position) {
		t.Helper()
		if got, err := open(t, from).Start(t.Context()); !same(got, want) || err != nil {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	start(dir, git.Position{Branch: "refs/heads/main", Tree: object.SHA1.EmptyTree()})
	a := object.OID(gittest.Commit(t, dir, "a", map[string]string{"sub/file": "x\n"}))
	tree := revParse(t, dir, "HEAD^{tree}")
	at := git.Position{Branch: "refs/heads/main", Commit: a, Tree: tree}
	start(dir, at)
	start(filepath.Join(dir, "sub"), at)
	start(filepath.Join(dir, ".git"), at)
	bare := gittest.Clone(t, dir, "--bare")
	start(bare, at)
	r := open(t, dir)
	gittest.Git(t, dir, "checkout", "--quiet", "--detach")
	start(dir, git.Position{Commit: a, Tree: tree})
	if got := must(r.Start(t.Context()))(t); !same(got, at) {
		t.Errorf("it moved since: got %+v", got)
	}
	// A branch and a tag that are called HEAD change nothing.
	gittest.Git(t, dir, "checkout", "--quiet", "main")
	gittest.Git(t, dir, "update-ref", "refs/heads/HEAD", gittest.Git(t, dir, "commit-tree", "-m", "x", string(tree)))
	gittest.Git(t, dir, "update-ref", "refs/tags/HEAD", gittest.Git(t, dir, "commit-tree", "-m", "x", string(tree)))
	start(dir, at)
}

func same(a, b git.Position) bool {
	return a.Branch == b.Branch && a.Commit == b.Commit && a.Tree == b.Tree
}

// That HEAD was switched is seen without a process, also at the same commit, and also
// where it was switched back; one that may have been switched while it was read is asked
// for.
func TestHeadIsStill(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	gittest.Commit(t, dir, "a", nil)
	gittest.Git(t, dir, "branch", "other")
	linked := filepath.Join(tempDir(t), "linked")
	gittest.Git(t, dir, "worktree", "add", "--quiet", "-b", "side", linked)
	old := time.Now().Add(-time.Minute)
	for _, dir := range []string{dir, linked} {
		head := filepath.Join(open(t, dir).GitDir, "HEAD")
		if err := os.Chtimes(head, old, old); err != nil {
			t.Fatal(err)
		}
		r := open(t, dir)
		start := must(r.Start(t.Context()))(t)
		gittest.Commit(t, dir, "b", nil)
		if !r.HeadIsStill(start) {
			t.Errorf("%s: a commit is taken for a switch", dir)
		}
		gittest.Git(t, dir, "switch", "--quiet", "other")
		if r.HeadIsStill(start) {
			t.Errorf("%s: a switch was not seen", dir)
		}
		gittest.Git(t, dir, "switch", "--quiet", "-")
		if r.HeadIsStill(start) {
			t.Errorf("%s: two switches were not seen", dir)
		}
	}
	r := open(t, dir)
	start := must(r.Start(t.Context()))(t)
	if now := time.Now(); os.Chtimes(filepath.Join(dir, ".git", "HEAD"), now, now) != nil || r.HeadIsStill(start) {
		t.Error("one that was written again is taken for the same")
	}
	if r.HeadIsStill(git.Position{}) {
		t.Error("a position that nobody has read is taken for HEAD's")
	}
}

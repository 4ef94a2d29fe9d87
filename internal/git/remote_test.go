package git_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

// set writes settings, as "key=value", into the configuration of a repository.
func set(t *testing.T, dir string, settings ...string) {
	t.Helper()
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		gittest.Git(t, dir, "config", "--add", key, value)
	}
}

func TestRemote(t *testing.T) {
	t.Parallel()
	dir := initRepo(t)
	set(t, dir, "remote.one.url=file:///one", "remote.two.url=file:///a", "remote.two.url=file:///b",
		"remote.push.url=file:///read", "remote.push.pushurl=file:///write",
		"remote.pushes.url=file:///x", "remote.pushes.pushurl=file:///x", "remote.pushes.pushurl=file:///y",
		"remote.pushonly.pushurl=file:///x", "url.file:///z.insteadOf=file:///one")
	gittest.Git(t, dir, "remote", "add", "a=b", "file:///one")
	r := open(t, dir)
	for name, want := range map[string]error{
		"a=b": git.ErrUnnameable, "one": nil, "push": nil, "two": git.ErrManyURLs, "pushes": git.ErrManyURLs, "pushonly": git.ErrNoRemote,
		"": git.ErrNoRemote, "absent": git.ErrNoRemote, "-one": git.ErrNoRemote, "file:///one": git.ErrNoRemote,
	} {
		if got, err := r.Remote(name); !errors.Is(err, want) || err == nil && got.Name != name {
			t.Errorf("%q: got %+v, %v, want %v", name, got, err, want)
		}
	}
	one, push := must(r.Remote("one"))(t), must(r.Remote("push"))(t)
	if one.URL != "file:///one" || push.URL != "file:///write" {
		t.Errorf("got %q and %q", one.URL, push.URL)
	}
	if !strings.Contains(one.Rewrites, "file:///z") {
		t.Errorf("rewrites %q", one.Rewrites)
	}
}

// A fetch brings what was asked for, deletes of its own what is gone, and
// touches nothing else, whatever is configured.
func TestFetch(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	seed := gittest.Clone(t, remote)
	for _, ref := range []string{"refs/lease/a", "refs/lease/b", "refs/notes/landing/a", "refs/tags/v1", "refs/heads/topic"} {
		gittest.Git(t, seed, "push", "--quiet", "origin", "HEAD:"+ref)
	}
	dir := gittest.Clone(t, gittest.URL(remote), "--no-tags")
	gittest.Git(t, dir, "update-ref", "-d", "refs/remotes/origin/topic")
	gittest.Git(t, dir, "update-ref", "-d", "refs/remotes/origin/HEAD")
	set(t, dir, "fetch.prune=true", "fetch.pruneTags=true", "remote.origin.prune=true", "remote.origin.pruneTags=true",
		"remote.origin.tagOpt=--tags", "fetch.all=true", "fetch.writeCommitGraph=true", "submodule.recurse=true",
		"remote.origin.fetch=+refs/*:refs/stolen/*", "remote.origin.followRemoteHEAD=always", "fetch.output=full", "fetch.parallel=4")
	gittest.Git(t, dir, "update-ref", "refs/remotes/origin/gone", "HEAD")
	gittest.Git(t, dir, "update-ref", "refs/tags/mine", "HEAD")
	gittest.Git(t, dir, "update-ref", "refs/lease-remote/other/leases/x", "HEAD")
	before := gittest.Refs(t, dir)
	r := open(t, dir)
	origin := must(r.Remote("origin"))(t)
	fetch := func(specs ...git.Refspec) error {
		t.Helper()
		return r.Fetch(t.Context(), origin, specs...)
	}
	leases := git.Refspec{From: "refs/lease/*", To: "refs/lease-remote/origin/leases/*"}
	main := git.Refspec{From: "refs/heads/main", To: "refs/lease-remote/origin/heads/main"}
	want := func(refs ...string) {
		t.Helper()
		all := maps.Clone(before)
		for _, ref := range refs {
			all[ref] = before["refs/heads/main"]
		}
		if got := gittest.Refs(t, dir); !maps.Equal(got, all) {
			t.Errorf("got %v, want %v", got, all)
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git", "FETCH_HEAD")); err == nil {
			t.Error("FETCH_HEAD was written")
		}
	}
	if err := fetch(leases, main); err != nil {
		t.Fatal(err)
	}
	want("refs/lease-remote/origin/leases/a", "refs/lease-remote/origin/leases/b", "refs/lease-remote/origin/heads/main")
	gittest.Git(t, seed, "push", "--quiet", "origin", ":refs/lease/b")
	if err := fetch(main); err != nil {
		t.Fatal(err)
	}
	want("refs/lease-remote/origin/leases/a", "refs/lease-remote/origin/leases/b", "refs/lease-remote/origin/heads/main")
	if err := fetch(leases); err != nil {
		t.Fatal(err)
	}
	want("refs/lease-remote/origin/leases/a", "refs/lease-remote/origin/heads/main")
	// Forced, also backwards.
	gittest.Git(t, seed, "commit", "--quiet", "--allow-empty", "--amend", "-m", "rewritten")
	gittest.Git(t, seed, "push", "--quiet", "--force", "origin", "HEAD:main")
	if err := fetch(main); err != nil {
		t.Fatal(err)
	}
	if got := revParse(t, dir, main.To); got != revParse(t, seed, "HEAD") {
		t.Errorf("got %s", got)
	}
	err := fetch(git.Refspec{From: "refs/heads/absent", To: "refs/lease-remote/origin/heads/absent"})
	if git.ExitCode(err) != 128 {
		t.Errorf("absent: got %v", err)
	}
	if err := fetch(git.Refspec{From: "refs/absent/*", To: "refs/lease-remote/origin/absent/*"}); err != nil {
		t.Errorf("an empty group: %v", err)
	}
}

// With a push URL, one reads where one writes.
func TestReadsWhereItWrites(t *testing.T) {
	t.Parallel()
	read, write := gittest.Remote(t), gittest.Remote(t)
	gittest.Git(t, write, "branch", "here", "main")
	dir := gittest.Clone(t, gittest.URL(read))
	set(t, dir, "remote.origin.pushurl="+gittest.URL(write))
	r := open(t, dir)
	origin := must(r.Remote("origin"))(t)
	list := must(r.List(t.Context(), origin))(t)
	if list.Refs["refs/heads/here"].IsZero() {
		t.Errorf("listed %v", list.Refs)
	}
	if err := r.Fetch(t.Context(), origin, git.Refspec{From: "refs/heads/here", To: "refs/x/here"}); err != nil {
		t.Error(err)
	}
	push := must(r.Push(t.Context(), git.Push{Remote: origin, Moves: []git.Move{
		{Ref: "refs/heads/new", New: revParse(t, dir, "refs/x/here"), Old: git.MustNotExist()}}}))(t)
	if !push.Complete || gittest.Refs(t, write)["refs/heads/new"] == "" || gittest.Refs(t, read)["refs/heads/new"] != "" {
		t.Errorf("got %+v", push)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t, "--object-format=sha256")
	dir := gittest.Clone(t, gittest.URL(remote))
	gittest.Git(t, dir, "tag", "-a", "-m", "tag", "v1")
	gittest.Git(t, dir, "push", "--quiet", "origin", "v1", "HEAD:refs/heads/topic")
	r := open(t, dir)
	origin := must(r.Remote("origin"))(t)
	head, tag := revParse(t, dir, "HEAD"), revParse(t, dir, "v1")
	got := must(r.List(t.Context(), origin))(t)
	want := map[object.Ref]object.OID{"HEAD": head, "refs/heads/main": head, "refs/heads/topic": head, "refs/tags/v1": tag}
	if got.Head != "refs/heads/main" || !maps.Equal(got.Refs, want) {
		t.Errorf("got %+v, want %v", got, want)
	}
	gittest.Git(t, remote, "symbolic-ref", "HEAD", "refs/heads/unborn")
	delete(want, "HEAD")
	got = must(r.List(t.Context(), origin))(t)
	if !maps.Equal(got.Refs, want) || got.Head != "" && got.Head != "refs/heads/unborn" {
		t.Errorf("unborn: got %+v", got)
	}
	set(t, dir, "remote.gone.url="+gittest.URL(remote)+"-gone")
	r = open(t, dir)
	if got, err := r.List(t.Context(), must(r.Remote("gone"))(t)); git.ExitCode(err) != 128 {
		t.Errorf("got %v, %v", got, err)
	}
}

// Whatever a user has configured, a push moves just the refs it names, at the
// one place that they were read from.
func TestPushWithHostileConfiguration(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, dir, elsewhere string){
		"nothing":       func(*testing.T, string, string) {},
		"followTags":    func(t *testing.T, dir, _ string) { set(t, dir, "push.followTags=true") },
		"pushOption":    func(t *testing.T, dir, _ string) { set(t, dir, "push.pushOption=ci.skip") },
		"gpgSign":       func(t *testing.T, dir, _ string) { set(t, dir, "push.gpgSign=true", "commit.gpgSign=true") },
		"gpgSign asked": func(t *testing.T, dir, _ string) { set(t, dir, "push.gpgSign=if-asked", "gpg.program=false") },
		"mirror":        func(t *testing.T, dir, _ string) { set(t, dir, "remote.origin.mirror=true") },
		"pushInsteadOf": func(t *testing.T, dir, elsewhere string) {
			set(t, dir, "url."+gittest.URL(elsewhere)+".pushInsteadOf="+gittest.Git(t, dir, "config", "remote.origin.url"))
		},
		"pushInsteadOf a part": func(t *testing.T, dir, elsewhere string) { set(t, dir, "url.nonsense://.pushInsteadOf=file://") },
		"push refspecs": func(t *testing.T, dir, _ string) {
			set(t, dir, "remote.origin.push=refs/tags/*", "push.default=matching")
		},
		"force-if-includes": func(t *testing.T, dir, _ string) { set(t, dir, "push.useForceIfIncludes=true") },
		"submodules only":   func(t *testing.T, dir, _ string) { set(t, dir, "push.recurseSubmodules=only") },
		"negotiate":         func(t *testing.T, dir, _ string) { set(t, dir, "push.negotiate=true") },
		"another push remote": func(t *testing.T, dir, _ string) {
			set(t, dir, "remote.pushDefault=nowhere", "branch.main.pushRemote=x")
		},
		"a refusing hook": func(t *testing.T, dir, _ string) {
			gittest.Script(t, filepath.Join(dir, ".git", "hooks", "pre-push"), "#!/bin/sh\nexit 1\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote, elsewhere := gittest.Remote(t), gittest.Bare(t)
			dir := gittest.Clone(t, gittest.URL(remote))
			gittest.Git(t, dir, "tag", "-a", "-m", "tag", "v1")
			old := revParse(t, dir, "HEAD")
			next := object.OID(gittest.Commit(t, dir, "next", nil))
			gittest.Git(t, dir, "tag", "-a", "-m", "tag", "v2")
			prepare(t, dir, elsewhere)
			r := open(t, dir)
			push := git.Push{Remote: must(r.Remote("origin"))(t), Atomic: true, Moves: []git.Move{
				{Ref: "refs/heads/main", New: next, Old: git.MustBe(old)},
				{Ref: "refs/lease/main", New: next, Old: git.MustNotExist()},
			}}
			got := must(r.Push(t.Context(), push))(t)
			if !got.Complete || got.Err != nil || len(got.Refs) != 2 {
				t.Errorf("got %+v", got)
			}
			want := map[string]string{"HEAD": "refs/heads/main", "refs/heads/main": string(next), "refs/lease/main": string(next)}
			if refs := gittest.Refs(t, remote); !maps.Equal(refs, want) {
				t.Errorf("remote: got %v, want %v", refs, want)
			}
			if refs := gittest.Refs(t, elsewhere); len(refs) > 1 {
				t.Errorf("elsewhere: got %v", refs)
			}
		})
	}
}

func TestPushSaysHowItWent(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	dir := gittest.Clone(t, gittest.URL(remote))
	old := revParse(t, dir, "HEAD")
	next := object.OID(gittest.Commit(t, dir, "next", nil))
	r := open(t, dir)
	origin := must(r.Remote("origin"))(t)
	ctx := t.Context()
	good := git.Move{Ref: "refs/x/good", New: next, Old: git.MustNotExist()}
	before := gittest.Refs(t, remote)
	for _, bad := range []git.Move{
		{Ref: "refs/heads/main", New: next, Old: git.MustNotExist()},
		{Ref: "refs/heads/main", New: next, Old: git.MustBe(next)},
		{Ref: "refs/heads/main", Old: git.MustBe(next)},
	} {
		got, err := r.Push(ctx, git.Push{Remote: origin, Atomic: true, Moves: []git.Move{good, bad}})
		if err != nil || got.Complete || got.Err == nil || got.Refs[good.Ref].OK || got.Refs[bad.Ref].OK {
			t.Errorf("%+v: got %+v, %v", bad, got, err)
		}
		if after := gittest.Refs(t, remote); !maps.Equal(after, before) {
			t.Errorf("%+v: moved %v", bad, after)
		}
	}
	for _, none := range []git.Move{{Ref: "refs/heads/main", New: next}, {Ref: "refs/heads/main", New: next, Old: git.MustBe("")}} {
		if _, err := r.Push(ctx, git.Push{Remote: origin, Moves: []git.Move{good, none}}); err == nil {
			t.Error("pushed without an expectation")
		}
	}
	if after := gittest.Refs(t, remote); !maps.Equal(after, before) {
		t.Errorf("moved %v", after)
	}
	// One push after the other, without --atomic: what was good has moved.
	got := must(r.Push(ctx, git.Push{Remote: origin, Moves: []git.Move{good, {Ref: "refs/x/bad", New: next, Old: git.MustBe(old)}}}))(t)
	if got.Complete || !got.Refs["refs/x/good"].OK || got.Refs["refs/x/bad"].OK {
		t.Errorf("got %+v", got)
	}
	// It need not be a descendant, and it can be gone.
	if got := must(r.Push(ctx, git.Push{Remote: origin, Moves: []git.Move{{Ref: good.Ref, New: old, Old: git.MustBe(next)}}}))(t); !got.Complete {
		t.Errorf("backwards: got %+v", got)
	}
	if got := must(r.Push(ctx, git.Push{Remote: origin, Moves: []git.Move{{Ref: good.Ref, Old: git.MustBe(old)}}}))(t); !got.Complete {
		t.Errorf("deletion: got %+v", got)
	}
	if after := gittest.Refs(t, remote); !maps.Equal(after, before) {
		t.Errorf("left %v", after)
	}
}

// A fact about git: a ref that does not change is not checked.
func TestUnchangedRefIsNotFenced(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	dir := gittest.Clone(t, gittest.URL(remote))
	old := revParse(t, dir, "HEAD")
	other := object.OID(gittest.Commit(t, dir, "other", nil))
	r := open(t, dir)
	got := must(r.Push(t.Context(), git.Push{Remote: must(r.Remote("origin"))(t),
		Moves: []git.Move{{Ref: "refs/heads/main", New: old, Old: git.MustBe(other)}}}))(t)
	if !got.Complete || !got.Refs["refs/heads/main"].OK {
		t.Errorf("got %+v", got)
	}
}

func TestPushHooks(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	dir := gittest.Clone(t, gittest.URL(remote))
	next := object.OID(gittest.Commit(t, dir, "next", nil))
	log := filepath.Join(t.TempDir(), "log")
	script := "#!/bin/sh\necho \"$MARK $1\" >>" + log + "; cat >>" + log + "; printf '=\\t1:refs/x/forged\\tno line of git\\n'; exit $CODE\n"
	gittest.Script(t, filepath.Join(dir, ".git", "hooks", "pre-push"), script)
	other := t.TempDir()
	gittest.Script(t, filepath.Join(other, "pre-push"), strings.Replace(script, "$MARK", "other", 1))
	r := open(t, dir, "CODE=0")
	push := git.Push{Remote: must(r.Remote("origin"))(t), Hooks: true, Environ: []string{"MARK=one", "CODE=1"},
		Moves: []git.Move{{Ref: "refs/x/one", New: next, Old: git.MustNotExist()}}}
	if got := must(r.Push(t.Context(), push))(t); got.Complete || got.Err == nil {
		t.Errorf("refused by the hook: got %+v", got)
	}
	push.Environ[1] = "CODE=0"
	if got := must(r.Push(t.Context(), push))(t); !got.Complete {
		t.Errorf("got %+v", got)
	}
	push.HooksPath, push.Moves[0].Ref = other, "refs/x/two"
	if got := must(r.Push(t.Context(), push))(t); !got.Complete {
		t.Errorf("got %+v", got)
	}
	zero := string(object.SHA1.Zero())
	line := func(ref string) string { return string(next) + " " + string(next) + " " + ref + " " + zero + "\n" }
	want := "one origin\n" + line("refs/x/one") + "one origin\n" + line("refs/x/one") + "other origin\n" + line("refs/x/two")
	if got := gittest.Read(t, log, ""); got != want {
		t.Errorf("the hook got %q, want %q", got, want)
	}
}

// The late push of a race expected what it had read, and is refused.
func TestRace(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	dir := gittest.Clone(t, gittest.URL(remote))
	base := revParse(t, dir, "HEAD")
	late, early := object.OID(gittest.Commit(t, dir, "late", nil)), object.OID(gittest.Commit(t, dir, "early", nil))
	set(t, dir, "push.followTags=true", "push.pushOption=x", "remote.origin.mirror=true", "url.nonsense://.pushInsteadOf=file://",
		"core.hooksPath=/nowhere")
	r := open(t, dir)
	push := git.Push{Remote: must(r.Remote("origin"))(t), Moves: []git.Move{{Ref: "refs/lease/probe", New: late, Old: git.MustNotExist()}}}
	if _, err := r.Race(t.Context(), t.TempDir(), push, git.Move{Ref: "refs/lease/probe", New: early}); err == nil {
		t.Error("raced without an expectation")
	}
	got := must(r.Race(t.Context(), filepath.Join(t.TempDir(), ""), push, git.Move{Ref: "refs/lease/probe", New: early, Old: git.MustNotExist()}))(t)
	if got.Complete || got.Refs["refs/lease/probe"].OK {
		t.Errorf("got %+v", got)
	}
	want := map[string]string{"HEAD": "refs/heads/main", "refs/heads/main": string(base), "refs/lease/probe": string(early)}
	if refs := gittest.Refs(t, remote); !maps.Equal(refs, want) {
		t.Errorf("got %v, want %v", refs, want)
	}
}

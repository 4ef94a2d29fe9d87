package land_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/land"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/session"
)

// A clone is one clone as a session sees it.
type clone struct {
	t   *testing.T
	dir string
	env []string
}

func newClone(t *testing.T, remote string) clone {
	env, _ := gittest.Env(t)
	return clone{t: t, dir: gittest.Clone(t, gittest.URL(remote)), env: env}
}

func (c clone) open() *ledger.Ledger {
	c.t.Helper()
	repo, err := git.Open(c.t.Context(), git.Options{Dir: c.dir, Environ: c.env, Unattended: true})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(repo.Close)
	l, err := ledger.Open(repo, ledger.Options{Now: time.Now, Notice: c.t.Logf})
	if err != nil {
		c.t.Fatal(err)
	}
	return l
}

func (c clone) land(paths []string, edit func(*land.Request)) (land.Result, error) {
	c.t.Helper()
	l := c.open()
	r := land.Request{Selection: land.Selection{Paths: paths, Messages: []string{"change"}},
		Waiting: lease.Waiting{Limit: time.Minute}, Stderr: io.Discard, Environ: c.env,
		Step: func(step, text string) { c.t.Logf("%-10s %s", step, text) }}
	if edit != nil {
		edit(&r)
	}
	res, err := land.Land(c.t.Context(), l, r)
	if flushErr := l.Flush(context.Background(), "lease: seen"); flushErr != nil {
		c.t.Error(flushErr)
	}
	return res, err
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	c := newClone(t, remote)
	gittest.Write(t, c.dir, map[string]string{"a.txt": "a\n", "b.txt": "b\n"})
	before := gittest.Refs(t, remote)
	_, err := c.land([]string{"a.txt"}, nil)
	if fault.ClassOf(err) != fault.Unverified {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	if after := gittest.Refs(t, remote); len(after) != len(before) {
		t.Fatalf("refs moved: %v", after)
	}
	l := c.open()
	v, pub, err := land.Verify(t.Context(), l, land.VerifyRequest{Selection: land.Selection{Paths: []string{"a.txt"}}, Command: "ls; test -f a.txt", Stderr: io.Discard, Environ: c.env})
	if err != nil || pub != nil || v.Verdict != note.Pass {
		t.Fatal(v, pub, err)
	}
	res, err := c.land([]string{"a.txt"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", res)
	t.Log(gittest.Git(t, c.dir, "status", "--porcelain"))
	if got := gittest.Git(t, c.dir, "status", "--porcelain"); got != "?? b.txt" {
		t.Errorf("status %q", got)
	}
	res, err = c.land([]string{"a.txt"}, nil)
	if err != nil || res.Status != land.Already {
		t.Fatal(res, err)
	}
	t.Log(gittest.Git(t, remote, "log", "--format=%h %s", "refs/lease/main"))
	for ref, oid := range gittest.Refs(t, remote) {
		if strings.Contains(ref, "probe") {
			t.Error("left behind:", ref, oid)
		}
	}
	root := session.NewRoot()
	_, err = lease.Acquire(t.Context(), c.open(), lease.Acquisition{Root: root, Purpose: "x"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.land([]string{"b.txt"}, func(r *land.Request) { r.Force = true; r.Reason = "r"; r.Waiting.Limit = 0 })
	t.Log(err)
	if fault.ClassOf(err) != fault.Held {
		t.Fatal(err)
	}
	if _, err := lease.Release(t.Context(), c.open(), ledger.Want{}, root); err != nil {
		t.Fatal(err)
	}
	res, err = c.land([]string{"b.txt"}, func(r *land.Request) { r.Force = true; r.Reason = "r" })
	if err != nil {
		t.Fatal(err)
	}
	entries, err := land.Log(t.Context(), c.open(), ledger.Want{}, 0)
	if err != nil || len(entries) != 2 || entries[0].Record.Override == nil {
		t.Fatal(entries, err)
	}
	gittest.Write(t, c.dir, map[string]string{"b.txt": "b2\n"})
	gittest.Git(t, c.dir, "commit", "-qam", "b2")
	res, err = c.land(nil, func(r *land.Request) { r.Force = true; r.Reason = "r" })
	if err != nil {
		t.Fatal(err)
	}
	t.Log(gittest.Git(t, c.dir, "log", "--oneline", "--graph"))
}

func TestCounts(t *testing.T) {
	remote := gittest.Remote(t)
	c := newClone(t, remote)
	counter := gittest.CountGit(t)
	force := func(r *land.Request) { r.Force = true; r.Reason = "r" }
	gittest.Write(t, c.dir, map[string]string{"a.txt": "a\n"})
	if _, err := c.land([]string{"a.txt"}, force); err != nil {
		t.Fatal(err)
	}
	gittest.Write(t, c.dir, map[string]string{"a.txt": "a2\n"})
	c.env = counter.Env(c.env)
	t.Setenv("PATH", strings.TrimPrefix(c.env[0], "PATH="))
	for _, kv := range c.env {
		if p, ok := strings.CutPrefix(kv, "PATH="); ok {
			t.Setenv("PATH", p)
		}
	}
	counter.Reset()
	start := time.Now()
	if _, err := c.land([]string{"a.txt"}, force); err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(start))
	for _, call := range counter.Calls() {
		t.Log(call)
	}
}

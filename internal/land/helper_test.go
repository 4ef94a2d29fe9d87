package land_test

import (
	"context"
	"io"
	"testing"
	"time"

	"gitland/internal/git"
	"gitland/internal/gittest"
	"gitland/internal/land"
	"gitland/internal/lease"
	"gitland/internal/ledger"
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
		Tell: func(step, text string) { c.t.Logf("%-10s %s", step, text) }}
	if edit != nil {
		edit(&r)
	}
	res, err := land.Land(c.t.Context(), l, r)
	if flushErr := l.Flush(context.Background(), "lease: seen"); flushErr != nil {
		c.t.Error(flushErr)
	}
	return res, err
}

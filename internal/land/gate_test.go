package land_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/fault"
	"gitland/internal/gittest"
	"gitland/internal/land"
	"gitland/internal/ledger"
	"gitland/internal/note"
)

func (c clone) verify(check, command string, paths ...string) note.Verification {
	c.t.Helper()
	l := c.open()
	defer l.Flush(context.Background(), "test")
	found, published, err := land.Verify(c.t.Context(), l, land.VerifyRequest{
		Selection: land.Selection{Paths: paths}, Check: check, Command: command, Stderr: io.Discard, Environ: c.env})
	if err != nil || published != nil {
		c.t.Fatal(published, err)
	}
	return found[0]
}

// advance lands something else from another clone, past the tool.
func advance(t *testing.T, remote, file string) {
	t.Helper()
	other := gittest.Clone(t, gittest.URL(remote))
	gittest.Commit(t, other, "by others", map[string]string{file: "by others\n"})
	gittest.Git(t, other, "push", "-q", "origin", "main")
}

func refusal(t *testing.T, err error, class fault.Class) *fault.Error {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Class != class {
		t.Fatalf("got %v, want a fault of class %s", err, class)
	}
	return f
}

// A verification of the change on an older base does not pass the gate, and the
// refusal says that only the base moved: for a clone at that base, and for one
// that was behind already when it verified.
func TestOnlyTheBaseMoved(t *testing.T) {
	t.Parallel()
	for _, behind := range []bool{false, true} {
		remote := gittest.Remote(t)
		c := newClone(t, remote)
		if behind {
			advance(t, remote, "earlier")
		}
		gittest.Write(t, c.dir, map[string]string{"mine": "mine\n"})
		c.verify("", "true", "mine")
		advance(t, remote, "later")
		_, err := c.land([]string{"mine"}, nil)
		if f := refusal(t, err, fault.Unverified); !strings.Contains(f.What, "main has moved since") || f.Facts["base_moved"] != true {
			t.Errorf("behind=%v: %q %v", behind, f.What, f.Facts)
		}
		gittest.Write(t, c.dir, map[string]string{"mine": "other\n"})
		_, err = c.land([]string{"mine"}, nil)
		if f := refusal(t, err, fault.Unverified); f.Facts["base_moved"] != nil {
			t.Errorf("behind=%v: an unverified change: %q", behind, f.What)
		}
	}
}

// land.require=unit asks for the change's own tree, and the record says that the
// merged one was not verified.
func TestRequireUnit(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	c := newClone(t, remote)
	gittest.Git(t, c.dir, "config", "land.require", "unit")
	gittest.Write(t, c.dir, map[string]string{"mine": "mine\n"})
	c.verify("", "true", "mine")
	advance(t, remote, "later")
	r, err := c.land([]string{"mine"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Record.MergedUnverified || len(r.Record.Verifications) != 1 || r.Record.Verifications[0].Tree == r.Tree {
		t.Errorf("record %+v", r.Record)
	}
	// The very tree, once it failed, is refused all the same.
	gittest.Write(t, c.dir, map[string]string{"mine": "mine again\n"})
	c.verify("", "true", "mine")
	c.verify("lint", "false", "mine")
	_, err = c.land([]string{"mine"}, nil)
	refusal(t, err, fault.Unverified)
}

// The last verdict of each check and command counts, by the order of lines.
func TestLastVerdictCounts(t *testing.T) {
	t.Parallel()
	c := newClone(t, gittest.Remote(t))
	gittest.Write(t, c.dir, map[string]string{"mine": "mine\n"})
	flag := filepath.Join(t.TempDir(), "flag")
	command := "test -e " + flag
	c.verify("", command, "mine")
	_, err := c.land([]string{"mine"}, nil)
	refusal(t, err, fault.Unverified)
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.verify("", command, "mine")
	r, err := c.land([]string{"mine"}, nil)
	if err != nil || len(r.Record.Verifications) != 1 || r.Record.Verifications[0].Verdict != note.Pass {
		t.Errorf("%+v, %v", r.Record, err)
	}
	if r.Record.VerificationRef == "" {
		t.Error("the record does not name the tip that was judged by")
	}
}

// -x runs without the lease, and again under it when the base moved meanwhile.
func TestCheckRunsAgainUnderTheLease(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	c := newClone(t, remote)
	gittest.Write(t, c.dir, map[string]string{"mine": "mine\n"})
	log := filepath.Join(t.TempDir(), "log")
	other := gittest.Clone(t, gittest.URL(remote))
	gittest.Commit(t, other, "by others", map[string]string{"theirs": "theirs\n"})
	// The first run moves the base while it runs; each notes who holds the lease.
	command := "git --git-dir=" + remote + " log -1 --format=%s refs/lease/main >>" + log + " 2>&1; " +
		"test -e theirs || git -C " + other + " push -q origin main"
	r, err := c.land([]string{"mine"}, func(r *land.Request) { r.Command = command })
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(gittest.Read(t, filepath.Dir(log), "log")), "\n")
	if len(lines) < 2 || strings.Contains(lines[0], "acquire") || !strings.Contains(lines[len(lines)-1], "acquire") {
		t.Errorf("the lease during the runs: %q", lines)
	}
	if gittest.Git(t, remote, "rev-parse", "main^{tree}") != string(r.Tree) || r.Record.Verifications[0].Tree != r.Tree {
		t.Errorf("landed %+v", r.Record)
	}
	v, err := c.open().Fetch(t.Context(), ledger.Want{})
	if err != nil || v.Hold() != nil {
		t.Errorf("afterwards the lease is held: %v, %v", v.Hold(), err)
	}
}

// An override is told in record, event and log, and needs a reason.
func TestOverrideIsOnTheRecord(t *testing.T) {
	t.Parallel()
	c := newClone(t, gittest.Remote(t))
	gittest.Write(t, c.dir, map[string]string{"mine": "mine\n"})
	_, err := c.land([]string{"mine"}, func(r *land.Request) { r.Force, r.Reason = true, " \n" })
	refusal(t, err, fault.Usage)
	c.verify("lint", "false", "mine")
	if _, err = c.land([]string{"mine"}, func(r *land.Request) { r.Force, r.Reason = true, "the site is down" }); err != nil {
		t.Fatal(err)
	}
	entries, err := land.Log(t.Context(), c.open(), ledger.Want{}, 0)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	override, event := entries[0].Record.Override, entries[0].Event.By.Land
	if override == nil || override.Reason != "the site is down" || len(override.Missing) != 1 || override.Missing[0] != "lint" || override.Actor != gittest.Identity {
		t.Errorf("record %+v", override)
	}
	if event.Unverified != "lint" || event.Reason != "the site is down" {
		t.Errorf("event %+v", event)
	}
}

// Commits land rebased one by one, with author, date and message as they were,
// and the local branch follows.
func TestCommitsLandAsTheyAre(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	c := newClone(t, remote)
	for _, file := range []string{"one", "two"} {
		gittest.Write(t, c.dir, map[string]string{file: file + "\n"})
		gittest.Git(t, c.dir, "add", file)
		gittest.Git(t, c.dir, "-c", "user.name=Grace", "-c", "user.email=g@example.com", "commit", "-q", "--date=2001-02-03T04:05:06+0700",
			"-m", file, "-m", "  indented\n\ntrailing  ")
	}
	before := gittest.Git(t, c.dir, "log", "-2", "--format=%an %ae %ad%n%B")
	advance(t, remote, "theirs")
	c.verify("", "test -e one && test -e two && test -e theirs")
	r, err := c.land(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := gittest.Git(t, remote, "log", "-2", "--format=%an %ae %ad%n%B", "main"); got != before {
		t.Errorf("landed\n%s\nwant\n%s", got, before)
	}
	if r.Commits != 2 || gittest.Git(t, c.dir, "rev-parse", "HEAD") != string(r.Commit) || gittest.Git(t, c.dir, "status", "--porcelain") != "" {
		t.Errorf("%d commits; local %q (%s)", r.Commits, r.Local, r.Hint)
	}
	if r, err = c.land(nil, nil); err != nil || r.Status != land.Already {
		t.Errorf("again: %v, %v", r.Status, err)
	}
}

package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// newerEvent puts an event of a format that nobody knows yet on a chain.
func newerEvent(t *testing.T, remote string) string {
	t.Helper()
	tip := gittest.Git(t, remote, "commit-tree", "-p", "refs/lease/main", "-m", "lease main: something new by Ada",
		"-m", "Lease-Format: 2\nLease-News: a great deal", gittest.Git(t, remote, "hash-object", "-t", "tree", "-w", "/dev/null"))
	gittest.Git(t, remote, "update-ref", "refs/lease/main", tip)
	return tip
}

const knowsTwo = "install a newer gitland, one that knows format 2"

// Nothing is written to a chain of a newer format, whatever it is asked for, and
// it is said what to install. Reading goes on.
func TestNewerChain(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, fresh := clone(t, remote).with("GIT_LEASE_SESSION=one"), clone(t, remote)
	s.write(map[string]string{"one": "1\n", "two": "2\n"})
	s.force("--", "one")
	s.verify("two")
	op := decode[grant](t, s.exits(0, "git-lease", "acquire", "--format=json")).Operation
	tip := newerEvent(t, remote)
	before := gittest.Refs(t, remote)
	fresh.write(map[string]string{"two": "2\n"})
	for _, c := range []struct {
		by   seat
		args []string
	}{
		{s, []string{"git-land", "-m", "two", "--", "two"}},
		{s, []string{"git-land", "--dry-run", "-m", "two", "--", "two"}},
		{fresh, []string{"git-land", "--force-unverified", "--reason", "r", "-m", "two", "--", "two"}},
		{fresh, []string{"git-lease", "acquire", "--wait", "--timeout", "1h", "--format=json"}},
		{fresh, []string{"git-lease", "run", "--", "touch", "ran"}},
		{s, []string{"git-lease", "release"}},
		{fresh, []string{"git-lease", "break", "--operation", op, "--reason", "r"}},
		{fresh, []string{"git-lease", "break", "--operation", op, "--reason", "r", "--acquire", "--format=json"}},
		{fresh, []string{"git-lease", "recover"}},
		{fresh, []string{"git-lease", "adopt"}},
		{s, []string{"git-lease", "adopt", "--over", tip, "--reason", "r"}},
		{fresh, []string{"git-lease", "adopt", "--over", tip, "--reason", "r"}},
		{fresh, []string{"git-lease", "freeze", "--reason", "r"}},
		{fresh, []string{"git-lease", "thaw"}},
	} {
		if r := c.by.exits(8, c.args[0], c.args[1:]...); !strings.Contains(r.Stderr, "hint: "+knowsTwo) {
			t.Errorf("%q says %q", c.args, r.Stderr)
		}
		sameRefs(t, strings.Join(c.args, " "), before, gittest.Refs(t, remote))
	}

	s.leftBehind()
	for _, by := range []seat{s, fresh} {
		by.readsOn()
	}
	s.verify("two") // which is on no chain
}

// readsOn shows that a chain of a newer format is read as far as it can be.
func (s seat) readsOn() {
	t := s.t
	t.Helper()
	if got := s.exits(0, "git-lease", "show").Stdout; !strings.Contains(got, "main at origin: ambiguous: ") || !strings.Contains(got, knowsTwo) {
		t.Errorf("show %q", got)
	}
	s.exits(8, "git-lease", "show", "--exit-code")
	if got := s.exits(8, "git-lease", "log").Stdout; strings.Count(got, "\n") != 3 || !strings.Contains(got, "acquire") {
		t.Errorf("log %q", got)
	}
	if got := s.exits(8, "git-land", "log").Stdout; strings.Count(got, "\n") != 1 {
		t.Errorf("landings %q", got)
	}
	if got := s.exits(0, "git-land", "status", "--", "two").Stdout; !strings.Contains(got, "main is ambiguous") || !strings.Contains(got, knowsTwo) {
		t.Errorf("status %q", got)
	}
	type shown struct {
		Leases []struct {
			State   string `json:"state"`
			Problem struct {
				Code   string `json:"code"`
				Format int    `json:"format"`
				Knows  int    `json:"knows"`
			} `json:"problem"`
		} `json:"leases"`
	}
	if j := decode[shown](t, s.exits(0, "git-lease", "show", "--json")).Leases; len(j) != 1 ||
		j[0].State != "ambiguous" || j[0].Problem.Code != "ambiguous" || j[0].Problem.Format != 2 || j[0].Problem.Knows != 1 {
		t.Errorf("show --json: %+v", j)
	}
}

// What stands on events of a newer format is not led over by a version that
// cannot read them: it would drop them.
func TestMalformedAboveNewer(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, fresh := clone(t, remote), clone(t, remote)
	s.write(map[string]string{"one": "1\n"})
	s.force("--", "one")
	newerEvent(t, remote)
	bad := gittest.Git(t, remote, "commit-tree", "-p", "refs/lease/main", "-m", "garbage", "main^{tree}")
	gittest.Git(t, remote, "update-ref", "refs/lease/main", bad)
	for _, by := range []seat{s, fresh} {
		if r := by.exits(8, "git-lease", "adopt", "--over", bad, "--reason", "mend"); !strings.Contains(r.Stderr, knowsTwo) {
			t.Errorf("stderr %q", r.Stderr)
		}
		if got := gittest.Git(t, remote, "rev-parse", "refs/lease/main"); got != bad {
			t.Fatalf("the chain moved to %s", got)
		}
	}
}

// newerLine appends a line of a newer format to the note of an object.
func newerLine(t *testing.T, remote, ref, on string) {
	t.Helper()
	gittest.Git(t, remote, "-c", "user.name=Ada", "-c", "user.email=ada@example.com",
		"notes", "--ref", ref, "append", "-m", `{"format":2,"id":"01M8MGBKN9FH8W4SF5WF6M437T","news":["a great deal"]}`, on)
}

// Nothing is decided by a note of a newer format, and nothing is added to it;
// others go on.
func TestNewerVerification(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"one": "1\n", "two": "2\n"})
	s.verify("one")
	newerLine(t, remote, "verification", decode[refusal](t, s.exits(4, "git-land", "--json", "-m", "two", "--", "two")).Error.Tree)
	before := gittest.Refs(t, remote)
	for _, args := range [][]string{
		{"-m", "two", "--", "two"},
		{"-x", "true", "-m", "two", "--", "two"},
		{"--force-unverified", "--reason", "r", "-m", "two", "--", "two"},
	} {
		if r := s.exits(8, "git-land", args...); !strings.Contains(r.Stderr, "hint: "+knowsTwo) {
			t.Errorf("%q says %q", args, r.Stderr)
		}
	}
	if got := s.exits(0, "git-land", "status", "--", "two").Stdout; !strings.Contains(got, knowsTwo) {
		t.Errorf("status %q", got)
	}
	sameRefs(t, "remote", before, gittest.Refs(t, remote))
	s.exits(0, "git-land", "-m", "one", "--", "one")
}

// A record of a newer format is read as far as it goes, and its note is not
// written to: a landing that would is refused.
func TestNewerRecord(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.git("config", "lease.name", "main")
	s.git("push", "-q", "origin", "main:side")
	gittest.Commit(t, s.dir, "one", map[string]string{"one": "1\n"})
	s.force("--onto", "main")
	newerLine(t, remote, "landing/main", gittest.Git(t, remote, "rev-parse", "main"))
	before := gittest.Refs(t, remote)
	if r := s.exits(8, "git-land", "--force-unverified", "--reason", "r", "--onto", "side"); !strings.Contains(r.Stderr, "hint: "+knowsTwo) {
		t.Errorf("stderr %q", r.Stderr)
	}
	sameRefs(t, "remote", before, gittest.Refs(t, remote))
	s.leftBehind()
	if got := s.exits(0, "git-land", "log").Stdout; strings.Count(got, "\n") != 1 {
		t.Errorf("landings %q", got)
	}
	gittest.Commit(t, s.dir, "two", map[string]string{"two": "2\n"})
	s.force("--onto", "main") // on a note of its own
}

// After a rollback a journal of the newer version is not thrown away: it may have
// the token of a lease that is held.
func TestNewerJournalIsKept(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.write(map[string]string{"README": "second\n"})
	s.dies(remote, "pre-receive", "--", "README")
	path := filepath.Join(s.dir, ".git/lease/journal", s.unfinished()+".json")
	text := strings.Replace(read(t, path), `"format":1`, `"format":2`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.try("git-land", "resume")
	if r.Code != 1 || !strings.Contains(r.Stderr, "hint: install a newer gitland") || strings.Contains(r.Stderr, "rm ") || !exists(path) {
		t.Errorf("exit %d: %s", r.Code, r.Stderr)
	}
}

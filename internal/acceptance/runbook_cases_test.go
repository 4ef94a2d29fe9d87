package acceptance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// A case of the runbook: a remote on which something has landed, and two clones
// that have seen it.
type runbookCase struct {
	*testing.T
	book     *runbook
	remote   string
	s, other seat
}

func newRunbookCase(t *testing.T, b *runbook, apart bool) runbookCase {
	t.Helper()
	st := staged(t, fmt.Sprint("runbook, apart=", apart), func(st *stage) {
		gittest.Git(st.t, st.remote(), "config", "receive.advertiseAtomic", fmt.Sprint(!apart))
		st.s.write(map[string]string{"first": "f\n"})
		st.s.force("--", "first")
		for _, s := range []seat{st.s, st.other} {
			s.exits(0, "git-lease", "show")
		}
	})
	c := runbookCase{t, b, st.remote(), st.s, st.other}
	for _, s := range []seat{c.s, c.other} {
		s.write(map[string]string{"mine.txt": s.dir, "other.txt": s.dir, "release.txt": s.dir})
	}
	return c
}

func (c runbookCase) tip() string {
	c.Helper()
	return gittest.Git(c.T, c.remote, "rev-parse", "refs/lease/main")
}

// stands fails unless the lease is in the state, and the last events are those.
func (c runbookCase) stands(state, events string) {
	c.Helper()
	if got := gittest.Git(c.T, c.remote, "log", "-1", "--format=%(trailers:key=Lease-State,valueonly,separator=)", "refs/lease/main"); got != state {
		c.Errorf("the lease is %s, want %s", got, state)
	}
	if got := kinds(c.T, c.remote); !strings.HasSuffix(got, events) {
		c.Errorf("events %q, want %q at the end", got, events)
	}
}

// agrees fails unless reconcile is silent.
func (c runbookCase) agrees() {
	c.Helper()
	clone(c.T, c.remote).reconciles(0)
}

// runbookCases are the situations that the runbook is for. Each runs the blocks
// that are meant for it, in their order.
func runbookCases() map[string]func(runbookCase) {
	all := map[string]func(runbookCase){}
	for _, chapter := range []map[string]func(runbookCase){runbookHolders(), runbookLandings(), runbookSteps(), runbookFindings(), runbookChains(), runbookFormats()} {
		maps.Copy(all, chapter)
	}
	return all
}

// runbookHolders are stuck, frozen and forgotten leases.
func runbookHolders() map[string]func(runbookCase) {
	return map[string]func(runbookCase){
		"look": func(c runbookCase) { c.book.run(c.s, "look") },

		"a lease whose holder is provably gone": func(c runbookCase) {
			c.s.exits(0, "sh", "-c", "git lease acquire --watch-pid $$ --format=json")
			c.book.run(c.s, "recover")
			c.stands("free", "acquire recover")
		},
		"a lease whose holder may live": func(c runbookCase) {
			op := decode[grant](c.T, c.s.exits(0, "git-lease", "acquire", "--format=json")).Operation
			if r := c.book.run(c.s, "recover-not"); !strings.Contains(r.Stderr, "git lease break main --operation "+op) {
				c.Errorf("stderr %q", r.Stderr)
			}
			c.book.run(c.other, "break", "ID="+op)
			c.stands("free", "acquire break")
		},
		"a lease to be taken over": func(c runbookCase) {
			op := decode[grant](c.T, c.s.exits(0, "git-lease", "acquire", "--format=json")).Operation
			c.book.run(c.other, "break-take", "ID="+op)
			c.stands("free", "acquire break release")
		},
		"a lease is frozen": func(c runbookCase) {
			c.s.exits(0, "git-lease", "freeze", "--reason", "r")
			c.book.run(c.other, "thaw")
			c.stands("free", "freeze thaw")
		},

		"a laptop that comes back in time": func(c runbookCase) {
			laptop := c.s.with("GIT_LEASE_SESSION=laptop")
			laptop.exits(0, "git-lease", "acquire")
			done := make(chan struct{})
			go func() {
				defer close(done)
				laptop.exits(0, "git-lease", "release")
			}()
			c.book.run(c.other, "wait")
			<-done
		},
		"a laptop is closed": func(c runbookCase) {
			laptop := c.s.with("GIT_LEASE_SESSION=laptop")
			op := decode[grant](c.T, laptop.exits(0, "git-lease", "acquire", "--format=json")).Operation
			c.book.run(c.other, "laptop-closed", "ID="+op)
			c.book.run(laptop, "laptop-opened")
			c.stands("free", "acquire break land land")
			c.agrees()
		},
		"a laptop with a token": func(c runbookCase) {
			g := decode[grant](c.T, c.s.exits(0, "git-lease", "acquire", "--format=json"))
			c.other.exits(0, "git-lease", "break", "--operation", g.Operation, "--reason", "r")
			c.book.run(c.s, "laptop-token", "GIT_LEASE_TOKEN="+g.Token)
			c.stands("free", "acquire break land")
		},
	}
}

// runbookLandings are landings that died.
func runbookLandings() map[string]func(runbookCase) {
	return map[string]func(runbookCase){
		"a landing died after it arrived": func(c runbookCase) {
			c.s.dies(c.remote, "post-receive", "--", "mine.txt")
			if r := c.book.run(c.s, "died"); !strings.Contains(r.Stdout, "unfinished") || !strings.Contains(r.Stdout, "finished it") {
				c.Errorf("stdout %q", r.Stdout)
			}
			c.agrees()
		},
		"a landing died before it arrived": func(c runbookCase) {
			c.s.dies(c.remote, "pre-receive", "--", "mine.txt")
			c.book.run(c.other, "died-look")
			c.book.run(c.s, "died-before")
			c.stands("free", "land void land")
			c.agrees()
		},
		"a clone was restored after a landing died in it": func(c runbookCase) {
			c.s.dies(c.remote, "post-receive", "--", "mine.txt")
			restored := c.s.copied()
			c.book.run(restored, "died-restored", "ID="+restored.unfinished())
			c.agrees()
		},
		"a clone was copied after a landing died in it": func(c runbookCase) {
			c.s.dies(c.remote, "post-receive", "--", "mine.txt")
			copied := c.s.copied()
			if r := c.book.run(copied, "died-copied", "ID="+copied.unfinished()); !strings.Contains(r.Stdout, "of which this one is a copy") {
				c.Errorf("stdout %q", r.Stdout)
			}
			c.s.exits(0, "git-land", "resume")
			c.agrees()
		},
		"a landing is given up": func(c runbookCase) {
			c.s.dies(c.remote, "pre-receive", "--", "mine.txt")
			c.book.run(c.s, "died-abort")
			c.stands("free", "land void")
			c.agrees()
		},
	}
}

// runbookFindings are what reconcile finds.
func runbookFindings() map[string]func(runbookCase) {
	return map[string]func(runbookCase){
		"reconcile finds something": func(c runbookCase) {
			newAuthor(c.T, c.remote).seed("commit-without-record", c.s)
			if r := c.book.run(c.s, "reconcile"); strings.Count(r.Stdout, "commit-without-record") != 2 {
				c.Errorf("stdout %q", r.Stdout)
			}
			c.s.reconciles(0, "--fix")
			if r := c.book.run(c.s, "reconcile-all"); !strings.Contains(r.Stdout, "no faults  1 repair, 1 unverified-landing\n") {
				c.Errorf("stdout %q", r.Stdout)
			}
		},
		"a landing of this clone did not end": func(c runbookCase) {
			c.s.dies(c.remote, "pre-receive", "--", "mine.txt")
			c.book.run(c.s, "reconcile-unfinished", "ID="+c.s.reconciles(7).Report.Findings[0].Operation)
		},
		"a lease that is held by what had ended": func(c runbookCase) {
			newAuthor(c.T, c.remote).seed("lease-held-by-done-operation", c.s)
			c.book.run(c.s, "reconcile-held", "ID="+c.s.reconciles(7).Report.Findings[0].Operation)
			c.stands("free", "acquire break")
		},
		"a branch was rewound": func(c runbookCase) {
			a := newAuthor(c.T, c.remote)
			a.seed("record-commit-gone", c.s)
			c.book.run(a.s, "reconcile-branch-back", "OID="+a.s.reconciles(7).Report.Findings[0].Object)
			c.agrees()
		},
		"records that the server hides": func(c runbookCase) {
			newAuthor(c.T, c.remote).seed("records-not-fetched", c.s)
			c.s.reconciles(7)
			server := c.s
			server.dir = c.remote
			c.book.run(server, "records-hidden")
			c.s.reconciles(0)
		},
		"records that were deleted": func(c runbookCase) {
			a := newAuthor(c.T, c.remote)
			a.lands()
			c.s.reconciles(0)
			was := a.remoteGit("rev-parse", "refs/notes/landing/main")
			a.remoteGit("update-ref", "-d", "refs/notes/landing/main")
			c.book.run(c.s, "records-put-back")
			if now := a.remoteGit("rev-parse", "refs/notes/landing/main"); now != was {
				c.Errorf("the records are at %s, want %s", now, was)
			}
		},
		"records that were overwritten": func(c runbookCase) {
			a := newAuthor(c.T, c.remote)
			a.lands()
			a.seed("records-unreadable", c.s)
			c.book.run(c.s, "records-lost")
			c.agrees()
		},
		"a shallow clone": func(c runbookCase) {
			newAuthor(c.T, c.remote).seed("history-not-fetched", c.s)
			c.book.run(c.s, "shallow")
		},
		"a shallow chain": func(c runbookCase) {
			s := newSeat(c.T, gittest.Clone(c.T, gittest.URL(c.remote), "--depth=1"))
			s.git("fetch", "-q", "--depth=1", "origin", "refs/lease/main")
			if got := s.reconciles(7).codes(); !strings.Contains(got, "chain-unreadable") {
				c.Errorf("found %q", got)
			}
			c.book.run(s, "shallow")
		},
	}
}

// runbookChains are chains that are not what they were.
func runbookChains() map[string]func(runbookCase) {
	return map[string]func(runbookCase){
		"a server was restored": func(c runbookCase) {
			was := gittest.Refs(c.T, c.remote)
			c.s.force("--", "mine.txt")
			for _, ref := range []string{"refs/heads/main", "refs/lease/main", "refs/notes/landing/main"} {
				gittest.Git(c.T, c.remote, "update-ref", ref, was[ref])
			}
			c.book.run(c.s, "chain-look")
			c.book.run(c.s, "chain-put-back")
			c.stands("free", "land land repair")
			c.agrees()
		},
		"a chain was deleted": func(c runbookCase) {
			gittest.Git(c.T, c.remote, "update-ref", "-d", "refs/lease/main")
			c.book.run(c.s, "chain-put-back")
			c.stands("free", "adopt land")
			c.agrees()
		},
		"a tip that is no event": func(c runbookCase) {
			newAuthor(c.T, c.remote).seed("chain-malformed", c.s)
			c.book.run(c.s, "chain-look")
			c.book.run(c.s, "chain-over", "OID="+c.tip())
			c.stands("free", "land adopt")
			c.other.force("--", "mine.txt") // it has nothing to accept
			c.agrees()
		},
		"a chain was rewritten": func(c runbookCase) {
			newAuthor(c.T, c.remote).seed("chain-rewritten", c.s)
			third := clone(c.T, c.remote)
			third.exits(0, "git-lease", "show")
			c.book.run(c.s, "chain-look")
			c.book.run(c.s, "chain-over", "OID="+c.tip())
			c.book.run(third, "chain-accept", "OID="+c.tip())
			c.other.force("--", "other.txt")
			third.exits(0, "git-land", "reconcile", "--fix", "--reason", "r")
			c.agrees()
		},
	}
}

// runbookFormats are changes of format, place and version.
func runbookFormats() map[string]func(runbookCase) {
	return map[string]func(runbookCase){
		"an upgrade": func(c runbookCase) {
			c.book.run(c.s, "format-freeze")
			c.book.run(c.other, "format-check")
			c.other.exits(3, "git-lease", "acquire", "--format=json")
			c.book.run(c.s, "format-thaw")
			c.stands("free", "freeze thaw")
			newerEvent(c.T, c.remote)
			if r := c.book.run(c.other, "format-old"); !strings.Contains(r.Stderr, knowsTwo) {
				c.Errorf("stderr %q", r.Stderr)
			}
		},
		"the repository moves": func(c runbookCase) {
			to := gittest.Bare(c.T)
			c.book.run(c.s, "move", "OLD="+gittest.URL(c.remote), "NEW="+gittest.URL(to))
			c.other.exits(3, "git-land", "--force-unverified", "--reason", "r", "-m", "m", "--", "mine.txt")
			c.s.force("--", "mine.txt")
			if got := gittest.Git(c.T, to, "rev-list", "--count", "main"); got != "3" {
				c.Errorf("%s commits at the new place, want 3", got)
			}
		},
		"the tool is rolled back": func(c runbookCase) {
			if r := c.book.run(c.s, "rollback-freeze"); !strings.Contains(r.Stdout, "Lease-Format: 1") {
				c.Errorf("stdout %q", r.Stdout)
			}
			c.book.run(c.other, "rollback-thaw")
			c.stands("free", "freeze thaw")
		},
		"without the tool": func(c runbookCase) {
			c.s.exits(0, "git-lease", "freeze", "--reason", "r")
			gittest.Commit(c.T, c.s.dir, "by hand", map[string]string{"hand": "h\n"})
			c.book.run(c.s, "by-hand")
			c.book.run(c.other, "by-hand-after")
			c.agrees()
		},
	}
}

// seed does to the remote what is found under a code.
func (a author) seed(code string, s seat) {
	a.t.Helper()
	all := disagreements()
	i := slices.IndexFunc(all, func(d seeded) bool { return d.code == code })
	if i < 0 {
		a.t.Fatalf("nothing seeds %s", code)
	}
	all[i].seed(a, s)
}

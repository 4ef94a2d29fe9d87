package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// A way is a mode in which a stack of two commits lands, and what stands then between the
// target as it was and as it is: subjects, newest first, and how many parents the tip has.
type way struct {
	mode   string
	behind bool // others have landed since the stack began
	want   string
	tip    int
}

var ways = []way{
	{"rebase", true, "land unit-two|One", 1},
	{"squash", true, "land unit-change", 1},
	{"merge", true, "land unit-change|land unit-two|One", 2},
	{"ff-only", false, "land unit-two|One", 1},
}

// land lands the stack.
func (w way) land(s seat, code int) {
	s.t.Helper()
	s.exits(code, "git-land", "--force-unverified", "--reason", "test", "-m", "land unit-change", "--"+w.mode)
}

// begin has a clone with the stack, and the target's tip on which it would land.
func (w way) begin(t *testing.T, apart bool) (remote string, s, other seat) {
	t.Helper()
	remote, s, other = zeroLanded(t, apart)
	s.git("checkout", "-q", "-b", "topic")
	gittest.Commit(t, s.dir, "One", map[string]string{"one": "1\n"})
	gittest.Commit(t, s.dir, "land unit-two", map[string]string{"two": "2\n"})
	if w.behind {
		other.write(map[string]string{"meanwhile": "m\n"})
		other.landUnit("meanwhile")
	}
	return remote, s, other
}

// landed fails the test unless the stack has landed on what was there, whole and in order.
func (w way) landed(t *testing.T, remote, base string) {
	t.Helper()
	got := strings.ReplaceAll(strings.TrimSpace(gittest.Git(t, remote, "log", "--topo-order", "--format=%s", base+"..main")), "\n", "|")
	parents := len(strings.Fields(gittest.Git(t, remote, "log", "-1", "--format=%P", "main")))
	if got != w.want || parents != w.tip {
		t.Errorf("landed %q, with %d parents, want %q, with %d", got, parents, w.want, w.tip)
	}
	if first := strings.TrimSpace(gittest.Git(t, remote, "log", "--first-parent", "--format=%H", base+"..main")); w.tip == 2 && strings.Contains(first, "\n") {
		t.Errorf("the target is not the first parent: %q", first)
	}
	for _, path := range []string{"zero", "one", "two"} {
		gittest.Git(t, remote, "cat-file", "-e", "main:"+path)
	}
}

// In every mode a stack lands whole or not at all, wherever the landing dies, and running
// it again is safe; also where refs cannot move together.
func TestEveryWayStopsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	from := seed(t)
	for n, w := range ways {
		for i, stop := range []struct {
			apart, lands     bool
			hook, ref, event string
		}{
			{false, false, "pre-receive", "refs/heads/main", ""},
			{false, true, "post-receive", "refs/heads/main", ""},
			{true, true, "post-receive", "refs/lease/main", "intent"},
			{true, true, "post-receive", "refs/heads/main", ""},
		} {
			if loops(100) < 100 && uint64(i+n)%2 != from%2 { // all of them in a campaign
				continue
			}
			t.Run(fmt.Sprint(w.mode, " ", stop.hook, " ", strings.ReplaceAll(stop.ref, "/", "-"), " ", stop.event, " apart=", stop.apart), func(t *testing.T) {
				t.Parallel()
				remote, s, _ := w.begin(t, stop.apart)
				base := strings.TrimSpace(gittest.Git(t, remote, "rev-parse", "main"))
				s.diesAtEvent(remote, stop.hook, stop.ref, stop.event, "--"+w.mode)
				code := 1
				if stop.lands {
					code = 0
				}
				r := s.exits(code, "git-land", "resume")
				nothingOpen(t, s, remote)
				if stop.lands {
					w.landed(t, remote, base)
				} else if now := strings.TrimSpace(gittest.Git(t, remote, "rev-parse", "main")); now != base || !strings.Contains(r.Stderr, "--"+w.mode) {
					t.Errorf("did not land, and main is at %s, not %s; said %q", now, base, r.Stderr)
				}
				w.land(s, 0) // lands it, or finds that it has
				w.landed(t, remote, base)
				if got := s.git("status", "--porcelain"); got != "" {
					t.Errorf("the worktree has %q", got)
				}
				if here, there := strings.TrimSpace(s.git("rev-parse", "HEAD")), strings.TrimSpace(gittest.Git(t, remote, "rev-parse", "main")); here != there {
					t.Errorf("the branch is at %s, the target at %s", here, there)
				}
			})
		}
	}
}

// After a lost race the plan is made again in the same mode; ff-only refuses then, as there
// is nothing that it could land as it is.
func TestEveryWayLosesARace(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.mode, func(t *testing.T) {
			t.Parallel()
			remote, s, other := w.begin(t, false)
			other.write(map[string]string{"race": "r\n"})
			gittest.Script(t, s.dir+"/.git/hooks/pre-push", "#!/bin/sh\nrm \"$0\"\ncd '"+other.dir+"' && unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE && "+
				"git land --force-unverified --reason race -m 'land unit-race' -- race >&2 || exit 1\n")
			code := 0
			if w.mode == "ff-only" {
				code = 5
			}
			w.land(s, code)
			base := strings.TrimSpace(gittest.Git(t, remote, "log", "-1", "--format=%H", "--grep=unit-race", "main"))
			if base == "" {
				t.Fatal("there was no race")
			}
			if code == 0 {
				w.landed(t, remote, base)
			} else if now := strings.TrimSpace(gittest.Git(t, remote, "rev-parse", "main")); now != base {
				t.Errorf("main is at %s, not %s", now, base)
			}
		})
	}
}

package acceptance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"gitland/internal/gittest"
	"gitland/internal/reconcile"
)

// A runbook is docs/runbook.md: its text, and its blocks by name. A block is
// fenced as "sh NAME".
type runbook struct {
	text   string
	blocks map[string]string

	mu  sync.Mutex
	ran map[string]bool
}

var fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

func readRunbook(t *testing.T) *runbook {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	b := &runbook{text: string(text), blocks: map[string]string{}, ran: map[string]bool{}}
	for _, m := range fence.FindAllStringSubmatch(b.text, -1) {
		name, named := strings.CutPrefix(m[1], "sh ")
		if !named || b.blocks[name] != "" {
			t.Fatalf("the block %q has no name of its own: ```sh NAME", m[1])
		}
		b.blocks[name] = m[2]
	}
	return b
}

var wanted = regexp.MustCompile(`#\s*exit (\d+)`)

// run runs a block in one shell, as somebody who pastes it would, with variables
// set. Each line has to end as it says, with 0 where it says nothing.
func (b *runbook) run(s seat, name string, vars ...string) gittest.Result {
	s.t.Helper()
	block := b.blocks[name]
	if block == "" {
		s.t.Fatalf("the runbook has no block %s", name)
	}
	var script strings.Builder
	for line := range strings.Lines(block) {
		code := "0"
		if m := wanted.FindStringSubmatch(line); m != nil {
			code = m[1]
		}
		fmt.Fprintf(&script, "%sc=$?\n[ $c = %s ] || { echo \"exit $c, want %s\" >&2; exit 99; }\n", line, code, code)
	}
	b.mu.Lock()
	b.ran[name] = true
	b.mu.Unlock()
	r := s.with(vars...).try("sh", "-c", script.String())
	if r.Code != 0 {
		s.t.Fatalf("%s:\n%s\nexit %d\n%s\n%s", name, block, r.Code, r.Stdout, r.Stderr)
	}
	return r
}

// Every block of the runbook does what it is said to do.
func TestRunbook(t *testing.T) {
	t.Parallel()
	b := readRunbook(t)
	t.Run("cases", func(t *testing.T) {
		for name, run := range runbookCases() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(newRunbookCase(t, b, false))
			})
		}
		for _, stop := range []struct{ block, ref, event, then string }{
			{"died-elsewhere", "refs/heads/main", "", "land release"},
			{"died-elsewhere-before", "refs/lease/main", "intent", "repair release"},
		} {
			t.Run(stop.block, func(t *testing.T) {
				t.Parallel()
				c := newRunbookCase(t, b, true)
				c.s.diesAtEvent(c.remote, "post-receive", stop.ref, stop.event, "--", "mine.txt")
				b.run(c.other, stop.block, "ID="+holder(t, c.remote))
				c.stands("free", stop.then)
				c.agrees()
			})
		}
		t.Run("died-on-its-way", func(t *testing.T) {
			t.Parallel()
			c := newRunbookCase(t, b, true)
			g := holdUp(t, c.remote)
			c.s.losesItsPush(g, breaker(t, c.remote)).exits(6, "git-land", "--force-unverified", "--reason", "test", "-m", "mine", "--", "mine.txt")
			if r := b.run(c.s, "died-on-its-way"); strings.Contains(r.Stdout, "unfinished") {
				t.Errorf("stdout %q", r.Stdout)
			}
			g.open()
			c.stands("free", "intent break acquire intent land repair")
			c.agrees()
		})
		for i, d := range disagreements() {
			block := map[bool]string{true: "reconcile-mend", false: "reconcile-acknowledge"}[d.bare]
			if !d.bare && !d.reason || i%5 != 0 && loops(100) < 100 {
				continue // TestEveryDisagreementIsFound settles each, in the same way
			}
			t.Run(fmt.Sprintf("%s/%d-%s", block, i, d.code), func(t *testing.T) {
				t.Parallel()
				c := newRunbookCase(t, b, false)
				d.seed(newAuthor(t, c.remote), c.s)
				b.run(c.s, block)
			})
		}
	})
	if t.Failed() || strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // not all of them have run
	}
	for name := range b.blocks {
		if !b.ran[name] {
			t.Errorf("no test runs the block %s", name)
		}
	}
}

// The runbook has every code of reconcile, no command beside those that are run,
// and leads nowhere.
func TestRunbookIsWhole(t *testing.T) {
	t.Parallel()
	b := readRunbook(t)
	for _, code := range reconcile.Codes() {
		if !strings.Contains(b.text, "`"+string(code)+"`") {
			t.Errorf("it does not say what to do about %s", code)
		}
	}
	prose := fence.ReplaceAllString(b.text, "")
	var all strings.Builder
	for _, block := range b.blocks {
		all.WriteString(block)
	}
	for _, m := range regexp.MustCompile("`(git [^`]*)`").FindAllStringSubmatch(prose, -1) {
		if !strings.Contains(all.String(), m[1]) {
			t.Errorf("no block has %q", m[1])
		}
	}
	slugs := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(prose, -1) {
		slug := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		slugs[strings.ReplaceAll(slug, " ", "-")] = true
	}
	for _, m := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(prose, -1) {
		if !slugs[m[1]] {
			t.Errorf("no heading is %s", m[1])
		}
	}
}

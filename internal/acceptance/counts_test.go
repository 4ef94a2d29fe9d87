package acceptance

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gitland/internal/gittest"
)

// What a landing costs is counted, since counts are free of noise: connections
// to the remote, and git processes that we start, most of them side by side.
func TestWhatALandingCosts(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	server := gittest.Daemon(t, remote)
	u, err := url.Parse(server.URL(remote))
	if err != nil {
		t.Fatal(err)
	}
	proxy := gittest.DelayProxy(t, u.Host, 0)
	s := newSeat(t, gittest.Clone(t, server.Behind(proxy).URL(remote)))
	counter := gittest.CountGit(t)
	s.env = counter.Env(s.env)
	age := func() { // as if the last fetch had been long ago
		locks, err := filepath.Glob(filepath.Join(s.dir, ".git/lease/mirror/*.lock"))
		if err != nil || len(locks) != 1 {
			t.Fatalf("mirror locks: %q, %v", locks, err)
		}
		then := time.Now().Add(-time.Hour)
		if err := os.Chtimes(locks[0], then, then); err != nil {
			t.Fatal(err)
		}
	}
	s.write(map[string]string{"first": "first\n"})
	s.verify("first")
	s.exits(0, "git-land", "-m", "first", "--", "first") // it also begins the chain
	for _, test := range []struct {
		name                   string
		prepare                func()
		connections, processes int
	}{
		{"right after its verification", func() {}, 1, 9},
		{"later", age, 2, 10},
		{"beside other worktrees", func() {
			gittest.Git(t, s.dir, "worktree", "add", "--quiet", "-b", "side", t.TempDir()+"/side")
			gittest.Git(t, s.dir, "worktree", "add", "--quiet", "--detach", t.TempDir()+"/detached")
		}, 1, 9},
	} {
		file := strings.ReplaceAll(test.name, " ", "-")
		s.write(map[string]string{file: file + "\n"})
		s.verify(file)
		test.prepare()
		counter.Reset()
		before := proxy.Connections()
		s.exits(0, "git-land", "-m", file, "--", file)
		connections, calls := proxy.Connections()-before, counter.Calls()
		if connections != test.connections || len(calls) != test.processes {
			t.Errorf("a landing %s: %d connections and %d git processes, want %d and %d:\n%s",
				test.name, connections, len(calls), test.connections, test.processes, names(calls))
		}
		before = proxy.Connections()
		s.exits(0, "git-land", "-m", "again", "--", file)
		if n := proxy.Connections() - before; n != 1 {
			t.Errorf("%d connections to find that it has landed already, want 1", n)
		}
	}
}

// names are the commands of calls, one a line.
func names(calls [][]string) string {
	var b strings.Builder
	for _, args := range calls {
		for len(args) > 1 && (args[0] == "-c" || strings.HasPrefix(args[0], "--literal")) {
			if args[0] == "-c" {
				args = args[1:]
			}
			args = args[1:]
		}
		b.WriteString(strings.Join(slices.Clone(args[:min(3, len(args))]), " ") + "\n")
	}
	return b.String()
}

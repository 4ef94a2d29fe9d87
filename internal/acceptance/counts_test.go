package acceptance

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// What a landing costs is counted, since counts are free of noise: connections
// to the remote, and git processes that we start.
const (
	connectionsOfALanding = 2  // one to fetch, one to push
	processesOfALanding   = 13 // most of them side by side
)

func TestALandingIsTwoConnections(t *testing.T) {
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
	for _, file := range []string{"first", "second"} {
		s.write(map[string]string{file: file + "\n"})
		s.verify(file)
		counter.Reset()
		before := proxy.Connections()
		s.exits(0, "git-land", "-m", file, "--", file)
		connections, calls := proxy.Connections()-before, counter.Calls()
		if file == "first" {
			continue // it also begins the chain, for which it looks at all leases
		}
		if connections != connectionsOfALanding {
			t.Errorf("%d connections, want %d", connections, connectionsOfALanding)
		}
		if n := len(calls); n != processesOfALanding {
			t.Errorf("%d git processes, want %d:\n%s", n, processesOfALanding, names(calls))
		}
	}
	before := proxy.Connections()
	s.exits(0, "git-land", "-m", "again", "--", "second")
	if n := proxy.Connections() - before; n != 1 {
		t.Errorf("%d connections to find that it has landed already, want 1", n)
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

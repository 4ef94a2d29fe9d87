package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gitland/internal/gittest"
)

// A link is a kind of way to a remote.
type link struct {
	name string
	goal float64 // the ratio to reach, 0 for none
	open func(t gittest.T, remote string) way
}

// A way leads to one remote.
type way struct {
	url       string
	cloneArgs []string
	// counted returns env, changed if need be so that connections are counted,
	// and a function that tells how many there were so far.
	counted func(env []string) ([]string, func() int)
}

func links() []link {
	return []link{
		{"file://", 1.6, openFile},
		{"daemon, 50 ms away", 1.1, func(t gittest.T, remote string) way {
			return through(t, gittest.Daemon(t, filepath.Dir(remote)), remote, 50*time.Millisecond)
		}},
		{"daemon", 0, func(t gittest.T, remote string) way {
			return through(t, gittest.Daemon(t, filepath.Dir(remote)), remote, 0)
		}},
		{"sshd", 0, func(t gittest.T, remote string) way {
			return through(t, gittest.SSHD(t), remote, 0)
		}},
	}
}

func through(t gittest.T, s gittest.Server, remote string, delay time.Duration) way {
	p := gittest.DelayProxy(t, s.Addr, delay)
	return way{
		url:       s.Behind(p).URL(remote),
		cloneArgs: s.CloneArgs,
		counted:   func(env []string) ([]string, func() int) { return env, p.Connections },
	}
}

// openFile counts the server's processes, each of which is a connection.
func openFile(t gittest.T, remote string) way {
	return way{
		url: gittest.URL(remote),
		counted: func(env []string) ([]string, func() int) {
			dir := t.TempDir()
			gittest.Write(t, dir, map[string]string{"log": ""})
			config := []string{"GIT_CONFIG_COUNT=2"}
			for i, service := range []string{"upload-pack", "receive-pack"} {
				n, path := strconv.Itoa(i), filepath.Join(dir, service)
				gittest.Script(t, path, "#!/bin/sh\necho >>"+filepath.Join(dir, "log")+"\nexec git "+service+" \"$@\"\n")
				config = append(config, "GIT_CONFIG_VALUE_"+n+"="+path,
					"GIT_CONFIG_KEY_"+n+"=remote.origin."+strings.ReplaceAll(service, "-", ""))
			}
			return gittest.With(env, config...), func() int {
				return strings.Count(gittest.Read(t, dir, "log"), "\n")
			}
		},
	}
}

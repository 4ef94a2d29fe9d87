package gittest

import (
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
)

// HTTP starts a web server that hands requests for the repositories below root to git
// http-backend, for reading and writing. Without one that git was built with the test is
// skipped.
func HTTP(t T, root string) Server {
	t.Helper()
	dir := Git(t, root, "--exec-path")
	for _, program := range []string{"git-http-backend", "git-remote-http"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	env, _ := Env(t)
	var log strings.Builder
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(dir, "git-http-backend"), Root: "/", Dir: root, Stderr: &log,
		Env: append(env, "GIT_PROJECT_ROOT=/", "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=somebody"),
	})
	t.Cleanup(server.Close)
	return Server{Addr: strings.TrimPrefix(server.URL, "http://"), scheme: "http://"}
}

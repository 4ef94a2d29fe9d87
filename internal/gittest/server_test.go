package gittest

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// exchange clones from a server, pushes to it, and says what went wrong.
func exchange(t *testing.T, s Server, remote string) {
	t.Helper()
	clone := Clone(t, s.URL(remote), s.CloneArgs...)
	oid := Commit(t, clone, "over the wire", nil)
	Git(t, clone, "push", "--quiet", "origin", "main")
	if got := Refs(t, remote)["refs/heads/main"]; got != oid {
		t.Errorf("remote is at %s, want %s", got, oid)
	}
}

func TestDaemon(t *testing.T) {
	t.Parallel()
	remote := Remote(t)
	exchange(t, Daemon(t, filepath.Dir(remote)), remote)
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	remote := Remote(t)
	exchange(t, HTTP(t, remote), remote)
}

func TestSSHD(t *testing.T) {
	t.Parallel()
	remote := Remote(t)
	exchange(t, SSHD(t), remote)
}

func TestDelayProxyInFrontOfDaemon(t *testing.T) {
	t.Parallel()
	remote := Remote(t)
	s := Daemon(t, filepath.Dir(remote))
	const delay = 20 * time.Millisecond
	p := DelayProxy(t, s.Addr, delay)
	start := time.Now()
	exchange(t, s.Behind(p), remote)
	if got := p.Connections(); got != 2 {
		t.Errorf("%d connections for a clone and a push, want 2", got)
	}
	// The clone asks twice (protocol 2) and the push hears and tells.
	if took := time.Since(start); took < 6*delay {
		t.Errorf("clone and push took %v, less than their round trips", took)
	}
}

// TestDelayProxyDelaysWithoutThrottling sends more than any buffer holds
// through an echo server.
func TestDelayProxyDelaysWithoutThrottling(t *testing.T) {
	t.Parallel()
	echo := listen(t, func(conn *net.TCPConn, done <-chan struct{}) {
		io.Copy(conn, conn)
		conn.CloseWrite()
	})
	const delay = 200 * time.Millisecond
	conn, err := net.Dial("tcp", DelayProxy(t, echo, delay).Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
	start := time.Now()
	go func() {
		conn.Write(sent)
		conn.(*net.TCPConn).CloseWrite()
	}()
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 2*delay {
		t.Errorf("first byte after %v, want at least %v", took, 2*delay)
	}
	rest, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(first, rest...), sent) {
		t.Errorf("%d bytes came back changed, of %d sent", len(rest)+1, len(sent))
	}
	// One buffer for each delay would take the better part of a minute.
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("%d bytes took %v", len(sent), took)
	}
}

func TestDelayProxyTellsAClosedTarget(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := l.Addr().String()
	l.Close()
	conn, err := net.Dial("tcp", DelayProxy(t, target, 0).Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a proxy without a target sent something")
	}
}

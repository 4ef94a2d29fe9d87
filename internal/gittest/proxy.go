package gittest

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Proxy is a TCP link with a latency: what goes in at one end comes out at
// the other a fixed delay later, in both directions, at whatever rate the ends
// keep up. The connection's own handshake is not delayed, so each connection
// costs a round trip less than over a real line.
type Proxy struct {
	// Addr is where to connect to, "127.0.0.1:port".
	Addr string

	target string
	delay  time.Duration
	count  atomic.Int64
}

// DelayProxy starts a proxy in front of target ("host:port"), which lasts as
// long as the test.
func DelayProxy(t T, target string, delay time.Duration) *Proxy {
	t.Helper()
	p := &Proxy{target: target, delay: delay}
	p.Addr = listen(t, func(client *net.TCPConn, done <-chan struct{}) {
		p.count.Add(1)
		p.carry(client, done)
	})
	return p
}

// Connections is how many connections were made through the proxy so far.
func (p *Proxy) Connections() int { return int(p.count.Load()) }

// carry joins client to the target until both directions have ended, or done
// is closed.
func (p *Proxy) carry(client *net.TCPConn, done <-chan struct{}) {
	conn, err := net.Dial("tcp", p.target)
	if err != nil {
		return // the client sees the end of its connection, as it should
	}
	server := conn.(*net.TCPConn)
	defer server.Close()
	ended := make(chan struct{})
	go func() {
		var both sync.WaitGroup
		both.Go(func() { p.lag(server, client) })
		both.Go(func() { p.lag(client, server) })
		both.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-done:
		client.Close()
		server.Close()
		<-ended
	}
}

// lag copies src to dst, each piece the delay after it came; then the end of
// src as well.
func (p *Proxy) lag(dst, src *net.TCPConn) {
	type piece struct {
		data []byte
		due  time.Time
	}
	// Long enough that it is never what limits the rate.
	line := make(chan piece, 1<<14)
	go func() {
		defer close(line)
		for {
			buf := make([]byte, 32<<10)
			n, err := src.Read(buf)
			line <- piece{buf[:n], time.Now().Add(p.delay)}
			if err != nil {
				return
			}
		}
	}()
	broken := false // then the rest is drained: the other direction tells src
	for piece := range line {
		time.Sleep(time.Until(piece.due))
		if !broken {
			_, err := dst.Write(piece.data)
			broken = err != nil
		}
	}
	dst.CloseWrite()
}

// listen accepts connections on the loopback interface and serves each in a
// goroutine of its own until the test ends; serve must return soon after done
// is closed. It returns the address.
func listen(t T, serve func(conn *net.TCPConn, done <-chan struct{})) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("gittest: %v", err)
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed below
			}
			all.Go(func() {
				defer conn.Close()
				serve(conn.(*net.TCPConn), done)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		close(done)
		all.Wait()
	})
	return l.Addr().String()
}

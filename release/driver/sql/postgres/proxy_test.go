package postgres_test

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"holdfast/internal/testpostgres"
)

// proxy stands between a driver and the server, and can break the connections.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns []net.Conn
	// cut is called with what a client sends, and tells whether the connection breaks before or
	// after the server gets it.
	cut   func(sent []byte) (before, after bool)
	group sync.WaitGroup
}

// newProxy makes a proxy whose folder takes the place of the server's.
func newProxy(t testing.TB, s *testpostgres.Server) (*proxy, string) {
	t.Helper()
	dir := testpostgres.ShortDir(t)
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: filepath.Join(s.Dir, ".s.PGSQL.5432")}
	p.group.Go(p.accept)
	t.Cleanup(func() {
		p.stop()
		p.group.Wait()
	})
	return p, dir
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // it was stopped
		}
		server, err := net.Dial("unix", p.target)
		if err != nil {
			client.Close() //nolint:errcheck,gosec // it is to break
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.group.Go(func() {
			_, _ = io.Copy(client, server) // it ends when either side does
			client.Close()                 //nolint:errcheck,gosec // it is to break
		})
		p.group.Go(func() { p.forward(client, server) })
	}
}

// forward passes on what a client sends.
func (p *proxy) forward(client, server net.Conn) {
	defer server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		cut := p.cut
		p.mu.Unlock()
		var before, after bool
		if cut != nil {
			before, after = cut(buf[:n])
		}
		if before {
			client.Close() //nolint:errcheck,gosec // it is to break
			return
		}
		if after { // the answer must not come through
			client.Close() //nolint:errcheck,gosec // it is to break
		}
		if _, err := server.Write(buf[:n]); err != nil || after {
			return
		}
	}
}

// stop breaks all connections, and takes no new ones.
func (p *proxy) stop() {
	p.listener.Close() //nolint:errcheck,gosec // it may be stopped already
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close() //nolint:errcheck,gosec // it is to break
	}
}

// cutAt breaks a connection, once, when a client sends a text.
func (p *proxy) cutAt(text string, after bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := false
	p.cut = func(sent []byte) (bool, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if done || !bytes.Contains(sent, []byte(text)) {
			return false, false
		}
		done = true
		return !after, after
	}
}

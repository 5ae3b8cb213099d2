package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/history"
)

// Run has the clock and the sink that all proxies and taps of a run share. Set its fields before the first of these is
// made.
type Run struct {
	Clock *history.Clock // must be ordered
	Sink  Sink

	conns atomic.Int64
}

type Dial func(ctx context.Context) (net.Conn, error)

const acceptPause = 10 * time.Millisecond

// Endpoint is the configuration of a proxy and its server.
type Endpoint struct {
	Server int    // number of the server in requests and events
	Listen string // host:port; empty = connections come only through Proxy.Serve
	Dial   Dial
	Break  Break // nil = break nothing
}

// Proxy forwards connections to one server. It is safe for concurrent use.
type Proxy struct {
	run      *Run
	server   int
	dial     Dial
	breaks   Break
	listener net.Listener

	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	closed bool
	conns  map[*conn]struct{}
}

// Listen opens a proxy. It serves clients until Close, or until the context ends.
func (r *Run) Listen(ctx context.Context, e Endpoint) (*Proxy, error) {
	if r.Clock == nil || r.Sink == nil || e.Dial == nil {
		return nil, errors.New("a proxy needs a clock, a sink and a server to dial")
	}
	p := &Proxy{run: r, server: e.Server, dial: e.Dial, breaks: e.Break, conns: map[*conn]struct{}{}}
	if e.Listen != "" {
		var err error
		if p.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", e.Listen); err != nil {
			return nil, fmt.Errorf("listen for clients: %w", err)
		}
	}
	ctx, p.cancel = context.WithCancel(ctx)
	if p.listener != nil {
		p.wg.Go(func() { p.accept(ctx) })
	}
	p.wg.Go(func() {
		<-ctx.Done()
		p.end()
	})
	return p, nil
}

// Addr returns the address on which the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close breaks every connection. It waits until the sink has received all requests in flight, with Lost set.
func (p *Proxy) Close() error {
	p.cancel()
	p.wg.Wait()
	return nil
}

// end stops listening, and breaks every connection.
func (p *Proxy) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.listener != nil {
		_ = p.listener.Close()
	}
	for c := range p.conns {
		c.end(atOnce)
	}
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // the client is gone, or there are too many open files
			wait(ctx.Done(), acceptPause)
		default:
			p.wg.Go(func() { p.Serve(ctx, client) })
		}
	}
}

// wait waits for the duration d. It returns false if off was closed before that.
func wait(off <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-off:
		return false
	}
}

// Serve serves a client's connection until that ends.
func (p *Proxy) Serve(ctx context.Context, client net.Conn) {
	c := &conn{proxy: p, id: p.run.conns.Add(1), client: client, done: make(chan struct{})}
	c.name, _, _ = net.SplitHostPort(client.RemoteAddr().String())
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		c.end(atOnce)
		return
	}
	p.conns[c] = struct{}{}
	p.wg.Add(1)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
		p.wg.Done()
	}()
	server, err := p.dial(ctx)
	if err != nil {
		c.end(atOnce)
		return
	}
	if !c.meet(server) {
		_ = server.Close()
	}
	c.serve()
}

package topologies

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const linkDialTimeout = time.Second

// gate listens on a node's front for one process of it: it opens when the server answers and closes when the process
// ends, so that connections to a node that is down are refused.
type gate struct {
	network *Network
	node    *Node

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	wg        sync.WaitGroup
}

// open listens on the addresses that the node announces. A nil gate, of a node without a link, has none.
func (g *gate) open() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.New("the server ended")
	}
	if err := g.listen(g.node.front, g.node.back); err != nil {
		return err
	}
	if !g.node.topology.clustered() {
		return nil
	}
	return g.listen(busAddr(g.node.front), busAddr(g.node.back))
}

func busAddr(addr string) string {
	host, port := splitAddr(addr)
	return net.JoinHostPort(host, busPort(port))
}

func (g *gate) listen(front, back string) error {
	l, err := net.Listen("tcp4", front)
	if err != nil {
		return err
	}
	g.listeners = append(g.listeners, l)
	g.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue // the client has closed it already
			}
			g.network.wg.Go(func() { g.serve(conn.(*net.TCPConn), back) })
		}
	})
	return nil
}

func (g *gate) close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, l := range g.listeners {
		_ = l.Close()
	}
	g.wg.Wait()
}

// serve carries one connection until it ends.
func (g *gate) serve(src *net.TCPConn, back string) {
	from := src.RemoteAddr().(*net.TCPAddr)
	c := g.network.open(from.IP.String(), g.node, src)
	if c == nil {
		abort(src)
		return
	}
	defer g.network.forget(c)
	if !c.passable(c.there) {
		return
	}
	// The node sees the client's own address.
	d := net.Dialer{Timeout: linkDialTimeout, LocalAddr: &net.TCPAddr{IP: from.IP}}
	conn, err := d.Dial("tcp4", back)
	if err != nil {
		c.end()
		return
	}
	c.carry(conn.(*net.TCPConn))
}

// abort closes with a reset: what is held is discarded and the other side sees an error, not an end.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// connection is one proxied connection: from its source to the link, and from there to the node.
type connection struct {
	network     *Network
	there, back *path
	muted       atomic.Bool // the answer under way must not arrive

	mu       sync.Mutex
	src, dst *net.TCPConn
	done     chan struct{}
	ended    bool
}

// broken tells whether a rule breaks the connection.
func (c *connection) broken() bool {
	return c.there.verdict.Load().effect == Reset || c.back.verdict.Load().effect == Reset
}

// end breaks both halves at once.
func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	close(c.done)
	abort(c.src)
	if c.dst != nil {
		abort(c.dst)
	}
}

// passable waits while bytes are held back on a path; it is false when the connection has ended.
func (c *connection) passable(p *path) bool {
	for {
		v := p.verdict.Load()
		if v.effect < Drop {
			return true
		}
		select {
		case <-v.changed:
		case <-c.done:
			return false
		}
	}
}

func (c *connection) carry(dst *net.TCPConn) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		abort(dst)
		return
	}
	c.dst = dst
	c.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go((&stream{c: c, path: c.there, from: c.src, to: dst, commands: true}).run)
	wg.Go((&stream{c: c, path: c.back, from: dst, to: c.src}).run)
	wg.Wait()
	c.end()
}

// clustered tells whether the nodes have a cluster bus.
func (t *Topology) clustered() bool { return len(t.Sites) > 0 && t.Sites[0].Cluster }

// openNetwork makes the links' common part; it refuses where source addresses do not identify clients.
func (t *Topology) openNetwork() error {
	switch {
	case !t.Options.Links:
		return nil
	case t.block.prefix == "":
		return errors.New("links tell nodes apart by their loopback addresses and this layout has only one: " +
			"use Linux, or add 127.64.0.0/10 to the loopback interface, and do not ask for one address")
	}
	t.network = &Network{
		nodes: map[string]Party{}, sources: t.block.prefix,
		paths: map[[2]Party]*path{}, conns: map[*connection]struct{}{},
	}
	return nil
}

// Network is the topology's links; nil if it was brought up without.
func (t *Topology) Network() *Network { return t.network }

// sourceAddr is the address that a client of the given source binds; nil for any.
func (s *Site) sourceAddr(source int) net.Addr {
	if source < 1 || s.sources == "" {
		return nil
	}
	return &net.TCPAddr{IP: net.ParseIP(sourceIP(s.sources, source))}
}

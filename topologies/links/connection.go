package links

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// Conn is a TCP or TLS connection whose writing direction can be closed alone (half-close).
type Conn interface {
	net.Conn
	CloseWrite() error
}

// Abort closes a connection with a reset (RST). Unsent data is discarded, and the other side gets an error.
func Abort(c Conn) {
	var below net.Conn = c
	if secured, ok := c.(*tls.Conn); ok {
		below = secured.NetConn()
	}
	if tcp, ok := below.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = below.Close()
}

// Link is a proxied connection to a node.
type Link struct {
	From, To Party
	// Asks tells whether bytes to the node are a command whose reply LoseReply may drop.
	Asks func(b []byte) bool
	// Kind returns the name of the command with which b begins; b goes to the node. Empty = never delay this command.
	Kind func(b []byte) string
	Dial func(from *net.TCPAddr) (Conn, error)
}

// Serve applies the rules to one connection, and returns when it has ended.
func (n *Network) Serve(src *net.TCPConn, l Link) {
	c := n.open(src, l)
	if c == nil {
		Abort(src)
		return
	}
	defer n.forget(c)
	if !c.passable(c.there) {
		return
	}
	conn, err := l.Dial(src.RemoteAddr().(*net.TCPAddr))
	if err != nil {
		c.end()
		return
	}
	c.carry(conn)
}

// open registers a connection. It returns nil if a rule refuses the connection.
func (n *Network) open(src *net.TCPConn, l Link) *connection {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &connection{asks: l.Asks, kind: l.Kind, left: make(chan struct{}), src: src,
		there: n.path(l.From, l.To), back: n.path(l.To, l.From),
		done: make(chan struct{})}
	if l.From == Unidentified || c.broken() {
		return nil
	}
	n.conns[c] = struct{}{}
	return c
}

func (n *Network) forget(c *connection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, c)
}

// connection is a proxied connection, from its source to the proxy and on to the node.
type connection struct {
	asks        func(b []byte) bool // tells whether bytes to the node are a command whose reply may be dropped
	kind        func(b []byte) string
	left        chan struct{} // closed when the source has closed the connection, and so has given up its calls
	there, back *path
	muted       atomic.Bool // drop the next reply

	mu       sync.Mutex
	src, dst Conn
	done     chan struct{}
	ended    bool
}

func (c *connection) broken() bool {
	return c.there.verdict.Load().effect == Reset || c.back.verdict.Load().effect == Reset
}

// end breaks both halves of the connection.
func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	close(c.done)
	Abort(c.src)
	if c.dst != nil {
		Abort(c.dst)
	}
}

// passable waits while a rule blocks the path. It returns false when the connection has ended.
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

func (c *connection) carry(dst Conn) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		Abort(dst)
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

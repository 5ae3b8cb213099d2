package topologies

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"hammerlock/topologies/links"
)

const linkDialTimeout = time.Second

// gate is the proxy's listener in front of one node. It opens when the server answers and closes when the server
// process ends, so that connections to a dead node are refused.
type gate struct {
	network *links.Network
	node    *Node

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	wg        sync.WaitGroup
}

// open listens on the addresses that the node announces. A nil gate belongs to a node without a proxy, and
// open does nothing.
func (g *gate) open(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.New("the server ended")
	}
	if err := g.listen(ctx, cmp.Or(g.node.link, g.node.front), g.forClients(g.node.back)); err != nil {
		return err
	}
	if t := g.node.topology; !t.clustered() || t.foreign() {
		return nil
	}
	return g.listen(ctx, Shifted(g.node.front, busOffset), g.forClients(Shifted(g.node.back, busOffset)))
}

// forClients returns the handler for connections of clients and Redis servers. Their source addresses identify them.
func (g *gate) forClients(back string) func(*net.TCPConn) {
	return func(src *net.TCPConn) {
		from, through := g.network.Party(src), g.node.topology.Options.Through
		if through != nil && links.IsClient(from) && g.node.Role != Sentinel {
			through(g.node, src)
			return
		}
		g.serve(src, from, g.node, func(from *net.TCPAddr) (links.Conn, error) { return g.dial(from, back) })
	}
}

// openToPeers listens on the addresses for the peers of a node that is not Redis. It must be called before open,
// because the node answers only when it has found its peers.
func (g *gate) openToPeers(ctx context.Context) error {
	if g == nil {
		return nil
	}
	e := g.node.engine()
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.Proxied {
		return g.listen(ctx, g.node.Proxy(), g.proxy)
	}
	if e.PeerLinks == nil {
		return nil
	}
	for front, back := range e.PeerLinks(g.node) {
		err := g.listen(ctx, front, func(src *net.TCPConn) {
			g.serve(src, g.node.topology.owner(src), g.node, func(from *net.TCPAddr) (links.Conn, error) {
				return g.dialPeer(from, back)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// busyFor is the longest time for which an address of the run may stay in use after its process has ended.
const busyFor = 2 * time.Second

// listen accepts connections and calls serve for each of them.
func (g *gate) listen(ctx context.Context, front string, serve func(*net.TCPConn)) error {
	var l net.Listener
	var err error
	ctx, cancel := context.WithTimeout(ctx, busyFor)
	defer cancel()
	_ = poll(ctx, pollEvery, func() error {
		if l, err = net.Listen("tcp4", front); errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		return nil
	})
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
				continue // the client has disconnected
			}
			g.network.Go(func() { serve(conn.(*net.TCPConn)) })
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

// serve connects a client or peer with a node, and returns when the connection has ended.
func (g *gate) serve(src *net.TCPConn, from links.Party, to *Node, dial func(from *net.TCPAddr) (links.Conn, error)) {
	g.network.Serve(src, links.Link{From: from, To: links.Party(to.Name), Asks: to.asks, Kind: to.kind, Dial: dial})
}

// dialPeer dials a node's port for peers, and retries for linkDialTimeout. The server opens this port only when it
// needs it, and a peer does not soon try again after its connection was closed.
func (g *gate) dialPeer(from *net.TCPAddr, back string) (conn links.Conn, err error) {
	every, late := time.NewTicker(10*time.Millisecond), time.After(linkDialTimeout)
	defer every.Stop()
	for {
		if conn, err = g.dial(from, back); err == nil {
			return conn, nil
		}
		select {
		case <-every.C:
		case <-late:
			return nil, err
		}
	}
}

// dial connects to the node. To the suite's own servers it binds the client's source address, so that the node sees
// it.
func (g *gate) dial(from *net.TCPAddr, back string) (links.Conn, error) {
	t := g.node.topology
	if !t.foreign() {
		d := net.Dialer{Timeout: linkDialTimeout, LocalAddr: &net.TCPAddr{IP: from.IP}, Control: lateBound}
		conn, err := d.Dial("tcp4", back)
		if err != nil {
			return nil, err
		}
		return conn.(*net.TCPConn), nil
	}
	conn, err := net.DialTimeout("tcp", back, foreignDialTimeout)
	if err != nil {
		return nil, err
	}
	config := t.Spec.attached.tls
	if config == nil {
		return conn.(*net.TCPConn), nil
	}
	secured := tlsClient(config, conn, g.node.front)
	err = secured.SetDeadline(time.Now().Add(foreignDialTimeout))
	if err == nil {
		err = secured.Handshake()
	}
	if err == nil {
		err = secured.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}

// clustered tells whether the nodes have a cluster bus.
func (t *Topology) clustered() bool { return len(t.Sites) > 0 && t.Sites[0].Cluster }

// openNetwork makes the proxies' shared part. It fails if the machine has only one loopback address, because source
// addresses identify clients.
func (t *Topology) openNetwork() error {
	switch {
	case !t.Options.Links:
		return nil
	case t.block.prefix == "":
		return errors.New("links tell nodes apart by their loopback addresses and this layout has only one: " +
			"use Linux, or add 127.64.0.0/10 to the loopback interface, and do not ask for one address")
	}
	t.network = links.New(t.block.prefix)
	return nil
}

// Network returns the proxies of the topology; nil if it has none.
func (t *Topology) Network() *links.Network { return t.network }

// sourceAddr returns the address that a client binds; nil = any.
func (s *Site) sourceAddr(source int) net.Addr {
	if source < 1 || s.access.Sources == "" {
		return nil
	}
	return &net.TCPAddr{IP: net.ParseIP(links.SourceIP(s.access.Sources, source))}
}

package topologies

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"hammerlock/topologies/links"
)

// TestProxyKnowsWhoHasHungUp: a server sends bytes to another server and closes the connection. The bytes arrive, and
// the rules between the two servers apply. ZooKeeper servers ask in this way to be called back.
func TestProxyKnowsWhoHasHungUp(t *testing.T) {
	t.Parallel()
	top, listener := twoNodes(t)
	heard := hear(listener)
	say := func(what string) {
		conn := socks(t, top.Nodes[0].Proxy(), netip.MustParseAddrPort(listener.Addr().String()))
		reply := make([]byte, len(socksDone))
		_, err := io.ReadFull(conn, reply)
		if err == nil && !slices.Equal(reply, socksDone) {
			t.Errorf("got %v, want %v", reply, socksDone)
		}
		if err == nil {
			_, err = io.WriteString(conn, what)
		}
		if err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	}
	say("call me back")
	if got := <-heard; got != "call me back" {
		t.Errorf("got %q", got)
	}
	heal := apply(t, top, links.Rule{From: []links.Party{"n1"}, To: []links.Party{"n2"}, Effect: links.Drop})
	said := make(chan struct{})
	go func() {
		defer close(said)
		say("again")
	}()
	select {
	case got := <-heard:
		t.Errorf("through a link that drops everything: %q", got)
	case <-time.After(100 * time.Millisecond):
	}
	heal()
	if got := <-heard; got != "again" {
		t.Errorf("after the heal: got %q", got)
	}
	<-said
}

// twoNodes makes a topology that has only the first node's proxy and the second node's port for peers.
func twoNodes(t *testing.T) (*Topology, net.Listener) {
	t.Helper()
	b, err := claimBlock(false)
	if err != nil {
		t.Fatal(err)
	}
	top := &Topology{block: b, Options: Options{Links: true}}
	if err := top.openNetwork(); err != nil {
		t.Skip(err)
	}
	for i, name := range []string{"n1", "n2"} {
		n := &Node{Name: name, topology: top}
		n.front, n.back = b.node(i)
		top.Nodes = append(top.Nodes, n)
		top.network.Add(b.ip(i), links.Party(name))
	}
	g := &gate{network: top.network, node: top.Nodes[0]}
	if err := g.listen(t.Context(), top.Nodes[0].Proxy(), g.proxy); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", Shifted(top.Nodes[1].back, PeerPort))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.close()
		top.network.Close()
		_ = listener.Close()
		_ = b.release()
	})
	return top, listener
}

// hear returns the bytes of each connection when it is closed.
func hear(listener net.Listener) <-chan string {
	heard := make(chan string, 2)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			said, _ := io.ReadAll(conn)
			heard <- string(said)
			_ = conn.Close()
		}
	}()
	return heard
}

// TestProxyRefusesStrangers: addresses outside the topology cannot be reached.
func TestProxyRefusesStrangers(t *testing.T) {
	t.Parallel()
	client, server := tcpPair(t)
	n := &Node{Name: "n1", topology: &Topology{}}
	n.front, n.back = "127.0.0.1:1", "127.0.0.1:2"
	n.topology.Nodes = []*Node{n}
	go (&gate{node: n}).proxy(server)
	ask(t, client, netip.MustParseAddrPort("127.0.0.2:3"))
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("got an answer, want the end of the connection")
	}
}

// socks asks a proxy for a connection.
func socks(t *testing.T, proxy string, to netip.AddrPort) net.Conn {
	conn, err := net.Dial("tcp4", proxy)
	if err != nil {
		t.Error(err)
		return conn
	}
	ask(t, conn, to)
	return conn
}

func ask(t *testing.T, conn net.Conn, to netip.AddrPort) {
	_, err := conn.Write([]byte{5, 2, 0, 2}) // no authentication, or a user name
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, len(socksOpen)))
	}
	if err == nil {
		_, err = conn.Write(binary.BigEndian.AppendUint16(append(slices.Clone(socksConnect), to.Addr().AsSlice()...),
			to.Port()))
	}
	if err != nil {
		t.Error(err)
	}
}

func tcpPair(t *testing.T) (client net.Conn, server *net.TCPConn) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp4", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), conn.Close() })
	return client, conn.(*net.TCPConn)
}

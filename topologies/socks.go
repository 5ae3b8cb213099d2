package topologies

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"hammerlock/topologies/links"
)

// firstProxy is the last byte of the first SOCKS proxy's address. The addresses of SOCKS proxies follow
// those of clients.
const firstProxy = links.LastSource + 5

// Proxy returns the address of the SOCKS proxy through which a node makes all its connections; empty if there are no
// proxies. Some servers announce the address at which they listen, so no other proxy can stand in front of them. A
// connection to the proxy identifies the node.
func (n *Node) Proxy() string {
	if n.topology.network == nil {
		return ""
	}
	_, port := splitAddr(n.back)
	return net.JoinHostPort(n.topology.block.prefix+strconv.Itoa(firstProxy+slices.Index(n.topology.Nodes, n)), port)
}

// Messages of SOCKS version 5, RFC 1928.
var (
	socksOpen    = []byte{5, 0}                         // no authentication is needed
	socksConnect = []byte{5, 1, 0, 1}                   // connect to the IPv4 address that follows
	socksDone    = []byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0} // success; the address in the reply has no meaning
)

// socksTimeout is the time that a client has to send its request.
const socksTimeout = 5 * time.Second

var errSocks = errors.New("no request of SOCKS 5 to connect to an IPv4 address")

// proxy connects the gate's node to the address that the node asks for.
func (g *gate) proxy(src *net.TCPConn) {
	to, err := socksTarget(src)
	i := slices.IndexFunc(g.node.topology.Nodes, func(n *Node) bool {
		host, _ := splitAddr(n.back)
		return err == nil && host == to.Addr().String()
	})
	if i < 0 {
		links.Abort(src)
		return
	}
	g.serve(src, links.Party(g.node.Name), g.node.topology.Nodes[i], func(from *net.TCPAddr) (links.Conn, error) {
		conn, err := g.dial(from, to.String())
		if err == nil {
			_, err = src.Write(socksDone)
		}
		return conn, err
	})
}

// socksTarget reads the address that a client asks for.
func socksTarget(src *net.TCPConn) (to netip.AddrPort, err error) {
	if err := src.SetDeadline(time.Now().Add(socksTimeout)); err != nil {
		return to, err
	}
	said := make([]byte, 2)
	if _, err := io.ReadFull(src, said); err != nil {
		return to, err
	}
	if _, err := io.CopyN(io.Discard, src, int64(said[1])); err != nil {
		return to, err
	}
	if _, err := src.Write(socksOpen); err != nil {
		return to, err
	}
	said = make([]byte, len(socksConnect)+net.IPv4len+2)
	if _, err := io.ReadFull(src, said); err != nil {
		return to, err
	}
	if !slices.Equal(said[:len(socksConnect)], socksConnect) {
		return to, errSocks
	}
	ip, port := said[len(socksConnect):len(said)-2], said[len(said)-2:]
	return netip.AddrPortFrom(netip.AddrFrom4([net.IPv4len]byte(ip)), binary.BigEndian.Uint16(port)),
		src.SetDeadline(time.Time{})
}

package topologies

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// block is the range of loopback addresses 127.A.B.0/24 that this process owns. The process claims it by listening on
// its last address, so no other run on the machine can claim it too. The claim ends with the process. If only
// 127.0.0.1 can be bound, the block is a range of ports.
type block struct {
	claim  *net.TCPListener
	prefix string // first three bytes of all addresses, with a dot at the end; empty if the block is a range of ports
	ip     func(node int) string
	port   func(node int) (front, back int)
}

// Linux uses the ports from 32768 on for outgoing connections. A cluster node's bus listens at the node's port +
// 10000. So the ports of a block are below 22768.
const (
	claimPort  = 20999
	firstPort  = 21000
	lastPort   = 22600
	portStep   = 50
	maxNodes   = 16
	busOffset  = 10000
	firstFlat  = 21000
	flatBlocks = 40
)

var errNoAddress = errors.New("no free loopback addresses for the nodes")

func claimBlock(flat bool) (*block, error) {
	if flat || !manyLoopbacks() {
		return claimPorts()
	}
	// the first guess depends on the process number, so runs that start together seldom collide
	start := os.Getpid() * 40503
	for i := range 128 * 256 {
		n := (start + i) & 0x7fff
		prefix := fmt.Sprintf("127.%d.%d.", 64+n>>8, n&0xff)
		claim, err := listen(prefix+"254", claimPort)
		if err != nil {
			continue
		}
		b := &block{claim: claim, prefix: prefix, ip: func(node int) string { return prefix + strconv.Itoa(node+1) }}
		for p := firstPort; p <= lastPort; p += portStep {
			b.port = func(int) (int, int) { return p, p + 1 }
			if b.free() {
				return b, nil
			}
		}
		return nil, errors.Join(errNoAddress, claim.Close())
	}
	return nil, errNoAddress
}

func claimPorts() (*block, error) {
	for i := range flatBlocks {
		base := firstFlat + (os.Getpid()+i)%flatBlocks*portStep
		claim, err := listen("127.0.0.1", base)
		if err != nil {
			continue
		}
		b := &block{
			claim: claim,
			ip:    func(int) string { return "127.0.0.1" },
			port:  func(node int) (int, int) { return base + 1 + 2*node, base + 2 + 2*node },
		}
		if b.free() {
			return b, nil
		}
		if err := claim.Close(); err != nil {
			return nil, err
		}
	}
	return nil, errNoAddress
}

// node returns the addresses of node i. Clients and peers use front; the server listens at back.
func (b *block) node(i int) (front, back string) {
	f, p := b.port(i)
	return net.JoinHostPort(b.ip(i), strconv.Itoa(f)), net.JoinHostPort(b.ip(i), strconv.Itoa(p))
}

func (b *block) release() error { return b.claim.Close() }

// free tells whether every port of the block can be bound. It cannot if, for example, another process
// listens on 0.0.0.0.
func (b *block) free() bool {
	for i := range maxNodes {
		front, back := b.port(i)
		for _, port := range []int{front, back, front + busOffset, back + busOffset} {
			fd, err := bind(b.ip(i), port)
			if err != nil || syscall.Close(fd) != nil {
				return false
			}
		}
	}
	return true
}

// bind makes a socket and binds it, which fails if another process listens there. The socket must not listen: a child
// that is forked in this moment inherits it, and would keep the address from the server.
func bind(ip string, port int) (fd int, err error) {
	syscall.ForkLock.RLock()
	fd, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return -1, err
	}
	at := &syscall.SockaddrInet4{Port: port, Addr: [4]byte(net.ParseIP(ip).To4())}
	err = errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), syscall.Bind(fd, at))
	if err != nil {
		return -1, errors.Join(err, syscall.Close(fd))
	}
	return fd, nil
}

func listen(ip string, port int) (*net.TCPListener, error) {
	return net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(ip), Port: port})
}

func manyLoopbacks() bool {
	l, err := listen("127.64.0.253", 0)
	return err == nil && l.Close() == nil
}

package topologies

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// ErrUnreachable marks an error before the command was sent: there was no address, no connection, or no answer to the
// handshake. The command had certainly no effect.
var ErrUnreachable = errors.New("unreachable")

// passing is a redis.Hook that changes nothing.
type passing struct{}

func (passing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (passing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (passing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// dialing marks the errors of making a connection.
type dialing struct{ passing }

func (dialing) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil && !errors.Is(err, ErrUnreachable) {
			err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		return conn, err
	}
}

// dialer makes connections from the client's own source address. If the primary is moved by hand, new connections go to
// the new one, as if its name had been given another address; the old ones stay until they break, or until their node
// answers that it is read-only.
func (s *Site) dialer(o ClientOptions) func(ctx context.Context, network, addr string) (net.Conn, error) {
	if s.via != nil {
		return s.via
	}
	own := &net.Dialer{Timeout: s.dialTimeout(o), LocalAddr: s.sourceAddr(o.Source), Control: lateBound}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if to := s.movedTo(); to != "" {
			addr = to
		}
		d, to, security := own, addr, s.tls
		if s.access.Foreign {
			d, to, security = s.route(own, addr)
		}
		if err := s.line.dial(ctx, d.Timeout); err != nil {
			return nil, err
		}
		conn, err := d.DialContext(ctx, network, to)
		if err != nil {
			return nil, err
		}
		f := &fresh{Conn: conn, traffic: o.Traffic, line: s.line, bounded: s.access.Foreign && !o.passes}
		if security != nil {
			ctx, cancel := context.WithTimeout(ctx, d.Timeout)
			defer cancel()
			if f.Conn, err = secure(ctx, security, conn, addr); err != nil {
				return nil, err
			}
		}
		o.Traffic.add(f)
		return f.checked(), nil
	}
}

// route says how to get to an announced address of servers of others: through the link in front of it, which secures
// the connection by itself, or from any source to where the address is from here.
func (s *Site) route(own *net.Dialer, addr string) (d *net.Dialer, to string, security *tls.Config) {
	if link := s.access.Links[addr]; link != "" {
		return own, link, nil
	}
	return &net.Dialer{Timeout: own.Timeout}, cmp.Or(s.access.Map[addr], addr), s.tls
}

// Dialer connects as the site's own clients do, for a library that makes connections by itself. Links identify them as
// ClientParty(source).
func (s *Site) Dialer(source int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.dialer(ClientOptions{Source: source})
}

// Passage connects as Dialer does, for a proxy that passes on what servers say, or a tap that skips it: whatever they
// announce, no room is made for it.
func (s *Site) Passage(source int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.dialer(ClientOptions{Source: source, passes: true})
}

// movedTo is where an operator has moved the primary, for clients of all processes; empty if it was not moved.
func (s *Site) movedTo() string {
	if n := s.byHand.Load(); n != nil {
		return n.front
	}
	if s.access.Moved == "" {
		return ""
	}
	text, err := os.ReadFile(s.access.Moved)
	if err != nil {
		return "" // it was never moved
	}
	return string(text)
}

// publish writes the primary's address where clients of other processes look for it.
func (s *Site) publish(primary *Node) error {
	aside := s.access.Moved + ".new"
	if err := os.WriteFile(aside, []byte(primary.front), 0o600); err != nil {
		return err
	}
	return os.Rename(aside, s.access.Moved)
}

// handshake is what the client library sends on a new connection.
var handshake = []string{"auth", "hello", "client", "select", "readonly"}

// fresh is a connection that marks the errors before the first command of its user: with a link that holds back, or a
// stopped server, connecting succeeds and the handshake fails. It counts what is sent.
type fresh struct {
	net.Conn
	used    atomic.Bool
	aside   bool         // the library keeps it for itself
	trips   atomic.Int64 // round trips
	traffic *Traffic     // what they are summed up in; nil if in nothing
	line    *Line        // that it goes over
	mute    atomic.Bool  // it was used while that was cut
	bounded bool         // it leads to a server of others, and a library makes room for what answers announce
	answer  bound
}

func (f *fresh) Write(b []byte) (int, error) {
	f.count(b)
	if f.muted() {
		return len(b), nil
	}
	n, err := f.Conn.Write(b)
	return n, f.mark(err)
}

func (f *fresh) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	for err == nil && f.muted() {
		n, err = f.Conn.Read(b)
	}
	if f.bounded {
		if much := f.answer.take(b[:n]); much != nil {
			return 0, f.mark(much)
		}
	}
	return n, f.mark(err)
}

// muted tells whether nothing comes through.
func (f *fresh) muted() bool {
	if f.line.isCut() {
		f.mute.Store(true)
	}
	return f.mute.Load()
}

// Close closes the connection.
func (f *fresh) Close() error {
	f.traffic.remove(f)
	return f.Conn.Close()
}

// checked is a connection that the library can look at before it uses it again: it must see the socket for that.
type checked struct {
	*fresh
	syscall.Conn
}

// checked is the connection as the library sees it.
func (f *fresh) checked() net.Conn {
	if tcp, ok := f.Conn.(*net.TCPConn); ok {
		return checked{f, tcp}
	}
	return f
}

func (f *fresh) mark(err error) error {
	if err == nil || f.used.Load() {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

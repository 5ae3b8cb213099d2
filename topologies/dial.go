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

// ErrUnreachable marks an error that came before the command was sent: there was no address, no connection, or no
// answer to the handshake. The command certainly had no effect.
var ErrUnreachable = errors.New("unreachable")

// passing is a redis.Hook that changes nothing.
type passing struct{}

func (passing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (passing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (passing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// dialing marks the errors of dialling as ErrUnreachable.
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

// dialer binds the client's own source address. When an operator moves the primary, new connections go to the new one,
// as if its host name now had another address. Old connections stay until they break or until their node answers that
// it is read-only.
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

// route returns how to reach a server of others that is announced by an address: through its link, which also does the
// TLS, or at the address that --map names.
func (s *Site) route(own *net.Dialer, addr string) (d *net.Dialer, to string, security *tls.Config) {
	if link := s.access.Links[addr]; link != "" {
		return own, link, nil
	}
	return &net.Dialer{Timeout: own.Timeout}, cmp.Or(s.access.Map[addr], addr), s.tls
}

// Dialer connects as the site's own clients do, for a library that takes a dial function. Links identify its
// connections as ClientParty(source).
func (s *Site) Dialer(source int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.dialer(ClientOptions{Source: source})
}

// Passage connects as Dialer does, for a proxy or a tap. It does not bound the size of answers, since they are passed
// on or skipped.
func (s *Site) Passage(source int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.dialer(ClientOptions{Source: source, passes: true})
}

// movedTo is the address to which an operator has moved the primary, for clients of all processes; empty if it was not
// moved.
func (s *Site) movedTo() string {
	if n := s.byHand.Load(); n != nil {
		return n.front
	}
	if s.access.Moved == "" {
		return ""
	}
	text, err := os.ReadFile(s.access.Moved)
	if err != nil {
		return "" // the primary was never moved
	}
	return string(text)
}

// publish writes the primary's address to the file that clients of other processes read.
func (s *Site) publish(primary *Node) error {
	aside := s.access.Moved + ".new"
	if err := os.WriteFile(aside, []byte(primary.front), 0o600); err != nil {
		return err
	}
	return os.Rename(aside, s.access.Moved)
}

// handshake lists the commands that the client library sends on a new connection.
var handshake = []string{"auth", "hello", "client", "select", "readonly"}

// fresh is a connection that marks errors before the user's first command as ErrUnreachable: with a slow link or a
// paused server, connecting succeeds and the handshake fails. It also counts what is sent.
type fresh struct {
	net.Conn
	used    atomic.Bool
	aside   bool         // a connection that the library uses for its own purposes
	trips   atomic.Int64 // round trips
	traffic *Traffic     // adds up the counts of all connections; nil = not counted
	line    *Line        // the line on which the connection depends
	mute    atomic.Bool  // the connection was used while the line was cut
	bounded bool         // the server is one of others, so announced lengths are bounded
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

// muted tells whether the connection carries nothing.
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

// checked exposes the socket, so that the library can check a pooled connection before it is used again.
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

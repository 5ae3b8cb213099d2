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

// ErrUnreachable marks an error that occurred before the command was sent, such as no address, no connection or a
// failed handshake. The command certainly had no effect.
var ErrUnreachable = errors.New("unreachable")

type passing struct{}

func (passing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (passing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (passing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// dialing is a client hook that marks dial errors as ErrUnreachable.
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

// dialer returns the dial function of a client, which binds the client's source address. After an operator has moved
// the primary, it dials the new primary, as if a host name had a new address. Open connections remain until they
// break or their node replies that it is read-only.
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

// route returns how to dial an attached server. If the server has a proxy, it dials the proxy, which does the TLS.
// Otherwise it dials the address that --map gives for the announced address.
func (s *Site) route(own *net.Dialer, addr string) (d *net.Dialer, to string, security *tls.Config) {
	if link := s.access.Links[addr]; link != "" {
		return own, link, nil
	}
	return &net.Dialer{Timeout: own.Timeout}, cmp.Or(s.access.Map[addr], addr), s.tls
}

// Dialer returns the dial function of the site's clients, for other client libraries. Proxies know its connections as
// ClientParty(source).
func (s *Site) Dialer(source int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.dialer(ClientOptions{Source: source})
}

// Passage returns a dial function like Dialer's, for a proxy or a tap. It does not limit the length of replies,
// because they are forwarded or skipped.
func (s *Site) Passage(source int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.dialer(ClientOptions{Source: source, passes: true})
}

// movedTo returns the address to which an operator has moved the primary; empty if it was not moved. It works in all
// processes of a run.
func (s *Site) movedTo() string {
	if n := s.byHand.Load(); n != nil {
		return n.front
	}
	if s.access.Moved == "" {
		return ""
	}
	text, err := os.ReadFile(s.access.Moved)
	if err != nil {
		return "" // without the file, the primary was not moved
	}
	return string(text)
}

// publish writes the primary's address to the file that clients in other processes read.
func (s *Site) publish(primary *Node) error {
	aside := s.access.Moved + ".new"
	if err := os.WriteFile(aside, []byte(primary.front), 0o600); err != nil {
		return err
	}
	return os.Rename(aside, s.access.Moved)
}

// handshake lists the commands that the client library sends first on each connection.
var handshake = []string{"auth", "hello", "client", "select", "readonly"}

// fresh is a connection that marks errors before the user's first command as ErrUnreachable. Such errors
// occur if a proxy is slow or a server is paused: the connection is made, and then the handshake fails. A
// fresh also counts commands.
type fresh struct {
	net.Conn
	used    atomic.Bool
	aside   bool         // the library uses the connection for its own requests, such as to sentinels
	trips   atomic.Int64 // round trips
	traffic *Traffic     // counts the round trips of all connections of the client; may be nil
	line    *Line        // simulated network cable of this process
	mute    atomic.Bool  // the connection was used while the cable was unplugged, so it stays dead
	bounded bool         // the server is attached, so the length of its replies is limited
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

// muted tells whether the connection is dead, because it was used while the simulated cable was unplugged.
func (f *fresh) muted() bool {
	if f.line.isCut() {
		f.mute.Store(true)
	}
	return f.mute.Load()
}

func (f *fresh) Close() error {
	f.traffic.remove(f)
	return f.Conn.Close()
}

// checked is a fresh connection that also gives access to its socket (syscall.Conn). With the socket, the library
// checks a pooled connection before it uses it again.
type checked struct {
	*fresh
	syscall.Conn
}

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

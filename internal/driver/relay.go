package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"hammerlock/topologies"
)

// reach returns how the program reaches a site. The program connects to a relay, which connects as the suite's
// clients do, in four cases. (1) The servers are behind links for faults or mapped addresses. (2) Proxies identify
// processes by their source addresses. (3) An operator moves the primary. (4) Attached servers use TLS. For sentinels
// and clusters there is no relay, because they announce addresses that lead past it.
func (p *Process) reach(ctx context.Context, a topologies.Access, source int) (s site, err error) {
	s = site{User: a.User, Password: a.Password, DB: a.DB, Master: a.Master, Cluster: a.Cluster, Addrs: a.Addrs}
	plain, elsewhere := !a.Cluster && a.Master == "", len(a.Links)+len(a.Map) > 0
	switch {
	case !plain && elsewhere:
		return s, errors.New("sentinels and clusters of others would lead a program past --map and " +
			"past the links of faults")
	case plain && (elsewhere || a.Sources != "" || a.Moved != "" || a.TLS != nil):
		r, err := openRelay(ctx, a.Addrs[0], a.Site().Passage(source))
		if err != nil {
			return s, err
		}
		p.relays = append(p.relays, r)
		s.Addrs = []string{r.listener.Addr().String()}
	case a.TLS != nil:
		s.TLS = &security{string(a.TLS.CA), string(a.TLS.Cert), string(a.TLS.Key), a.TLS.ServerName}
	}
	if a.Master != "" {
		s.SentinelUser, s.SentinelPassword = a.Site().SentinelLogin()
	}
	p.tail.secret(s.Password)
	p.tail.secret(s.SentinelPassword)
	var port string
	if s.Host, port, err = net.SplitHostPort(s.Addrs[0]); err != nil {
		return s, fmt.Errorf("address of site %s: %w", a.Name, err)
	}
	s.Port, err = strconv.Atoi(port)
	return s, err
}

// relay forwards connections of the program to a site.
type relay struct {
	listener net.Listener
	to       string
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	wg       sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

func openRelay(ctx context.Context, to string,
	dial func(ctx context.Context, network, addr string) (net.Conn, error)) (*relay, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("relay to %s: %w", to, err)
	}
	r := &relay{listener: l, to: to, dial: dial, conns: map[net.Conn]struct{}{}}
	r.wg.Go(func() { r.serve(context.WithoutCancel(ctx)) })
	return r, nil
}

func (r *relay) serve(ctx context.Context) {
	for {
		conn, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			r.wg.Go(func() { r.carry(ctx, conn.(*net.TCPConn)) })
		}
	}
}

// carry forwards one connection. If the site cannot be reached, the connection is reset, so that the program sees an
// error as it would without a relay.
func (r *relay) carry(ctx context.Context, near *net.TCPConn) {
	defer r.forget(near)
	far, err := r.dial(ctx, "tcp4", r.to)
	if err != nil || !r.keep(near, far) {
		_ = near.SetLinger(0)
		return
	}
	defer r.forget(far)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(near, far)
		_ = near.CloseWrite() // the end of one side ends the other side, too
	})
	_, _ = io.Copy(far, near)
	_ = far.Close()
	back.Wait()
}

// keep adds connections to those that Close will break. It returns false if the relay is closed already.
func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		r.conns[c] = struct{}{}
	}
	return !r.closed
}

func (r *relay) forget(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

// Close breaks every connection.
func (r *relay) Close() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
	return err
}

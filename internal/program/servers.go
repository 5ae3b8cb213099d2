package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/wire"
	"hammerlock/topologies"
)

// server is a server that is watched, through a proxy or by its replication stream or both.
type server struct {
	topologies.Access
	node  *topologies.Node // node of the topology, if the suite has started the server; nil otherwise
	proxy *wire.Proxy
	lost  time.Duration // when the reading of its stream ended; 0 = it has not
	up    atomic.Bool   // its replication stream is being read
}

// dial returns a function that connects to the server directly, without the proxy.
func (x *server) dial() wire.Dial {
	d := x.Site().Passage(0)
	return func(ctx context.Context) (net.Conn, error) { return d(ctx, "tcp", x.Addrs[0]) }
}

// addr returns the host and port to which clients connect.
func (x *server) addr() string {
	if x.node != nil {
		return x.node.Addr()
	}
	return x.proxy.Addr()
}

// address returns the URL that a program can use to connect.
func (x *server) address() string {
	u := url.URL{Scheme: "redis", Host: x.addr()}
	if x.Password != "" {
		u.User = url.UserPassword(x.User, x.Password)
	}
	if x.DB != 0 {
		u.Path = "/" + strconv.Itoa(x.DB)
	}
	return u.String()
}

// find fills s.servers. They are the attached servers, and those nodes with data that the suite has started.
func (s *Source) find() {
	for _, a := range s.spec.Endpoints {
		s.servers = append(s.servers, &server{Access: a})
	}
	if !s.spec.Own {
		return
	}
	for _, site := range s.top.Sites {
		for _, n := range site.Nodes {
			s.servers = append(s.servers,
				&server{Access: topologies.Access{Addrs: []string{n.Back()}, Password: n.Password()}, node: n})
		}
	}
}

// sites returns the number of sites, which are independent servers or groups of servers for one lock.
func (s *Source) sites() int {
	if s.spec.Own {
		return len(s.top.Sites)
	}
	return len(s.servers)
}

// Through connects a client of a node to the proxy of that node. It returns when the connection has ended. If the
// proxy is not yet open, it closes the connection.
func (s *Source) Through(ctx context.Context, n *topologies.Node, client net.Conn) {
	s.mu.Lock()
	p := s.proxies[n]
	s.mu.Unlock()
	if p == nil { // the proxy is not yet open
		_ = client.Close()
		return
	}
	p.Serve(ctx, client)
}

// listen starts the reading of replication streams, and opens the proxies.
func (s *Source) listen(ctx context.Context) error {
	var unreachable error
	for i, x := range s.servers {
		c := x.Site().Client(topologies.ClientOptions{})
		if err := s.part(ctx, x, c); err != nil {
			unreachable = errors.Join(unreachable, err)
		} else if err := s.compare(ctx, i, c); err != nil {
			err = topologies.Unreachable(x.Addrs[0], x.Addrs[0], x.TLS, err)
			unreachable = errors.Join(unreachable, x.grantable(err))
		}
		_ = c.Close()
	}
	if unreachable != nil {
		return unreachable
	}
	for i, x := range s.servers {
		if err := s.tap(ctx, i, x); err != nil {
			return err
		}
		if s.spec.TapOnly {
			continue
		}
		if err := s.proxy(ctx, i, x); err != nil {
			return err
		}
	}
	for _, why := range s.deaf {
		s.spec.Say("without effects: " + why)
	}
	return nil
}

// tap starts to read a server's replication stream. If that is turned off or the server refuses, the reason is noted.
// If only streams are to be read, a refusal is an error.
func (s *Source) tap(ctx context.Context, i int, x *server) error {
	name := x.Addrs[0]
	if s.spec.Untapped {
		s.deaf = append(s.deaf, name+" has none (--tap off)")
		return nil
	}
	tap, err := s.run.Tap(ctx, wire.Source{Server: i, Dial: x.dial(), User: x.User, Password: x.Password})
	switch {
	case err == nil:
		s.taps = append(s.taps, tap)
	case s.spec.TapOnly:
		return fmt.Errorf("%s: %w", name, x.grantable(err))
	default:
		s.deaf = append(s.deaf, fmt.Sprintf("%s refuses a tap (%v)", name, x.grantable(err)))
	}
	return nil
}

// grantable completes an error about missing rights. It adds the command that grants what the reading of a stream
// needs.
func (x *server) grantable(err error) error {
	if strings.Contains(err.Error(), "NOPERM ") { // such an error has no type, only the server's text
		return fmt.Errorf("%w; this suffices: ACL SETUSER %s +psync +replconf +info +time", err,
			cmp.Or(x.User, "default"))
	}
	return err
}

// proxy opens the proxy in front of a server.
func (s *Source) proxy(ctx context.Context, i int, x *server) (err error) {
	e := wire.Endpoint{Server: i, Dial: x.dial(), Break: s.breaks}
	if i == 0 {
		e.Listen = s.spec.Listen
	}
	if x.node == nil {
		e.Listen = cmp.Or(e.Listen, "127.0.0.1:0")
	}
	if x.proxy, err = s.run.Listen(context.WithoutCancel(ctx), e); err != nil {
		return err
	}
	s.mu.Lock()
	s.proxies[x.node] = x.proxy
	s.mu.Unlock()
	at := x.addr()
	if e.Listen != "" { // the proxy has its own address, even in front of a node that the suite has started
		at = x.proxy.Addr()
	}
	place := fmt.Sprintf("%s is at %s", x.Addrs[0], at)
	s.places = append(s.places, place)
	s.spec.Say(place)
	return nil
}

// compare measures how far a server's clock is ahead of the suite's. Only replication streams have times of that
// clock. So without streams, it only checks that the server answers.
func (s *Source) compare(ctx context.Context, i int, c redis.UniversalClient) error {
	if s.spec.Untapped {
		if err := c.Ping(ctx).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
			return err
		}
		return nil
	}
	least, most := -time.Duration(history.Forever), time.Duration(history.Forever)
	for range 5 {
		before := time.Now()
		at, err := c.Time(ctx).Result()
		if err != nil {
			return err
		}
		// allow for a microsecond, the resolution of the server's time
		least, most = max(least, at.Sub(time.Now().Round(0))-time.Microsecond),
			min(most, at.Sub(before.Round(0))+time.Microsecond)
	}
	s.reader.Clock(i, least, most)
	return nil
}

// part warns if an attached server belongs to a cluster or a group of replicas, and so shows only a part of the
// traffic. Clients may learn the addresses of the other servers, and connect to these without a proxy. A sentinel is an
// error, because it has no locks.
func (s *Source) part(ctx context.Context, x *server, c redis.UniversalClient) error {
	info, _ := c.Info(ctx).Result() // an error is ignored: the server may refuse INFO
	why, cluster := "", strings.Contains(info, "redis_mode:cluster")
	switch {
	case x.node != nil:
	case strings.Contains(info, "redis_mode:sentinel"):
		return fmt.Errorf("%s is a sentinel and has no locks: name the primary; "+
			"or --topology sentinel starts sentinels and servers, all behind proxies", x.Addrs[0])
	case cluster && s.spec.TapOnly:
		text, _ := c.ClusterInfo(ctx).Result() // an error is ignored: the user may lack the right
		if n := cmp.Or(field(text, "cluster_size"), "several"); n != "1" {
			why = "it is one of " + n + " nodes of a cluster that have slots: only the locks in its own are seen"
		}
	case cluster:
		why = "it is a node of a cluster, whose answers lead programs to addresses without a proxy: " +
			"what they do there is not seen; --topology cluster starts one with a proxy for each node, " +
			"--tap-only reads one node's stream"
	case strings.Contains(info, "role:slave") && !s.spec.TapOnly:
		why = "it is a replica, which grants no locks: name its primary, " +
			net.JoinHostPort(field(info, "master_host"), field(info, "master_port"))
	}
	if why != "" {
		s.spec.Say(x.Addrs[0] + ": " + why)
		s.Note(x.Addrs[0] + ": " + why)
	}
	return nil
}

// field returns the value of a field in the reply to INFO or CLUSTER INFO; empty if the field is missing.
func field(info, name string) string {
	_, rest, _ := strings.Cut("\n"+info, "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

// Variables returns the environment variables that tell the program how to connect.
func (s *Source) Variables() (env []string) {
	var urls, nodes, sentinels []string
	for _, x := range s.servers {
		urls, nodes = append(urls, x.address()), append(nodes, x.addr())
	}
	master := ""
	if own := s.top.Sites; len(own) > 0 && own[0].Master != "" {
		master, sentinels = own[0].Master, own[0].Addrs()
	}
	host, port, _ := net.SplitHostPort(nodes[0])
	names := map[string]string{"url": urls[0], "urls": strings.Join(urls, ","), "nodes": strings.Join(nodes, ","),
		"password":  s.servers[0].Password,
		"sentinels": strings.Join(sentinels, ","), "master": master}
	fill := []string{"{host}", host, "{port}", port}
	for name, value := range names {
		fill = append(fill, "{"+name+"}", value)
		env = append(env, "REDIS_"+strings.ToUpper(name)+"="+value)
	}
	for _, v := range s.spec.WholeEnv {
		env = append(env, strings.NewReplacer(fill...).Replace(v))
	}
	return env
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/wire"
	"hammerlock/topologies"
)

// watched is a server behind a proxy.
type watched struct {
	topologies.Access
	node  *topologies.Node // of ours
	proxy *wire.Proxy
}

// dial connects to a server without a proxy.
func (s *watched) dial() wire.Dial {
	d := s.Site().Passage(0)
	return func(ctx context.Context) (net.Conn, error) { return d(ctx, "tcp", s.Addrs[0]) }
}

// sites are the independent places that a lock stands on.
func (w *watch) sites() int {
	if w.o.topology.Name != "" {
		return len(w.top.Sites)
	}
	return len(w.servers)
}

// open finds the servers, or starts them.
func (w *watch) open(stop context.Context) (err error) {
	own, options := topologies.Outside, topologies.Options{}
	if w.o.topology.Name != "" {
		own = w.o.topology
		options = topologies.Options{Links: true,
			Through: func(n *topologies.Node, client net.Conn) { w.through(stop, n, client) }}
		if options.Server, err = topologies.FindServer(stop, w.o.plan.RedisServer); err != nil {
			return err
		}
	}
	if w.top, err = own.Up(stop, options); err != nil {
		return err
	}
	for _, s := range w.top.Sites {
		for _, n := range s.Nodes {
			w.servers = append(w.servers,
				&watched{Access: topologies.Access{Addrs: []string{n.Back()}, Password: n.Password()}, node: n})
		}
	}
	if len(w.servers) > 0 {
		return nil
	}
	for _, e := range w.o.found.Endpoints {
		user, password := e.Login.Parts()
		a := topologies.Access{Foreign: true, Addrs: []string{e.Addr}, User: user, Password: password, DB: e.DB,
			TLS: w.o.found.TLS}
		w.servers = append(w.servers, &watched{Access: a})
	}
	return nil
}

// through carries a client's connection to a node of ours through its proxy.
func (w *watch) through(stop context.Context, n *topologies.Node, client net.Conn) {
	w.mu.Lock()
	p := w.proxies[n]
	w.mu.Unlock()
	if p == nil { // it is not open yet
		_ = client.Close()
		return
	}
	p.Serve(context.WithoutCancel(stop), client)
}

// addr is where clients find a server.
func (s *watched) addr() string {
	if s.node != nil {
		return s.node.Addr()
	}
	return s.proxy.Addr()
}

// listen opens taps and proxies.
func (w *watch) listen(stop context.Context) error {
	var unreachable error
	for i, s := range w.servers {
		c := s.Site().Client(topologies.ClientOptions{})
		if err := w.leadsPast(stop, s, c); err != nil {
			unreachable = errors.Join(unreachable, err)
		} else if err := w.compare(stop, i, c); err != nil {
			unreachable = errors.Join(unreachable, topologies.Unreachable(s.Addrs[0], s.Addrs[0], s.TLS, err))
		}
		_ = c.Close()
	}
	if unreachable != nil {
		return unreachable
	}
	breaks := w.breaking(context.WithoutCancel(stop))
	for i, s := range w.servers {
		name := s.Addrs[0]
		if !w.o.plan.Tap {
			w.deaf = append(w.deaf, name+" has none (--tap off)")
		} else if tap, err := w.wire.Tap(stop,
			wire.Source{Server: i, Dial: s.dial(), User: s.User, Password: s.Password}); err == nil {
			w.taps = append(w.taps, tap)
		} else if w.o.tapOnly {
			return fmt.Errorf("%s: %w", name, err)
		} else {
			w.deaf = append(w.deaf, fmt.Sprintf("%s refuses a tap (%v)", name, err))
		}
		if w.o.tapOnly {
			continue
		}
		e := wire.Endpoint{Server: i, Dial: s.dial(), Break: breaks}
		if i == 0 {
			e.Listen = w.o.listen
		}
		if s.node == nil {
			e.Listen = cmp.Or(e.Listen, "127.0.0.1:0")
		}
		p, err := w.wire.Listen(context.WithoutCancel(stop), e)
		if err != nil {
			return err
		}
		s.proxy = p
		w.mu.Lock()
		w.proxies[s.node] = p
		w.mu.Unlock()
		w.say(w.o.options, "%s is at %s", name, cmp.Or(e.Listen, s.addr()))
	}
	for _, why := range w.deaf {
		w.say(w.o.options, "without effects: %s", why)
	}
	return nil
}

// compare finds by how much a server's clock is ahead of ours.
func (w *watch) compare(stop context.Context, i int, c redis.UniversalClient) error {
	least, most := -time.Duration(history.Forever), time.Duration(history.Forever)
	for range 5 {
		before := time.Now()
		at, err := c.Time(stop).Result()
		if err != nil {
			return err
		}
		// A server's clock has microseconds.
		least, most = max(least, at.Sub(time.Now().Round(0))-time.Microsecond),
			min(most, at.Sub(before.Round(0))+time.Microsecond)
	}
	w.reader.Clock(i, least, most)
	return nil
}

// leadsPast looks for servers of others whose answers lead programs to addresses that are not the proxy's.
func (w *watch) leadsPast(stop context.Context, s *watched, c redis.UniversalClient) error {
	info, _ := c.Info(stop, "server").Result() // where that is hidden, nothing is known
	switch {
	case s.node != nil:
	case strings.Contains(info, "redis_mode:sentinel"):
		return fmt.Errorf("%s is a sentinel and has no locks: name the primary; "+
			"or --topology sentinel starts sentinels and servers, all behind proxies", s.Addrs[0])
	case strings.Contains(info, "redis_mode:cluster") && !w.o.tapOnly:
		const why = "it is a node of a cluster, whose answers lead programs to addresses without a proxy: what they do there is not seen; " +
			"--topology cluster starts one with a proxy for each node, --tap-only reads one node's stream"
		w.say(w.o.options, "%s: %s", s.Addrs[0], why)
		w.note(s.Addrs[0], errors.New(why))
	}
	return nil
}

// address is where a program finds a server.
func (s *watched) address() string {
	u := url.URL{Scheme: "redis", Host: s.addr()}
	if s.Password != "" {
		u.User = url.UserPassword(s.User, s.Password)
	}
	if s.DB != 0 {
		u.Path = "/" + strconv.Itoa(s.DB)
	}
	return u.String()
}

// variables are those that the program gets besides its environment.
func (w *watch) variables() (env []string) {
	var urls, nodes, sentinels []string
	for _, s := range w.servers {
		urls, nodes = append(urls, s.address()), append(nodes, s.addr())
	}
	master := ""
	if own := w.top.Sites; len(own) > 0 && own[0].Master != "" {
		master, sentinels = own[0].Master, own[0].Addrs()
	}
	host, port, _ := net.SplitHostPort(nodes[0])
	names := map[string]string{"url": urls[0], "urls": strings.Join(urls, ","), "nodes": strings.Join(nodes, ","),
		"password":  w.servers[0].Password,
		"sentinels": strings.Join(sentinels, ","), "master": master}
	fill := []string{"{host}", host, "{port}", port}
	for name, value := range names {
		fill = append(fill, "{"+name+"}", value)
		env = append(env, "REDIS_"+strings.ToUpper(name)+"="+value)
	}
	for _, v := range w.o.plan.Attach.Secrets.Whole("env", w.o.env) {
		env = append(env, strings.NewReplacer(fill...).Replace(v))
	}
	return env
}

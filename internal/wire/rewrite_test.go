package wire

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

func TestRewrite(t *testing.T) {
	a := &Addresses{}
	a.Add("10.0.0.1:6379", "127.0.0.1:7001")
	a.Add("10.0.0.2:6380", "127.0.0.1:17002")
	bulk := func(texts ...string) string { return encode(strings.Join(texts, " ")) }
	for name, c := range map[string]struct {
		to       direction
		in, want string
	}{
		"MOVED":              {toProxy, "-MOVED 3999 10.0.0.2:6380\r\n", "-MOVED 3999 127.0.0.1:17002\r\n"},
		"ASK":                {toProxy, "-ASK 3999 10.0.0.1:6379\r\n", "-ASK 3999 127.0.0.1:7001\r\n"},
		"MOVED without host": {toProxy, "-MOVED 3999 :6379\r\n", "-MOVED 3999 127.0.0.1:7001\r\n"},
		"MOVED to others":    {toProxy, "-MOVED 3999 10.0.0.9:6379\r\n", ""},
		"other errors":       {toProxy, "-ERR no such key\r\n", ""},
		"SLOTS": {toProxy, "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$8\r\n10.0.0.1\r\n:6379\r\n$2\r\nid\r\n",
			"*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:7001\r\n$2\r\nid\r\n"},
		"SLOTS with null": {toProxy, "*3\r\n:0\r\n:16383\r\n*3\r\n$-1\r\n:6379\r\n$2\r\nid\r\n", "*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:7001\r\n$2\r\nid\r\n"},
		"SLOTS with RESP3's null": {toProxy, "*3\r\n:0\r\n:16383\r\n*3\r\n_\r\n:6379\r\n$2\r\nid\r\n",
			"*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:7001\r\n$2\r\nid\r\n"},
		"SHARDS": {toProxy, "%4\r\n$2\r\nid\r\n$1\r\nx\r\n$4\r\nport\r\n:6380\r\n$2\r\nip\r\n$8\r\n10.0.0.2\r\n$8\r\nendpoint\r\n$8\r\n10.0.0.2\r\n",
			"%4\r\n$2\r\nid\r\n$1\r\nx\r\n$4\r\nport\r\n:17002\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$8\r\nendpoint\r\n$9\r\n127.0.0.1\r\n"},
		"NODES": {toProxy, "$62\r\na 10.0.0.1:6379@16379,host master - 0 1 2 connected 0-16383\nb\r\n",
			"$62\r\na 127.0.0.1:7001@16379,host master - 0 1 2 connected 0-16383\nb\r\n"},
		"NODES in RESP3":   {toProxy, "=38\r\ntxt:a 10.0.0.1:6379@16379 myself,master\r\n", "=38\r\ntxt:a 127.0.0.1:7001@16379 myself,master\r\n"},
		"get-master-addr":  {toProxy, bulk("10.0.0.1", "6379"), bulk("127.0.0.1", "7001")},
		"replicas":         {toProxy, bulk("name", "10.0.0.2:6380", "ip", "10.0.0.2", "port", "6380", "master-host", "10.0.0.1", "master-port", "6379"), bulk("name", "127.0.0.1:17002", "ip", "127.0.0.1", "port", "17002", "master-host", "127.0.0.1", "master-port", "7001")},
		"+switch-master":   {toProxy, "*1\r\n$36\r\nmymaster 10.0.0.1 6379 10.0.0.2 6380\r\n", "*1\r\n$39\r\nmymaster 127.0.0.1 7001 127.0.0.1 17002\r\n"},
		"+slave":           {toProxy, "+slave 10.0.0.2:6380 10.0.0.2 6380 @ m 10.0.0.1 6379\r\n", "+slave 127.0.0.1:17002 127.0.0.1 17002 @ m 127.0.0.1 7001\r\n"},
		"REPLICAOF":        {toServer, bulk("REPLICAOF", "127.0.0.1", "7001"), bulk("REPLICAOF", "10.0.0.1", "6379")},
		"MIGRATE, inline":  {toServer, "migrate 127.0.0.1 17002 k 0 100\r\n", "migrate 10.0.0.2 6380 k 0 100\r\n"},
		"SENTINEL MASTERS": {toServer, bulk("SENTINEL", "MASTERS"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.in[0] == '$' || c.in[0] == '=' { // the lengths are the test's to count
				c.in, c.want = counted(c.in), counted(c.want)
			}
			got, _ := a.rewrite([]byte(c.in), c.to, "10.0.0.1:6379")
			if string(got) != c.want {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
	if _, strange := a.rewrite([]byte("-MOVED 1 10.0.0.8:6379\r\n"), toProxy, ""); !slices.Equal(strange, []string{"10.0.0.8:6379"}) {
		t.Errorf("strange: %v", strange)
	}
	if _, strange := a.rewrite([]byte("-MOVED 1 10.0.0.8:6379\r\n"), toProxy, ""); len(strange) > 0 {
		t.Errorf("strange again: %v", strange)
	}
}

// counted puts the right length in front of a string.
func counted(s string) string {
	_, text, _ := strings.Cut(s, "\r\n")
	return fmt.Sprintf("%c%d\r\n%s", s[0], len(text)-2, text)
}

// inFront puts a proxy in front of every node of a topology.
func inFront(t *testing.T, kind string) (*topologies.Topology, *record, map[string]*Proxy) {
	t.Helper()
	top, sink := testbed.Up(t, kind, topologies.Options{}), &record{}
	run := &Run{Clock: history.NewOrderedClock(0), Sink: sink, Addresses: &Addresses{}}
	proxies := map[string]*Proxy{}
	for i, n := range top.Nodes {
		p := listen(t, run, Endpoint{Server: i, Listen: "127.0.0.1:0", Dial: Dialer(n.Addr(), nil), Address: n.Addr()})
		run.Addresses.Add(n.Addr(), p.Addr())
		proxies[n.Addr()] = p
	}
	return top, sink, proxies
}

// onlyProxies is a dialer that refuses to go round the proxies.
func onlyProxies(t *testing.T, proxies map[string]*Proxy) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		for _, p := range proxies {
			if p.Addr() == addr {
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}
		}
		t.Errorf("the client goes to %s, which is no proxy", addr)
		return nil, net.ErrClosed
	}
}

func TestClusterBehindProxies(t *testing.T) {
	t.Parallel()
	top, sink, proxies := inFront(t, "cluster")
	site := top.Sites[0]
	for _, protocol := range []int{2, 3} {
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{proxies[top.Nodes[0].Addr()].Addr()}, Password: site.Password(),
			Protocol: protocol, Dialer: onlyProxies(t, proxies)})
		for i := range 30 {
			if err := c.Set(t.Context(), fmt.Sprint("k", i), i, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		raw := client(t, redis.Options{Addr: proxies[top.Nodes[0].Addr()].Addr(), Password: site.Password(), Protocol: protocol})
		for _, question := range []string{"SLOTS", "SHARDS", "NODES"} {
			answer := fmt.Sprintf("%q", raw.Do(t.Context(), "CLUSTER", question).Val())
			for addr := range proxies {
				if host, _, _ := net.SplitHostPort(addr); strings.Contains(answer, `"`+host+`"`) || strings.Contains(answer, addr+"@") {
					t.Errorf("CLUSTER %s tells of %s: %s", question, addr, answer)
				}
			}
		}
		moved := 0
		for i := range 30 {
			if err := raw.Get(t.Context(), fmt.Sprint("k", i)).Err(); err != nil {
				moved++
				if !strings.HasPrefix(err.Error(), "MOVED") || !strings.Contains(err.Error(), " 127.0.0.1:") {
					t.Error(err)
				}
			}
		}
		if moved == 0 {
			t.Error("no redirect was met")
		}
		_ = c.Close()
	}
	servers := map[int]bool{}
	sink.mu.Lock()
	for _, r := range sink.requests {
		if r.Args[0] == "SET" && r.Reply.Kind == Simple {
			servers[r.Server] = true
		}
	}
	sink.mu.Unlock()
	if len(servers) != 3 {
		t.Errorf("keys were set at %v", servers)
	}
	if found := append(sink.kinds(NotKept), sink.kinds(PassedThrough)...); len(found) > 0 {
		t.Errorf("not understood: %v", found)
	}
}

func TestSentinelBehindProxies(t *testing.T) {
	t.Parallel()
	top, sink, proxies := inFront(t, "sentinel")
	site := top.Sites[0]
	var sentinels []string
	for _, addr := range site.Addrs() {
		sentinels = append(sentinels, proxies[addr].Addr())
	}
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: site.Master, SentinelAddrs: sentinels, SentinelPassword: site.Password(),
		Password: site.Password(), Dialer: onlyProxies(t, proxies)})
	defer c.Close()
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	raw := client(t, redis.Options{Addr: sentinels[0], Password: site.Password(), Protocol: 2})
	for _, question := range [][]any{{"MASTERS"}, {"REPLICAS", site.Master}, {"SENTINELS", site.Master}, {"MASTER", site.Master}} {
		answer := fmt.Sprint(raw.Do(t.Context(), append([]any{"SENTINEL"}, question...)...).Val())
		for addr := range proxies {
			if host, _, _ := net.SplitHostPort(addr); strings.Contains(answer, host+" ") || strings.Contains(answer, addr) {
				t.Errorf("SENTINEL %v tells of %s: %s", question, addr, answer)
			}
		}
	}
	messages := raw.PSubscribe(t.Context(), "+switch*")
	defer messages.Close()
	if _, err := messages.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	old, err := site.Primary(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	next, err := site.Failover(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	m, err := messages.ReceiveMessage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spaced := func(addr string) string { return strings.Replace(addr, ":", " ", 1) }
	want := site.Master + " " + spaced(proxies[old.Addr()].Addr()) + " " + spaced(proxies[next.Addr()].Addr())
	if m.Payload != want {
		t.Errorf("got %s, want %s", m.Payload, want)
	}
	live.Wait(t, "the client finds the new primary", func() bool { return c.Set(t.Context(), "after", "v", 0).Err() == nil })
	if found := append(sink.kinds(NotKept), sink.kinds(PassedThrough)...); len(found) > 0 {
		t.Errorf("not understood: %v", found)
	}
}

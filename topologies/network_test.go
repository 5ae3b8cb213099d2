package topologies

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/live"
	"hammerlock/topologies/links"
)

func apply(t testing.TB, top *Topology, r links.Rule) (heal func()) {
	t.Helper()
	heal, err := top.Network().Apply(r)
	if err != nil {
		t.Fatal(err)
	}
	return heal
}

func ping(ctx context.Context, c redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
	defer cancel()
	return c.Set(ctx, "k", "v", 0).Err()
}

// answered sends pings until there is a reply, because the first reply may be late.
func answered(t testing.TB, c redis.UniversalClient) {
	t.Helper()
	succeeds(t, "an answer", func() error { return ping(t.Context(), c) })
}

// gone waits until a node has no connection from a client. Then it has executed everything that the client has sent.
func gone(t testing.TB, n *Node, source int) {
	t.Helper()
	addr := " addr=" + links.SourceIP(n.topology.block.prefix, source) + ":"
	live.Wait(t, "the end of a client's connections", func() bool {
		list, err := n.Do(t.Context(), "CLIENT", "LIST").Text()
		return err == nil && !strings.Contains(list, addr)
	})
}

func TestRuleMeetsOnlyItsParties(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{Links: true})
	one, two, nobody := client(t, top, ClientOptions{Source: 1}), client(t, top, ClientOptions{Source: 2}),
		client(t, top, ClientOptions{})
	cases := map[string]struct {
		rule   links.Rule
		passes [3]bool // one, two, a client without a number
	}{
		"drop one": {links.Rule{From: []links.Party{links.ClientParty(1)}, To: []links.Party{"n1"},
			Effect: links.Drop}, [3]bool{false, true, true}},
		"reset two": {links.Rule{From: []links.Party{links.ClientParty(2)}, To: []links.Party{"n1"},
			Effect: links.Reset}, [3]bool{true, false, true}},
		"drop answers": {links.Rule{From: []links.Party{"n1"}, To: []links.Party{links.ClientParty(1)},
			OneWay: true, Effect: links.Drop}, [3]bool{false, true, true}},
		"reset, one way": {links.Rule{From: []links.Party{"n1"}, To: []links.Party{links.ClientParty(1)},
			OneWay: true, Effect: links.Reset}, [3]bool{false, true, true}},
		"drop all": {links.Rule{From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes},
			Effect: links.Drop}, [3]bool{false, false, false}},
		"reset all": {links.Rule{From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes},
			Effect: links.Reset}, [3]bool{false, false, false}},
		"among nodes": {links.Rule{From: []links.Party{links.AllNodes}, To: []links.Party{links.AllNodes},
			Effect: links.Reset}, [3]bool{true, true, true}},
		"pass is no rule": {links.Rule{From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes}},
			[3]bool{true, true, true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, who := range []redis.UniversalClient{one, two, nobody} {
				answered(t, who)
			}
			heal := apply(t, top, c.rule)
			for i, who := range []redis.UniversalClient{one, two, nobody} {
				if c.passes[i] {
					answered(t, who)
				} else if ping(t.Context(), who) == nil {
					t.Errorf("client %d passes", i)
				}
			}
			if err := top.Nodes[0].Do(t.Context(), "PING").Err(); err != nil {
				t.Errorf("the suite's own connection: %v", err)
			}
			heal()
			heal() // a second heal does nothing
			for _, who := range []redis.UniversalClient{one, two, nobody} {
				answered(t, who)
			}
		})
	}
}

// TestDroppedBytesArriveLater shows why a heal can be dangerous: the client has given up long before.
func TestDroppedBytesArriveLater(t *testing.T) {
	t.Parallel()
	for effect, want := range map[links.Effect]any{links.Drop: int64(1), links.Reset: int64(0)} {
		t.Run(effect.String(), func(t *testing.T) {
			t.Parallel()
			top := up(t, "single", Options{Links: true})
			c, n := client(t, top, ClientOptions{Source: 1}), top.Nodes[0]
			answered(t, c)
			heal := apply(t, top, links.Rule{From: []links.Party{links.AllClients}, To: []links.Party{"n1"},
				OneWay: true, Effect: links.Drop})
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := c.Incr(ctx, "late").Err(); err == nil {
				t.Fatal("passed a dropped link")
			}
			if got := n.Do(t.Context(), "EXISTS", "late").Val(); got != int64(0) {
				t.Errorf("got there while dropped: %v", got)
			}
			if effect == links.Reset { // the host that kept the bytes dies
				apply(t, top, links.Rule{From: []links.Party{links.AllClients}, To: []links.Party{"n1"},
					Effect: links.Reset})()
			}
			heal()
			answered(t, c) // on a new connection
			_ = c.Close()
			gone(t, n, 1)
			if got := n.Do(t.Context(), "EXISTS", "late").Val(); got != want {
				t.Errorf("after the heal: %v, want %v", got, want)
			}
		})
	}
}

// TestAloneDelay measures how long commands take through links with a delay.
func TestAloneDelay(t *testing.T) {
	top := up(t, "single", Options{Links: true})
	c := client(t, top, ClientOptions{Source: 1})
	took := func() time.Duration {
		start := time.Now()
		if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	took()
	there := apply(t, top, links.Rule{From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes},
		Effect: links.Delay, Latency: 40 * time.Millisecond})
	if d := took(); d < 80*time.Millisecond {
		t.Errorf("both ways by 40 ms each: %v", d)
	}
	more := apply(t, top, links.Rule{From: []links.Party{"n1"}, To: []links.Party{links.ClientParty(1)}, OneWay: true,
		Effect:  links.Delay,
		Latency: 30 * time.Millisecond, Jitter: 20 * time.Millisecond, Seed: 7})
	if d := took(); d < 110*time.Millisecond {
		t.Errorf("and the answer by 30 ms more: %v", d)
	}
	there()
	if d := took(); d < 30*time.Millisecond {
		t.Errorf("the answer alone: %v", d)
	}
	more()
	best := time.Hour
	for range 20 {
		best = min(best, took())
	}
	if best > 10*time.Millisecond {
		t.Errorf("healed, and yet %v at best", best)
	}
}

// TestDelayKeepsOrder sends more than a chunk through a link with jitter.
func TestDelayKeepsOrder(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{Links: true})
	c := client(t, top, ClientOptions{Source: 1})
	defer apply(t, top, links.Rule{From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes},
		Effect: links.Delay, Jitter: 5 * time.Millisecond, Seed: 1})()
	big := strings.Repeat("0123456789", 100_000)
	if _, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 50 {
			p.RPush(t.Context(), "list", i)
		}
		p.Set(t.Context(), "big", big, 0)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(t.Context(), "big").Result(); err != nil || got != big {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if got := c.LIndex(t.Context(), "list", 49).Val(); got != "49" {
		t.Errorf("the last of the list is %q", got)
	}
}

func TestLoseReply(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"single", "sentinel", "cluster"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := up(t, name, Options{Links: true})
			c, other := client(t, top, ClientOptions{Source: 1}), client(t, top, ClientOptions{Source: 2})
			steady(t, top, func(n int) error { return lostReplies(t, top, c, other, nodeName("x", n)) })
		})
	}
}

func lostReplies(t *testing.T, top *Topology, c, other redis.UniversalClient, key string) error {
	var spent atomic.Int64
	heal := apply(t, top, links.Rule{From: []links.Party{links.ClientParty(1)}, To: []links.Party{links.AllNodes},
		Effect: links.LoseReply, Count: 2,
		Spent: func() { spent.Add(1) }})
	defer heal()
	for i := range 4 {
		if err := connected(t, func() error { return other.Incr(t.Context(), "other").Err() }); err != nil {
			return fmt.Errorf("a client that is not meant: %w", err)
		}
		err := connected(t, func() error { return c.Incr(t.Context(), key).Err() })
		if lost := i < 2; (err != nil) != lost {
			return fmt.Errorf("command %d: got %w, want its answer lost: %v", i, err, lost)
		}
		if i > 0 {
			live.Wait(t, "that nothing more gets lost", func() bool { return spent.Load() > 0 })
		}
		if n := spent.Load(); n != int64(min(i, 1)) {
			return fmt.Errorf("command %d: told %d times that nothing more gets lost", i, n)
		}
	}
	if x, err := c.Get(t.Context(), key).Int(); err != nil || x != 4 {
		return fmt.Errorf("executed %d times, want 4, %w", x, err)
	}
	return nil
}

// TestLibraryRetriesHideALostReply shows the bug that the suite must find: the client has the lock, and is told that
// it does not.
func TestLibraryRetriesHideALostReply(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{Links: true})
	c := client(t, top, ClientOptions{Source: 1, LibraryRetries: true})
	defer apply(t, top, links.Rule{From: []links.Party{links.AllClients}, To: []links.Party{"n1"},
		Effect: links.LoseReply, Count: 1})()
	granted, err := c.SetNX(t.Context(), "lock", "mine", time.Minute).Result()
	if err != nil || granted {
		t.Errorf("got %v, %v", granted, err)
	}
	if got := c.Get(t.Context(), "lock").Val(); got != "mine" {
		t.Errorf("the server holds %q", got)
	}
}

func TestDeadNodeRefusesBehindItsLink(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{Links: true})
	c, n := client(t, top, ClientOptions{Source: 1}), top.Nodes[0]
	for range 3 {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := c.Set(t.Context(), "k", "v", 0).Err(); err == nil {
			t.Fatal("a dead node answers")
		}
		if err := c.Set(t.Context(), "k", "v", 0).Err(); !errors.Is(err, ErrUnreachable) {
			t.Errorf("got %v, want ErrUnreachable", err)
		}
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		answered(t, c)
	}
}

func TestNodesSeeTrueAddresses(t *testing.T) {
	t.Parallel()
	top := up(t, "replica", Options{Links: true})
	c := client(t, top, ClientOptions{Source: 7})
	want := []string{links.SourceIP(top.block.prefix, 7)}
	for _, n := range top.Nodes[1:] {
		ip, _ := splitAddr(n.front)
		want = append(want, ip)
	}
	for _, ip := range want {
		succeeds(t, "a connection from "+ip, func() error {
			list, err := c.ClientList(t.Context()).Result()
			if err == nil && !strings.Contains(list, " addr="+ip+":") {
				err = errors.New(list)
			}
			return err
		})
	}
}

func TestRulesThatAreRefused(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{Links: true})
	n1, clients := []links.Party{"n1"}, []links.Party{links.AllClients}
	cases := map[string]struct {
		rule links.Rule
		want string
	}{
		"nobody": {links.Rule{From: n1, Effect: links.Drop}, "both sides"},
		"unknown": {links.Rule{From: n1, To: []links.Party{"n9"}, Effect: links.Drop},
			`no party "n9": there are [n1]`},
		"client 0":         {links.Rule{From: n1, To: []links.Party{"client 0"}, Effect: links.Drop}, "no party"},
		"negative":         {links.Rule{From: n1, To: clients, Effect: links.Delay, Latency: -1}, "latency -1ns"},
		"replies to nodes": {links.Rule{From: n1, To: n1, Effect: links.LoseReply, Count: 1}, "from clients"},
		"no replies":       {links.Rule{From: clients, To: n1, Effect: links.LoseReply}, "once or more"},
	}
	for name, c := range cases {
		if _, err := top.Network().Apply(c.rule); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if _, err := up(t, "single", Options{}).Network().Apply(links.Rule{From: n1, To: clients,
		Effect: links.Drop}); err == nil {
		t.Error("a topology without links took a rule")
	}
}

func TestLinksThatAreRefused(t *testing.T) {
	t.Parallel()
	embedded := Server{Path: EmbeddedName}
	for want, o := range map[string]Options{
		"need real servers":    {Links: true, Server: embedded},
		"this layout has only": {Links: true, Flat: true, Server: server(t)},
	} {
		if _, err := single.Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestRulesChangeUnderTraffic changes rules while clients write. Nothing may hang or leak afterwards.
func TestRulesChangeUnderTraffic(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{Links: true})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 8 {
		c := client(t, top, ClientOptions{Source: i + 1, ReadTimeout: 50 * time.Millisecond})
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = c.Incr(ctx, "x").Err() // most fail, as they must
			}
		})
	}
	for i := range 24 {
		heal := apply(t, top, links.Rule{From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes},
			OneWay: i%2 == 0,
			Effect: links.Effect(1 + i%4), Latency: time.Millisecond, Jitter: time.Millisecond, Count: 3})
		_ = ping(t.Context(), client(t, top, ClientOptions{Source: 9}))
		heal()
	}
	cancel()
	wg.Wait()
	answered(t, client(t, top, ClientOptions{Source: 10}))
}

// BenchmarkLink compares a command through a link with a direct one.
func BenchmarkLink(b *testing.B) {
	for _, how := range []string{"direct", "link", "link with a delay rule of 0"} {
		for _, parallel := range []int{1, 8, 64} {
			b.Run(how+"/clients="+nodeName("", parallel-1), func(b *testing.B) {
				top := up(b, "single", Options{Links: how != "direct"})
				if how == "link with a delay rule of 0" {
					defer apply(b, top, links.Rule{From: []links.Party{links.AllClients},
						To: []links.Party{links.AllNodes}, Effect: links.Delay})()
				}
				c := client(b, top, ClientOptions{Source: 1})
				work := make(chan struct{}, 1024)
				var wg sync.WaitGroup
				for range parallel {
					wg.Go(func() {
						for range work {
							if err := c.Set(b.Context(), "k", "v", time.Minute).Err(); err != nil {
								b.Error(err)
							}
						}
					})
				}
				b.ResetTimer()
				for range b.N {
					work <- struct{}{}
				}
				close(work)
				wg.Wait()
			})
		}
	}
}

// TestAnAbandonedCommandArrives after its client has given it up: one of each kind, and the rest when the rule ends.
func TestAnAbandonedCommandArrives(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{Links: true})
	c := client(t, top, ClientOptions{Source: 1, ReadTimeout: 100 * time.Millisecond})
	read := func(key string) string { return top.Nodes[0].control.Get(t.Context(), key).Val() }
	heal := apply(t, top,
		links.Rule{From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes}, OneWay: true,
			Effect: links.Delay, Latency: 50 * time.Millisecond, Abandoned: true, Pace: time.Hour})
	if err := c.Set(t.Context(), "k", "late", 0).Err(); err == nil {
		t.Error("a command that was held back is answered")
	}
	if got := read("k"); got != "" {
		t.Errorf("%q has arrived although its client has just given it up", got)
	}
	if err := c.Set(t.Context(), "other", "soon", 0).Err(); err != nil {
		t.Errorf("the next one of its kind: %v", err)
	}
	live.Wait(t, "the command that was given up", func() bool { return read("k") == "late" })
	appended := make(chan error, 1)
	patient := client(t, top, ClientOptions{Source: 2, ReadTimeout: time.Minute})
	go func() { appended <- patient.Append(t.Context(), "k", "r").Err() }()
	select {
	case err := <-appended:
		t.Errorf("a command of another kind is not held back: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	heal()
	if err := <-appended; err != nil || read("k") != "later" {
		t.Errorf("at the end of the rule: %q, %v", read("k"), err)
	}
}

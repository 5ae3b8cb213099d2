package wire

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

func tap(t testing.TB, sink Sink, s Source) *Tap {
	t.Helper()
	run := &Run{Clock: history.NewOrderedClock(0), Sink: sink}
	tap, err := run.Tap(context.WithoutCancel(t.Context()), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tap.Close() })
	return tap
}

// shown returns the effects, without absolute times and digests.
func (s *record) shown() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.effects {
		line := strings.Join(e.Args, " ")
		if e.Tx > 0 {
			line = fmt.Sprintf("tx%d %s", e.Tx, line)
		}
		if e.DB > 0 {
			line = fmt.Sprintf("db%d %s", e.DB, line)
		}
		list = append(list, absolute.ReplaceAllString(line, "MS"))
	}
	return list
}

var absolute = regexp.MustCompile(`\b\d{13}\b`)

func TestTap(t *testing.T) {
	t.Parallel()
	const release = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0"
	for name, args := range map[string][]string{
		"snapshot from the disk": {"--repl-diskless-sync", "no"},
		"diskless snapshot":      {"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"},
		"with a login":           {"--user", "tap", "on", ">secret", "+psync", "+replconf", "+info"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, _ := start(t, append(args, "--enable-debug-command", "yes")...)
			c := client(t, redis.Options{Network: "unix", Addr: addr})
			ctx := t.Context()
			c.Do(ctx, "DEBUG", "POPULATE", 20_000)
			sink := &record{}
			s := Source{Server: 3, Dial: dialler(addr)}
			if strings.Contains(name, "login") {
				s.User, s.Password = "tap", "secret"
			}
			tap(t, sink, s)
			if began := sink.kinds(TapBegan); len(began) != 1 || began[0].Server != 3 {
				t.Errorf("began: %v", began)
			}
			c.SetNX(ctx, "lock", "a", 0)
			c.SetNX(ctx, "lock", "b", 0) // refused
			c.PExpire(ctx, "lock", 30e9)
			c.Eval(ctx, release, []string{"lock"}, "wrong")
			c.Eval(ctx, release, []string{"lock"}, "a")
			c.Eval(ctx, "redis.call('set','x',1) redis.call('set','y',2)", nil)
			tx := c.TxPipeline()
			tx.Select(ctx, 2)
			tx.Set(ctx, "z", strings.Repeat("z", 300), 0)
			tx.Select(ctx, 0)
			tx.Set(ctx, "short", "1", 1e6)
			_, _ = tx.Exec(ctx)
			live.Wait(t, "it expires", func() bool { return c.Exists(ctx, "short").Val() == 0 })
			c.Set(ctx, "end", "1", 0)
			want := []string{"SET lock a nx", "PEXPIREAT lock MS", "DEL lock", "tx1 SET x 1", "tx1 SET y 2",
				"db2 tx2 SET z " + kept(strings.Repeat("z", 300)),
				"tx2 SET short 1 PXAT MS", "DEL short", "SET end 1"}
			live.Wait(t, "all effects have come", func() bool { return slices.Contains(sink.shown(), "SET end 1") })
			if got := sink.shown(); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			sink.mu.Lock()
			last := sink.effects[len(sink.effects)-1]
			sink.mu.Unlock()
			live.Wait(t, "its offset is the server's", func() bool {
				return strings.Contains(c.Info(ctx, "replication").Val(),
					"master_repl_offset:"+strconv.FormatInt(last.Offset, 10)+"\r") ||
					c.Set(ctx, "more", 1, 0).Err() == nil && latest(sink).Offset > last.Offset &&
						offset(t, c) == latest(sink).Offset
			})
		})
	}
}

func latest(s *record) *Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effects[len(s.effects)-1]
}

func offset(t testing.TB, c *redis.Client) int64 {
	_, text, _ := strings.Cut(c.Info(t.Context(), "replication").Val(), "master_repl_offset:")
	text, _, _ = strings.Cut(text, "\r")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTapConnectsAgain(t *testing.T) {
	t.Parallel()
	top := testbed.Up(t, "single", topologies.Options{})
	n, sink, ctx := top.Nodes[0], &record{}, t.Context()
	c := client(t, redis.Options{Addr: n.Addr(), Password: n.Password()})
	tapped := tap(t, sink, Source{Dial: dialler(n.Addr()), Password: n.Password()})
	c.Set(ctx, "a", 0, 0)
	for i := 1; i <= 20; i++ { // the tap's connection breaks, and no effect is missing
		if i%5 == 0 {
			c.Do(ctx, "CLIENT", "KILL", "TYPE", "REPLICA")
		}
		c.Set(ctx, "a", i, 0)
	}
	has := func(text string) func() bool { return func() bool { return slices.Contains(sink.shown(), text) } }
	live.Wait(t, "the last effect has come", has("SET a 20"))
	var want []string
	for i := range 21 {
		want = append(want, fmt.Sprint("SET a ", i))
	}
	if got := sink.shown(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	again := sink.kinds(TapBegan)[1:]
	if len(again) == 0 || len(again) != len(sink.kinds(TapLost)) || again[0].Missing || again[0].Another {
		t.Errorf("lost %v, began again %v", sink.kinds(TapLost), again)
	}
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "it is lost", func() bool { return len(sink.kinds(TapLost)) == len(again)+1 })
	if err := n.Start(ctx); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "it has begun again", func() bool { return len(sink.kinds(TapBegan)) == len(again)+2 })
	if e := sink.kinds(TapBegan)[len(again)+1]; !e.Missing || !e.Another {
		t.Errorf("%+v", e)
	}
	c.Set(ctx, "b", 1, 0)
	live.Wait(t, "an effect of the new server comes", has("SET b 1"))
	breaks := len(sink.kinds(TapLost))
	if err := tapped.Close(); err != nil {
		t.Fatal(err)
	}
	if lost := sink.kinds(TapLost); len(lost) != breaks { // an end of our own is no break
		t.Errorf("%v", lost)
	}
	info := c.Info(ctx, "replication").Val()
	live.Wait(t, "the server has no replica", func() bool {
		info = c.Info(ctx, "replication").Val()
		return strings.Contains(info, "connected_slaves:0")
	})
}

// TestTapIsNoReplica checks how a server and its deployment treat a tap.
func TestTapIsNoReplica(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	c, ctx, sink := client(t, redis.Options{Network: "unix", Addr: addr}), t.Context(), &record{}
	tap(t, sink, Source{Dial: dialler(addr)})
	c.Set(ctx, "a", 1, 0)
	live.Wait(t, "it is there", func() bool { return len(sink.shown()) == 1 })
	if n := c.Wait(ctx, 1, 50e6).Val(); n != 0 {
		t.Errorf("WAIT counts %d", n)
	}
	if info := c.Info(ctx, "replication").Val(); !strings.Contains(info, "port="+hiddenPort+",state=online") {
		t.Errorf("as %s", info)
	}
	if err := c.Do(ctx, "FAILOVER", "TIMEOUT", 100).Err(); err != nil {
		t.Error(err)
	}
	live.Wait(t, "no failover", func() bool {
		return strings.Contains(c.Info(ctx, "replication").Val(), "master_failover_state:no-failover")
	})
	if err := c.Set(ctx, "b", 1, 0).Err(); err != nil {
		t.Error(err)
	}
	c.ConfigSet(ctx, "min-replicas-to-write", "1")
	run := &Run{Clock: history.NewOrderedClock(0), Sink: sink}
	if _, err := run.Tap(ctx, Source{Dial: dialler(addr)}); !errors.Is(err, ErrCounted) {
		t.Errorf("where replicas are counted: %v", err)
	}
	if err := c.Set(ctx, "b", 1, 0).Err(); err != nil {
		t.Errorf("ErrCounted is needless: %v", err)
	}
}

// Sentinels must not see it. A failover must not choose it, or wait for it.
func TestTapUnderSentinels(t *testing.T) {
	t.Parallel()
	top := testbed.Up(t, "sentinel", topologies.Options{})
	site, sink := top.Sites[0], &record{}
	old, err := site.Primary(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range site.Nodes {
		tap(t, sink, Source{Server: i, Dial: dialler(n.Addr()), Password: n.Password()})
	}
	sentinel := client(t, redis.Options{Addr: site.Addrs()[0], Password: site.Password()})
	infos := func() string {
		return fmt.Sprint(sentinel.Do(t.Context(), "SENTINEL", "MASTER", site.Master).Val())
	}
	refreshed := func() bool { // true once INFO was read after the tap connected
		found := regexp.MustCompile(`info-refresh:(\d+)`).FindStringSubmatch(infos())
		return found != nil && len(found[1]) < 3
	}
	live.Wait(t, "the sentinel asks again", func() bool { return !refreshed() })
	live.Wait(t, "the sentinel has asked again", refreshed)
	if got := infos(); !strings.Contains(got, "num-slaves:3") {
		t.Errorf("a sentinel sees %s", got)
	}
	next, err := site.Failover(t.Context(), old)
	if err != nil || next == old {
		t.Fatalf("failover to %v: %v", next, err)
	}
	c := client(t, redis.Options{Addr: next.Addr(), Password: next.Password()})
	live.Wait(t, "all taps follow the new primary", func() bool {
		_ = c.Set(t.Context(), "after", 1, 0).Err()
		servers := map[int]bool{}
		sink.mu.Lock()
		defer sink.mu.Unlock()
		for _, e := range sink.effects {
			if slices.Equal(e.Args, []string{"SET", "after", "1"}) {
				servers[e.Server] = true
			}
		}
		return len(servers) == len(site.Nodes)
	})
}

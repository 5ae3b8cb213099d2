package deployment

import (
	"errors"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// emptied has actions on a server of others, each with the incident that it is; empty = no incident.
type emptied struct {
	do   func(t *testing.T, others *redis.Client, attached *topologies.Topology)
	want string
}

var emptyings = map[string]emptied{
	"nothing": {func(*testing.T, *redis.Client, *topologies.Topology) {}, ""},
	"keys that expire": {func(t *testing.T, others *redis.Client, _ *topologies.Topology) {
		send(t, others, "SET", "other", "1", "PX", "1")
		live.Wait(t, "that the key has expired", func() bool { return stats(t, others)["expired_keys"] != "0" })
	}, ""},
	"another database is emptied": {func(t *testing.T, others *redis.Client, _ *topologies.Topology) {
		send(t, others, "EVAL", "redis.call('SELECT', 3) return redis.call('FLUSHDB')", "0")
	}, ""},
	"other databases change places": {func(t *testing.T, others *redis.Client, _ *topologies.Topology) {
		send(t, others, "SWAPDB", "3", "4")
	}, ""},
	"the suite empties it": {func(t *testing.T, _ *redis.Client, attached *topologies.Topology) {
		testbed.Command(t, attached.Nodes[0], "FLUSHALL")
	}, ""},
	"FLUSHALL": {func(t *testing.T, others *redis.Client, _ *topologies.Topology) {
		send(t, others, "FLUSHALL")
	}, "FLUSHALL was called"},
	"FLUSHDB": {func(t *testing.T, others *redis.Client, _ *topologies.Topology) {
		send(t, others, "FLUSHDB")
	}, "FLUSHDB was called"},
	"SWAPDB": {func(t *testing.T, others *redis.Client, _ *topologies.Topology) {
		send(t, others, "SWAPDB", "0", "1")
	}, "SWAPDB was called"},
	"there and back": {func(t *testing.T, others *redis.Client, _ *topologies.Topology) {
		send(t, others, "SWAPDB", "0", "1")
		send(t, others, "SWAPDB", "0", "1")
	}, "SWAPDB was called"},
	"a script removes keys": {func(t *testing.T, others *redis.Client, _ *topologies.Topology) {
		send(t, others, "EVAL", "return redis.call('DEL', unpack(redis.call('KEYS', '*canary*')))", "0")
	}, "a key of the suite was gone"},
	"it evicts": {func(t *testing.T, others *redis.Client, _ *topologies.Topology) {
		send(t, others, "CONFIG", "SET", "maxmemory-policy", "allkeys-random")
		send(t, others, "CONFIG", "SET", "maxmemory", "3mb")
		value := strings.Repeat("x", 100_000)
		n := 0
		live.Wait(t, "that it evicts", func() bool {
			for range 10 {
				n++
				send(t, others, "SET", "other"+strconv.Itoa(n), value)
			}
			return stats(t, others)["evicted_keys"] != "0"
		})
	}, evicts},
}

// TestWhatAServerLosesUnasked: an attached server is emptied by another client, or evicts keys. Each is recorded as
// an incident, which begins when the server still had its keys. Expired keys, and changes in other databases, are
// ignored.
func TestWhatAServerLosesUnasked(t *testing.T) {
	t.Parallel()
	for name, c := range emptyings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := testbed.Up(t, "single", topologies.Options{})
			others := ofOthers(t, own)
			a := &topologies.Attachment{Prefix: "hl:", Allow: []string{"flushall"},
				Endpoints: []topologies.Endpoint{{Addr: others.Options().Addr}}}
			attached, err := a.Of(own.Spec).Up(t.Context(), topologies.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := attached.Close(); err != nil {
					t.Error(err)
				}
			})
			clock, wake, words := history.NewOrderedClock(0), make(chan struct{}, 1), ""
			note := func(_ history.ID, text string) { words += text + "\n" }
			lane, beat := history.NewLane(clock, 0, -1, 64, wake), history.NewLane(clock, 1, -1, 64, wake)
			w := (&Deployment{Topology: attached}).Watch(WatchOptions{TTL: time.Minute, Note: note,
				Lane: func() *history.Lane { return lane }, Heart: crew.NewHeartbeat(beat, time.Minute, false, note)})
			for range 2 {
				w.nodes[0].look(t.Context())
			}
			before := clock.Now()
			c.do(t, others, attached)
			after := clock.Now()
			for range 3 {
				w.nodes[0].look(t.Context())
			}
			said := strings.Join(w.Close(), "\n")
			incidents := 0
			history.NewMerge(clock, []*history.Lane{lane, beat}).Flush(func(op *history.Op) {
				if op.Kind != history.Incident {
					return
				}
				if incidents++; incidents == 1 && (op.Call > before || op.Return < after) {
					t.Errorf("incident from %v to %v, of what went on from %v to %v", op.Call, op.Return, before, after)
				}
			})
			lost := c.want != ""
			if (incidents > 0) != lost || (w.Lost > 0) != lost || !strings.Contains(words, c.want) ||
				!strings.Contains(said, c.want) {
				t.Errorf("got %d incidents, %d keys, %q and %q; want %q", incidents, w.Lost, words, said, c.want)
			}
		})
	}
}

// ofOthers starts a server with several databases, at an address of a topology.
func ofOthers(t *testing.T, own *topologies.Topology) *redis.Client {
	t.Helper()
	host, _, err := net.SplitHostPort(own.Nodes[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	const port = "16399"
	server := exec.Command(own.Options.Server.Path, "--bind", host, "--port", port, "--save", "", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: net.JoinHostPort(host, port)})
	t.Cleanup(func() {
		_ = errors.Join(c.Close(), server.Process.Kill())
		_ = server.Wait()
	})
	live.Wait(t, "the server of others", func() bool { return c.Ping(t.Context()).Err() == nil })
	return c
}

func send(t *testing.T, c *redis.Client, args ...any) {
	t.Helper()
	if err := c.Do(t.Context(), args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("%v: %v", args[:1], err)
	}
}

// stats returns the server's own counters.
func stats(t *testing.T, c *redis.Client) map[string]string {
	t.Helper()
	fields, err := c.InfoMap(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	return fields["Stats"]
}

package cli

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// tapped watches only the stream of a server, until the returned function is called.
func tapped(t *testing.T, a topologies.Access) (said *lockedBuffer, end func() int) {
	t.Helper()
	said = &lockedBuffer{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- Verify(ctx, Env{Args: []string{"wire", "--addr", "redis://:" + a.Password + "@" + a.Addrs[0],
			"--locks", "lock:*", "--tap-only",
			"--out", t.TempDir(), "--tui", "off"}, Stdout: said, Stderr: said, Getenv: os.Getenv})
	}()
	c := topologies.Access{Addrs: a.Addrs, Password: a.Password}.Site().Client(topologies.ClientOptions{})
	defer func() { _ = c.Close() }()
	live.Wait(t, "the tap", func() bool {
		info, err := c.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "port=65536,state=online")
	})
	return said, func() int {
		cancel()
		return <-ended
	}
}

// overwritten takes a lock from its holder until a watch reports it. That shows that the watch still works.
func overwritten(t *testing.T, c redis.UniversalClient, said *lockedBuffer, key string) {
	t.Helper()
	live.Wait(t, "the violation of "+key, func() bool {
		c.Set(t.Context(), key, "one", time.Minute)
		c.Set(t.Context(), key, "two", time.Minute)
		return strings.Contains(said.String(), key+`: "`)
	})
}

// TestLiveWatchGoesOn: the watch of a replication stream continues after its connection is killed, after clients are
// paused, and after the server is restarted. It reports what it missed, and reports no violation because of that.
func TestLiveWatchGoesOn(t *testing.T) {
	t.Parallel()
	top := testbed.Up(t, "single", topologies.Options{})
	s, node := top.Sites[0], top.Nodes[0]
	c := s.Client(topologies.ClientOptions{})
	defer func() { _ = c.Close() }()
	said, end := tapped(t, s.Access())
	c.Set(t.Context(), "lock:kept", "one", time.Minute)
	if err := c.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "the stream goes on", func() bool { return strings.Contains(said.String(), ": nothing is missing") })
	if err := c.Do(t.Context(), "CLIENT", "PAUSE", "300", "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	overwritten(t, c, said, "lock:paused")
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "the end of the stream", func() bool { return strings.Count(said.String(), "not read any more") == 2 })
	if err := node.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "another stream", func() bool { return strings.Contains(said.String(), "it has another history") })
	c.Set(t.Context(), "lock:kept", "two", time.Minute) // the server lost the key when it was restarted
	overwritten(t, c, said, "lock:restarted")
	if code := end(); code != Violation || strings.Contains(said.String(), `lock:kept: "`) {
		t.Errorf("exit %d:\n%s", code, said.String())
	}
}

// TestLiveWatchOfAFailover: the primary of a watch dies. When that server is back, as a replica of the new primary,
// the watch reads its stream again, and sees the locks there.
func TestLiveWatchOfAFailover(t *testing.T) {
	t.Parallel()
	top := testbed.Up(t, "sentinel", topologies.Options{})
	s := top.Sites[0]
	c := s.Client(topologies.ClientOptions{})
	defer func() { _ = c.Close() }()
	primary, err := s.Primary(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	said, end := tapped(t, topologies.Access{Addrs: []string{primary.Addr()}, Password: primary.Password()})
	c.Set(t.Context(), "lock:kept", "one", time.Minute)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "a new primary", func() bool {
		next, err := s.Primary(t.Context(), "")
		return err == nil && next != primary && c.Set(t.Context(), "lock:meanwhile", "one", time.Minute).Err() == nil
	})
	if err := primary.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "the stream of a replica", func() bool { return strings.Contains(said.String(), "read again after") })
	overwritten(t, c, said, "lock:after")
	if code := end(); code != Violation || strings.Contains(said.String(), `lock:kept: "`) ||
		!strings.Contains(said.String(), "was not seen") {
		t.Errorf("exit %d:\n%s", code, said.String())
	}
}

package topologies

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
		return
	}
	goleak.VerifyTestMain(m)
}

func server(t testing.TB) Server {
	t.Helper()
	s, err := FindServer(t.Context(), "")
	if err != nil {
		t.Fatalf("%v; to install one: %s", err, InstallHint())
	}
	return s
}

func up(t testing.TB, name string, o Options) *Topology {
	t.Helper()
	if o.Server.Path == "" {
		o.Server = server(t)
	}
	s, ok := Find(name)
	if !ok {
		t.Fatalf("no topology %s", name)
	}
	top, err := s.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := top.Close(); err != nil {
			t.Error(err)
		}
	})
	return top
}

// write sets a key on every site through the clients that locks use.
func write(t testing.TB, top *Topology, key string) {
	t.Helper()
	for _, site := range top.Sites {
		c := site.Client(ClientOptions{})
		err := c.Set(t.Context(), key, "v", 0).Err()
		for range 10 { // a busy machine may not connect in time
			if !errors.Is(err, ErrUnreachable) {
				break
			}
			err = c.Set(t.Context(), key, "v", 0).Err()
		}
		if err != nil {
			t.Errorf("site %s: %v", site.Name, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryTopologyIsReadyWhenItIsUp(t *testing.T) {
	for _, s := range All {
		for _, layout := range []string{"own addresses", "one address", "links"} {
			t.Run(s.Name+"/"+layout, func(t *testing.T) {
				t.Parallel()
				top := up(t, s.Name, Options{Flat: layout == "one address", Links: layout == "links"})
				if len(top.Sites) != s.Sites {
					t.Errorf("got %d sites, want %d", len(top.Sites), s.Sites)
				}
				for i := range 20 {
					write(t, top, "key-"+nodeName("", i))
				}
				if err := top.healthy(t.Context()); err != nil {
					t.Errorf("healthy no more: %v", err)
				}
			})
		}
	}
}

func TestStockProfileUsesTheServersOwnTimers(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{
		"sentinel": {"sentinel down-after-milliseconds", "sentinel debug PING-PERIOD", "repl-timeout"},
		"cluster":  {"cluster-node-timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stock, fast := up(t, name, Options{Profile: Stock}), up(t, name, Options{})
			for _, s := range settings {
				if v, ok := stock.Settings[s]; ok {
					t.Errorf("stock sets %s to %s", s, v)
				}
				if fast.Settings[s] == "" {
					t.Errorf("fast does not record %s", s)
				}
			}
		})
	}
}

// TestPollAsksLessOftenWhatTakesLong: a busy machine asks even less often.
func TestPollAsksLessOftenWhatTakesLong(t *testing.T) {
	t.Parallel()
	const long = 200 * time.Millisecond
	start, asked := time.Now(), 0
	if err := poll(t.Context(), time.Millisecond, func() error {
		if asked++; time.Since(start) < long {
			return errors.New("not yet")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if asked > 100 {
		t.Errorf("asked %d times within %v", asked, long)
	}
}

func TestHealthyNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for name, node := range map[string]string{"single": "n1", "replica": "n3", "sentinel": "s2", "cluster": "n5", "redlock": "n4"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := up(t, name, Options{})
			n := find(t, top, node)
			if err := n.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := top.healthy(t.Context()); err == nil {
				t.Errorf("healthy without %s", node)
			}
			if err := n.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := top.AwaitHealthy(ctx); err != nil {
				t.Errorf("%s is back, but: %v", node, err)
			}
		})
	}
}

func find(t testing.TB, top *Topology, name string) *Node {
	t.Helper()
	for _, n := range top.Nodes {
		if n.Name == name {
			return n
		}
	}
	t.Fatalf("no node %s", name)
	return nil
}

func TestNodeStates(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{})
	n := top.Nodes[0]
	ping := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		return n.Do(ctx, "PING").Err()
	}
	steps := []struct {
		name    string
		do      func() error
		want    State
		answers bool
	}{
		{"fresh", func() error { return nil }, Up, true},
		{"pause", n.Pause, Paused, false},
		{"resume", n.Resume, Up, true},
		{"kill", n.Kill, Down, false},
		{"start", func() error { return n.Start(t.Context()) }, Up, true},
		{"pause again", n.Pause, Paused, false},
		{"kill while paused", n.Kill, Down, false},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if got := n.State(); got != s.want {
			t.Errorf("%s: got state %s, want %s", s.name, got, s.want)
		}
		err := ping()
		for late := 0; err != nil && s.answers && late < 10; late++ {
			err = ping()
		}
		if (err == nil) != s.answers {
			t.Errorf("%s: ping says %v", s.name, err)
		}
	}
	for name, do := range map[string]func() error{"kill": n.Kill, "pause": n.Pause, "resume": n.Resume} {
		if do() == nil {
			t.Errorf("%s of a node that is down was no error", name)
		}
	}
}

func TestRestartedNodeHasNoData(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{})
	write(t, top, "k")
	n := top.Nodes[0]
	if err := errors.Join(n.Kill(), n.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	if size, err := n.Do(t.Context(), "DBSIZE").Int(); err != nil || size != 0 {
		t.Errorf("got %d keys after a restart, %v", size, err)
	}
}

// TestNodeThatDoesNotStart uses a program that calls itself Redis and ends at once.
func TestNodeThatDoesNotStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "broken-server")
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'Redis server v=7.9.9 sha=0'; exit 0; }\necho 'no space left on moon'; exit 1\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := FindServer(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	top, err := redlock.Up(t.Context(), Options{Server: s})
	if err == nil {
		t.Fatal("came up")
	}
	if top != nil {
		t.Error("got a topology and an error")
	}
	for _, want := range []string{"topology redlock", "node n1", "node n5", "no space left on moon"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestFindServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fake := func(name, version string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+version+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := map[string]struct{ path, want string }{
		"missing":   {filepath.Join(dir, "nothing"), "no such file"},
		"no server": {fake("broken", "'; exit 3; '"), `is no Redis, Valkey or Redict server: --version printed "\n" and ended with exit status 3`},
		"other":     {fake("other", "Memcached 1.6"), `--version printed "Memcached 1.6\n"`},
		"too old":   {fake("old", "Redis server v=6.0.16 sha=0"), "7.0 or newer"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := FindServer(t.Context(), c.path)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	valkey, err := FindServer(t.Context(), fake("valkey", "Valkey server v=9.1.2 sha=0"))
	if err != nil || valkey.String() != "Valkey 9.1.2" {
		t.Errorf("got %v, %v", valkey, err)
	}
}

func TestServersOnThePathAreFound(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, err := FindServer(t.Context(), ""); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v, want ErrNoServer", err)
	}
	path := filepath.Join(dir, "valkey-server")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho 'Valkey server v=8.1.1'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if s, err := FindServer(t.Context(), ""); err != nil || s.Path != path {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	s, err := FindServer(t.Context(), EmbeddedName)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range All {
		t.Run(spec.Name, func(t *testing.T) {
			if !spec.Embeddable() {
				if _, err := spec.Up(t.Context(), Options{Server: s}); err == nil {
					t.Error("came up")
				}
				return
			}
			top := up(t, spec.Name, Options{Server: s})
			write(t, top, "k")
			c := top.Sites[0].Client(ClientOptions{})
			defer func() { _ = c.Close() }()
			leaseEnds(t, c)
		})
	}
}

// leaseEnds sees that a key with a time to live goes by itself, neither early nor late.
func leaseEnds(t *testing.T, c redis.UniversalClient) {
	const ttl = 200 * time.Millisecond
	start := time.Now()
	if err := c.Set(t.Context(), "lease", "v", ttl).Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
	defer cancel()
	err := poll(ctx, time.Millisecond, func() error {
		if n, err := c.Exists(ctx, "lease").Result(); err != nil || n > 0 {
			return errors.New("still there")
		}
		return nil
	})
	if took := time.Since(start); err != nil || took < ttl-2*time.Millisecond {
		t.Errorf("a lease of %v ended after %v, %v", ttl, took, err)
	}
}

func TestSeveralRunsSideBySide(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 3 {
		for _, name := range []string{"sentinel", "cluster"} {
			wg.Go(func() {
				top := up(t, name, Options{})
				write(t, top, "k")
			})
		}
	}
	wg.Wait()
}

// TestNodesOutliveThreads ends many operating-system threads: nodes must not go with any of them.
func TestNodesOutliveThreads(t *testing.T) {
	t.Parallel()
	top := up(t, "redlock", Options{})
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(runtime.LockOSThread) // ends its thread, as it never unlocks it
	}
	wg.Wait()
	for _, n := range top.Nodes {
		if n.State() != Up {
			t.Errorf("node %s is %s", n.Name, n.State())
		}
	}
	if err := top.healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCloseTwice(t *testing.T) {
	t.Parallel()
	top, err := single.Up(t.Context(), Options{Server: server(t)})
	if err != nil {
		t.Fatal(err)
	}
	dir := top.dir
	if err := errors.Join(top.Close(), top.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory %s is left: %v", dir, err)
	}
}

func TestPasswordIsNotAmongTheArguments(t *testing.T) {
	t.Parallel()
	top := up(t, "sentinel", Options{})
	for _, n := range top.Nodes {
		if args := strings.Join(n.process.Args, " "); strings.Contains(args, top.password) {
			t.Errorf("node %s: %s", n.Name, args)
		}
	}
	c := redis.NewClient(&redis.Options{Addr: top.Nodes[0].Addr(), MaxRetries: -1})
	defer func() { _ = c.Close() }()
	if err := c.Get(t.Context(), "k").Err(); !redis.HasErrorPrefix(err, "NOAUTH") {
		t.Errorf("without a password: %v", err)
	}
}

func TestTrafficIsCounted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"single", "sentinel", "cluster"} {
		top := up(t, name, Options{})
		var traffic Traffic
		c := top.Sites[0].Client(ClientOptions{Traffic: &traffic})
		defer func() { _ = c.Close() }()
		for range 3 {
			connected(t, func() error { return c.Set(t.Context(), "a", 1, 0).Err() })
		}
		if _, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Get(t.Context(), "a")
			p.Get(t.Context(), "a")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		s := c.Subscribe(t.Context(), "news")
		connected(t, func() error {
			_, err := s.Receive(t.Context())
			return err
		})
		_ = s.Close()
		if r := traffic.RoundTrips(); r != 4 {
			t.Errorf("%s: got %d round trips, want 4", name, r)
		}
		_ = c.Close()
		if r := traffic.RoundTrips(); r != 4 {
			t.Errorf("%s: got %d round trips when all connections were closed, want 4", name, r)
		}
	}
}

// connected does what needs a connection, which a busy machine may not make in time.
func connected(t *testing.T, do func() error) {
	t.Helper()
	err := do()
	for range 20 {
		if !errors.Is(err, ErrUnreachable) {
			break
		}
		err = do()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnreachableIsMarked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"single", "sentinel"} {
		top := up(t, name, Options{})
		for _, n := range top.Nodes {
			if err := n.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		c := top.Sites[0].Client(ClientOptions{})
		defer func() { _ = c.Close() }()
		if err := c.Set(t.Context(), "k", "v", 0).Err(); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: got %v, want ErrUnreachable", name, err)
		}
	}
}

// BenchmarkUp is the time from nothing to a deployment that is ready.
func BenchmarkUp(b *testing.B) {
	s := server(b)
	for _, spec := range All {
		b.Run(spec.Name, func(b *testing.B) {
			for b.Loop() {
				top, err := spec.Up(b.Context(), Options{Server: s})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := top.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

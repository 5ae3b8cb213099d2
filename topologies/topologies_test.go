package topologies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"hammerlock/internal/live"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
		return
	}
	goleak.VerifyTestMain(closing{m})
}

// closing closes the shared topologies when all tests have run.
type closing struct{ *testing.M }

func (c closing) Run() int {
	code := c.M.Run()
	for _, s := range shared {
		if s.top == nil {
			continue
		}
		if err := s.top.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// shared are topologies for tests that do not change them.
var shared = map[string]*struct {
	once sync.Once
	top  *Topology
	err  error
}{"single": {}, "replica": {}, "sentinel": {}, "cluster": {}, "redlock": {}}

// sharing returns a topology that no test may change.
func sharing(t *testing.T, name string) *Topology {
	t.Helper()
	s := shared[name]
	s.once.Do(func() {
		spec, _ := Find(name)
		s.top, s.err = spec.Up(context.WithoutCancel(t.Context()), Options{Server: server(t)})
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.top
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

// patience is the clients' timeout for a reply, which ends a hang.
const patience = 30 * time.Second

// client makes a client of the first site, which is closed with the test.
func client(t testing.TB, top *Topology, o ClientOptions) redis.UniversalClient {
	t.Helper()
	o.ReadTimeout = cmp.Or(o.ReadTimeout, patience)
	c := top.Sites[0].Client(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// connected repeats send while no connection is made in time, because then the command had no effect.
func connected(t testing.TB, send func() error) (err error) {
	t.Helper()
	live.Wait(t, "a connection", func() bool {
		err = send()
		return !errors.Is(err, ErrUnreachable)
	})
	return err
}

// succeeds repeats do until it works.
func succeeds(t testing.TB, what string, do func() error) {
	t.Helper()
	var err error
	defer func() {
		if t.Failed() && err != nil {
			t.Logf("%s: %v", what, err)
		}
	}()
	live.Wait(t, what, func() bool { err = do(); return err == nil })
}

// steady makes an attempt. Its error counts only if all servers have kept their roles: a server that pauses for
// longer than the others' timers loses its role, which is no error.
func steady(t testing.TB, top *Topology, attempt func(n int) error) {
	t.Helper()
	live.Again(t, func(n int) string {
		before := epochs(t, top)
		err := attempt(n)
		if err == nil {
			return ""
		}
		if epochs(t, top) == before && !redis.HasErrorPrefix(err, "CLUSTERDOWN") {
			t.Fatal(err)
		}
		succeeds(t, "healthy servers", func() error { return top.healthy(t.Context()) })
		return err.Error()
	})
}

// epochs returns a text that changes when servers elect a primary.
func epochs(t testing.TB, top *Topology) (all string) {
	t.Helper()
	for _, n := range top.Nodes {
		if n.State() != Up {
			continue
		}
		if n.Role == Sentinel {
			m, err := n.control.Do(t.Context(), "SENTINEL", "MASTER", masterName).Slice()
			if err != nil {
				t.Fatal(err)
			}
			all += pairs(m)["config-epoch"] + " "
		}
		if top.clustered() {
			text, err := n.control.ClusterInfo(t.Context()).Result()
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(text, "cluster_current_epoch:")
			epoch, _, _ := strings.Cut(rest, "\r")
			all += epoch + " "
		}
	}
	return all
}

// write sets a key on every site through the clients that locks use.
func write(t testing.TB, top *Topology, key string) (err error) {
	t.Helper()
	for _, site := range top.Sites {
		c := site.Client(ClientOptions{ReadTimeout: patience})
		if failed := connected(t, func() error { return c.Set(t.Context(), key, "v", 0).Err() }); failed != nil {
			err = fmt.Errorf("site %s: %w", site.Name, failed)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	return err
}

// TestEveryTopologyIsReadyWhenItIsUp, and knows when it is not ready.
func TestEveryTopologyIsReadyWhenItIsUp(t *testing.T) {
	missing := map[string]string{"single": "n1", "replica": "n3", "sentinel": "s2", "cluster": "n5", "redlock": "n4"}
	for _, s := range All {
		for _, layout := range []string{"own addresses", "one address", "links"} {
			t.Run(s.Name+"/"+layout, func(t *testing.T) {
				t.Parallel()
				top := up(t, s.Name, Options{Flat: layout == "one address", Links: layout == "links"})
				if len(top.Sites) != s.Sites {
					t.Errorf("got %d sites, want %d", len(top.Sites), s.Sites)
				}
				steady(t, top, func(int) (err error) {
					for i := 0; i < 20 && err == nil; i++ {
						err = write(t, top, "key-"+nodeName("", i))
					}
					return err
				})
				if layout == "own addresses" {
					last := top.Nodes[len(top.Nodes)-1].Name
					noticed(t, top, find(t, top, cmp.Or(missing[s.Name], last)))
				}
			})
		}
	}
}

// noticed kills a node. Without the node the topology must not be healthy, and it must be healthy when the node is
// back.
func noticed(t *testing.T, top *Topology, n *Node) {
	t.Helper()
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := top.healthy(t.Context()); err == nil {
		t.Errorf("healthy without %s", n.Name)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	succeeds(t, "healthy servers", func() error { return top.healthy(t.Context()) })
}

func TestStockProfileUsesTheServersOwnTimers(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{
		"sentinel": {"sentinel down-after-milliseconds", "sentinel debug PING-PERIOD", "repl-timeout"},
		"cluster":  {"cluster-node-timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stock, fast := up(t, name, Options{Profile: Stock}), sharing(t, name)
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

// TestPollAsksLessOftenWhatTakesLong: without the longer pauses, poll would call f 200 times.
func TestPollAsksLessOftenWhatTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, asked := time.Now(), 0
		if err := poll(t.Context(), time.Millisecond, func() error {
			if asked++; time.Now().Before(start.Add(200 * time.Millisecond)) {
				return errors.New("not yet")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if asked > 100 {
			t.Errorf("asked %d times", asked)
		}
	})
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
		if s.answers {
			succeeds(t, "an answer after "+s.name, ping)
		} else if ping() == nil {
			t.Errorf("%s: it answers", s.name)
		}
	}
	for name, do := range map[string]func() error{"kill": n.Kill, "pause": n.Pause, "resume": n.Resume} {
		if do() == nil {
			t.Errorf("%s of a node that is down was no error", name)
		}
	}
}

// TestRestartedNodeHasNoData: SAVE leaves the same file as a full synchronization of a replica, or of a tap.
func TestRestartedNodeHasNoData(t *testing.T) {
	t.Parallel()
	top := up(t, "single", Options{})
	n := top.Nodes[0]
	if err := errors.Join(write(t, top, "k"), n.Do(t.Context(), "SAVE").Err()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(n.Kill(), n.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	if size, err := n.Do(t.Context(), "DBSIZE").Int(); err != nil || size != 0 {
		t.Errorf("got %d keys after a restart, %v", size, err)
	}
}

// TestNodeThatDoesNotStart uses a program that reports to be Redis and then exits.
func TestNodeThatDoesNotStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "broken-server")
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'Redis server v=7.9.9 sha=0'; exit 0; }\necho 'no space " +
		"left on moon'; exit 1\n"
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
		"missing": {filepath.Join(dir, "nothing"), "no such file"},
		"no server": {fake("broken", "'; exit 3; '"),
			`is no Redis, Valkey or Redict server: --version printed "\n" and ended with exit status 3`},
		"other":   {fake("other", "Memcached 1.6"), `--version printed "Memcached 1.6\n"`},
		"too old": {fake("old", "Redis server v=6.0.16 sha=0"), "7.0 or newer"},
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
			if err := write(t, top, "k"); err != nil {
				t.Error(err)
			}
			leaseEnds(t, client(t, top, ClientOptions{}))
		})
	}
}

// leaseEnds checks that a key with a TTL expires, and not too early.
func leaseEnds(t *testing.T, c redis.UniversalClient) {
	const ttl = 200 * time.Millisecond
	least := time.NewTimer(ttl - 2*time.Millisecond)
	defer least.Stop()
	if err := c.Set(t.Context(), "lease", "v", ttl).Err(); err != nil {
		t.Fatal(err)
	}
	live.Wait(t, "the end of a lease", func() bool { return c.Exists(t.Context(), "lease").Val() == 0 })
	select {
	case <-least.C:
	default:
		t.Errorf("a lease of %v ended early", ttl)
	}
}

// TestNodesOutliveThreads ends many threads of the operating system; no node may end with any of them.
func TestNodesOutliveThreads(t *testing.T) {
	t.Parallel()
	top := sharing(t, "redlock")
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(runtime.LockOSThread) // the thread ends, because it is never unlocked
	}
	wg.Wait()
	for _, n := range top.Nodes {
		if n.State() != Up {
			t.Errorf("node %s is %s", n.Name, n.State())
		}
	}
	succeeds(t, "healthy servers", func() error { return top.healthy(t.Context()) })
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
	top := sharing(t, "sentinel")
	for _, n := range top.Nodes {
		if args := strings.Join(n.child.cmd.Args, " "); strings.Contains(args, top.password) {
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
		top := sharing(t, name)
		steady(t, top, func(int) error { return counted(t, top) })
	}
}

func counted(t *testing.T, top *Topology) error {
	var traffic Traffic
	c := client(t, top, ClientOptions{Traffic: &traffic})
	for range 3 {
		if err := connected(t, func() error { return c.Set(t.Context(), "a", 1, 0).Err() }); err != nil {
			return err
		}
	}
	if _, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Get(t.Context(), "a")
		p.Get(t.Context(), "a")
		return nil
	}); err != nil {
		return err
	}
	s := c.Subscribe(t.Context(), "news")
	if err := connected(t, func() error { _, err := s.Receive(t.Context()); return err }); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	if r := traffic.RoundTrips(); r != 4 {
		return fmt.Errorf("%s: got %d round trips, want 4", top.Spec.Name, r)
	}
	_ = c.Close()
	if r := traffic.RoundTrips(); r != 4 {
		return fmt.Errorf("%s: got %d round trips when all connections were closed, want 4", top.Spec.Name, r)
	}
	return nil
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

// BenchmarkUp measures the time until a new deployment is ready.
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

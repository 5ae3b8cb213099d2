package catalogue

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/internal/testbed"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// every lists the locks to test. The file known_test.go adds the locks that only package known has.
var every = All

// Take makes the tests use a catalogue.
func Take(all []locks.Spec) []locks.Spec {
	every = all
	return all
}

// TestMain lets twice as many tests run in parallel as usual, because most of them wait for a lease to end.
func TestMain(m *testing.M) {
	flag.Parse()
	parallel := flag.Lookup("test.parallel").Value
	if n, err := strconv.Atoi(parallel.String()); err != nil || parallel.Set(strconv.Itoa(2*n)) != nil {
		panic("no -test.parallel")
	}
	// it sleeps for 5 s, also after Close
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

// deployment starts a topology for a test, with a client for each site.
func deployment(t *testing.T, name string) (*topologies.Topology, []redis.UniversalClient) {
	t.Helper()
	top := testbed.Up(t, name, topologies.Options{})
	var clients []redis.UniversalClient
	for _, site := range top.Sites {
		clients = append(clients, site.Client(topologies.ClientOptions{ReadTimeout: live.Deadline}))
	}
	t.Cleanup(func() {
		for _, c := range clients {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return top, clients
}

// bench is a deployment that the tests of several locks share; each lock has its own key.
type bench struct {
	top   *topologies.Topology
	sites []redis.UniversalClient
}

func newBench(t *testing.T, topology string) *bench {
	top, sites := deployment(t, topology)
	return &bench{top, sites}
}

// env returns the environment that a run gives its locks.
func (b *bench) env() locks.Env {
	e := locks.Env{Sites: b.sites, Process: &locks.Process{}, Rand: newRand(), Server: b.top.Options.Server}
	for _, s := range b.top.Sites {
		e.Places = append(e.Places, s.Access().Site())
	}
	return e
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

func open(t *testing.T, s locks.Spec, e locks.Env) locks.Lock {
	t.Helper()
	l, err := s.Open(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func (b *bench) pair(t *testing.T, s locks.Spec) (locks.Lock, locks.Lock) {
	t.Helper()
	e := b.env()
	return open(t, s, e), open(t, s, e)
}

// homes returns a function that finds the bench for a lock.
func homes(t *testing.T) func(locks.Spec) *bench {
	t.Helper()
	single, many := newBench(t, "single"), newBench(t, "redlock")
	return func(s locks.Spec) *bench {
		if s.Sites == locks.ManySites {
			return many
		}
		return single
	}
}

func homeName(s locks.Spec) string {
	if s.Sites == locks.ManySites {
		return "redlock"
	}
	return "single"
}

// runs tells whether this machine's server has the commands that the lock needs.
func (b *bench) runs(s locks.Spec) bool { return s.Runs(b.top.Options.Server) == nil }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func grant(t *testing.T, l locks.Lock, key string, ttl time.Duration) locks.Lease {
	t.Helper()
	held, _ := grantCalled(t, l, key, ttl)
	return held
}

// grantCalled acquires the lock and returns the time of the successful call. After a try without a reply it tries
// again until a try succeeds. The lost try may have left keys, which refuse the next tries until they expire.
func grantCalled(t *testing.T, l locks.Lock, key string, ttl time.Duration) (held locks.Lease, call time.Time) {
	t.Helper()
	var err error
	again := false
	live.Wait(t, "a grant of "+key, func() bool {
		call = time.Now()
		held, err = l.Acquire(t.Context(), key, ttl)
		again = again || late(err) || errors.Is(err, locks.ErrQuorum)
		return err == nil || !again
	})
	must(t, err)
	return held, call
}

// late tells whether an error means that a server did not reply in time.
func late(err error) bool {
	outcome, _ := locks.Classify(err)
	return outcome == history.Unknown || errors.Is(err, topologies.ErrUnreachable)
}

func TestEveryLockThatClaimsToExcludeDoes(t *testing.T) {
	t.Parallel()
	home := homes(t)
	for _, s := range every {
		if !s.Claims.Excludes || !home(s).runs(s) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			excludes(t, home(s), s, s.Name)
		})
	}
}

// excludes tests what every lock does without faults, also a broken one.
func excludes(t *testing.T, b *bench, s locks.Spec, name string) {
	t.Helper()
	if s.Name == leaderEarly.Name {
		return // it is granted before it has asked
	}
	played(t, b, name, func(home *stage, key string) {
		a, b := home.pair(t, s)
		held := grant(t, a, key, long)
		if err := refusal(t, b, key); !refused(err) {
			t.Errorf("a second worker got %v, want a refusal", err)
		}
		other := grant(t, b, key+"-other", long)
		home.release(t, a, held)
		home.release(t, b, other)
		if home.undecided != "" || s.Claims.Once {
			return
		}
		again := grant(t, b, key, long)
		if err := refusal(t, a, key); !refused(err) {
			t.Errorf("after it changed hands: %v, want a refusal", err)
		}
		home.release(t, b, again)
	})
}

// refusal returns the result of a try for a held lock, repeated until a try gets its reply in time.
func refusal(t *testing.T, l locks.Lock, key string) (err error) {
	live.Wait(t, "an answer of "+key, func() bool {
		_, err = l.Acquire(t.Context(), key, long)
		return !late(err)
	})
	return err
}

func refused(err error) bool { return errors.Is(err, locks.ErrBusy) || errors.Is(err, locks.ErrQuorum) }

func TestEveryLockThatClaimsToExpireDoes(t *testing.T) {
	t.Parallel()
	home := homes(t)
	for _, s := range every {
		if !s.Claims.Expires || s.Claims.Renews || s.Broken != "" || !home(s).runs(s) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			played(t, home(s), s.Name+"-believes-", func(home *stage, key string) {
				ttl := 50 * home.renewed
				held, call := grantCalled(t, open(t, s, home.env()), key, ttl)
				if home.late(call.Add(locks.Drift(ttl))) { // a paused process may read its clock late
					return
				}
				if held.Until.After(call.Add(ttl)) || held.Until.Before(call.Add(ttl/2)) {
					t.Errorf("its holder may believe in it for %v of %v", held.Until.Sub(call), ttl)
				}
			})
			played(t, home(s), s.Name, func(home *stage, key string) { expires(t, home, s, key) })
		})
	}
}

// expires extends a lease and lets it end.
func expires(t *testing.T, home *stage, s locks.Spec, key string) {
	ttl := home.renewed
	if s.Sites == locks.ManySites {
		ttl = 2 * ttl // a site gets only a small share of the lease as its time to reply
	}
	a, b := home.pair(t, s)
	held, call := grantCalled(t, a, key, ttl)
	first := time.Now()
	held, err := a.Extend(t.Context(), held, 2*ttl)
	if home.unanswered(err) || home.late(locks.Until(call, ttl)) {
		return
	}
	must(t, err)
	if !held.Until.After(call.Add(ttl)) {
		t.Error("the extension did not move Until")
	}
	taken := waitFor(t, b, key)
	if lived := taken.Sub(first); lived < 2*ttl-5*time.Millisecond {
		t.Errorf("the extended lease of %v lived for %v", 2*ttl, lived)
	}
	if err := a.Release(t.Context(), held); !s.Claims.Once && !home.unanswered(err) && !errors.Is(err, locks.ErrLost) {
		t.Errorf("release after expiry: got %v, want ErrLost", err)
	}
	if _, err := a.Extend(t.Context(), held, ttl); !home.unanswered(err) && !errors.Is(err, locks.ErrLost) {
		t.Errorf("extend after expiry: got %v, want ErrLost", err)
	}
	if err := refusal(t, a, key); !refused(err) {
		t.Errorf("the late release took the lock from its new holder: %v", err)
	}
}

// waitFor tries until the lock is granted, and returns the time of the grant.
func waitFor(t *testing.T, l locks.Lock, key string) (taken time.Time) {
	t.Helper()
	live.Wait(t, "a grant of "+key, func() bool {
		_, err := l.Acquire(t.Context(), key, long)
		taken = time.Now()
		return err == nil
	})
	return taken
}

func TestReleaseDoesNotNeedTheScriptToBeLoaded(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	sites := home.sites
	a, _ := home.pair(t, lease)
	for range 2 {
		held, err := a.Acquire(t.Context(), "k", long)
		if err != nil {
			t.Fatal(err)
		}
		if err := sites[0].ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := a.Release(t.Context(), held); err != nil {
			t.Error(err)
		}
	}
}

func TestRedlockNeedsAMajority(t *testing.T) {
	t.Parallel()
	played(t, nil, "k", func(home *stage, key string) {
		home.bench = newBench(t, "redlock") // the test kills its servers
		a, b := home.pair(t, redlock)
		for down := range 5 {
			call := time.Now()
			held, err := a.Acquire(t.Context(), key, long)
			if home.unheard(call) {
				return
			}
			if granted := err == nil; granted != (down < 3) {
				t.Errorf("%d of 5 sites down: %v", down, err)
			}
			call = time.Now()
			if err == nil {
				err = a.Release(t.Context(), held)
			} else if outcome, _ := locks.Classify(err); outcome == history.Failed {
				err = nil
			}
			if home.unheard(call) {
				return
			}
			if err != nil {
				t.Errorf("%d of 5 sites down: release, or what is not certain: %v", down, err)
			}
			call = time.Now()
			_, err = b.Extend(t.Context(), locks.Lease{Key: key, Token: "not mine"}, long)
			if home.unheard(call) {
				return
			}
			if err == nil || errors.Is(err, locks.ErrLost) != (down < 3) {
				// the sites that are down have not said so
				t.Errorf("%d of 5 sites down: extend of what is not held: %v", down, err)
			}
			must(t, home.top.Nodes[down].Kill())
		}
	})
}

// TestRedlockPaysForAHungSiteOnlyItsShare pauses two of five sites: their connections stay open, but no reply comes.
// The clients' timeout is longer than a lease, so only redlock's own timeout for each site can help.
func TestRedlockPaysForAHungSiteOnlyItsShare(t *testing.T) {
	t.Parallel()
	home := newBench(t, "redlock")
	a, _ := home.pair(t, redlock)
	for _, n := range home.top.Nodes[:2] {
		must(t, n.Pause())
		defer func() { must(t, n.Resume()) }()
	}
	played(t, home, "k", func(home *stage, key string) {
		home.release(t, a, grant(t, a, key, live.Deadline/2))
	})
}

// TestRedlockLeavesNoMinorityBehind lets a try fail on three of five sites and checks the other two.
func TestRedlockLeavesNoMinorityBehind(t *testing.T) {
	t.Parallel()
	played(t, newBench(t, "redlock"), "k", func(home *stage, key string) {
		if leavesKeys(t, home, redlock, key) && home.undecided == "" {
			t.Error("a minority has the key")
		}
	})
}

func TestRedlockRefusesALeaseThatIsOverBeforeItIsGranted(t *testing.T) {
	t.Parallel()
	a, _ := newBench(t, "redlock").pair(t, redlock)
	if l, err := a.Acquire(t.Context(), "k", 2*time.Millisecond); err == nil {
		t.Errorf("granted until %v from now, less than the drift", time.Until(l.Until))
	}
}

func TestRedlockReleasesWhenItsCallerIsCalledOff(t *testing.T) {
	t.Parallel()
	a, b := newBench(t, "redlock").pair(t, redlock)
	held := grant(t, a, "k", long)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Release(ctx, held); err != nil && !late(err) {
		t.Error(err)
	}
	grant(t, b, "k", long)
}

func TestCatalogue(t *testing.T) {
	t.Parallel()
	seen, broken := map[string]bool{}, false
	for _, s := range every {
		if s.Name == "" || s.Doc == "" || s.Source == "" || s.Open == nil || seen[s.Name] {
			t.Errorf("%q is not described, or twice there", s.Name)
		}
		if (s.Broken == "") == (s.Assumes == "") || s.Broken != "" && len(s.Expect) == 0 {
			t.Errorf("%s: a lock is broken, and it is said how that shows, or it assumes something", s.Name)
		}
		if broken && s.Broken == "" {
			t.Errorf("%s: the right ones come first", s.Name)
		}
		broken = s.Broken != ""
		seen[s.Name] = true
	}
}

// tried returns the result of a try of a lock on many sites, unless a site may not have received it.
func (s *stage) tried(t *testing.T, l locks.Lock, key string) error {
	call := time.Now()
	_, err := l.Acquire(t.Context(), key, long)
	s.unheard(call)
	return err
}

func leavesKeys(t *testing.T, home *stage, s locks.Spec, key string) bool {
	for _, c := range home.sites[:3] {
		must(t, c.Set(t.Context(), key, "somebody", 0).Err())
	}
	if err := home.tried(t, open(t, s, home.env()), key); !errors.Is(err, locks.ErrQuorum) && home.undecided == "" {
		t.Errorf("got %v, want ErrQuorum", err)
	}
	left, err := home.sites[4].Exists(t.Context(), key).Result()
	must(t, err)
	return left == 1
}

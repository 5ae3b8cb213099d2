package scenarios_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/harness"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// hopeful takes an extension without a reply for a success.
type hopeful struct{ locks.Lock }

func (l hopeful) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	longer, err := l.Lock.Extend(ctx, lease, ttl)
	if err == nil || errors.Is(err, locks.ErrLost) {
		return longer, err
	}
	lease.Until = locks.Until(call, ttl)
	return lease, nil
}

// reading takes an extension without a reply for a success if the key has its own token.
type reading struct {
	locks.Lock
	client redis.UniversalClient
}

func (l reading) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	hasty, cancel := context.WithTimeout(ctx, ttl/8)
	defer cancel()
	longer, err := l.Lock.Extend(hasty, lease, ttl)
	if err == nil || errors.Is(err, locks.ErrLost) || l.client.Get(ctx, lease.Key).Val() != lease.Token {
		return longer, err
	}
	lease.Until = locks.Until(call, ttl)
	return lease, nil
}

// anySite extends a lease if any of the sites has extended it.
type anySite struct {
	locks.Lock
	sites []redis.UniversalClient
}

var extendOne = redis.NewScript(
	`if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end return redis.call("PEXPIRE", KEYS[1], ARGV[2])`)

func (l anySite) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	ctx, cancel := context.WithTimeout(ctx, ttl/8)
	defer cancel()
	var done atomic.Int64
	var all sync.WaitGroup
	for _, c := range l.sites {
		all.Go(func() {
			if n, err := extendOne.Run(ctx, c, []string{lease.Key}, lease.Token,
				ttl.Milliseconds()).Int64(); err == nil {
				done.Add(n)
			}
		})
	}
	if all.Wait(); done.Load() == 0 {
		return lease, locks.ErrLost
	}
	lease.Until = locks.Until(call, ttl)
	return lease, nil
}

// pooled has tokens of its process, which its threads use in turn.
type pooled struct {
	client redis.UniversalClient
	pool   *atomic.Int64
	prefix string
}

func (l pooled) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, call := locks.Lease{Key: key, Token: l.prefix + strconv.FormatInt(l.pool.Add(1)%4, 10)}, time.Now()
	ok, err := l.client.SetNX(ctx, key, lease.Token, ttl).Result()
	if err == nil && !ok {
		return lease, locks.ErrBusy
	}
	lease.Until = locks.Until(call, ttl)
	return lease, err
}

var deleteOne = redis.NewScript(
	`if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end return redis.call("DEL", KEYS[1])`)

func (l pooled) Extend(_ context.Context, lease locks.Lease, _ time.Duration) (locks.Lease, error) {
	return lease, errors.ErrUnsupported
}

func (l pooled) Release(ctx context.Context, lease locks.Lease) error {
	n, err := deleteOne.Run(ctx, l.client, []string{lease.Key}, lease.Token).Int64()
	if err == nil && n == 0 {
		return locks.ErrLost
	}
	return err
}

func (l pooled) Close() error { return nil }

// twoSteps checks the owner and then deletes the key. Pause cannot stop it between these commands.
type twoSteps struct {
	locks.Lock
	client redis.UniversalClient
}

func (l twoSteps) Release(ctx context.Context, lease locks.Lease) error {
	switch token, err := l.client.Get(ctx, lease.Key).Result(); {
	case errors.Is(err, redis.Nil), err == nil && token != lease.Token:
		return locks.ErrLost
	case err != nil:
		return err
	}
	return l.client.Del(ctx, lease.Key).Err()
}

// byPattern deletes all keys that begin with the lock's name, including other keys of the lock.
type byPattern struct {
	locks.Lock
	client redis.UniversalClient
}

var deleteAll = redis.NewScript(`if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("DEL", unpack(redis.call("KEYS", KEYS[1] .. "*")))`)

func (l byPattern) Release(ctx context.Context, lease locks.Lease) error {
	n, err := deleteAll.Run(ctx, l.client, []string{lease.Key}, lease.Token).Int64()
	if err == nil && n == 0 {
		return locks.ErrLost
	}
	return err
}

// untagged keeps the time of a grant in a second key without a hash tag, and takes both keys in one step.
type untagged struct {
	locks.Lock
	client redis.UniversalClient
}

var takeBoth = redis.NewScript(`if not redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return 0 end
redis.call("SET", KEYS[2], "now", "PX", ARGV[2]) return 1`)

func (l untagged) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, call := locks.Lease{Key: key, Token: rand.Text()}, time.Now()
	n, err := takeBoth.Run(ctx, l.client, []string{key, key + ":since"}, lease.Token, ttl.Milliseconds()).Int64()
	if err == nil && n == 0 {
		return lease, locks.ErrBusy
	}
	lease.Until = locks.Until(call, ttl)
	return lease, err
}

// deafened listens for the message of a release. After its connection has broken, it still listens to the old one.
type deafened struct {
	locks.Lock
	client redis.UniversalClient
}

func (l deafened) channel(key string) string { return key + ":released" }

func (l deafened) Release(ctx context.Context, lease locks.Lease) error {
	err := l.Lock.Release(ctx, lease)
	if err == nil {
		err = l.client.Publish(ctx, l.channel(lease.Key), "").Err()
	}
	return err
}

func (l deafened) Wait(ctx context.Context, key string) (history.Wake, error) {
	to := l.client.Subscribe(ctx, l.channel(key))
	defer func() { _ = to.Close() }()
	if _, err := to.Receive(ctx); err != nil {
		return history.AtOnce, err
	}
	if left, err := l.client.PTTL(ctx, key).Result(); err != nil || left < 0 {
		return history.AtOnce, err
	}
	if _, err := to.Receive(ctx); err != nil {
		<-ctx.Done()
	}
	return history.Signal, ctx.Err()
}

// lined tells the first in its queue that the lock is free. No waiter leaves the queue.
type lined struct {
	locks.Lock
	client redis.UniversalClient
}

func (l lined) Release(ctx context.Context, lease locks.Lease) error {
	err := l.Lock.Release(ctx, lease)
	if next := l.client.LPop(ctx, lease.Key+":line").Val(); next != "" {
		err = errors.Join(err, l.client.RPush(ctx, next, 1).Err())
	}
	return err
}

func (l lined) Wait(ctx context.Context, key string) (history.Wake, error) {
	mine := key + ":" + rand.Text()
	if l.client.RPush(ctx, key+":line", mine); l.client.Exists(ctx, key).Val() == 0 {
		return history.AtOnce, ctx.Err()
	}
	for ctx.Err() == nil {
		if l.client.BLPop(ctx, time.Second, mine).Err() == nil {
			return history.Signal, nil
		}
	}
	return history.Signal, ctx.Err()
}

// redials uses database 0 after one of its connections has broken.
type redials struct {
	locks.Lock
	on0 func() (locks.Lock, error)
}

func (l *redials) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.Lock.Acquire(ctx, key, ttl)
	if l.on0 != nil && err != nil && !errors.Is(err, locks.ErrBusy) {
		if again, failed := l.on0(); failed == nil {
			l.Lock, l.on0 = again, nil
		}
	}
	return lease, err
}

func redialing(e locks.Env, l locks.Lock) locks.Lock {
	spec, _ := known.Find("lease")
	return &redials{l, func() (locks.Lock, error) {
		to := e.Places[0].Access()
		to.DB = 0
		e.Sites = []redis.UniversalClient{to.Site().Client(topologies.ClientOptions{Source: e.Source})}
		return spec.Open(e)
	}}
}

// unrenewed stops its renewals when it could not reach a server.
type unrenewed struct {
	locks.Lock
	bare locks.Lock
	dead *atomic.Bool
}

func (l unrenewed) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	if l.dead.Load() {
		lease, err := l.bare.Acquire(ctx, key, ttl)
		lease.Until = time.Time{}
		return lease, err
	}
	lease, err := l.Lock.Acquire(ctx, key, ttl)
	if errors.Is(err, topologies.ErrUnreachable) {
		l.dead.Store(true)
	}
	return lease, err
}

func (l unrenewed) Release(ctx context.Context, lease locks.Lease) error {
	if l.dead.Load() {
		return l.bare.Release(ctx, lease)
	}
	return l.Lock.Release(ctx, lease)
}

// learntOnce sends all requests to the server that had its key at first.
type learntOnce struct {
	locks.Lock
	env   locks.Env
	known bool
}

func (l *learntOnce) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	if !l.known {
		node, err := l.env.Sites[0].(*redis.ClusterClient).MasterForKey(ctx, key)
		if err != nil {
			return locks.Lease{Key: key}, err
		}
		spec, _ := known.Find("lease")
		l.env.Sites = []redis.UniversalClient{node}
		l.Lock, _ = spec.Open(l.env)
		l.known = true
	}
	return l.Lock.Acquire(ctx, key, ttl)
}

// wrong returns a lock of the catalogue with one change.
func wrong(t *testing.T, name string, change func(locks.Env, locks.Lock) locks.Lock) locks.Spec {
	t.Helper()
	spec, ok := known.Find(name)
	if !ok {
		t.Fatalf("no lock %q", name)
	}
	open := spec.Open
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		if err != nil {
			return nil, err
		}
		return change(e, l), nil
	}
	return spec
}

// TestLiveNamesAreAsPeopleWriteThem: a lock that uses several keys fails on a cluster if the names of these keys
// belong to different slots. A correct lock passes.
func TestLiveNamesAreAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	lock := wrong(t, "lease", func(e locks.Env, l locks.Lock) locks.Lock { return untagged{l, e.Sites[0]} })
	if status, text := verdict(t, lock, "cluster", "many-keys", 1); status == checker.Pass {
		t.Errorf("keys in several slots: %s", text)
	} else {
		t.Logf("%s: %s", status, text)
	}
	if testing.Short() {
		return
	}
	if status, text := verdict(t, lock, "cluster", "contention", 1); status == checker.Fail {
		t.Errorf("where names have tags: %s", text)
	}
}

// TestLiveScenariosCatchTheirKind: each of these locks is broken in a way that one scenario tests. It fails there
// with at least one of ten seeds, and passes in contention, which has no faults.
func TestLiveScenariosCatchTheirKind(t *testing.T) {
	t.Parallel()
	byName := func(e locks.Env, l locks.Lock) locks.Lock { return byPattern{l, e.Sites[0]} }
	inLine := func(e locks.Env, l locks.Lock) locks.Lock { return lined{l, e.Sites[0]} }
	once := func(e locks.Env, l locks.Lock) locks.Lock { return &learntOnce{Lock: l, env: e} }
	dead := new(atomic.Bool)
	unwatched := func(e locks.Env, l locks.Lock) locks.Lock {
		spec, _ := known.Find("lease")
		bare, _ := spec.Open(e)
		return unrenewed{l, bare, dead}
	}
	pool, prefix := new(atomic.Int64), rand.Text()
	for name, tt := range map[string]struct {
		lock     locks.Spec
		on       string
		scenario string
	}{
		"an extension without an answer counts": {
			wrong(t, "lease", func(_ locks.Env, l locks.Lock) locks.Lock { return hopeful{l} }), "single",
			"lost-extensions",
		},
		"a read tells what an extension did": {
			wrong(t, "lease", func(e locks.Env, l locks.Lock) locks.Lock { return reading{l, e.Sites[0]} }), "single",
			"held-writes",
		},
		"any site can lengthen a lease": {
			wrong(t, "redlock", func(e locks.Env, l locks.Lock) locks.Lock { return anySite{l, e.Sites} }), "redlock",
			"failing-sites",
		},
		"threads share tokens": {
			wrong(t, "lease", func(e locks.Env, _ locks.Lock) locks.Lock { return pooled{e.Sites[0], pool, prefix} }),
			"single", "late-commands",
		},
		"a client stops between two commands": {
			wrong(t, "lease", func(e locks.Env, l locks.Lock) locks.Lock { return twoSteps{l, e.Sites[0]} }), "single",
			"late-commands",
		},
		"a waiter has lost its subscription": {
			wrong(t, "lease", func(e locks.Env, l locks.Lock) locks.Lock { return deafened{l, e.Sites[0]} }),
			"single", "lost-wakeup",
		},
		"who has left is woken":            {wrong(t, "lease", inLine), "single", "gone-waiters"},
		"slots are learnt once":            {wrong(t, "lease", once), "cluster", "moving-slot"},
		"renewals end with the server":     {wrong(t, "watchdog", unwatched), "single", "forgetful"},
		"a new connection has no database": {wrong(t, "lease", redialing), "single", "ambiguous"},
		"a release deletes by pattern":     {wrong(t, "lease", byName), "single", "late-release"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catches(t, tt.lock, tt.on, tt.scenario)
		})
	}
}

// catches tells whether a scenario fails a broken lock with some seed. The lock must pass without faults.
func catches(t *testing.T, lock locks.Spec, on, scenario string) {
	t.Helper()
	for seed := uint64(1); ; seed++ {
		status, text := verdict(t, lock, on, scenario, seed)
		t.Logf("seed %d: %s: %s", seed, status, text)
		if status == checker.Fail {
			break
		}
		if seed == 10 {
			t.Fatalf("%s does not catch it", scenario)
		}
	}
	if testing.Short() {
		return
	}
	live.Again(t, func(attempt int) (undecided string) { // on a busy machine, waiters leave here, too
		status, text := verdict(t, lock, on, "contention", uint64(attempt+1))
		if status == checker.Fail && !strings.Contains(text, history.EqualTokens) { // these show without faults
			return "it fails where nothing breaks: " + text
		}
		return ""
	})
}

// TestMain becomes a worker process if the test is started as one.
func TestMain(m *testing.M) {
	os.Exit(crew.Main(context.Background(), crew.Catalogue{Locks: known.Locks, Counters: workload.AllCounters}, m.Run))
}

// TestLiveWhatIsMeasuredIsJudged: a run fails if a call hangs, if a call panics, or if a client keeps memory. It
// fails again when the saved run is judged again.
func TestLiveWhatIsMeasuredIsJudged(t *testing.T) {
	t.Parallel()
	for lock, want := range map[string]struct{ scenario, checker, cause string }{
		"trusts-replies":  {"server-hangs", history.Calls, history.Panicked},
		"stop-by-message": {"renewal-hangs", history.Calls, history.HungCall},
		"refusal-kept":    {"wear", history.Client, history.ClientLeak},
		"listener-kept":   {"wear-renewals", history.Client, history.ClientLeak},
	} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && strings.Contains(want.scenario, "renewal") {
				t.Skip("it takes 8 s, or 18 s until a call is given up")
			}
			live.Again(t, func(attempt int) (undecided string) {
				out := t.TempDir()
				run := ran(t, wrong(t, lock, func(_ locks.Env, l locks.Lock) locks.Lock { return l }), "single",
					want.scenario, uint64(attempt+1), out)
				again, err := checker.JudgeFile(filepath.Join(out, run.Name, results.HistoryFile))
				if err != nil {
					t.Fatal(err)
				}
				for _, all := range [][]checker.Verdict{run.Verdicts, again} {
					n := slices.IndexFunc(all, func(v checker.Verdict) bool { return v.Checker == want.checker })
					v := all[n]
					if v.Status != checker.Fail || strings.Contains(v.Summary, "memory") {
						return v.Summary // this process has the memory of other tests, too
					}
					told := len(v.Story) > 1 || strings.Contains(v.Summary, "open files") // files have no stacks
					if v.Cause != want.cause || !told || v.Remedy == "" {
						t.Errorf("got %+v", v)
					}
				}
				return ""
			})
		})
	}
}

// TestAloneAStormIsSeen: a lock that wakes itself storms only as fast as the machine lets it.
func TestAloneAStormIsSeen(t *testing.T) {
	lock := wrong(t, "wakes-itself", func(_ locks.Env, l locks.Lock) locks.Lock { return l })
	for seed := uint64(1); ; seed++ {
		switch status, text := verdict(t, lock, "single", "cost", seed); {
		case status == checker.Fail && strings.Contains(text, history.Storm):
			return
		case seed == 6:
			t.Fatalf("%s: %s", status, text)
		}
	}
}

// verdict runs a scenario once; the result may be inconclusive.
func verdict(t *testing.T, lock locks.Spec, on, name string, seed uint64) (checker.Status, string) {
	t.Helper()
	return ran(t, lock, on, name, seed, t.TempDir()).Safety()
}

func ran(t *testing.T, lock locks.Spec, on, name string, seed uint64, out string) *results.Run {
	t.Helper()
	topology, _ := topologies.Find(on)
	scenario, ok := scenarios.Find(name)
	if !ok {
		t.Fatalf("no scenario %q", name)
	}
	p := harness.Default()
	scenario.Processes = 0 // other processes would have the lock of the catalogue
	p.Verify, p.Warmup, p.Faults, p.Attempts = true, 0, []string{"auto"}, 1
	p.Topologies, p.Locks, p.Scenarios = []topologies.Spec{topology}, []locks.Spec{lock}, []scenarios.Scenario{scenario}
	p.Out, p.Workload.Seed = out, seed
	job, err := p.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := job.Run(t.Context(), t.Context())
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	return &runs[0]
}

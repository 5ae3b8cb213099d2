package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// hello describes an election as a lock: to be elected is to acquire, and to step down is to release. A leader that
// is deposed gets the event "lost". Leases are whole seconds.
//
// Each candidate counts the lease from the time at which it last saw the leader's record change. So the lease of a
// dead leader may last longer. With the argument "release", a leader that steps down gives its lease back.
func hello(bool) map[string]any {
	h := greeting("leaderelection", "k8s.io/client-go", []string{"single"}, "excludes", "expires", "renews", "waits")
	h["lingers_ms"], h["least_ms"] = 2500, 3000
	return h
}

var client *redis.Client

// givesBack: a leader that steps down gives its lease back. Others need not wait for the end of the lease.
var givesBack = slices.Contains(os.Args, "release")

// open connects. Only the context of a call limits its time, as with the clients of Kubernetes.
func open(ctx context.Context, sites []site) error {
	s := sites[0]
	client = redis.NewClient(&redis.Options{
		Addr: s.addr(), Username: s.User, Password: s.Password, DB: s.DB, Protocol: 2, DisableIdentity: true,
		MaxRetries:            -1,
		ContextTimeoutEnabled: true, PoolSize: 1000, ReadTimeout: -1, DialTimeout: time.Second,
	})
	return client.Ping(ctx).Err()
}

// record stores who leads, in a Redis key. It replaces the key only if the value is still the one that was read. The
// library expects this of a Kubernetes object, which has a resource version for it.
type record struct {
	key, identity string
	read          string
	mine          bool      // after the last write, this candidate may be the leader
	won           time.Time // start of the first write that made it the leader
}

var replace = redis.NewScript(
	`if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end redis.call("SET", KEYS[1], ARGV[2]) return 1`)

func (r *record) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	text, err := client.Get(ctx, r.key).Result()
	if errors.Is(err, redis.Nil) {
		err = apierrors.NewNotFound(schema.GroupResource{Resource: "keys"}, r.key)
	}
	if err != nil {
		return nil, nil, err
	}
	r.read = text
	var ler resourcelock.LeaderElectionRecord
	return &ler, []byte(text), json.Unmarshal([]byte(text), &ler)
}

func (r *record) Create(ctx context.Context, ler resourcelock.LeaderElectionRecord) error {
	call := time.Now()
	text, err := json.Marshal(ler)
	if err != nil {
		return err
	}
	done, err := client.SetNX(ctx, r.key, text, 0).Result()
	return r.written(call, ler, string(text), done, err)
}

func (r *record) Update(ctx context.Context, ler resourcelock.LeaderElectionRecord) error {
	call := time.Now()
	text, err := json.Marshal(ler)
	if err != nil {
		return err
	}
	done, err := replace.Run(ctx, client, []string{r.key}, r.read, text).Bool()
	return r.written(call, ler, string(text), done, err)
}

func (r *record) written(call time.Time, ler resourcelock.LeaderElectionRecord, text string, done bool,
	err error) error {
	switch {
	case err != nil:
		r.mine = true
	case !done:
		return apierrors.NewConflict(schema.GroupResource{Resource: "keys"}, r.key,
			errors.New("it was changed meanwhile"))
	default:
		if r.read, r.mine = text, ler.HolderIdentity == r.identity; r.mine && r.won.IsZero() {
			r.won = call
		}
	}
	return err
}

func (r *record) RecordEvent(string) {}
func (r *record) Identity() string   { return r.identity }
func (r *record) Describe() string   { return r.key }

// lock is the time for which a candidate is the leader.
type lock struct {
	tried  time.Time // start of the write that made it the leader
	resign context.CancelFunc
	over   chan struct{} // closed when the election has returned
	told   chan struct{} // closed when the leader was deposed before it stepped down
	leaves atomic.Bool   // it steps down, or gives up its candidacy
}

var candidates atomic.Int64

// acquire runs a candidate until it is elected or the time wait is over.
func acquire(ctx context.Context, key string, ttl, wait time.Duration) (*lock, error) {
	lease := (ttl + time.Second - 1).Truncate(time.Second)
	running, resign := context.WithCancel(context.Background())
	l := &lock{resign: resign, over: make(chan struct{}), told: make(chan struct{})}
	elected := make(chan struct{})
	r := &record{key: key, identity: fmt.Sprintf("candidate-%d-%d", os.Getpid(), candidates.Add(1))}
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: r, LeaseDuration: lease, RenewDeadline: lease * 2 / 3, RetryPeriod: lease * 2 / 15,
		ReleaseOnCancel: givesBack,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { l.tried = r.won; close(elected) },
			OnStoppedLeading: func() {
				if !l.leaves.Load() {
					close(l.told)
				}
			},
		},
	})
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(l.over)
		e.Run(running)
	}()
	patience, done := context.WithTimeout(ctx, max(wait, lease/10))
	defer done()
	select {
	case <-elected:
		return l, nil
	case <-patience.Done():
		l.leaves.Store(true)
		resign()
		<-l.over
		if r.mine {
			return nil, errors.New("it may have been elected when it gave up")
		}
		return nil, errBusy
	}
}

func (l *lock) lost() <-chan struct{} { return l.told }

func (l *lock) token() string { return "" } // the record changes with each renewal

func (l *lock) extend(context.Context, time.Duration) error {
	return errors.New("the library renews on its own")
}

// release makes the leader step down, and waits until the library has done so.
func (l *lock) release(ctx context.Context) error {
	l.leaves.Store(true)
	l.resign()
	select {
	case <-l.over:
		if !givesBack {
			return errors.New("it leads no longer, and its lease is over when it is over")
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

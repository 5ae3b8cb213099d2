package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/locks"
	"hammerlock/locks/catalogue"
)

const (
	lease    = 10 * time.Second
	patience = 60 * time.Second // of a visitor that waits for a lock
	backoff  = time.Millisecond
)

// instance is one process of the service. All instances share the page views, which are in Redis.
type instance struct {
	store  *redis.Client
	mutex  sync.Mutex
	lease  locker // on the server with the page views
	quorum locker // on several other servers
}

// serve runs the command "pageviews serve".
func serve(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	listen := f.String("listen", "127.0.0.1:8080", "address of the service")
	server := f.String("redis", "127.0.0.1:6379", "server of the page views and of the lock of v3")
	quorum := f.String("redlock", "", "servers of the lock of v4, with commas in between")
	if err := f.Parse(args); err != nil {
		return err
	}
	i := &instance{store: client(*server)}
	i.lease.name, i.lease.sites = "lease", []redis.UniversalClient{i.store}
	i.quorum.name = "redlock"
	for addr := range strings.SplitSeq(*quorum, ",") {
		if addr != "" {
			i.quorum.sites = append(i.quorum.sites, client(addr))
		}
	}
	s := &http.Server{Addr: *listen, Handler: i.routes(), ReadHeaderTimeout: patience}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// client returns a client that does not repeat commands. If the answer to an acquire is lost, a repeated acquire
// would find the lock held, as if by another worker.
func client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 32,
		PoolTimeout: patience})
}

// routes has the four versions of the service. Each has its own counter.
func (i *instance) routes() http.Handler {
	mux := http.NewServeMux()
	for version, guard := range map[string]func(context.Context, string, func() error) error{
		"v1": func(_ context.Context, _ string, count func() error) error { return count() },
		"v2": func(_ context.Context, _ string, count func() error) error {
			i.mutex.Lock()
			defer i.mutex.Unlock()
			return count()
		},
		"v3": i.lease.guard,
		"v4": i.quorum.guard,
	} {
		page := version + ":pview"
		mux.HandleFunc("POST /"+version+"/pview", func(w http.ResponseWriter, r *http.Request) {
			var views int64
			err := guard(r.Context(), page, func() (err error) {
				views, err = i.count(r.Context(), page)
				return err
			})
			answer(w, views, err)
		})
		mux.HandleFunc("GET /"+version+"/pview", func(w http.ResponseWriter, r *http.Request) {
			views, err := i.views(r.Context(), page)
			answer(w, views, err)
		})
	}
	return mux
}

func answer(w http.ResponseWriter, views int64, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintln(w, views) // an error means that the visitor has gone
}

func (i *instance) views(ctx context.Context, page string) (int64, error) {
	n, err := i.store.Get(ctx, page).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, err
}

// count reads the views, adds one and writes them back, as a program without INCR does. If two calls read the same
// number, one view is lost.
func (i *instance) count(ctx context.Context, page string) (int64, error) {
	n, err := i.views(ctx, page)
	if err != nil {
		return 0, err
	}
	return n + 1, i.store.Set(ctx, page, n+1, 0).Err()
}

// locker uses a lock of Hammerlock's catalogue. The requests of an instance take turns, so that only one of them
// competes with other instances for the lock.
type locker struct {
	turn  sync.Mutex
	name  string
	sites []redis.UniversalClient
}

// guard acquires the lock, calls do and releases the lock. It repeats its tries until the lock is granted.
func (l *locker) guard(ctx context.Context, page string, do func() error) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	spec, _ := catalogue.Find(l.name)
	luck := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	lock, err := spec.Open(locks.Env{Sites: l.sites, Process: &locks.Process{}, Rand: luck})
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // it has no connections of its own
	for wait := backoff; ; wait = min(2*wait, 16*backoff) {
		held, err := lock.Acquire(ctx, "lock:"+page, lease)
		if err == nil {
			return errors.Join(do(), lock.Release(context.WithoutCancel(ctx), held))
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(wait/2 + time.Duration(luck.Int64N(int64(wait)))):
		}
	}
}

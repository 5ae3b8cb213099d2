package explore

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/checker"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
)

// subscriber is a lease that listens to a channel with the library's own loop, which sleeps when its connection
// breaks.
type subscriber struct {
	locks.Lock
	to *redis.PubSub
}

func (s subscriber) Close() error {
	_ = s.to.Close()
	return s.Lock.Close()
}

// strangeLocks are correct leases, each of which does something that no lock of the catalogue does.
func strangeLocks() (list []locks.Spec) {
	for name, change := range map[string]func(*locks.Env) func(locks.Lock) locks.Lock{
		"it listens": func(e *locks.Env) func(locks.Lock) locks.Lock {
			to := e.Sites[0].Subscribe(context.Background(), "news")
			_ = to.Channel()
			return func(l locks.Lock) locks.Lock { return subscriber{l, to} }
		},
		"it leaves a goroutine": func(*locks.Env) func(locks.Lock) locks.Lock {
			never := make(chan int)
			go func() { <-never }()
			return nil
		},
		"it connects to its places": func(e *locks.Env) func(locks.Lock) locks.Lock {
			own := e.Places[0].Client(topologies.ClientOptions{})
			e.Sites = []redis.UniversalClient{own}
			return func(l locks.Lock) locks.Lock { return owner{l, own} }
		},
		"it has its own client": func(e *locks.Env) func(locks.Lock) locks.Lock {
			own := redis.NewClient(&redis.Options{Addr: e.Places[0].Addrs()[0], Dialer: e.Places[0].Dialer(1),
				MaxRetries: -1, DialerRetries: 1, ReadTimeout: time.Second, ContextTimeoutEnabled: true})
			e.Sites = []redis.UniversalClient{own}
			return func(l locks.Lock) locks.Lock { return owner{l, own} }
		},
		"it connects past us": func(e *locks.Env) func(locks.Lock) locks.Lock {
			own := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1,
				Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
					return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, addr)
				}})
			e.Sites = []redis.UniversalClient{own}
			return func(l locks.Lock) locks.Lock { return owner{l, own} }
		},
	} {
		spec, _ := known.Find("lease")
		open := spec.Open
		spec.Name = name
		spec.Open = func(e locks.Env) (locks.Lock, error) {
			wrap := change(&e)
			l, err := open(e)
			if wrap != nil {
				l = wrap(l)
			}
			return l, err
		}
		list = append(list, spec)
	}
	return list
}

// owner is a lock with its own client.
type owner struct {
	locks.Lock
	client redis.UniversalClient
}

func (o owner) Close() error {
	_ = o.client.Close()
	return o.Lock.Close()
}

// TestStrangersAreExploredOrNot: a lock is explored if possible, else the reason is given. No exploring process
// crashes because of what a correct lock may do.
func TestStrangersAreExploredOrNot(t *testing.T) {
	for lock, why := range map[string]string{
		"it listens":                "",
		"it connects to its places": "",
		"it has its own client":     "",
		"it leaves a goroutine": "a goroutine of the lock does not end when the lock is closed: " +
			"it is in hammerlock/explore.strangeLocks.func",
		"it connects past us": "the lock makes connections of its own",
	} {
		r, err := InProcess(t.Context(), Orders{Lock: lock, Options: bounded(1)})
		switch {
		case err != nil:
			t.Errorf("%s: %v", lock, err)
		case why == "" && (r.Status != checker.Pass || r.Schedules() < 50):
			t.Errorf("%s: got %v, %s, want that it is explored", lock, r.Status, r.Verdict())
		case why != "" && (!r.Excluded || r.Status != checker.Inconclusive || !strings.HasPrefix(r.Reason, why)):
			t.Errorf("%s: got %v, %q, want that it is not explored: %s", lock, r.Status, r.Reason, why)
		}
	}
}

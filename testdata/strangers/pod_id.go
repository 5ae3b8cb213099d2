package locks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

// BerriAI/litellm, PodLockManager (issue 21225): the token is that of the process, and a lock that holds it counts as acquired.
var podID = Spec{
	Name: "pod-id", Doc: "SET NX PX with an id of the process; who finds its own id has the lock", Source: "litellm issue 21225, PodLockManager", Sites: OneSite,
	Broken: "all workers of a process hold the lock at once",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true},
	Open:   func(e Env) (Lock, error) { return &podLock{leaseLock{e.Sites[0]}, podOf(e.Process)}, nil },
}

var pods = struct {
	sync.Mutex
	ids map[*Process]string
}{ids: map[*Process]string{}}

func podOf(p *Process) string {
	pods.Lock()
	defer pods.Unlock()
	if pods.ids[p] == "" {
		pods.ids[p] = uuid()
	}
	return pods.ids[p]
}

type podLock struct {
	leaseLock
	pod string
}

func (l *podLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	lease := Lease{Key: key, Token: l.pod}
	call := time.Now()
	err := setNX(ctx, l.client, key, l.pod, ttl)
	if errors.Is(err, ErrBusy) {
		held, gone := l.client.Get(ctx, key).Result()
		if gone != nil && !errors.Is(gone, redis.Nil) {
			return lease, gone
		}
		if held == l.pod {
			err = nil
		}
	}
	return lease.from(call, ttl, err)
}

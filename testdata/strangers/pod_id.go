package catalogue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// BerriAI/litellm, PodLockManager (issue 21225): the token is that of the process, and a lock that holds it counts as
// acquired.
var podID = locks.Spec{
	Name: "pod-id", Doc: "SET NX PX with an id of the process; who finds its own id has the lock",
	Source: "litellm issue 21225, PodLockManager", Sites: locks.OneSite,
	Broken: "all workers of a process hold the lock at once",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true},
	Open:   func(e locks.Env) (locks.Lock, error) { return &podLock{leaseLock{e.Sites[0]}, podOf(e.Process)}, nil },
}

var pods = struct {
	sync.Mutex
	ids map[*locks.Process]string
}{ids: map[*locks.Process]string{}}

func podOf(p *locks.Process) string {
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

func (l *podLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: l.pod}
	call := time.Now()
	err := setNX(ctx, l.client, key, l.pod, ttl)
	if errors.Is(err, locks.ErrBusy) {
		held, gone := l.client.Get(ctx, key).Result()
		if gone != nil && !errors.Is(gone, redis.Nil) {
			return lease, gone
		}
		if held == l.pod {
			err = nil
		}
	}
	return from(lease, call, ttl, err)
}

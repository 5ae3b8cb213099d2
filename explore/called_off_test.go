package explore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// tidy deletes the lock's key some time after a cancelled call, whoever has the lock by then.
func tidy(ctx context.Context, site redis.UniversalClient, key string) {
	if ctx.Err() != nil {
		<-time.After(Defaults.Hold / 2)
		_ = site.Del(context.WithoutCancel(ctx), key).Err()
	}
}

// tidyRelease does this after a release, and tidyWait after a wait.
type tidyRelease struct {
	locks.Lock
	site redis.UniversalClient
}

func (l tidyRelease) Release(ctx context.Context, lease locks.Lease) error {
	defer tidy(ctx, l.site, lease.Key)
	return l.Lock.Release(ctx, lease)
}

type tidyWait struct {
	locks.Lock
	site redis.UniversalClient
}

func (l tidyWait) Wait(ctx context.Context, key string) (history.Wake, error) {
	defer tidy(ctx, l.site, key)
	return l.Lock.(locks.Waiter).Wait(ctx, key)
}

// TestReleasesAndWaitsAreCalledOff: one deviation shows what such a lock does to another client's hold.
func TestReleasesAndWaitsAreCalledOff(t *testing.T) {
	for name, wrap := range map[string]func(locks.Lock, redis.UniversalClient) locks.Lock{
		"lease":    func(l locks.Lock, site redis.UniversalClient) locks.Lock { return tidyRelease{l, site} },
		"redisson": func(l locks.Lock, site redis.UniversalClient) locks.Lock { return tidyWait{l, site} },
	} {
		spec := find(t, name)
		open := spec.Open
		spec.Open = func(e locks.Env) (locks.Lock, error) {
			l, err := open(e)
			return wrap(l, e.Sites[0]), err
		}
		f := run(t, spec, bounded(1)).Found
		if f == nil || len(f.Schedule) != 1 || !strings.HasSuffix(f.Schedule[0].What, acts[cancelsCall]) {
			t.Errorf("%s: got %+v, want that a call that was called off deletes what another holds", name, f)
		}
	}
}

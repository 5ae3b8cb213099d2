package explore

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"hammerlock/checker"
	"hammerlock/locks"
)

// coin gives the same results in every run of the test, and other results in every replay.
type coin struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (c *coin) toss() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.r.IntN(2) == 0
}

// randomRelease is a lease whose release sends an additional command at random. If wrong is true, this command
// deletes a key that another client may hold.
type randomRelease struct {
	locks.Lock
	env   locks.Env
	coin  *coin
	wrong bool
}

func (l randomRelease) Release(ctx context.Context, lease locks.Lease) error {
	if l.coin.toss() {
		return l.Lock.Release(ctx, lease)
	}
	client := l.env.Sites[0]
	if err := client.Exists(ctx, lease.Key).Err(); err != nil || !l.wrong {
		return l.Lock.Release(ctx, lease)
	}
	return client.Del(ctx, lease.Key).Err()
}

func randomLease(t *testing.T, wrong bool) locks.Spec {
	spec := find(t, "lease")
	open, c := spec.Open, &coin{r: rand.New(rand.NewPCG(1, 1))}
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		return randomRelease{l, e, c, wrong}, err
	}
	return spec
}

// TestTheLocksOwnChance: a schedule of a lock with random choices is repeated until it is the same as before, and the
// report counts these repetitions.
func TestTheLocksOwnChance(t *testing.T) {
	o := bounded(1)
	o.Visits = 1
	r := run(t, randomLease(t, false), o)
	if l := r.Levels[1]; r.Status != checker.Pass || !l.Complete || l.Again == 0 || l.Diverged > 0 {
		t.Errorf("got %v, %+v, want that all schedules were run, some of them again", r.Status, l)
	}
	if r := run(t, randomLease(t, true), o); r.Found == nil || r.Found.Checker != "exclusion" {
		t.Errorf("got %s, want that the bug of one side of the coin is found", r.Verdict())
	}
}

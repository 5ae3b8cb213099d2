package explore

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"hammerlock/checker"
	"hammerlock/locks"
)

// dice fall the same in every run of the test, and another way in every replay.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) throw() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(2) == 0
}

// moody sends a command more or less, as the dice fall. With the one it releases well; with the other, if it is told to, it deletes
// what may be somebody else's.
type moody struct {
	locks.Lock
	env   locks.Env
	dice  *dice
	wrong bool
}

func (l moody) Release(ctx context.Context, lease locks.Lease) error {
	if l.dice.throw() {
		return l.Lock.Release(ctx, lease)
	}
	client := l.env.Sites[0]
	if err := client.Exists(ctx, lease.Key).Err(); err != nil || !l.wrong {
		return l.Lock.Release(ctx, lease)
	}
	return client.Del(ctx, lease.Key).Err()
}

func moodyLease(t *testing.T, wrong bool) locks.Spec {
	spec := find(t, "lease")
	open, d := spec.Open, &dice{r: rand.New(rand.NewPCG(1, 1))}
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		return moody{l, e, d, wrong}, err
	}
	return spec
}

// TestTheLocksOwnChance: a schedule of a lock that throws dice is run again until it is the one that was meant; how often is told.
func TestTheLocksOwnChance(t *testing.T) {
	r := run(t, moodyLease(t, false), bounded(1))
	if l := r.Levels[1]; r.Status != checker.Pass || !l.Complete || l.Again == 0 || l.Diverged > 0 {
		t.Errorf("got %v, %+v, want that all schedules were run, some of them again", r.Status, l)
	}
	if r := run(t, moodyLease(t, true), bounded(1)); r.Found == nil || r.Found.Checker != "exclusion" {
		t.Errorf("got %s, want that the bug of one face is found", r.Verdict())
	}
}

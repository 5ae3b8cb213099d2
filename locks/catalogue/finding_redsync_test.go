package catalogue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"hammerlock/internal/live"
	"hammerlock/topologies"
)

// redsync makes the library's object as an application does. Its clients have connected to all sites.
func (p *people) redsync(t *testing.T) *redsync.Redsync {
	t.Helper()
	rs := p.newRedsync()
	m := rs.NewMutex("warm")
	must(t, errors.Join(m.Lock(), errOf(m.Extend()), errOf(m.Unlock())))
	return rs
}

func (p *people) newRedsync() *redsync.Redsync {
	var pools []redis.Pool
	for _, c := range p.clients {
		pools = append(pools, goredis.NewPool(c))
	}
	return redsync.New(pools...)
}

func errOf(_ bool, err error) error { return err }

// taken lets another user hold the key on the first three of five nodes.
func (p *people) taken(t *testing.T, key string) {
	t.Helper()
	for _, n := range p.top.Nodes[:3] {
		must(t, n.Do(t.Context(), "SET", key, "somebody else's", "PX", 60000).Err())
	}
}

// leftOnMinority returns on how many of the other two nodes more than half of redsync's default expiry is left.
func (p *people) leftOnMinority(t *testing.T, key string) (n int) {
	t.Helper()
	for i := 3; i < 5; i++ {
		if p.left(t, i, key) > 4*time.Second {
			n++
		}
	}
	return n
}

func TestFindingRedsyncExtendFailsWithAHungNode(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "redlock", topologies.Options{})
	rs := p.redsync(t)
	held, fast := rs.NewMutex("held"), rs.NewMutex("fast", redsync.WithFailFast(true), redsync.WithExpiry(long))
	must(t, held.Lock())
	p.pause(t, 4)
	ok, err := held.Extend()
	if ok || !errors.Is(err, redsync.ErrExtendFailed) || time.Now().Before(held.Until()) {
		t.Errorf("extended: %v, %v, %v before its end", ok, err, time.Until(held.Until()))
	}
	must(t, fast.Lock())
	if ok, err = fast.Extend(); !ok {
		t.Errorf("extended with fail-fast: %v, %v", ok, err)
	}
}

func TestFindingRedsyncLockWaitsForAHungNode(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "redlock", topologies.Options{})
	rs := p.redsync(t)
	p.pause(t, 4)
	t.Run("two seconds", func(t *testing.T) {
		t.Parallel()
		m := rs.NewMutex("short", redsync.WithExpiry(2*time.Second), redsync.WithTries(1))
		if err := m.Lock(); err == nil {
			t.Error("granted")
		}
	})
	t.Run("eight seconds", func(t *testing.T) {
		t.Parallel()
		m := rs.NewMutex("long", redsync.WithTries(1))
		must(t, m.Lock())
		left := time.Until(m.Until())
		if left > 4*time.Second {
			t.Errorf("%v left", left)
		}
		t.Logf("%v left", left)
	})
	t.Run("two seconds, heeding deadlines", func(t *testing.T) {
		t.Parallel()
		strict := &people{top: p.top}
		for i := range p.clients {
			strict.clients = append(strict.clients, p.strict(t, i))
		}
		m := strict.newRedsync().NewMutex("strict", redsync.WithExpiry(2*time.Second), redsync.WithTries(1))
		// a busy machine may need more than the library's 0.1 s for each node
		live.Wait(t, "a grant", func() bool { return m.Lock() == nil })
	})
}

func TestFindingRedsyncFailFastLeavesKeys(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "redlock", topologies.Options{})
	rs := p.redsync(t)
	refused := func(batch int, fast bool) (left int) {
		var keys []string
		for i := range 50 {
			key := fmt.Sprint(batch, "-", i, fast)
			p.taken(t, key)
			if err := rs.NewMutex(key, redsync.WithTries(1), redsync.WithFailFast(fast)).Lock(); err == nil {
				t.Error("granted what is taken")
			}
			keys = append(keys, key)
		}
		outlive(300 * time.Millisecond)
		for _, key := range keys {
			left += p.leftOnMinority(t, key)
		}
		return left
	}
	slow, fast, batches := 0, 0, 0
	for ; batches < 20 && fast < 5; batches++ {
		slow += refused(batches, false)
		fast += refused(batches, true)
	}
	if slow != 0 || fast == 0 {
		t.Errorf("got %d keys left, and %d with fail-fast, want none and some", slow, fast)
	}
	t.Logf("of %d keys of refused attempts %d are left, and %d with fail-fast", 100*batches, slow, fast)
}

// TestFindingRedsyncCanceledContextLeavesKeys cancels a try after the nodes that were free have set the key, but
// before their replies arrive.
func TestFindingRedsyncCanceledContextLeavesKeys(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "redlock", topologies.Options{Links: true})
	rs := p.redsync(t)
	const late = 300 * time.Millisecond
	p.apply(t, p.slow(late))
	p.played(t, func(home *stage, key string) {
		for canceled := range 2 {
			key := fmt.Sprint(key, canceled)
			p.taken(t, key)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m, told := rs.NewMutex(key, redsync.WithTries(1), redsync.WithExpiry(long)), make(chan error, 1)
			call := time.Now()
			go func() { told <- m.LockContext(ctx) }()
			if canceled == 1 {
				live.Wait(t, "keys on a minority", func() bool {
					return p.leftOnMinority(t, key) == 2 || home.late(call.Add(late))
				})
				cancel()
				home.late(call.Add(late))
			}
			err := <-told
			if home.undecided != "" {
				return
			}
			if err == nil || errors.Is(err, context.Canceled) {
				t.Errorf("told %v", err)
			}
			if canceled == 1 {
				outlive(2 * late) // enough time for the library to release the keys
			}
			live.Wait(t, fmt.Sprint(2*canceled, " keys left after ", err), func() bool {
				return p.leftOnMinority(t, key) == 2*canceled
			})
		}
	})
}

func TestFindingRedsyncSetNXOnExtendRevivesAnEndedLock(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "redlock", topologies.Options{})
	rs := p.redsync(t)
	a := rs.NewMutex("k", redsync.WithExpiry(long), redsync.WithSetNXOnExtend())
	b := rs.NewMutex("k", redsync.WithExpiry(long))
	must(t, a.Lock())
	p.end(t, "k")
	must(t, errors.Join(b.Lock(), errOf(b.Unlock())))
	if ok, err := a.Extend(); !ok || err != nil {
		t.Errorf("extended: %v, %v", ok, err)
	}
	if left := p.left(t, 0, "k"); left <= 0 {
		t.Errorf("%v left", left)
	}
}

// end removes a key from all nodes, as the end of a lease does.
func (p *people) end(t *testing.T, key string) {
	t.Helper()
	for _, n := range p.top.Nodes {
		must(t, n.Do(t.Context(), "DEL", key).Err())
	}
}

func TestFindingRedsyncSharedMutexUnlocksItsSuccessor(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{})
	m := p.redsync(t).NewMutex("k", redsync.WithExpiry(long))
	must(t, m.Lock()) // one goroutine
	p.end(t, "k")
	must(t, m.Lock()) // another goroutine, after the lease of the first
	ok, err := m.Unlock()
	if !ok || err != nil || p.left(t, 0, "k") > 0 {
		t.Errorf("the first one's unlock: %v, %v, %v left", ok, err, p.left(t, 0, "k"))
	}
}

func TestFindingRedsyncUnlockDeniesWhatItDid(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{Links: true})
	m := p.redsync(t).NewMutex("k")
	heal := p.apply(t, p.loseReply())
	var taken *redsync.ErrTaken
	if err := m.TryLock(); !errors.As(err, &taken) || p.left(t, 0, "k") > 0 {
		t.Errorf("lock: %v, %v left", err, p.left(t, 0, "k"))
	}
	heal()
	must(t, m.Lock())
	p.apply(t, p.loseReply())
	if ok, err := m.Unlock(); ok || !errors.Is(err, redsync.ErrLockAlreadyExpired) {
		t.Errorf("unlock: %v, %v", ok, err)
	}
}

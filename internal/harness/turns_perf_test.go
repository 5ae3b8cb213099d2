package harness

import (
	"context"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hammerlock/internal/recording"
	"hammerlock/locks"
	"hammerlock/locks/catalogue"
)

// The two sides of turns.
const (
	nobody int32 = iota
	bareSide
	suiteSide
)

// turn is the length of one side's turn. It is short, so that slow changes in the machine's speed affect both sides
// equally. After each turn, the side has the time settle to finish its work in the background, such as recording.
const (
	turn   = 250 * time.Millisecond
	settle = 2 * recording.DrainEvery
)

// turns lets two crews of workers take turns, so that only one works at a time. Both have a run in progress. A worker
// whose side must wait is between two visits, and uses no CPU time.
type turns struct {
	whose    atomic.Int32
	over     atomic.Bool
	mu       sync.Mutex
	change   *sync.Cond
	standing map[int32]int
	tallies  map[int32][]*tally
}

// tally counts the visits that a worker ended in the turns of its side.
type tally struct {
	n atomic.Int64
	_ [120]byte
}

func newTurns() *turns {
	t := &turns{standing: map[int32]int{}, tallies: map[int32][]*tally{}}
	t.change = sync.NewCond(&t.mu)
	return t
}

func (t *turns) join(side int32) *tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := &tally{}
	t.tallies[side] = append(t.tallies[side], mine)
	return mine
}

// begin is called by a worker before a visit. It waits until the worker's side has its turn.
func (t *turns) begin(side int32) {
	if t.whose.Load() == side {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.standing[side]++
	t.change.Broadcast()
	for t.whose.Load() != side && !t.over.Load() {
		t.change.Wait()
	}
	t.standing[side]--
}

func (t *turns) end(side int32, mine *tally) {
	if t.whose.Load() == side {
		mine.n.Add(1)
	}
}

// give lets one side work for a turn. It returns the visits per second when all workers are paused.
func (t *turns) give(side int32) float64 {
	t.stand(side)
	<-time.After(settle)
	before := t.sum(side)
	start := time.Now()
	t.pass(side)
	<-time.After(turn)
	t.whose.Store(nobody)
	rate := float64(t.sum(side)-before) / time.Since(start).Seconds()
	t.stand(side)
	return rate
}

func (t *turns) pass(side int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.whose.Store(side)
	t.change.Broadcast()
}

func (t *turns) stand(side int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.standing[side] < len(t.tallies[side]) {
		t.change.Wait()
	}
}

func (t *turns) sum(side int32) (n int64) {
	for _, mine := range t.tallies[side] {
		n += mine.n.Load()
	}
	return n
}

// finish lets all workers leave.
func (t *turns) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over.Store(true)
	t.change.Broadcast()
}

// inTurns is a lock whose workers take turns.
type inTurns struct {
	locks.Lock
	turns *turns
	mine  *tally
}

func (l inTurns) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	l.turns.begin(suiteSide)
	return l.Lock.Acquire(ctx, key, ttl)
}

func (l inTurns) Release(ctx context.Context, lease locks.Lease) error {
	err := l.Lock.Release(ctx, lease)
	l.turns.end(suiteSide, l.mine)
	return err
}

// lock returns the lease, in turns.
func (t *turns) lock() locks.Spec {
	spec := catalogue.All[0]
	open := spec.Open
	spec.Name = "lease-in-turns"
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		return inTurns{l, t, t.join(suiteSide)}, err
	}
	return spec
}

// start lets both crews begin. The returned function ends them.
func (t *turns) start(b *testing.B, s *arena, workers int) (finish func()) {
	b.Helper()
	_, end := s.observe(b)
	var crews sync.WaitGroup
	stop, cancel := context.WithCancel(b.Context())
	crews.Go(func() {
		if _, err := s.deployment.Crew.Run(b.Context(), stop); err != nil {
			b.Error(err)
		}
	})
	for i := range workers {
		mine := t.join(bareSide)
		crews.Go(func() {
			r := mathrand.New(mathrand.NewPCG(1, uint64(i)))
			for t.begin(bareSide); !t.over.Load(); t.begin(bareSide) {
				if err := bareVisit(b.Context(), s, s.deployment.Pages[r.IntN(len(s.deployment.Pages))]); err != nil {
					b.Error(err)
					return
				}
				t.end(bareSide, mine)
			}
		})
	}
	return func() {
		cancel()
		t.finish()
		crews.Wait()
		end()
	}
}

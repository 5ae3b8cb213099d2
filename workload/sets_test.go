package workload

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// shelf is a lock of several keys in memory, all or none. Every eighth release reports that a key was lost.
type shelf struct {
	mu       *sync.Mutex
	taken    map[string]bool
	releases *int
}

func newShelf() func(int) locks.Lock {
	s := &shelf{&sync.Mutex{}, map[string]bool{}, new(int)}
	return func(int) locks.Lock { return s }
}

func (s *shelf) AcquireAll(_ context.Context, keys []string, ttl, _ time.Duration) (locks.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if s.taken[key] {
			return locks.Lease{Key: keys[0], Keys: keys, Token: "refused"}, locks.ErrBusy
		}
	}
	for _, key := range keys {
		s.taken[key] = true
	}
	return locks.Lease{Key: keys[0], Keys: keys, Token: "granted", Until: time.Now().Add(ttl)}, nil
}

func (s *shelf) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return s.AcquireAll(ctx, []string{key}, ttl, 0)
}

func (s *shelf) Extend(_ context.Context, l locks.Lease, _ time.Duration) (locks.Lease, error) {
	return l, nil
}

func (s *shelf) Release(_ context.Context, l locks.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range l.Keys {
		delete(s.taken, key)
	}
	if *s.releases++; *s.releases%8 == 0 {
		return locks.ErrLost
	}
	return nil
}

func (s *shelf) Close() error { return nil }

// TestAVisitOfSeveralPagesIsAVisitOfEach: each page has a record of the same calls with the same outcomes, and its
// own views. All lanes of a worker have the same caller. Every number of pages and every order occurs.
func TestAVisitOfSeveralPagesIsAVisitOfEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := Shape{
			Workers: 4, Keys: 3, End: history.Forever, Visits: 60, Hold: time.Millisecond, Retry: time.Millisecond,
			Extend: time.Second,
		}
		_, ops, counter := runWith(t, plan, newShelf(), t.Context(), func(w *Workers) {
			w.Claims.Sets, w.Clock = true, history.NewOrderedClock(0)
		})
		h := history.History{
			Header: history.Header{Workers: 4 * MostPages, Callers: 4, Keys: 3, Claims: history.Claims{Sets: true}},
			Ops:    ops,
		}
		if err := h.Validate(); err != nil {
			t.Fatal(err)
		}
		orders, views, unsure := map[[MostPages]int32]bool{}, map[int32]int64{}, 0
		for i, op := range ops {
			if op.Kind == history.Store && op.Outcome == history.OK {
				views[op.Key]++
			}
			if op.Worker >= 4 || op.Kind == history.Load || op.Kind == history.Store || op.Kind == history.End {
				continue
			}
			order := [MostPages]int32{op.Key, -1, -1}
			for _, other := range ops[:i] { // those of the other pages are recorded first
				if at := other.Worker / 4; h.Caller(other.Worker) == op.Worker && at > 0 && other.Kind == op.Kind &&
					other.Return > op.Call {
					if order[at] = other.Key; other.Outcome != op.Outcome || other.Reason != op.Reason ||
						other.Token != op.Token || other.Until != op.Until {
						t.Fatalf("one page: %+v, another: %+v", op, other)
					}
				}
			}
			orders[order] = true
			if lost := op.Reason == history.Lost; lost && (op.Outcome == history.Unknown) != (order[1] >= 0) {
				t.Fatalf("lost, of the pages %v: %+v", order, op)
			} else if lost && order[1] >= 0 {
				unsure++
			}
		}
		if len(orders) != 3+6+6 || unsure == 0 {
			t.Errorf("got %d orders of pages, and %d releases of which it is not sure what was lost: %v",
				len(orders), unsure, orders)
		}
		for key, page := range Pages("test:", plan.Keys, false) {
			if c, err := counter.Load(t.Context(), page.Views); err != nil ||
				c.Views != views[int32(key)] || c.Views == 0 {
				t.Errorf("page %d has %d views after %d stores, %v", key, c.Views, views[int32(key)], err)
			}
		}
	})
}

// TestAVisitOfSeveralPagesDiesOnAll: a worker's crash is recorded for each page.
func TestAVisitOfSeveralPagesDiesOnAll(t *testing.T) {
	gate := NewGate()
	stop, end := context.WithCancel(t.Context())
	open := newShelf()
	caught := make(chan error, 1)
	go func() {
		defer end()
		c, err := gate.Catch(t.Context(), Granted, AnyKey)
		if err == nil {
			c.Die()
		}
		caught <- err
	}()
	plan := Shape{
		Workers: 1, Keys: 3, End: history.Forever, Seed: 3, Wait: 50 * time.Millisecond, Retry: time.Millisecond,
		Think: time.Millisecond,
	}
	_, ops, _ := runWith(t, plan, open, stop, func(w *Workers) {
		w.Claims.Sets, w.Gate = true, gate
		w.Reopen = func(int) (locks.Lock, error) { return open(0), nil }
	})
	if err := <-caught; err != nil {
		t.Fatal(err)
	}
	granted, crashed := []int32{}, []int32{}
	for _, op := range ops {
		switch {
		case op.Kind == history.Crash:
			crashed = append(crashed, op.Worker)
		case op.Kind == history.Acquire && len(crashed) == 0:
			granted = append(granted, op.Worker)
		}
	}
	slices.Sort(granted)
	slices.Sort(crashed)
	if len(granted) < 2 || !slices.Equal(granted, crashed) {
		t.Errorf("workers %v were granted a page, and %v crashed", granted, crashed)
	}
}

package explore

import "sync"

// inOrder runs schedules number 0, 1, ... on all workers side by side, until they are over, and hands them on one by
// one, in the order of their numbers, until take says no. So it makes no difference how many workers there are.
func (s *search) inOrder(over func(i int) bool, run func(worker *kit, i int) done, take func(i int, d done) bool) {
	var mu sync.Mutex
	var all sync.WaitGroup
	begun, taken, ended, waiting, left := 0, 0, false, map[int]done{}, 0
	work := func(worker *kit) {
		mu.Lock()
		defer mu.Unlock()
		for !ended && !over(begun) {
			i := begun
			begun++
			mu.Unlock()
			d := run(worker, i)
			mu.Lock()
			waiting[i] = d
			for {
				d, is := waiting[taken]
				if !is || ended {
					break
				}
				delete(waiting, taken)
				taken++
				ended = !take(taken-1, d)
			}
		}
		left++
	}
	for _, k := range s.kits {
		all.Go(func() { work(k) })
	}
	all.Wait()
	if left < len(s.kits) {
		s.t.FailNow() // a worker has
	}
}

// roomy lets new goroutines begin with a stack that is large enough for a call to a server. The runtime gives them as
// much as goroutines use on average when it collects garbage, so there are some that use much of theirs and do nothing.
// Without them each goroutine of a schedule copies its stack as it grows: a quarter of the time, where a lock asks
// three sites at once.
func roomy() (end func()) {
	const many, depth = 64, 9
	var all sync.WaitGroup
	over := make(chan struct{})
	for range many {
		all.Go(func() { deep(depth, over) })
	}
	return func() {
		close(over)
		all.Wait()
	}
}

// deep waits with that many kilobytes of stack in use.
//
//go:noinline
func deep(kilobytes int, over <-chan struct{}) (unused byte) {
	var room [1 << 10]byte
	room[kilobytes] = 1
	if kilobytes > 0 {
		return room[0] + deep(kilobytes-1, over)
	}
	<-over
	return room[1]
}

// states are those that schedules were in, up to the last one that was taken into the report.
type states struct {
	mu    sync.RWMutex
	known map[uint64]bool
}

// has tells whether a state is known.
func (s *states) has(state uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known[state]
}

// join adds the way to a schedule, and its states up to the first one that is known, and leaves out of the schedule all
// from there on. A worker may have run further: it knew only of those schedules that were in the report by then.
func (s *states) join(run *schedule, way uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.known[way] = true }()
	for _, p := range run.states {
		if s.known[p.state] {
			run.merged, run.wrong, run.options = true, nil, run.options[:p.decisions]
			return
		}
		s.known[p.state] = true
	}
}

package explore

import "sync"

// inOrder runs schedules number 0, 1, ... on all workers side by side, until they are over, and hands them on one by one,
// in the order of their numbers, until take says no. So it makes no difference how many workers there are.
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

// join adds the states of a schedule up to the first one that is known, and leaves out of the schedule all from there
// on. A worker may have run further: it knew only of those schedules that were in the report by then.
func (s *states) join(run *schedule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := len(run.options) - len(run.states)
	if run.merged {
		first++ // the last state has no options
	}
	for i, state := range run.states {
		if s.known[state] {
			run.merged, run.wrong, run.options = true, nil, run.options[:first+i]
			return
		}
		s.known[state] = true
	}
}

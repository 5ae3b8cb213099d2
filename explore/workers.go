package explore

import "sync"

// inOrder runs schedules 0, 1, ... on several goroutines until over returns true. It passes the results to the function
// take, one by one and in the order of the schedules, until take returns false. So the result does not depend on the
// number of goroutines.
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
		s.t.FailNow() // a goroutine has called FailNow
	}
}

// roomy makes new goroutines start with a stack that is large enough for a call to a server. The runtime gives them
// the average stack size of all goroutines at the last garbage collection. So roomy starts a few idle goroutines with
// large stacks. Without them, each goroutine of a schedule would copy its growing stack, which takes 25 % of the time
// for a lock on three sites.
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

// deep waits while that many kilobytes of the goroutine's stack are in use.
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

// states has the states of all schedules up to the last one in the report.
type states struct {
	mu    sync.RWMutex
	known map[uint64]bool
}

func (s *states) has(state uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known[state]
}

// join adds the states of a schedule up to the first one that is known already, and removes the rest of the schedule.
// It also adds the state way. The schedule may have gone on from a known state, because it knew only the schedules
// that were in the report at its start.
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

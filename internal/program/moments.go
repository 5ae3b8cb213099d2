package program

import (
	"context"

	"hammerlock/faults"
	"hammerlock/internal/wire"
)

// hook is a function that is called at commands of one kind.
type hook struct {
	point string
	asked bool // called before the command is forwarded; otherwise, before its reply is
	hit   func(lock string) (a *wire.Action, broken bool)
}

// At registers the function hit, to be called at commands on locks. The argument point is the kind of command, from
// faults.Commands. If the argument asked is true, hit is called before the command is forwarded. Otherwise it is
// called before the reply is forwarded.
//
// Several goroutines call hit, so it must not block. It returns what happens to the message. If its result broken is
// true, this takes effect, and no other registered function is called.
func (s *Source) At(point string, asked bool, hit func(lock string) (a *wire.Action, broken bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*hook
	if p := s.hooks.Load(); p != nil {
		all = append(all, *p...)
	}
	all = append(all, &hook{point, asked, hit})
	s.hooks.Store(&all)
}

// breaks is called by the proxies for each request and each reply. It returns what happens to the message; nil = it
// is forwarded unchanged.
func (s *Source) breaks(q *wire.Request) *wire.Action {
	hooks := s.hooks.Load()
	if hooks == nil {
		return nil // no faults are planned at commands
	}
	asked := q.Return == 0
	lock, _ := s.reader.LockOf(q)
	if !asked && s.reader.Is(faults.Granted, q) {
		s.lock.Store(&lock)
		select {
		case s.granted <- lock:
		default: // no fault waits for this grant
		}
	}
	for _, h := range *hooks {
		if h.asked == asked && s.reader.Is(h.point, q) {
			if a, broken := h.hit(lock); broken {
				return a
			}
		}
	}
	return nil
}

// Lock returns the lock that was granted last. It is empty if none was granted, or if no fault is planned.
func (s *Source) Lock() string {
	if p := s.lock.Load(); p != nil {
		return *p
	}
	return ""
}

// Grant waits for the next grant of the given lock.
func (s *Source) Grant(ctx context.Context, lock string) error {
	for {
		select {
		case key := <-s.granted:
			if key == lock {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

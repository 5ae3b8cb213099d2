package program

import (
	"context"

	"hammerlock/faults"
	"hammerlock/internal/wire"
)

// hook is a function that is called for each command of one kind.
type hook struct {
	point string
	asked bool // call it before the command is forwarded; otherwise before the reply is forwarded
	hit   func(lock string) (a *wire.Action, broken bool)
}

// At registers the function hit for commands on locks, of the kind point in faults.Commands. If asked is true, hit is
// called before the command is forwarded; otherwise before the reply is forwarded. Several goroutines call hit, so it
// must not block. It returns what to do with the message. If it also returns true, it has handled the message, and no
// other function is called.
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

// breaks is the wire.Break of the proxies.
func (s *Source) breaks(q *wire.Request) *wire.Action {
	hooks := s.hooks.Load()
	if hooks == nil {
		return nil // nothing is planned
	}
	asked := q.Return == 0
	lock, _ := s.reader.LockOf(q)
	if !asked && s.reader.Is(faults.Granted, q) {
		s.lock.Store(&lock)
		select {
		case s.granted <- lock:
		default: // no fault waits for a grant
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

// Lock is the lock that was granted last; empty if there was none, or if no fault is planned.
func (s *Source) Lock() string {
	if p := s.lock.Load(); p != nil {
		return *p
	}
	return ""
}

// Grant waits for the next grant of a lock.
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

package links

import (
	"sync"
	"time"
)

// holds has the commands that a rule holds back until their clients have abandoned the calls.
type holds struct {
	rule *Rule
	over chan struct{} // closed when the rule ends

	mu    sync.Mutex
	ended bool
	next  map[string]time.Time // by kind: when the next command of it may be held back
}

// end releases all commands that are held back, once.
func (h *holds) end() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.ended = true
		close(h.over)
	}
}

// takes tells whether a command is held back: no other one of its kind was, within the rule's pace.
func (h *holds) takes(kind string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if kind == "" || now.Before(h.next[kind]) {
		return false
	}
	h.next[kind] = now.Add(h.rule.Pace)
	return true
}

// held returns what holds a command back; nil if the command is forwarded at once.
func (s *stream) held(v *verdict, b []byte) *holds {
	if !s.commands || len(v.holds) == 0 {
		return nil
	}
	kind, now := s.c.kind(b), time.Now()
	for _, h := range v.holds {
		if h.takes(kind, now) {
			return h
		}
	}
	return nil
}

// wait waits until the client has abandoned the call, and then for the latency.
func (h *holds) wait(c *connection, timer *time.Timer) {
	select {
	case <-c.left:
	case <-h.over:
		return
	case <-c.done:
		return
	}
	timer.Reset(h.rule.Latency)
	select {
	case <-timer.C:
	case <-h.over:
	case <-c.done:
	}
}

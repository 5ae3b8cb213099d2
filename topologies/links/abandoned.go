package links

import (
	"sync"
	"time"
)

// holds is the state of a rule that delays commands. A command is delayed until its client has given up the call
// and closed the connection.
type holds struct {
	rule *Rule
	over chan struct{} // closed when the rule ends

	mu    sync.Mutex
	ended bool
	next  map[string]time.Time // kind of command -> time from which the next one may be delayed
}

// end forwards all delayed commands. It is safe to call twice, and on nil.
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

// takes tells whether to delay a command of this kind. In each interval of Pace, it delays at most one command
// of each kind.
func (h *holds) takes(kind string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if kind == "" || now.Before(h.next[kind]) {
		return false
	}
	h.next[kind] = now.Add(h.rule.Pace)
	return true
}

// held returns the rule that delays a command; nil = the command is forwarded now.
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

// wait waits until the client has closed the connection, and then for the rule's Latency. It returns early if the
// rule or the connection ends.
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

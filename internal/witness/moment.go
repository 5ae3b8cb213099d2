package witness

import (
	"strings"

	"hammerlock/internal/wire"
)

// LockOf returns the lock key of a command; false if it has none.
func (r *Reader) LockOf(q *wire.Request) (key string, ok bool) {
	for _, key := range keysOf(q.Args) {
		if matches(r.locks, key) {
			return key, true
		}
	}
	return "", false
}

// Is tells whether a request with its reply is the given moment in a lock's life, such as "granted". If the
// request has no reply yet (Return is 0), it tells whether the request can become that moment. For scripts it
// uses their earlier effects.
func (r *Reader) Is(moment string, q *wire.Request) bool {
	asked := q.Return == 0
	if _, ok := r.LockOf(q); !ok || q.Reply.Kind == wire.Unseen && !asked {
		return false
	}
	w := understand(q.Args)
	says := w.answered(q)
	if asked {
		says = did
	}
	if w.intent == reads {
		return moment == "read" && q.Reply.Kind != wire.Error
	}
	if w.intent == runs {
		return says != didNot && r.didBefore(moment, w.script) || says == didNot && moment == "refused" &&
			q.Reply.Kind != wire.Error && r.didBefore("granted", w.script)
	}
	switch moment {
	case "granted":
		return w.intent == tries && says == did || (w.intent == sets || w.intent == enters) && says != didNot
	case "refused":
		return w.intent == tries && says == didNot
	case "extended":
		return (w.intent == extends || w.intent == renews) && says == did
	case "released":
		return (w.intent == frees || w.intent == leaves) && says == did
	}
	return false
}

// didBefore tells whether a script has caused such a moment before, or its text suggests that it can.
func (r *Reader) didBefore(moment, id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.scripts[id]
	if s == nil {
		return false
	}
	unknown := !s.grants && !s.extends && !s.frees
	switch moment {
	case "granted":
		return s.grants
	case "extended":
		return s.extends && !s.grants || unknown && strings.Contains(s.text, "expire") &&
			!strings.Contains(s.text, "del")
	case "released":
		return s.frees || unknown && strings.Contains(s.text, "del")
	}
	return false
}

package explore

import (
	"cmp"
	"strings"
	"time"

	"hammerlock/history"
)

// refusal is the reply of a server that does nothing. All such replies are the same to locks (see locks.Classify).
const refusal = "LOADING Redis is loading the dataset in memory"

// hangsFor returns how long a server hangs. By default clients give up before that, and their requests
// are executed afterwards.
func (s *schedule) hangsFor() time.Duration { return cmp.Or(s.o.Hang, readTimeout+s.o.TTL) }

// ofServer appends what can happen to the server before a request reaches it.
func (s *schedule) ofServer(list []act, e *event) []act {
	m := s.servers[e.site]
	// servers that refuse other commands still accept subscriptions
	if !strings.EqualFold(e.words[0], "exec") && !e.x.listens && e.x.link.idle() {
		list = append(list, refuses)
	}
	list = append(list, hangs)
	if len(m.Keys()) > 0 {
		list = append(list, forgets)
	}
	if firstExpiry(m) > 0 {
		list = append(list, leaps)
	}
	if s.down() < (s.o.Sites-1)/2 {
		list = append(list, dies)
	}
	return list
}

// breakServer makes the server of a request fail. A request that is refused is answered here; every other request
// must still be delivered.
func (s *schedule) breakServer(o option) {
	e := o.e
	servers := []history.Party{history.Servers}
	switch o.act {
	case refuses:
		// The effect is that of a lost command, except that the client gets a reply. A lock must survive the refusal
		// of a renewal too, because the next renewal succeeds.
		s.fault("refuse", 0, history.Effect{Hits: []history.Party{history.Servers, history.Links}, Blocks: true,
			Spares: true}, o)
		s.w.settle(e, refused)
	case hangs:
		s.hung[e.site] = time.Now().Add(s.hangsFor())
		s.fault("hang", s.hangsFor(), history.Effect{Hits: servers, Blocks: true, Spares: s.o.Sites > 2}, o)
	case forgets:
		s.servers[e.site].FlushAll()
		s.fault("forget", 0, history.Effect{Hits: servers, Loses: history.LosesKeys}, o)
	case leaps:
		m := s.servers[e.site]
		m.FastForward(cmp.Or(s.o.Leap, firstExpiry(m)))
		s.fault("clock-jump", 0, history.Effect{Hits: []history.Party{history.Clocks}, Loses: history.LosesTime}, o)
	case dies:
		s.dead[e.site] = true
		s.fault("kill", mostDown, history.Effect{Hits: servers, Blocks: true, Spares: true}, o)
	}
	s.current = e.client
}

// mostDown is the length of a failure that lasts until the end.
const mostDown = time.Hour

// down returns the number of servers that never reply again. They are never a majority.
func (s *schedule) down() int { return count(s.dead) }

func count(all []bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// loseDead drops messages to and from servers that never reply again. It returns whether there were any.
func (s *schedule) loseDead() (some bool) {
	for _, e := range s.w.ready(-1, func(e *event) bool { return e.x != nil && s.dead[e.site] }) {
		s.w.settle(e, lost)
		some = true
	}
	return some
}

// firstExpiry returns the time until the next key of a server expires; 0 if no key has a TTL.
func firstExpiry(m *memory) (next time.Duration) {
	for _, key := range m.Keys() {
		if ttl := m.TTL(key); ttl > 0 && (next == 0 || ttl < next) {
			next = ttl
		}
	}
	return next
}

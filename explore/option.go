package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"hammerlock/history"
)

// option is a possible next step of a schedule. The first option of a decision is the default; all others are
// deviations.
type option struct {
	e   *event
	act act
}

// act is what an option does with an event.
type act uint8

const (
	// the event happens; if it is not the first in the list, this is a preemption: its client overtakes the others
	letGo       act = iota
	pauses          // the client is paused beyond the end of its lease
	expires         // no message moves until the next key has expired
	loses           // the message is lost, without an error
	breaks          // the connection breaks before the message arrives
	crashes         // the client dies
	cancelsCall     // the context of the client's lock call is cancelled
	refuses         // the server replies with an error and does nothing
	hangs           // the server executes nothing for a while
	forgets         // the server loses all keys
	leaps           // the server's clock jumps ahead, to the end of the next lease
	dies            // the server never replies again: messages to and from it are lost
)

var acts = [...]string{"goes first", "is paused", "waits for the expiry", "is lost", "meets a broken connection",
	"crashes", "is called off", "is answered an error", "meets a hung server", "comes after all keys were lost",
	"comes after the server's clock jumped", "comes to a server that never answers again"}

// what returns the description of the option. It is the same in every replay.
func (o option) what() string {
	return fmt.Sprintf("w%02d %s: %s", o.e.client, o.e.name(), acts[o.act])
}

// alternatives lists the options of a decision between the ready events. There are three kinds of them: the first
// event happens; another event happens first (a preemption); another deviation affects the first event. A later event
// can be affected when it is the first one: until then no client or server sees it.
func (s *schedule) alternatives(ready []*event) []option {
	first := ready[0]
	s.list = append(s.list[:0], option{first, letGo})
	if !s.asks() {
		return s.list
	}
	s.acts = s.deviations(s.acts[:0], first)
	if s.o.only != letGo {
		if slices.Contains(s.acts, s.o.only) {
			s.list = append(s.list, option{first, s.o.only})
		}
		return s.list
	}
	for _, e := range ready[1:] {
		if !s.commutes(first, e) {
			s.list = append(s.list, option{e, letGo})
		}
	}
	for _, a := range s.acts {
		s.list = append(s.list, option{first, a})
	}
	return s.list
}

// asks tells whether all options of this decision are needed. They are needed if a deviation is given for this
// decision, or if all given ones were taken and the search may branch here.
func (s *schedule) asks() bool {
	if n := len(s.taken); n < len(s.given) {
		return s.given[n].At == len(s.options)
	}
	return len(s.given) == 0 || len(s.given) < s.o.Deviations
}

// commutes tells whether it makes no difference which of the events first and e happens before the other
// (partial-order reduction). It relies on three facts. The delivery of a reply only lets its client continue, and the
// client's next step is a separate event. A client does not take back a request that it has sent to another site.
// Requests to different sites do not affect each other.
func (s *schedule) commutes(first, e *event) bool {
	switch {
	case s.o.Unreduced:
		return false
	case first.kind == reply:
		return first.client != e.client || e.kind == request && first.site != e.site
	default:
		return first.kind == request && e.kind == request && first.site != e.site
	}
}

// deviations appends the possible deviations of an event.
func (s *schedule) deviations(list []act, e *event) []act {
	switch e.kind {
	case start:
		return list
	case request, reply:
		if !s.o.Together { // a shared process goes on with its renewals, so it is not paused
			list = append(list, pauses)
		}
		if !e.x.listens { // a subscribed connection loses messages only if it breaks
			list = append(list, loses)
		}
		list = append(list, breaks)
		if e.kind == request {
			list = s.ofServer(list, e)
			break
		}
		if s.crashable() {
			list = append(list, crashes)
		}
		if s.w.callable(e.client) {
			list = append(list, cancelsCall)
		}
	case between, load, store, reload:
		if !s.punctual(e) {
			list = append(list, pauses)
		}
		if s.crashable() {
			list = append(list, crashes)
		}
	}
	if !s.punctual(e) && s.expiry() > 0 {
		list = append(list, expires)
	}
	return list
}

// crashable tells whether a process may crash: another client must remain.
func (s *schedule) crashable() bool {
	return !s.o.Together && count(s.crashed) < s.o.Clients-1
}

// expiry returns the time until the next key expires; 0 if no key has a TTL.
func (s *schedule) expiry() time.Duration {
	var next time.Duration
	for _, m := range s.servers {
		if ttl := firstExpiry(m); ttl > 0 && (next == 0 || ttl < next) {
			next = ttl
		}
	}
	return next
}

// slowness returns how long the deviation `expires` delays all messages.
func (s *schedule) slowness() time.Duration { return cmp.Or(s.o.Delay, s.expiry()+time.Microsecond) }

func (s *schedule) take(o option) {
	e := o.e
	s.state.choose(e, o.act, s.w.clock.Now())
	s.w.trace.deviation(s, o)
	s.w.trace.step(e, o.act)
	switch o.act {
	case letGo:
		s.current = e.client
		if s.w.settle(e, goes); e.kind == request {
			s.state.carriedOut(e)
		}
	case pauses:
		hits := history.Clients
		if s.o.Together {
			hits = history.Holders
			e.held = time.Now().Add(s.o.Pause)
		} else {
			s.paused[e.client] = time.Now().Add(s.o.Pause)
		}
		s.fault("pause", s.o.Pause, history.Effect{Hits: []history.Party{hits}}, o)
	case expires:
		wait := s.slowness()
		s.fault("slow-links", wait, history.Effect{Hits: []history.Party{history.Links}, Blocks: true}, o)
		s.sleep(wait)
		s.current = e.client
	case loses:
		s.fault("lost-message", readTimeout, history.Effect{Hits: []history.Party{history.Links}, Blocks: true}, o)
		s.current = e.client
		s.w.settle(e, lost)
	case breaks:
		s.fault("broken-connection", 0, history.Effect{Hits: []history.Party{history.Links}, Blocks: true}, o)
		s.current = e.client
		s.w.settle(e, broken)
	case crashes:
		s.fault("crash", 0, history.Effect{Hits: []history.Party{history.Clients}}, o)
		s.crashed[e.client] = true
		s.w.hangUp(e.client)
		for w := e.client; w < s.history.Workers; w += s.o.Clients {
			s.died[e.client] = s.clients[e.client].lanes[2].Mark(&history.Op{Kind: history.Crash, Worker: int32(w),
				Call: s.w.clock.Now(), Outcome: history.OK})
		}
	case cancelsCall:
		s.fault("cancel", 0, history.Effect{Hits: []history.Party{history.Nobody}}, o)
		s.w.cancelCall(e.client)
	default:
		s.breakServer(o)
	}
}

// sleep lets time pass without a delivery of messages. Only the steps that must be punctual happen.
func (s *schedule) sleep(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		s.merge.Drain(s.keep)
		s.w.rest(min(time.Until(end), nap))
		synctest.Wait()
		for _, e := range s.w.ready(-1, func(e *event) bool { return s.punctual(e) && !s.crashed[e.client] }) {
			s.w.trace.step(e, letGo)
			s.w.settle(e, goes)
			synctest.Wait()
		}
	}
}

// healing is a fault that is active.
type healing struct {
	number int64
	from   time.Duration
	at     time.Time
	stops  *client // client whose process the fault pauses; nil = none
}

// fault records a deviation as a fault with its effect, so that the judge can allow for it.
func (s *schedule) fault(name string, lasts time.Duration, effect history.Effect, o option) {
	from := s.w.clock.Now()
	i := history.Injection{Name: name, At: fmt.Sprintf("@decision %d", len(s.options)-1), From: from, Effect: effect}
	if lasts > 0 {
		i.To = from + lasts
		h := healing{int64(len(s.history.Faults)), from, time.Now().Add(lasts), nil}
		if effect.Hit(history.Clients) {
			h.stops = s.clients[o.e.client]
		}
		s.healing = append(s.healing, h)
	}
	id := s.suite.Next()
	s.suite.Mark(&history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: from, Value: int64(len(s.history.Faults)),
		Outcome: history.OK})
	s.history.Faults = append(s.history.Faults, i)
	s.history.Notes[id] = o.what()
}

// heal records the end of each fault whose time is over.
func (s *schedule) heal() {
	s.healing = slices.DeleteFunc(s.healing, func(h healing) bool {
		if time.Now().Before(h.at) {
			return false
		}
		if h.stops != nil {
			h.stops.lanes[2].Mark(&history.Op{Kind: history.Gap, Worker: -1, Key: -1, Call: h.from,
				Outcome: history.OK})
		}
		s.suite.Mark(&history.Op{Kind: history.Heal, Worker: -1, Key: -1, Call: s.w.clock.Now(), Value: h.number,
			Outcome: history.OK})
		return true
	})
}

// holding returns the token in a lock's key, and the remaining TTL of the key. The token is empty if the lock is
// free. The TTL is 0 if the key does not expire.
func holding(m *memory, key string) (token string, ttl time.Duration) {
	token, err := m.Get(key)
	if err != nil {
		fields, _ := m.HKeys(key) // an error means that the key is no hash either, so the lock is free
		token = strings.Join(fields, " ")
	}
	return token, m.TTL(key)
}

package main

import (
	"slices"
	"time"
)

// site is a server of the lock, with its own clock.
type site struct {
	w          *world
	number     int64
	rate       float64
	jump       time.Duration
	down, hung time.Duration // until when the server is down or hung
	pages      []locked
	counter    bool // the server has the page views instead of locks, and is never disturbed
}

// locked is a server's data of one lock.
type locked struct {
	holders []entry
	fence   int64
	extra   int     // permits that were given back twice
	queue   []place // waiters, in order
	writer  place   // a waiting writer, to which readers give way
}

type entry struct {
	token   uint64
	permits int // 0 = all
	until   time.Duration
	count   int64
	fence   int64
}

type place struct {
	owner uint64
	until time.Duration
}

type request struct {
	page     int32
	token    uint64
	permits  int
	ttl      time.Duration
	replaces uint64 // token of the shared hold to upgrade
	owner    uint64 // the waiter in the queue
}

// clock reads the server's clock, rounded if Bounds.Round is set.
func (s *site) clock() time.Duration {
	t := time.Duration(float64(s.w.now)*(1+s.rate)) + s.jump
	if s.w.h.Bounds.Round > 0 {
		t = t.Truncate(time.Millisecond)
	}
	return t
}

func (s *site) end(ttl time.Duration) time.Duration {
	if ttl == 0 {
		return 1 << 62
	}
	return s.clock() + ttl
}

// open removes the holders and waiters that have expired from a lock's data, and returns the data.
func (s *site) open(page int32) *locked {
	p, now := &s.pages[page], s.clock()
	p.holders = slices.DeleteFunc(p.holders, func(e entry) bool { return now >= e.until })
	p.queue = slices.DeleteFunc(p.queue, func(q place) bool { return now >= q.until })
	if now >= p.writer.until {
		p.writer = place{}
	}
	return p
}

func (p *locked) find(token uint64) int {
	return slices.IndexFunc(p.holders, func(e entry) bool { return e.token == token })
}

// room reports whether a request can be granted beside the current holders.
func (s *site) room(p *locked, q *request) bool {
	w, sum, exclusive, others := s.w, 0, false, 0
	for _, e := range p.holders {
		if e.token == q.replaces {
			continue
		}
		others++
		sum += e.permits
		exclusive = exclusive || e.permits == 0
	}
	switch all := w.h.Claims.Permits; {
	case w.wrong == overwrites && w.one(w.often):
		return true
	case q.permits == 0 && q.replaces != 0 && w.slips(upgradeIgnoresReaders):
		return !exclusive
	case q.permits == 0 && w.slips(writerIgnoresReaders):
		return !exclusive
	case q.permits == 0:
		return others == 0
	case exclusive:
		return w.slips(readersIgnoreWriter)
	case w.h.Claims.Readers:
		return p.writer.owner == 0 || !w.h.Claims.Writers
	case w.wrong == weightIgnored:
		return others < all
	case w.wrong == onePermitMore:
		return sum+q.permits <= all+1
	default:
		return sum+q.permits <= all+p.extra
	}
}

// looks is the first step of a try in two steps: it reports whether the lock is free, and changes nothing.
func (s *site) looks(q request) reply {
	if s.room(s.open(q.page), &q) {
		return reply{said: yes}
	}
	return reply{said: busy}
}

// try grants or refuses the lock in one step. With forced, it does not check whether the lock is free.
func (s *site) try(q request, forced bool) reply {
	w, p := s.w, s.open(q.page)
	if q.replaces != 0 && p.find(q.replaces) < 0 {
		return reply{said: lost} // nothing to upgrade
	}
	if !s.first(p, &q) || !forced && !s.room(p, &q) {
		if q.permits == 0 && w.h.Claims.Writers {
			p.writer = place{q.owner, s.end(w.ttl)}
		}
		return reply{said: busy}
	}
	if q.replaces != 0 {
		p.holders = slices.DeleteFunc(p.holders, func(e entry) bool { return e.token == q.replaces })
	}
	if q.permits == 0 && (w.wrong == overwrites || w.wrong == checkThenSet) {
		p.holders = nil
	}
	if q.permits == 0 && p.writer.owner == q.owner {
		p.writer = place{}
	}
	ttl := q.ttl
	if w.wrong == shortLease {
		ttl /= 3
	}
	if !w.slips(sameFence) {
		p.fence++
	}
	p.queue = slices.DeleteFunc(p.queue, func(o place) bool { return o.owner == q.owner })
	p.holders = append(p.holders, entry{q.token, q.permits, s.end(ttl), 1, p.fence})
	return reply{said: yes, count: 1 + s.miscounts(), fence: p.fence}
}

// reenter grants the lock to its holder again. If the holder's old hold is gone, a lock that reports counts may grant
// a new one.
func (s *site) reenter(q request) reply {
	p := s.open(q.page)
	i := p.find(q.token)
	switch {
	case i < 0 && s.w.counts && s.w.perVisit:
		return s.try(q, false)
	case i < 0:
		return reply{said: lost}
	case s.w.slips(refusesSelf):
		return reply{said: busy}
	}
	e := &p.holders[i]
	e.count, e.until = e.count+1, s.end(q.ttl)
	return reply{said: yes, count: e.count + s.miscounts(), fence: e.fence}
}

// first reports whether a request is the next in the queue. If it is not in the queue yet, it is added.
func (s *site) first(p *locked, q *request) bool {
	if !s.w.h.Claims.Ordered {
		return true
	}
	i := slices.IndexFunc(p.queue, func(o place) bool { return o.owner == q.owner })
	if i < 0 {
		i = len(p.queue)
		p.queue = append(p.queue, place{owner: q.owner})
	}
	p.queue[i].until = s.end(q.ttl)
	switch s.w.wrong {
	case barges:
		return true
	case newestFirst:
		return i == len(p.queue)-1
	default:
		return i == 0
	}
}

// forget removes a waiter from the queue, because it gave up.
func (s *site) forget(q request) reply {
	p := s.open(q.page)
	p.queue = slices.DeleteFunc(p.queue, func(o place) bool { return o.owner == q.owner })
	if p.writer.owner == q.owner {
		p.writer = place{}
	}
	return reply{said: yes}
}

func (s *site) miscounts() int64 {
	if s.w.slips(wrongCount) {
		return 1
	}
	return 0
}

func (s *site) extend(page int32, token uint64, permits int, ttl time.Duration) reply {
	w, p := s.w, s.open(page)
	i := p.find(token)
	switch {
	case i >= 0 && w.slips(busyOwner):
		return reply{said: busy}
	case i >= 0:
		p.holders[i].until = s.end(ttl)
	case w.wrong == extendsAnything && len(p.holders) > 0:
		p.holders[0].until = s.end(ttl)
	case w.wrong == extendRecreates || w.wrong == zombieWatchdog:
		if permits == 0 {
			p.holders = nil
		}
		p.holders = append(p.holders, entry{token, permits, s.end(ttl), 1, p.fence})
	default:
		return reply{said: lost}
	}
	return reply{said: yes}
}

// owns is the first step of a release in two steps: it reports whether the hold still has the lock.
func (s *site) owns(page int32, token uint64) reply {
	if s.open(page).find(token) < 0 {
		return reply{said: lost}
	}
	return reply{said: yes}
}

func (s *site) release(page int32, token uint64, any bool) reply {
	w, p := s.w, s.open(page)
	i := p.find(token)
	switch {
	case any:
		p.holders = nil
		return reply{said: yes}
	case i < 0 && (w.slips(liesOnRelease) || w.wrong == releasesTwice):
		return reply{said: yes}
	case i < 0 && w.wrong == permitsTwice:
		p.extra++
		return reply{said: yes}
	case i < 0:
		return reply{said: lost}
	case w.slips(refusesOwner):
		return reply{said: lost}
	}
	e := &p.holders[i]
	e.count--
	if w.slips(readerFreesAll) && e.permits > 0 {
		p.holders = nil
		return reply{said: yes}
	}
	left := e.count
	if left == 0 || w.slips(innerFrees) {
		p.holders = slices.Delete(p.holders, i, i+1)
	}
	return reply{said: yes, count: left + s.miscounts()}
}

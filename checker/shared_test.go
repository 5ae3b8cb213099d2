package checker

import (
	"testing"
	"time"

	"hammerlock/history"
)

// share adds a grant of some permits.
func (s *script) share(worker int32, permits uint16, call, ret, ttl time.Duration) history.ID {
	id := s.acquire(worker, call, ret, ttl)
	s.last().Permits = permits
	return id
}

// refuses adds a refused try for some permits.
func (s *script) refuses(worker int32, permits uint16, call, ret time.Duration) {
	s.busy(worker, call, ret).Permits = permits
}

// upgrade lets an exclusive hold of a worker replace its shared hold.
func (s *script) upgrade(hold history.ID, call, ret, ttl time.Duration) history.ID {
	id := s.acquire(int32(hold.Lane()-1), call, ret, ttl)
	s.last().Seen = hold
	return id
}

var sharedCases = map[string]struct {
	permits int
	write   func(*script)
	status  Status
	cause   string
}{
	"readers together": {0, func(s *script) {
		a, b := s.share(1, 1, 0, 1, 100), s.share(2, 1, 2, 3, 100)
		s.busy(3, 4, 5)
		s.release(a, 6, 7)
		s.release(b, 8, 9)
	}, Pass, ""},
	"a writer among readers": {0, func(s *script) {
		s.share(1, 1, 0, 1, 100)
		s.acquire(2, 2, 3, 100)
	}, Fail, "double-grant"},
	"a reader beside a writer": {0, func(s *script) {
		s.acquire(1, 0, 1, 100)
		s.share(2, 1, 2, 3, 100)
	}, Fail, "double-grant"},
	"a writer when the readers' leases are over": {0, func(s *script) {
		s.share(1, 1, 0, 1, 100)
		s.refuses(3, 0, 4, 5)
		s.acquire(2, 130, 131, 100)
	}, Pass, ""},
	"a reader among readers, and nobody asked for more": {0, func(s *script) {
		s.share(1, 1, 0, 1, 100)
		s.share(2, 1, 2, 3, 100)
	}, Inconclusive, ""},
	"the servers forgot a reader": {0, func(s *script) {
		s.share(1, 1, 0, 1, 100)
		s.fault(serverDies, 2, 4)
		s.acquire(2, 6, 7, 100)
	}, Fail, "service-loss"},
	"a reader becomes the writer": {0, func(s *script) {
		a := s.share(1, 1, 0, 1, 100)
		s.refuses(2, 0, 2, 3)
		b := s.upgrade(a, 4, 6, 100)
		s.refuses(2, 1, 7, 8)
		s.release(b, 9, 10)
	}, Pass, ""},
	"somebody writes while a reader becomes the writer": {0, func(s *script) {
		a := s.share(1, 1, 0, 1, 100)
		w := s.acquire(2, 3, 4, 100)
		s.release(w, 6, 7)
		s.upgrade(a, 2, 9, 100)
	}, Fail, "double-grant"},
	"somebody reads what a reader has become the writer of": {0, func(s *script) {
		a := s.share(1, 1, 0, 1, 100)
		s.upgrade(a, 2, 4, 100)
		s.share(2, 1, 6, 7, 100)
	}, Fail, "double-grant"},
	"as many permits as there are": {3, func(s *script) {
		s.share(1, 2, 0, 1, 100)
		s.share(2, 1, 2, 3, 100)
		s.refuses(3, 1, 4, 5)
	}, Pass, ""},
	"a permit too many": {3, func(s *script) {
		s.share(1, 2, 0, 1, 100)
		s.share(2, 1, 2, 3, 100)
		s.share(3, 1, 4, 5, 100)
	}, Fail, "double-grant"},
	"all permits beside one": {3, func(s *script) {
		s.share(1, 1, 0, 1, 100)
		s.acquire(2, 4, 5, 100)
	}, Fail, "double-grant"},
	"permits of those whose lease is over": {2, func(s *script) {
		s.share(1, 2, 0, 1, 100)
		s.refuses(3, 1, 4, 5)
		s.share(2, 2, 130, 131, 100)
	}, Pass, ""},
	"a permit that came back twice": {2, func(s *script) {
		a := s.share(1, 1, 0, 1, 20)
		s.release(a, 60, 61) // its lease was over by 23
		s.share(2, 1, 70, 71, 100)
		s.share(3, 1, 72, 73, 100)
		s.share(4, 1, 74, 75, 100)
	}, Fail, "foreign-release"},
	"the servers forgot a permit": {2, func(s *script) {
		s.share(1, 2, 0, 1, 100)
		s.fault(serverDies, 2, 4)
		s.share(2, 1, 6, 7, 100)
	}, Fail, "service-loss"},
	"the servers forgot a permit, and another came back that may have been extended": {2, func(s *script) {
		a := s.share(1, 1, 0, 1, 20)
		op := s.extend(a, 10, 15, 100)
		op.Outcome, op.Reason = history.Unknown, history.Timeout
		s.release(a, 60, 61)
		s.share(2, 1, 70, 71, 100)
		s.fault(serverDies, 72, 74)
		s.share(3, 1, 76, 77, 200)
		s.share(4, 1, 78, 79, 100)
	}, Fail, "service-loss"},
	"somebody believed for too long in a permit": {1, func(s *script) {
		s.share(1, 1, 0, 1, 20)
		s.last().Until = 90 * ms
		s.share(2, 1, 40, 41, 20)
	}, Fail, "over-claim"},
	"permits that nobody was refused": {2, func(s *script) {
		s.share(1, 1, 0, 1, 100)
		s.share(2, 1, 2, 3, 100)
	}, Inconclusive, ""},
}

func TestSharedHolds(t *testing.T) {
	for name, tt := range sharedCases {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.Claims.Readers, s.Claims.Permits = tt.permits == 0, tt.permits
			tt.write(s)
			v := checkExclusion(s.prepare(t))
			if v.Status != tt.status || v.Cause != tt.cause {
				t.Errorf("got %s %q: %s; want %s %q\n%v", v.Status, v.Cause, v.Summary, tt.status, tt.cause, v.Story)
			}
		})
	}
}

// reading lets a reader load a page twice, while a writer stores; each has a lease of its own.
func reading(look, again, grant, store time.Duration) *builder {
	s := newBuilder()
	s.h.Claims = history.Claims{Excludes: true, Expires: true, Readers: true}
	w := s.grant(2, grant, grant+1, 20)
	r := s.grant(1, 0, 1, 20)
	s.h.Ops[1].Permits = 1
	s.load(1, r, look, 0, 0)
	s.load(2, w, store-2, 0, 0)
	id := s.store(2, w, store, 0, 1)
	if again > store {
		s.load(1, r, again, id, 1)
	} else {
		s.load(1, r, again, 0, 0)
	}
	s.final(100, id, 1)
	return s
}

// TestReadersSeeNoChange: a reader must see the same page when it comes and before it goes.
func TestReadersSeeNoChange(t *testing.T) {
	for name, tt := range map[string]struct {
		s      *builder
		status Status
		cause  string
	}{
		"nobody stored meanwhile":          {reading(2, 4, 30, 40), Pass, ""},
		"somebody did":                     {reading(2, 9, 2, 6), Fail, "changed-read"},
		"it looks when its lease is over":  {reading(2, 50, 30, 40), Fail, "overrun"},
		"a writer stored when its own was": {reading(2, 16, -30, 12), Fail, "overrun"},
		"its last answer came too late":    {heeding(reading(2, 50, 30, 40)), Pass, ""},
		"it heeds, and somebody stored":    {heeding(reading(2, 9, 2, 6)), Fail, "changed-read"},
	} {
		t.Run(name, func(t *testing.T) {
			if v := judgeLostUpdates(tt.s.prepared()); v.Status != tt.status || v.Cause != tt.cause {
				t.Errorf("got %s %q: %s; want %s %q\n%v", v.Status, v.Cause, v.Summary, tt.status, tt.cause, v.Story)
			}
		})
	}
}

// heeding lets holders heed their deadlines: they use no answer that comes later.
func heeding(s *builder) *builder {
	s.h.Heeds = true
	return s
}

// starving lets a writer try in vain once a tick, for some ticks, while readers come and go, two ticks each.
func starving(ticks int, readers bool) *builder {
	s := newBuilder()
	s.h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true, Readers: true, Writers: true}
	s.h.Bounds.Idle, s.h.Bounds.Gap = 5*time.Millisecond, time.Millisecond
	first := s.grant(1, 0, 1, 10)
	s.h.Ops[0].Permits = 1
	s.refuse(2, 1, 2)
	for at := 2; at < ticks; at++ {
		s.refuse(2, dur(at), dur(at+1))
		op := &s.h.Ops[len(s.h.Ops)-1]
		op.Call, op.TTL = op.Call+s.tick/2, 10*s.tick // a separate call, no part of the call before
	}
	s.done(2, 1, dur(ticks))
	s.release(1, first, 3, 4, history.OK)
	s.done(1, 0, 4)
	for at := 2; readers && at < ticks; at += 2 {
		w := int32(3 + at/2%2)
		h := s.grant(w, dur(at), dur(at+1), 10)
		s.h.Ops[len(s.h.Ops)-1].Permits = 1
		s.release(w, h, dur(at+2), dur(at+2), history.OK)
		s.done(w, dur(at), dur(at+2))
	}
	return s
}

// TestWritersDoNotStarve: a writer is passed over by readers that come later.
func TestWritersDoNotStarve(t *testing.T) {
	c := starving(60, true).prepared()
	v := judgeLiveness(c)
	expect(t, v, Fail, "starved", "a reader, came at")
	if v = judgeLiveness(starving(12, true).prepared()); v.Cause == "starved" {
		t.Errorf("within a lease and the bound: %s", v.Summary)
	}
	if v = judgeLiveness(starving(60, false).prepared()); v.Cause == "starved" {
		t.Errorf("without readers: %s", v.Summary)
	}
	s := starving(60, true)
	s.h.Claims.Writers = false
	if v = judgeLiveness(s.prepared()); v.Status == Fail || v.Misses["writers passed over by readers"] != 1 {
		t.Errorf("of a lock that does not claim it: %s %v", v.Summary, v.Misses)
	}
}

// TestASemaphoreIsIdleWhilePermitsAreFree: a permit that no worker has is granted to none.
func TestASemaphoreIsIdleWhilePermitsAreFree(t *testing.T) {
	waits := func(out uint16) *builder {
		s := newBuilder()
		s.h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true, Permits: 2}
		s.h.Bounds.Idle, s.h.Bounds.Gap = 5*time.Millisecond, time.Millisecond
		s.grant(1, 0, 1, 60)
		s.h.Ops[0].Permits = out
		for at := 1; at < 40; at++ {
			s.refuse(2, dur(at), dur(at+1))
			s.h.Ops[at].Permits = 1
		}
		s.done(2, 1, 40)
		return s
	}
	if v := judgeLiveness(waits(1).prepared()); v.Cause != "stuck" {
		t.Errorf("one of two permits is out: %s %q %s", v.Status, v.Cause, v.Summary)
	}
	if v := judgeLiveness(waits(2).prepared()); v.Status == Fail {
		t.Errorf("both are out: %s %q %s", v.Status, v.Cause, v.Summary)
	}
}

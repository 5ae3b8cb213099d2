package main

import (
	"slices"
	"time"

	"hammerlock/history"
)

// period is the time of a disturbance.
type period struct{ from, to time.Duration }

// disturb chooses up to three disturbances at random. Unplanned disturbances are recorded as in a real run. A right
// lock survives all disturbances, unless a server forgets its grants or its clock runs ahead.
func (w *world) disturb(workers []*thread) {
	if w.one(3) {
		// pauses too short to be recorded
		for t := w.between(0, w.length/8); t < w.length; t += w.between(time.Millisecond, w.length/4) {
			p := w.processes[w.r.IntN(len(w.processes))]
			stopped := w.between(100*time.Microsecond, w.h.Bounds.Gap)
			w.at(t, func() { p.stopped = max(p.stopped, w.now+stopped) })
		}
	}
	all := []func(period, []*thread){w.slowLinks, w.slowLinks, w.lostMessages, w.hang, w.restart, w.forget,
		w.stopProcess, w.stopProcess,
		w.stopHolder, w.crash, w.jump}
	some := w.r.IntN(4)
	switch often := len(all); { // disturbances without which the mistake has no effect
	case w.wrong == hopes || w.wrong == extendsOne || w.wrong == countsSilence:
		some, all = max(some, 1), append(all, slices.Repeat([]func(period, []*thread){w.lostMessages}, often)...)
	case w.wrong == extendRecreates && w.h.Claims.Renews:
		some, all = max(some, 1), append(all, slices.Repeat([]func(period, []*thread){w.stopProcess}, often)...)
	}
	for range some {
		from := w.now + w.between(0, w.length*3/4)
		long := max(w.ttl, 60*time.Millisecond)
		to := from + w.between(5*time.Millisecond, []time.Duration{long / 4, long, 2 * long}[w.r.IntN(3)])
		all[w.r.IntN(len(all))](period{from, to}, workers)
	}
}

// plan adds a fault and its healing to the history, and schedules both.
func (w *world) plan(name string, p period, e history.Effect, begin, end func()) {
	n := int64(len(w.h.Faults))
	w.h.Faults = append(w.h.Faults, history.Injection{Name: name, From: p.from, To: p.to, Effect: e})
	moment := w.between(0, time.Millisecond)
	w.suite(history.Op{Kind: history.Fault, Outcome: history.OK, Key: -1, Value: n}, p.from-moment, p.from+moment)
	w.suite(history.Op{Kind: history.Heal, Outcome: history.OK, Key: -1, Value: n}, p.to-moment, p.to+moment)
	w.at(p.from, begin)
	w.at(p.to, end)
}

func (w *world) unplanned(k history.Kind, p period, value int64, process int16) {
	w.suite(history.Op{Kind: k, Outcome: history.OK, Key: -1, Value: value, Process: process},
		p.from-w.between(0, time.Millisecond), p.to+w.between(0, time.Millisecond))
}

func (w *world) slowLinks(p period, _ []*thread) {
	slow := []time.Duration{5 * time.Millisecond, w.ttl / 3, w.ttl, 2 * w.ttl}[w.r.IntN(4)]
	w.at(p.to, func() { w.slow = 0 })
	p.to += slow // it ends when the delayed messages have arrived
	w.plan("delay", p, hits(history.Links), func() { w.slow = slow }, func() {})
}

func (w *world) lostMessages(p period, _ []*thread) {
	likely := []float64{0.1, 0.3, 0.8}[w.r.IntN(3)]
	w.plan("loss", p, hits(history.Links), func() { w.lossy = likely }, func() { w.lossy = 0 })
}

func hits(parties ...history.Party) history.Effect { return history.Effect{Hits: parties} }

// victim returns a random server out of a fixed minority, or the only server.
func (w *world) victim() *site { return w.sites[w.r.IntN(max(len(w.sites)/2, 1))] }

func (w *world) hang(p period, _ []*thread) {
	s := w.victim()
	begin := func() { s.hung = max(s.hung, p.to) }
	if w.one(2) {
		w.plan("hang", p, history.Effect{Hits: []history.Party{history.Servers}, Blocks: true,
			Spares: len(w.sites) > 2}, begin, func() {})
		return
	}
	w.at(p.from, begin)
	w.unplanned(history.Incident, p, s.number, 0)
}

// restart stops a server for a while. The server keeps its keys.
func (w *world) restart(p period, _ []*thread) {
	s := w.victim()
	begin := func() { s.down = max(s.down, p.to) }
	if w.one(2) {
		w.plan("restart", p, history.Effect{Hits: []history.Party{history.Servers}, Blocks: true,
			Spares: len(w.sites) > 2}, begin, func() {})
		return
	}
	w.at(p.from, begin)
	w.unplanned(history.Incident, p, s.number, 0)
}

// forget restarts a server without its keys. With several sites, the server may stay down for the length of a lease,
// as Redlock demands. If the server comes back earlier, even a right lock loses the grants that only a bare majority
// of sites had. If there is only one site, it loses all grants.
func (w *world) forget(p period, _ []*thread) {
	s, away := w.victim(), len(w.sites) > 1 && w.one(2)
	if away {
		p.to = max(p.to, p.from+time.Duration(float64(w.ttl)*1.02)+10*time.Millisecond)
	}
	begin := func() {
		s.down = max(s.down, p.to)
		s.pages = make([]locked, len(s.pages))
	}
	if w.one(4) {
		w.broken = w.broken || !away
		w.plan("restart empty", p, history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys,
			Blocks: true, Spares: away}, begin, func() {})
		return
	}
	w.at(p.from, begin)
	w.unplanned([]history.Kind{history.Incident, history.Role}[w.r.IntN(2)], p, s.number, 0)
}

// jump changes a server's clock, and changes it back at the end.
func (w *world) jump(p period, _ []*thread) {
	if w.ttl == 0 {
		return
	}
	s, far := w.victim(), w.between(w.ttl/4, 3*w.ttl/2)
	if w.one(2) {
		far = -far
	}
	w.plan("clock", p, history.Effect{Hits: []history.Party{history.Clocks}, Loses: history.LosesTime},
		func() { s.jump += far }, func() { s.jump -= far })
	w.broken = true
}

func (w *world) stopProcess(p period, _ []*thread) {
	q := w.processes[w.r.IntN(len(w.processes))]
	begin := func() { q.stopped = max(q.stopped, p.to) }
	if w.one(2) {
		w.plan("stop", p, hits(history.Clients), begin, func() {})
	} else {
		w.at(p.from, begin)
	}
	if p.to-p.from >= w.h.Bounds.Gap {
		w.unplanned(history.Gap, p, 0, q.number)
	}
}

// stopHolder pauses a worker while the rest of its process goes on.
func (w *world) stopHolder(p period, workers []*thread) {
	t := workers[w.r.IntN(len(workers))]
	w.plan("stop a worker", p, hits(history.Holders), func() { t.stopped = p.to }, func() {})
}

// crash ends a worker. It does nothing if the lock has no expiry: the lock would stay held, which would be the
// lock's mistake.
func (w *world) crash(p period, workers []*thread) {
	if w.ttl == 0 {
		return
	}
	t := workers[w.r.IntN(len(workers))]
	w.at(p.from, func() {
		if t.dead {
			return
		}
		t.dead = true
		w.suite(history.Op{Kind: history.Crash, Outcome: history.OK, Key: -1, Process: t.p.number}, w.now, w.now)
		w.ops[len(w.ops)-1].Worker = t.worker
		for _, h := range w.beliefs {
			if h.worker == t.worker {
				h.to = min(h.to, w.now)
			}
		}
	})
}

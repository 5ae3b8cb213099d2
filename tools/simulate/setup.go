package main

import (
	"math/rand/v2"
	"time"

	"hammerlock/history"
)

// simulate makes the history of a lock that has one mistake, or none. Its argument p says which.
func simulate(p pair, seed uint64) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, uint64(p.wrong)<<8|uint64(len(p.kind.name)+p.kind.sites))), kind: p.kind,
		wrong: p.wrong,
		now:   20 * time.Millisecond, numbers: map[int]uint64{}}
	w.draw()
	for i := range w.processes {
		w.processes[i] = &process{number: int16(i), offset: w.between(0, w.h.Bounds.Slack)}
	}
	for i := range w.sites {
		drift := (2*w.r.Float64() - 1) * w.h.Bounds.Rate * 0.9
		w.sites[i] = &site{w: w, number: int64(i), rate: drift, pages: make([]locked, w.h.Keys)}
	}
	w.lanes = w.h.Workers
	var workers []*thread
	for i := range w.h.Workers {
		workers = append(workers, w.spawn(w.processes[w.r.IntN(len(w.processes))], int32(i), i+1, (*thread).work))
	}
	w.disturb(workers)
	w.run()
	w.finish()
	return w
}

// draw chooses the sizes and times of a run.
func (w *world) draw() {
	r, h := w.r, &w.h
	h.Name, h.Lock, h.Topology, h.Claims = w.kind.name, w.kind.name, "simulated", w.kind.claims
	h.Workers, h.Processes, h.Keys, h.Sites, h.Nodes = 2+r.IntN(4), 1, 1+r.IntN(5)/4, w.kind.sites, w.kind.sites
	if w.one(2) {
		h.Processes = 2 + r.IntN(2)
		h.Bounds.Slack = []time.Duration{50 * time.Microsecond, 200 * time.Microsecond, time.Millisecond}[r.IntN(3)]
	}
	h.Bounds.Rate = []float64{0, 0.001, 0.01}[r.IntN(3)]
	if w.one(2) {
		h.Bounds.Round = 2 * time.Millisecond
	}
	h.Bounds.Gap, h.Bounds.Recovery = 10*time.Millisecond, 200*time.Millisecond
	h.Claims.Writers = h.Claims.Readers && w.one(2)
	if h.Claims.Expires {
		w.ttl = []time.Duration{60, 100, 200, 500}[r.IntN(4)] * time.Millisecond
	}
	lease := max(w.ttl, 60*time.Millisecond)
	w.stay = []time.Duration{time.Millisecond, 5 * time.Millisecond, lease / 4, lease * 4 / 5}[r.IntN(4)]
	w.retry = max(time.Millisecond, w.stay/4)
	w.length = w.now + time.Duration(6+r.IntN(14))*(w.stay/2+4*time.Millisecond)
	h.Retry, h.Wait = w.retry, w.between(4*w.stay+20*time.Millisecond, time.Second)
	w.often, w.late = 1+r.IntN(4), 12
	w.touching, w.strict, w.perVisit, w.twice = w.one(4), w.one(2), w.one(2), w.one(2)
	w.counts, w.visits, w.extends = h.Claims.Reentrant && w.one(2), !w.one(8), !h.Claims.Renews && w.ttl > 0 && w.one(2)
	switch w.wrong { // conditions without which the mistake has no effect
	case releasesTwice, permitsTwice:
		w.twice = true
	case busyOwner:
		w.extends = true
	case hopes, extendsOne, extendRecreates, extendsAnything:
		w.extends, w.late = !h.Claims.Renews, 3
	case checkThenDelete, liesOnRelease, heedless:
		w.late = 3
	}
	h.Fenced = h.Claims.Fences && !w.one(3)
	w.pages, w.processes, w.sites = make([]counted, h.Keys), make([]*process, h.Processes), make([]*site, h.Sites)
}

// finish adds the final pages and the remaining keys to the history.
func (w *world) finish() {
	for i, p := range w.pages {
		w.suite(history.Op{Kind: history.Final, Outcome: history.OK, Key: int32(i), Value: p.value, Seen: p.seen},
			w.now+2*time.Millisecond, w.now+3*time.Millisecond)
	}
	w.now += 4 * time.Millisecond
	if w.ttl == 0 || w.one(2) {
		return
	}
	for _, s := range w.sites {
		for page := range s.pages {
			for _, e := range s.open(int32(page)).holders {
				left := time.Duration(float64(e.until-s.clock()) / (1 + s.rate))
				w.suite(history.Op{Kind: history.Found, Outcome: history.OK, Key: int32(page), Token: e.token,
					Value: s.number,
					Until: w.now + left + w.processes[0].offset}, w.now, w.now+time.Millisecond)
			}
		}
	}
}

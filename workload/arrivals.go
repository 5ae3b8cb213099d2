package workload

import (
	"math/rand/v2"
	"sync"
	"time"

	"hammerlock/history"
)

// arrivals is the schedule of visits in an open loop: a visit is due at its planned time, whether or not a worker
// is free. Visits are not stored: each visit is drawn when a worker takes it.
//
// A change of Tempo may still move the due time of a visit that a worker has taken. The planned time and the page of
// a visit never change.
type arrivals struct {
	mu    sync.Mutex
	shape *Shape
	tempo *Tempo // changes the rate during the run; nil if the rate stays as planned
	pace  pace
	keys  *chooser
	next  time.Duration

	drawn   int64
	back    []visit       // visits that a worker took and returned before it began them
	changed chan struct{} // closed at the next change of Tempo
}

type visit struct {
	planned time.Duration // time at which the visit is due at the planned rate
	key     int32
}

func newArrivals(p *Shape, t *Tempo) *arrivals {
	r := rand.New(rand.NewPCG(p.Seed, 0))
	step := r.ExpFloat64
	if p.Arrivals != Poisson {
		step = func() float64 { return 1 }
	}
	a := &arrivals{shape: p, tempo: t, pace: pace{shape: p, step: step}, keys: newChooser(p, r),
		changed: make(chan struct{})}
	a.next = a.pace.first()
	return a
}

// take returns the next visit. It returns false if no more visits will become due.
func (a *arrivals) take() (v visit, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	end := a.shape.End
	if a.tempo != nil {
		end = history.Forever // the rate may still rise, and then this visit is due before the end
	}
	return a.mine(end)
}

// giveBack returns a visit to the schedule, because the worker has not begun it.
func (a *arrivals) giveBack(v visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.back = append(a.back, v)
}

// change returns a channel that is closed when due times change; nil if they never do.
func (a *arrivals) change() <-chan struct{} {
	if a.tempo == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

// follow wakes the workers that wait for a due time whenever the Tempo changes. It returns when done is closed.
func (a *arrivals) follow(done <-chan struct{}) {
	ticker := time.NewTicker(tempoPoll)
	defer ticker.Stop()
	for seen := 0; ; {
		if n := a.tempo.changes(); n > seen {
			seen = n
			a.mu.Lock()
			close(a.changed)
			a.changed = make(chan struct{})
			a.mu.Unlock()
		}
		select {
		case <-ticker.C:
		case <-done:
			return
		}
	}
}

// mine draws visits until one belongs to this process, and returns that visit. If none is due before end, ok is false.
func (a *arrivals) mine(end time.Duration) (v visit, ok bool) {
	for {
		v, ok = a.draw(end)
		if !ok {
			return v, ok
		}
		a.drawn++
		if a.shape.Parts == 0 || (a.drawn-1)%int64(a.shape.Parts) == int64(a.shape.Part) {
			return v, ok
		}
	}
}

// draw returns the next visit if it is due before end; otherwise the visit stays in the schedule.
func (a *arrivals) draw(end time.Duration) (v visit, ok bool) {
	if v.planned = a.next; a.tempo.due(v.planned) >= end {
		return v, false
	}
	a.next = a.pace.next(v.planned)
	v.key = a.keys.choose()
	return v, true
}

// remaining returns the number of visits that were due before end and never began. It calls the function show with
// the due time of each.
func (a *arrivals) remaining(end time.Duration, show func(due time.Duration)) (n int64) {
	if !a.shape.Open() {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range a.back {
		if due := a.tempo.due(v.planned); due < end {
			show(due)
			n++
		}
	}
	for {
		v, ok := a.mine(end)
		if !ok {
			return n
		}
		show(a.tempo.due(v.planned))
		n++
	}
}

// chooser draws the page of a visit.
type chooser struct {
	rand *rand.Rand
	zipf *rand.Zipf
	n    int
}

// zipfExponent makes visits of page k proportional to 1/k. The generator needs an exponent greater than 1.
const zipfExponent = 1.0001

func newChooser(p *Shape, r *rand.Rand) *chooser {
	c := &chooser{rand: r, n: p.Keys}
	if p.Popularity == Zipf {
		c.zipf = rand.NewZipf(r, zipfExponent, 1, uint64(p.Keys-1))
	}
	return c
}

func (c *chooser) choose() int32 {
	if c.zipf != nil {
		return int32(c.zipf.Uint64())
	}
	return int32(c.rand.IntN(c.n))
}

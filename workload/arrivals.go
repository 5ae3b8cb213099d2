package workload

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// arrivals is the schedule of an open loop. It is a function of the plan alone: which worker takes a visit, and
// when, changes nothing in it. It is no queue: a visit that no worker has taken yet is one that was not drawn yet,
// so nothing is dropped and nothing grows.
type arrivals struct {
	mu   sync.Mutex
	plan *Plan
	rand *rand.Rand
	keys *chooser
	next time.Duration

	drawn int64
}

func newArrivals(p *Plan) *arrivals {
	r := rand.New(rand.NewPCG(p.Seed, 0))
	return &arrivals{plan: p, rand: r, keys: newChooser(p, r)}
}

// take draws the next visit. It returns false when no more visits are due.
func (a *arrivals) take() (due time.Duration, key int32, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mine(a.plan.End)
}

// mine draws the next visit of this part of the crew.
func (a *arrivals) mine(end time.Duration) (due time.Duration, key int32, ok bool) {
	for {
		due, key, ok = a.draw(end)
		if !ok {
			return due, key, ok
		}
		a.drawn++
		if a.plan.Parts == 0 || (a.drawn-1)%int64(a.plan.Parts) == int64(a.plan.Part) {
			return due, key, ok
		}
	}
}

// draw returns the next visit if it is due before end, and leaves it otherwise.
func (a *arrivals) draw(end time.Duration) (due time.Duration, key int32, ok bool) {
	due = a.next
	if due >= end {
		return 0, 0, false
	}
	gap := float64(time.Second) / a.plan.Rate
	if a.plan.Arrivals == Poisson {
		gap *= a.rand.ExpFloat64()
	}
	a.next += time.Duration(gap)
	return due, a.keys.choose(), true
}

// remaining draws what was due before end, shows and counts it.
func (a *arrivals) remaining(end time.Duration, show func(due time.Duration)) (n int64) {
	if !a.plan.Open() {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		due, _, ok := a.mine(end)
		if !ok {
			return n
		}
		show(due)
		n++
	}
}

// chooser draws pages.
type chooser struct {
	rand *rand.Rand
	zipf *rand.Zipf
	n    int
}

// zipfExponent is just above 1, the least that the generator takes: the classic harmonic popularity.
const zipfExponent = 1.0001

func newChooser(p *Plan, r *rand.Rand) *chooser {
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

func itoa(i int) string { return strconv.Itoa(i) }

package workload

import (
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Tempo lets the rate of an open loop change while it goes on. The schedule stays the one of the plan, the same visits
// to the same pages in the same order: only the time in which it goes by runs faster or slower from some moment on.
// It may lie in memory that the suite shares with its worker processes. A nil Tempo never changes.
type Tempo struct{ words *tempoWords }

// mostChanges is how often a tempo can change. None is forgotten: a visit that was due long ago may still be taken.
const mostChanges = 255

type tempoWords struct {
	n       atomic.Uint32 // changes that are written
	_       uint32
	changes [mostChanges]change
}

// change is a moment from which on the schedule runs at another speed.
type change struct {
	from  time.Duration // on the run's clock
	plan  time.Duration // what was due by the plan then
	speed float64       // times that of the plan
}

// A change is told tempoLead before it comes to pass, and everybody looks for one every tempoPoll: so those who wait
// for a visit know in time that it is due earlier or later.
const (
	tempoLead = 50 * time.Millisecond
	tempoPoll = 10 * time.Millisecond
)

// errChanges says that a tempo was changed too often.
var errChanges = errors.New("the rate was changed as often as it can be")

// NewTempo makes a tempo.
func NewTempo() *Tempo { return &Tempo{words: new(tempoWords)} }

// TempoIn is the tempo in memory that is large enough, zero at first, and begins at a multiple of eight.
func TempoIn(memory []byte) (*Tempo, error) {
	words, err := over[tempoWords](memory)
	return &Tempo{words: words}, err
}

// Speed is how many times as fast as planned the schedule runs, after all changes so far.
func (t *Tempo) Speed() float64 {
	if n := t.changes(); n > 0 {
		return t.words.changes[n-1].speed
	}
	return 1
}

// Change makes the schedule run at a speed, times that of the plan, from a moment on that it returns. It is called by
// one goroutine at a time; now is the run's clock.
func (t *Tempo) Change(now time.Duration, speed float64) (from time.Duration, err error) {
	n := t.changes()
	if n == mostChanges {
		return 0, errChanges
	}
	last := change{speed: 1}
	if n > 0 {
		last = t.words.changes[n-1]
	}
	next := change{from: max(now+tempoLead, last.from), speed: speed}
	next.plan = last.plan + time.Duration(math.Ceil(float64(next.from-last.from)*last.speed))
	t.words.changes[n] = next
	t.words.n.Store(uint32(n + 1))
	return next.from, nil
}

func (t *Tempo) changes() int {
	if t == nil {
		return 0
	}
	return int(t.words.n.Load())
}

// due is when a visit is due that the plan has at the given time.
func (t *Tempo) due(planned time.Duration) time.Duration {
	for n := t.changes(); n > 0; n-- {
		if c := &t.words.changes[n-1]; planned >= c.plan {
			return c.from + time.Duration(float64(planned-c.plan)/c.speed)
		}
	}
	return planned
}

package workload

import (
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// Tempo changes the rate of an open loop during a run, at the user's request. The visits, their pages and their order
// stay as planned; only the gaps between them become longer or shorter. A Tempo may lie in memory that is shared with
// worker processes. A nil Tempo never changes.
type Tempo struct{ words *tempoWords }

// mostChanges is the largest number of changes of the rate. All changes are kept, because a visit that was due long ago
// may still be waiting for a worker.
const mostChanges = 255

type tempoWords struct {
	n       atomic.Uint32 // number of changes
	_       uint32
	changes [mostChanges]change
}

type change struct {
	from  time.Duration // time on the run's clock at which the change takes effect
	plan  time.Duration // planned time of a visit that is now due at the time from
	speed float64       // speed after that time; 1 = as planned
}

// Workers look for changes at intervals of tempoPoll. A change takes effect tempoLead after it was written, when all
// workers know it.
const (
	tempoLead = 50 * time.Millisecond
	tempoPoll = 10 * time.Millisecond
)

var errChanges = errors.New("the rate was changed as often as it can be")

// NewTempo makes a Tempo in the memory of this process.
func NewTempo() *Tempo { return &Tempo{words: new(tempoWords)} }

// TempoIn makes a Tempo in shared memory, which must be large enough, zeroed, and aligned to 8 bytes.
func TempoIn(memory []byte) (*Tempo, error) {
	words, err := over[tempoWords](memory)
	return &Tempo{words: words}, err
}

// Speed is the current speed; 1 = as planned.
func (t *Tempo) Speed() float64 {
	if n := t.changes(); n > 0 {
		return t.words.changes[n-1].speed
	}
	return 1
}

// Change sets the speed: 1 = as planned, 2 = twice as many visits per second. It returns the time at which the
// change takes effect. The argument now is the time on the run's clock. Calls must not overlap.
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

// due converts the planned time of a visit to the time at which it is due after all changes of the rate.
func (t *Tempo) due(planned time.Duration) time.Duration {
	for n := t.changes(); n > 0; n-- {
		if c := &t.words.changes[n-1]; planned >= c.plan {
			return c.from + time.Duration(float64(planned-c.plan)/c.speed)
		}
	}
	return planned
}

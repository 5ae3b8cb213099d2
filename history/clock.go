package history

import (
	"sync/atomic"
	"time"
)

// Clock is the one clock of a run, in nanoseconds since its start. Within a process its stamps are
// strictly increasing, so that a stamp is an order and a time at once; across the processes of a machine
// they agree to within the error with which offset was measured.
type Clock struct {
	zero   time.Time
	offset time.Duration
	last   atomic.Int64
}

// NewClock starts a clock that reads offset now.
func NewClock(offset time.Duration) *Clock {
	return &Clock{zero: time.Now(), offset: offset}
}

// Now reads the clock. Readings may repeat; they order nothing.
func (c *Clock) Now() time.Duration { return time.Since(c.zero) + c.offset }

// At translates a moment of this process to the clock.
func (c *Clock) At(t time.Time) time.Duration { return t.Sub(c.zero) + c.offset }

// Stamp reads the clock and returns a time greater than every stamp taken before. It passes through an
// atomic exchange: a stamp that was taken before another began is the smaller one.
func (c *Clock) Stamp() time.Duration {
	now := int64(c.Now())
	for {
		last := c.last.Load()
		now = max(now, last+1)
		if c.last.CompareAndSwap(last, now) {
			return time.Duration(now)
		}
	}
}

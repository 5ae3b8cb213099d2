package history

import (
	"sync/atomic"
	"time"
)

// Clock reads the time since the start of the run, in nanoseconds. The clocks of processes on one machine agree
// within the error of their measured offsets.
type Clock struct {
	zero   time.Time
	offset time.Duration
	order  *atomic.Int64 // the last stamp; nil if stamps need no order
}

// NewClock starts a clock that reads offset at the moment of this call. Use it to measure: its stamps are plain
// readings of the machine's clock.
func NewClock(offset time.Duration) *Clock {
	return &Clock{zero: time.Now(), offset: offset}
}

// NewOrderedClock starts a clock that reads offset at the moment of this call. Use it if checkers will read the
// history: they must know which of two events came first, even if two readings are equal or one core's clock is
// late. A stamp is max(now, last + 1), taken by compare-and-swap. So stamps increase strictly within the process,
// and operations need no sequence number. The price is one cache line that all cores write; bench uses NewClock and
// does not pay it.
func NewOrderedClock(offset time.Duration) *Clock {
	c := NewClock(offset)
	c.order = &new(struct {
		last atomic.Int64
		_    [56]byte // a cache line of its own: all cores write it
	}).last
	return c
}

// Set declares that the clock read offset at a past moment. It must be called before the first reading. If the
// process has waited for a core since that moment, the wait causes no error.
func (c *Clock) Set(moment time.Time, offset time.Duration) { c.zero, c.offset = moment, offset }

// Now reads the clock. Readings may repeat, so they do not order events.
func (c *Clock) Now() time.Duration { return time.Since(c.zero) + c.offset }

// At converts a time of this process to the run's clock.
func (c *Clock) At(t time.Time) time.Duration { return t.Sub(c.zero) + c.offset }

// Stamp reads the clock for a record. Each stamp of an ordered clock is greater than all earlier ones, also if
// several goroutines take stamps, because all stamps go through one atomic variable.
func (c *Clock) Stamp() time.Duration {
	if c.order == nil {
		return c.Now()
	}
	return c.ordered(int64(c.Now()))
}

// Next returns the stamp that follows the last one, for an event that happened together with another. It does not
// read the machine's clock if the clock is ordered.
func (c *Clock) Next() time.Duration {
	if c.order == nil {
		return c.Now()
	}
	return time.Duration(c.order.Add(1))
}

func (c *Clock) ordered(now int64) time.Duration {
	for {
		last := c.order.Load()
		now = max(now, last+1)
		if c.order.CompareAndSwap(last, now) {
			return time.Duration(now)
		}
	}
}

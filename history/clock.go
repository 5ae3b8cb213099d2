package history

import (
	"sync/atomic"
	"time"
)

// Clock is a run's clock, in nanoseconds since the start. The clocks of processes on one machine agree within the
// error of their measured offsets.
type Clock struct {
	zero   time.Time
	offset time.Duration
	order  *atomic.Int64 // the last stamp; nil if stamps need no order
}

// NewClock starts a clock that reads offset now. Use it to measure: its stamps are plain readings of the machine's
// clock.
func NewClock(offset time.Duration) *Clock {
	return &Clock{zero: time.Now(), offset: offset}
}

// NewOrderedClock starts a clock that reads offset now. Use it to judge: "this returned before that was called" must
// not depend on two equal readings or on a late core. A stamp is max(now, last + 1), taken by compare-and-swap.
// Stamps therefore increase strictly within the process, and operations need no sequence number. The price is one
// contended cache line, which bench does not pay.
func NewOrderedClock(offset time.Duration) *Clock {
	c := NewClock(offset)
	c.order = &new(struct {
		last atomic.Int64
		_    [56]byte // a cache line of its own: all cores write it
	}).last
	return c
}

// Set makes the clock read offset at a past moment; call it before the first reading. Time that the process has spent
// waiting for a core since that moment causes no error.
func (c *Clock) Set(moment time.Time, offset time.Duration) { c.zero, c.offset = moment, offset }

// Now reads the clock. Readings may repeat, so they do not order events.
func (c *Clock) Now() time.Duration { return time.Since(c.zero) + c.offset }

// At converts a time of this process.
func (c *Clock) At(t time.Time) time.Duration { return t.Sub(c.zero) + c.offset }

// Stamp reads the clock for a record. An ordered clock returns more than every earlier stamp. If one stamp was taken
// before another began, it is the smaller one, because both go through one atomic variable.
func (c *Clock) Stamp() time.Duration {
	if c.order == nil {
		return c.Now()
	}
	return c.ordered(int64(c.Now()))
}

// Next is a stamp right after the last one, for an event that came together with another. It does not read the
// machine's clock.
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

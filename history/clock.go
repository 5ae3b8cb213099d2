package history

import (
	"sync/atomic"
	"time"
)

// Clock is the clock of a run, in nanoseconds since its start. The clocks of several processes of a machine agree
// within the error of their measured offsets.
type Clock struct {
	zero   time.Time
	offset time.Duration
	order  *atomic.Int64 // the last stamp; nil if stamps need no order
}

// NewClock starts a clock that reads offset now, for measuring: its stamps are readings of the machine's clock.
func NewClock(offset time.Duration) *Clock {
	return &Clock{zero: time.Now(), offset: offset}
}

// NewOrderedClock starts a clock that reads offset now, for judging: "this returned before that was called" must never
// be a matter of two equal readings, or of a core that was late. A stamp is max(now, last + 1), taken by
// compare-and-swap: strictly increasing in the process, an order and a time at once, so that operations need no
// sequence number beside it. The price is one contended cache line, which bench does not pay.
func NewOrderedClock(offset time.Duration) *Clock {
	c := NewClock(offset)
	c.order = &new(struct {
		last atomic.Int64
		_    [56]byte // a cache line of its own: all cores write it
	}).last
	return c
}

// Set lets a clock that nobody has read yet read offset at a moment. However long it took from that moment to here, in
// a process that had to wait for a core, the clock is not late by it.
func (c *Clock) Set(moment time.Time, offset time.Duration) { c.zero, c.offset = moment, offset }

// Now reads the clock. Readings may repeat, so they are no order.
func (c *Clock) Now() time.Duration { return time.Since(c.zero) + c.offset }

// At translates a moment of this process to the clock.
func (c *Clock) At(t time.Time) time.Duration { return t.Sub(c.zero) + c.offset }

// Stamp reads the clock for a record. An ordered clock returns a time greater than every stamp before; it passes
// through an atomic exchange, so that a stamp that was taken before another began is the smaller one.
func (c *Clock) Stamp() time.Duration {
	if c.order == nil {
		return c.Now()
	}
	return c.ordered(int64(c.Now()))
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

// Package proof tracks a lease that a client library renews, and the hold that depends on the lease. It knows the time
// until which the lease is proved to last.
package proof

import (
	"sync"
	"time"

	"hammerlock/history"
)

// Hold is one grant.
type Hold struct {
	Token string
	Lost  chan struct{} // closed by Lose

	began time.Time
	until time.Time // end of the recorded lease
	once  sync.Once
	timer *time.Timer // fires at the proved end of the lease; nil = the hold may last longer
}

// NewHold makes a hold with its token.
func NewHold(token string) *Hold { return &Hold{Token: token, Lost: make(chan struct{})} }

// Lose tells the holder that the hold is lost.
func (h *Hold) Lose() { h.once.Do(func() { close(h.Lost) }) }

// Lease is a lease that the servers have promised. If it lasts longer than promised, this is not recorded.
type Lease struct {
	Lane *history.Lane // for renewals; may be nil

	mu       sync.Mutex
	promised time.Time
	ends     time.Time // proved end; earlier than promised, because the server's clock may run faster
	hold     *Hold     // depends on the lease; nil = none
	asked    time.Time // time of the first unanswered renewal request; zero = none
}

// Ask notes that a renewal was requested. If the hold is lost before the request is answered, the request is recorded.
func (l *Lease) Ask() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked.IsZero() {
		l.asked = time.Now()
	}
}

// Renew notes the promised end of the lease, and the earliest possible end. If a hold depends on the lease, it also
// records a renewal that is called now, with the remaining time as its TTL.
func (l *Lease) Renew(promised, ends time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promised, l.ends, l.asked = promised, ends, time.Time{}
	h := l.hold
	if h == nil {
		return
	}
	if h.timer != nil {
		h.timer.Reset(time.Until(ends))
	}
	left := time.Until(promised)
	if l.Lane == nil || left <= 0 || !time.Now().Before(h.until) {
		return
	}
	h.until = time.Now().Add(left)
	op := l.Lane.Call(history.Extend, -1)
	op.Token, op.TTL, op.Outcome, op.Until = history.Hash(h.Token), left, history.OK, history.Forever
	l.Lane.Return(op)
}

// Left returns the time for which the lease is certain to last.
func (l *Lease) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.ends)
}

// Begin makes a hold depend on the lease, and returns the promised end. A strict hold is lost when the proved end of
// the lease has come.
func (l *Lease) Begin(h *Hold, strict bool) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold, h.began, h.until = h, time.Now(), l.ends
	if strict {
		h.timer = time.AfterFunc(time.Until(l.ends), func() { l.late(h) })
	}
	return l.promised
}

func (l *Lease) late(h *Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold == h && !time.Now().Before(l.ends) {
		l.lose()
	}
}

// Lose tells the holder, if any, that the lease is lost.
func (l *Lease) Lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold != nil {
		l.lose()
	}
}

// lose tells the holder that the lease is lost. It also records a renewal that is still unanswered.
func (l *Lease) lose() {
	if l.Lane != nil && !l.asked.IsZero() {
		clock := l.Lane.Clock()
		l.Lane.Mark(&history.Op{Kind: history.Extend, Key: -1, Call: max(clock.At(l.asked), clock.At(l.hold.began)),
			Token: history.Hash(l.hold.Token),
			TTL:   l.promised.Sub(l.hold.began), Outcome: history.Unknown})
		l.asked = time.Time{}
	}
	l.hold.Lose()
}

// Finish ends the hold. After that, nothing is recorded for it.
func (l *Lease) Finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold != nil && l.hold.timer != nil {
		l.hold.timer.Stop()
	}
	l.hold = nil
}

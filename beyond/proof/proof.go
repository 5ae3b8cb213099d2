// Package proof keeps until when a lease is proved to last that a client library renews by itself, and the hold that
// stands on it.
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
	until time.Time // what is recorded of its lease is over then
	once  sync.Once
	timer *time.Timer // ends it when the last proof does; nil = it is believed in for longer
}

// NewHold makes the hold of a grant that is known by a token.
func NewHold(token string) *Hold { return &Hold{Token: token, Lost: make(chan struct{})} }

// Lose tells the holder that the hold is lost.
func (h *Hold) Lose() { h.once.Do(func() { close(h.Lost) }) }

// Lease is a lease that the servers have promised. Keeping more than they promised is not recorded.
type Lease struct {
	Lane *history.Lane // for renewals; may be nil

	mu       sync.Mutex
	promised time.Time
	ends     time.Time // sooner, for the server's clock may go faster than ours
	hold     *Hold     // that stands on it; nil = none
	asked    time.Time // when the first renewal was asked for that has had no answer; zero = there is none
}

// Ask takes down that a renewal is asked for. If it has had no answer when the hold is lost, that is recorded.
func (l *Lease) Ask() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked.IsZero() {
		l.asked = time.Now()
	}
}

// Renew takes down a promise, and when it may be over. A renewal is recorded as called now, with what is left of it.
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

// Left is for how long the lease is sure to last.
func (l *Lease) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.ends)
}

// Begin lets a hold stand on the lease, and returns until when that is promised. A strict hold is lost when the last
// proof is over.
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

// Lose tells the holder, if there is one, that the lease is lost.
func (l *Lease) Lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold != nil {
		l.lose()
	}
}

// lose tells the holder, and records the renewal that was asked for in vain.
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

// Finish ends what stands on the lease: nothing of it is recorded any more.
func (l *Lease) Finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold != nil && l.hold.timer != nil {
		l.hold.timer.Stop()
	}
	l.hold = nil
}

package catalogue

import (
	"context"
	"math/rand/v2"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

var spin = locks.Spec{
	Name:    "spin",
	Doc:     "lease, waited for by polling with a jittered backoff that doubles up to a cap",
	Source:  "Redisson, getSpinLock; Brooker, Exponential Backoff And Jitter: full jitter",
	Sites:   locks.OneSite,
	Assumes: keepsKeys + doneInTime,
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		return &spinLock{leaseLock: leaseLock{e.Sites[0]}, rand: e.Rand}, nil
	},
}

// The backoff is a random time between zero and a bound. The bound begins at firstSpin and doubles up to maxSpin.
const (
	firstSpin = time.Millisecond
	maxSpin   = 128 * time.Millisecond
)

type spinLock struct {
	leaseLock
	rand  *rand.Rand
	bound time.Duration
}

func (l *spinLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.leaseLock.Acquire(ctx, key, ttl)
	if err == nil {
		l.bound = 0
	}
	return lease, err
}

// Wait pauses for the backoff.
func (l *spinLock) Wait(ctx context.Context, _ string) (history.Wake, error) {
	l.bound = min(max(2*l.bound, firstSpin), maxSpin)
	err := pause(ctx, time.Duration(l.rand.Int64N(int64(l.bound))+1))
	if err != nil {
		l.bound = 0
	}
	return history.Poll, err
}

// pause waits for the duration d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

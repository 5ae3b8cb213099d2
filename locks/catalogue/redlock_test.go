package catalogue

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"hammerlock/locks"
	"hammerlock/topologies"
)

// TestWhoDidNotAnswerRedlock: a try is refused if the sites answer "busy"; any other missing grant makes it an error.
func TestWhoDidNotAnswerRedlock(t *testing.T) {
	l := &redlockLock{sites: make([]redis.UniversalClient, 5), quorum: 3}
	busy, down := locks.ErrBusy, topologies.ErrUnreachable
	for name, c := range map[string]struct {
		errs   []error
		silent int
	}{
		"held":                {[]error{busy, busy, busy, busy, busy}, 0},
		"tries that collide":  {[]error{nil, nil, busy, busy, busy}, 0},
		"a site is down":      {[]error{nil, nil, busy, busy, down}, 1},
		"granted too late":    {[]error{nil, nil, nil, busy, busy}, 3},
		"a site has no reply": {[]error{nil, busy, busy, busy, errors.New("EOF")}, 1},
	} {
		if err := l.noQuorum(count(c.errs)); locks.Silent(err) != c.silent || !errors.Is(err, locks.ErrQuorum) {
			t.Errorf("%s: %d sites did not answer (%v), want %d", name, locks.Silent(err), err, c.silent)
		}
	}
}

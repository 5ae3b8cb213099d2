package locks

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"

	"hammerlock/history"
)

var libRedislockToken = Spec{
	Name:   "redislock-token",
	Doc:    "redislock with tokens of the user's own: host, process and the number of the worker",
	Source: "github.com/bsm/redislock v0.9.4, Options.Token; docs/FINDINGS.md",
	Sites:  OneSite,
	Broken: "a token that another one begins with takes the lock from its holder: worker 1 from worker 12",
	Expect: []Expectation{{Cause: history.DoubleGrant}},
	Claims: lease.Claims,
	Open: func(e Env) (Lock, error) {
		host, err := os.Hostname()
		if err != nil {
			return nil, err
		}
		n, err := Share(e.Process, redislockNumbers{}, func() (*numbers, error) { return &numbers{}, nil })
		if err != nil {
			return nil, err
		}
		l := &redislockLock{client: redislock.New(e.Sites[0]), held: map[string]*redislock.Lock{}}
		return &redislockTokenLock{l, e.Process, fmt.Sprintf("%s:%d:%d", host, os.Getpid(), n.last.Add(1))}, nil
	},
}

// numbers counts the workers of a process.
type numbers struct{ last atomic.Int64 }

type redislockNumbers struct{}

func (*numbers) Close() error { return nil }

type redislockTokenLock struct {
	*redislockLock
	process *Process
	token   string
}

func (l *redislockTokenLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	return l.obtain(ctx, key, ttl, &redislock.Options{Token: l.token})
}

func (l *redislockTokenLock) Close() error { return l.process.Drop(redislockNumbers{}) }

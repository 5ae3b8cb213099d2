package locks

import (
	"context"
	"os"
	"strconv"
	"time"

	"hammerlock/history"
)

var weakToken = Spec{
	Name:   "weak-token",
	Doc:    "lease with the host's name and the process number for a token",
	Source: "locks that store who holds them, for people to read",
	Sites:  OneSite,
	Broken: "all workers of a process have the same token: a late holder's release passes the comparison",
	Expect: []Expectation{{Cause: history.ForeignRelease}},
	Claims: lease.Claims,
	Open: func(e Env) (Lock, error) {
		host, err := os.Hostname()
		return &weakTokenLock{leaseLock{e.Sites[0]}, host + ":" + strconv.Itoa(os.Getpid())}, err
	},
}

type weakTokenLock struct {
	leaseLock
	token string
}

func (l *weakTokenLock) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	return l.take(ctx, Lease{Key: key, Token: l.token}, ttl)
}

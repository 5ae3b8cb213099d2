package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"hammerlock/internal/cli"
	"hammerlock/internal/scripts"
	"hammerlock/locks"
	"hammerlock/locks/known"
)

func TestMain(m *testing.M) {
	known.Locks = append(known.Locks, lease("queues-unsaid", func(l locks.Lock) locks.Lock { return queueing{l} }),
		lease("fragile", func(l locks.Lock) locks.Lock { return fragile{l} }))
	testscript.Main(m, map[string]func(){
		"verify": main,
		"bench": func() {
			os.Exit(cli.Bench(context.Background(), cli.Env{Args: os.Args[1:], Getenv: os.Getenv, Stdout: os.Stdout,
				Stderr: os.Stderr}))
		},
		"driver": func() { os.Exit(scripts.EvilDriver(os.Args[1], os.Stdin, os.Stdout)) },
	})
}

func TestScripts(t *testing.T) { scripts.Run(t) }

// lease is the lock of that name with something that no explorer can stand.
func lease(name string, with func(locks.Lock) locks.Lock) locks.Spec {
	spec, _ := known.Find("lease")
	open := spec.Open
	spec.Name = name
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		return with(l), err
	}
	return spec
}

// queueing is a lock with a mistake: a client that wants the lock waits, on a mutex, for the reply to another client.
// In virtual time, such a hidden wait stops the clock.
type queueing struct{ locks.Lock }

var queue sync.Mutex

func (l queueing) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	queue.Lock()
	defer queue.Unlock()
	return l.Lock.Acquire(ctx, key, ttl)
}

// fragile panics when the answer to a release does not come.
type fragile struct{ locks.Lock }

func (l fragile) Release(ctx context.Context, lease locks.Lease) error {
	err := l.Lock.Release(ctx, lease)
	if err != nil && !errors.Is(err, locks.ErrLost) {
		panic("nobody has thought of " + err.Error())
	}
	return err
}

package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/hibiken/asynq"
)

// hello describes the lock, which is a unique task: a worker enqueues the task to acquire the lock, and deletes it
// to release the lock. Each lock has its own queue, because the library searches a whole queue for a task. Leases
// are whole seconds.
func hello(bool) map[string]any {
	h := greeting("asynq", "github.com/hibiken/asynq", []string{"single"}, "excludes", "expires", "cleans")
	h["lingers_ms"] = 999
	return h
}

var client *asynq.Client

func open(_ context.Context, sites []site) error {
	s := sites[0]
	o := once{asynq.RedisClientOpt{
		Addr: s.addr(), Username: s.User, Password: s.Password, DB: s.DB, PoolSize: 1000, ReadTimeout: time.Second,
		DialTimeout: time.Second,
	}}
	conn, err := net.DialTimeout("tcp", s.addr(), time.Second)
	if err != nil {
		return err
	}
	client = asynq.NewClient(o)
	inspect(o)
	return conn.Close()
}

// once is a client that does not repeat commands.
type once struct{ asynq.RedisClientOpt }

type lock struct {
	queue, id string
	tried     time.Time
}

func acquire(_ context.Context, key string, ttl, _ time.Duration) (*lock, error) {
	tried := time.Now()
	made, err := client.Enqueue(asynq.NewTask("visit", nil), asynq.Queue(key),
		asynq.Unique((ttl + time.Second - 1).Truncate(time.Second)))
	if errors.Is(err, asynq.ErrDuplicateTask) {
		return nil, errBusy
	}
	if err != nil {
		return nil, err
	}
	return &lock{made.Queue, made.ID, tried}, nil
}

func (l *lock) token() string { return l.id }

func (l *lock) extend(context.Context, time.Duration) error { return errors.ErrUnsupported }

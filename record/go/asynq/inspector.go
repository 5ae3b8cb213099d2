package main

import (
	"context"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

var tasks *asynq.Inspector

func inspect(o asynq.RedisConnOpt) { tasks = asynq.NewInspector(o) }

func (o once) MakeRedisClient() interface{} {
	c := o.RedisClientOpt.MakeRedisClient().(*redis.Client)
	c.Options().MaxRetries = 0
	return c
}

func (l *lock) release(context.Context) error { return tasks.DeleteTask(l.queue, l.id) }

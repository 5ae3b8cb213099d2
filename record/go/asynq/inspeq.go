package main

import (
	"context"

	"github.com/go-redis/redis/v7"
	"github.com/hibiken/asynq"
	"github.com/hibiken/asynq/inspeq"
)

var tasks *inspeq.Inspector

func inspect(o asynq.RedisConnOpt) { tasks = inspeq.New(o) }

func (o once) MakeRedisClient() interface{} {
	c := o.RedisClientOpt.MakeRedisClient().(*redis.Client)
	c.Options().MaxRetries = 0
	return c
}

func (l *lock) release(context.Context) error {
	return tasks.DeleteTaskByKey(l.queue, (&inspeq.PendingTask{ID: l.id}).Key())
}

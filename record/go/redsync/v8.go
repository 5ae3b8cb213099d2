package main

import (
	"time"

	client "github.com/go-redis/redis/v8"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v8"
)

func pool(s site) redis.Pool {
	return goredis.NewPool(client.NewClient(&client.Options{
		Addr: s.addr(), Username: s.User, Password: s.Password, DB: s.DB, MaxRetries: -1, PoolSize: 1000,
		ReadTimeout: time.Second, DialTimeout: time.Second,
	}))
}

package main

import (
	"context"

	"github.com/kvtools/redis"
)

// A store that keeps values as JSON, which the library's scripts can read.
const name = "kvtools-json"

func connect(ctx context.Context, addrs []string, config *redis.Config) (*redis.Store, error) {
	return redis.NewWithCodec(ctx, addrs, config, &redis.JSONCodec{})
}

package main

import (
	"context"

	"github.com/kvtools/redis"
)

// A store that keeps what its scripts can read.
const name = "kvtools-json"

func connect(ctx context.Context, addrs []string, config *redis.Config) (*redis.Store, error) {
	return redis.NewWithCodec(ctx, addrs, config, &redis.JSONCodec{})
}

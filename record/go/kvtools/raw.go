package main

import "github.com/kvtools/redis"

// The default store, which keeps plain values.
const name = "kvtools"

var connect = redis.New

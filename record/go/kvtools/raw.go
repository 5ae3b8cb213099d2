package main

import "github.com/kvtools/redis"

// The defaults: a store that keeps bare values.
const name = "kvtools"

var connect = redis.New

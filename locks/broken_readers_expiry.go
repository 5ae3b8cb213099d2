package locks

import (
	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var readersExpiry = Spec{
	Name:   "readers-expiry",
	Doc:    "redisson-rw whose first reader sets the lease of all",
	Source: "a counter of readers with INCR, and EXPIRE when it is 1: the usual recipe",
	Sites:  OneSite,
	Broken: "when the first reader's lease is over a writer is granted the lock, though those of later readers run",
	Expect: []Expectation{{Cause: history.DoubleGrant, Scenario: "steady-readers"}},
	Claims: history.Claims{Excludes: true, Expires: true, Readers: true},
	Open:   func(e Env) (Lock, error) { return newRedissonRW(e, readFirstLease, leaveAsLast), nil },
}

var (
	readFirstLease = redis.NewScript(`
local mode = redis.call("HGET", KEYS[1], "mode")
if mode == "write" then return 0 end
redis.call("HSET", KEYS[1], "mode", "read", ARGV[1], 1)
redis.call("SET", KEYS[2], 1, "PX", ARGV[2])
if not mode then redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
return 1`)
	leaveAsLast = redis.NewScript(`
redis.call("DEL", KEYS[2])
if redis.call("HDEL", KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call("HLEN", KEYS[1]) == 1 then redis.call("DEL", KEYS[1]) end
return 1`)
)

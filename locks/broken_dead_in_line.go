package locks

import (
	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var deadInLine = Spec{
	Name:   "dead-in-line",
	Doc:    "fair, with a plain queue: the head is next; who gives up takes its place out of it",
	Source: "hiero-json-rpc-relay issue 4725, RedisLockStrategy; amphp/redis issue 61",
	Sites:  OneSite,
	Broken: "a waiter that dies stays in the queue: when it comes to the head no worker gets the lock any more",
	Expect: []Expectation{{Cause: history.Deadlock}},
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Ordered: true},
	Open: func(e Env) (Lock, error) {
		l := newFair(e)
		l.enter = lineUp
		return l, nil
	},
}

// lineUp: lock, queue, members; token, lease. Answers 1 if it is granted.
var lineUp = redis.NewScript(`
local head = redis.call("LINDEX", KEYS[2], 0)
if redis.call("EXISTS", KEYS[1]) == 0 and (not head or head == ARGV[1]) then
	redis.call("LPOP", KEYS[2])
	redis.call("ZREM", KEYS[3], ARGV[1])
	redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
	return 1
end
if redis.call("ZADD", KEYS[3], 0, ARGV[1]) == 1 then redis.call("RPUSH", KEYS[2], ARGV[1]) end
return 0`)

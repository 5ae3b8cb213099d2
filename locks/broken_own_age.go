package locks

import (
	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

var ownAge = Spec{
	Name:   "own-age",
	Doc:    "a token and the time of its grant by the server's clock; who finds it older than its own lease takes the lock over",
	Source: "colinmollenhour/php-redis-session-abstract: break_after, which each kind of client has of its own",
	Sites:  OneSite,
	Broken: "a waiter goes by its own lease, not by the holder's: one that is configured with a shorter lease takes the lock of one with a longer",
	Expect: []Expectation{{Cause: history.DoubleGrant, Scenario: "two-leases"}, {Cause: history.PrematureLoss, Scenario: "two-leases"}, {Cause: history.ForeignRelease, Scenario: "two-leases"}},
	Claims: lease.Claims,
	Shared: true,
	Open: func(e Env) (Lock, error) {
		return &pairLock{leaseLock{e.Sites[0]}, "since", takeIfOld, makeYoung, forgetAge}, nil
	},
}

// The scripts have the lock and the time of its grant; a token and a lease.
var (
	takeIfOld = redis.NewScript(serverTime + `
local since = redis.call("GET", KEYS[2])
if redis.call("EXISTS", KEYS[1]) == 1 and since and now - since < tonumber(ARGV[2]) then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
redis.call("SET", KEYS[2], now, "PX", ARGV[2])
return 1`)
	makeYoung = redis.NewScript(serverTime + `
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("PEXPIRE", KEYS[1], ARGV[2])
redis.call("SET", KEYS[2], now, "PX", ARGV[2])
return 1`)
	forgetAge = redis.NewScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("DEL", KEYS[1], KEYS[2])`)
)

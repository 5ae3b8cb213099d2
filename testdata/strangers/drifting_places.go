package catalogue

import (
	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// Redisson issues 1104 and 2099, getFairLock: each waiter's time is counted from that of the head of the queue, at
// every try. The times drift into the future, and a head that dies there blocks all others until its time is over.
var driftingPlaces = locks.Spec{
	Name: "drifting-places", Doc: "fair; the time at which a waiter is taken for dead is counted from that of " +
		"the head of the queue",
	Source: "Redisson issues 1104 and 2099", Sites: locks.OneSite, Broken: "the times drift: " +
		"a waiter that dies at the head stands in the way for many leases",
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Ordered: true, Wakes: true},
	Listens: true,
	Open: func(e locks.Env) (locks.Lock, error) {
		l := newFair(e)
		l.enter = queueAfterHead
		return l, nil
	},
}

// queueAfterHead takes what queueUp takes.
var queueAfterHead = redis.NewScript(`
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local head = redis.call("LINDEX", KEYS[2], 0)
while head and head ~= ARGV[1] do
	local alive = redis.call("ZSCORE", KEYS[3], head)
	if alive and tonumber(alive) > now then break end
	redis.call("LPOP", KEYS[2])
	redis.call("ZREM", KEYS[3], head)
	head = redis.call("LINDEX", KEYS[2], 0)
end
if redis.call("EXISTS", KEYS[1]) == 0 and (not head or head == ARGV[1]) then
	redis.call("LPOP", KEYS[2])
	redis.call("ZREM", KEYS[3], ARGV[1])
	redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
	return 1
end
local left
if head and head ~= ARGV[1] then
	left = redis.call("ZSCORE", KEYS[3], head) - now
else
	left = redis.call("PTTL", KEYS[1])
end
left = left + ARGV[2]
if redis.call("ZADD", KEYS[3], now + left, ARGV[1]) == 1 then
	redis.call("RPUSH", KEYS[2], ARGV[1])
end
for i = 2, 3 do
	if redis.call("PTTL", KEYS[i]) < left then redis.call("PEXPIRE", KEYS[i], left) end
end
return 0`)

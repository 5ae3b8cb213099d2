#!/usr/bin/env python3
"""A driver to begin with for a semaphore of three permits: acquire also has the number of permits that are requested.

Each permit that is taken is a member of a sorted set; the score is the end of its lease by the server's clock. So the permits of
a dead holder are free when its lease has ended.
"""
import template
from template import redis

PERMITS = 3
NOW = """local t = redis.call("TIME") local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", now)
local function keep() -- as long as the last lease
  local last = redis.call("ZREVRANGE", KEYS[1], 0, 0, "WITHSCORES")[2]
  if last then redis.call("PEXPIREAT", KEYS[1], last) end
end
"""
ACQUIRE = NOW + """if redis.call("ZCARD", KEYS[1]) + ARGV[3] > tonumber(ARGV[4]) then return 0 end
for i = 1, ARGV[3] do redis.call("ZADD", KEYS[1], string.format("%d", now + ARGV[2]), ARGV[1] .. ":" .. i) end
keep() return 1"""
EXTEND = NOW + """local n = 0
for i = 1, ARGV[3] do n = n + redis.call("ZADD", KEYS[1], "XX", "CH", string.format("%d", now + ARGV[2]), ARGV[1] .. ":" .. i) end
keep() if redis.call("ZSCORE", KEYS[1], ARGV[1] .. ":1") then return 1 end return 0"""
RELEASE = NOW + """local n = 0 for i = 1, ARGV[2] do n = n + redis.call("ZREM", KEYS[1], ARGV[1] .. ":" .. i) end keep() return n"""


def acquire(key, token, ttl_ms, permits):
    """Makes one try to take this number of permits, all or none. Returns False if too few are free."""
    return redis("EVAL", ACQUIRE, 1, key, token, ttl_ms, permits, PERMITS)


template.NAME, template.CLAIMS, template.MORE = "semaphore", ["excludes", "expires", "owned", "cleans"], {"permits": PERMITS}
template.acquire = acquire
template.extend = lambda key, token, ttl_ms: redis("EVAL", EXTEND, 1, key, token, ttl_ms, PERMITS)
template.release = lambda key, token: redis("EVAL", RELEASE, 1, key, token, PERMITS)
template.main()

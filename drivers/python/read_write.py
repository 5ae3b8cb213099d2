#!/usr/bin/env python3
"""A driver to begin with for a lock that readers share: acquire also has the mode, "read" or "write".

The readers are in a sorted set; the score is the end of the lease by the server's clock. So a dead reader is removed when its
lease has ended. The writer has a separate key. Both keys have the page's name in braces, so a cluster keeps them in one slot.
"""
import template
from template import redis

NOW = """local t = redis.call("TIME") local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now)
local function keep() -- as long as the last reader's lease
  local last = redis.call("ZREVRANGE", KEYS[2], 0, 0, "WITHSCORES")[2]
  if last then redis.call("PEXPIREAT", KEYS[2], last) end
end
"""
READ = NOW + """if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end
redis.call("ZADD", KEYS[2], string.format("%d", now + ARGV[2]), ARGV[1]) keep() return 1"""
WRITE = NOW + """if redis.call("EXISTS", KEYS[1]) == 1 or redis.call("ZCARD", KEYS[2]) > 0 then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2]) return 1"""
EXTEND = NOW + """if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
if not redis.call("ZSCORE", KEYS[2], ARGV[1]) then return 0 end
redis.call("ZADD", KEYS[2], string.format("%d", now + ARGV[2]), ARGV[1]) keep() return 1"""
RELEASE = NOW + """if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
local gone = redis.call("ZREM", KEYS[2], ARGV[1]) keep() return gone"""


def script(text, key, *words):
    return redis("EVAL", text, 2, key, key + ":readers", *words)


def acquire(key, token, ttl_ms, mode):
    """Makes one try as a reader or as the writer. Returns False if other holders prevent it."""
    return script(READ if mode == "read" else WRITE, key, token, ttl_ms)


template.NAME, template.CLAIMS = "read-write", ["excludes", "expires", "owned", "cleans", "readers"]
template.acquire = acquire
template.extend = lambda key, token, ttl_ms: script(EXTEND, key, token, ttl_ms)
template.release = lambda key, token: script(RELEASE, key, token)
template.main()

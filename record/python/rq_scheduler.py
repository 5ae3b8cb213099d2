#!/usr/bin/env python3
# A driver for the lock of rq's scheduler; each queue has one. Its lease is interval + 60 seconds, so a short lease needs a negative interval.
import json, math, os, sys, threading

out, writing, holds, options = os.fdopen(os.dup(1), "w"), threading.Lock(), {}, {}
os.dup2(2, 1)  # standard output is for the protocol
import redis, rq
from rq.scheduler import RQScheduler


def serve(m):
    op, key = m["op"], m.get("key")
    if op == "open":
        site = m["sites"][0]
        options.update(host=site["host"], port=site["port"], username=site.get("user"), password=site.get("pass"), db=site.get("db", 0), socket_timeout=1)
    elif op == "acquire":
        scheduler = RQScheduler([key], redis.Redis(**options), interval=math.ceil(m["ttl_ms"] / 1000) - 60, logging_level="ERROR")
        if key not in scheduler.acquire_locks(): return {"busy": True}
        holds[m["id"]] = scheduler
    elif op == "extend":
        holds[m["hold"]].heartbeat()
        return {"error": "a heartbeat does not say whether the lock was still there"}
    elif op == "release":
        holds.pop(m["hold"]).stop()
    return {"ok": True}


def answer(m):
    try: say(id=m["id"], **serve(m))
    except Exception as e: say(id=m["id"], error=f"{type(e).__name__}: {e}")


def say(**m):
    with writing: print(json.dumps(m), file=out, flush=True)


say(hello="hammerlock-driver", protocol=1, name="rq", version=rq.version.VERSION, claims=["excludes", "expires", "cleans"],
    keys="rq:scheduler-lock:{key}", lingers_ms=999)
for line in sys.stdin: threading.Thread(target=answer, args=[json.loads(line)], daemon=True).start()

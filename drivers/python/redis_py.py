#!/usr/bin/env python3
# A driver for redis-py's Lock (docs/DRIVERS.md): python3 redis_py.py [asyncio] [waits]. Without "asyncio", each call runs in a thread
# and uses the blocking client. With "asyncio", all calls share one event loop. With "waits", the library itself waits for the lock.
import asyncio, json, os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor

out, writing, holds, options = os.fdopen(os.dup(1), "w"), threading.Lock(), {}, {}
os.dup2(2, 1)  # libraries print to standard error: standard output is for the protocol
import redis, redis.asyncio
from redis.exceptions import LockNotOwnedError

called_off = set()  # ids of cancelled acquires


class CalledOff(Exception): pass


def watched(lock):  # a lock class that notes when its last try began, and stops waiting when it is cancelled
    class Watched(lock):
        id, tried = 0, 0

        def do_acquire(self, token):  # with the asyncio class, it returns a coroutine
            if self.id in called_off: raise CalledOff
            self.tried = time.monotonic()
            return super().do_acquire(token)
    return Watched


def how(m):
    return {"blocking": m["wait_ms"] > 0, "blocking_timeout": m["wait_ms"] / 1000 or None}


def granted(m, lock, called):
    holds[m["id"]] = lock
    return {"ok": True, "token": lock.local.token.decode(), "tried_ms": (lock.tried - called) * 1000 if m["wait_ms"] else 0}


def say(**m):
    with writing: print(json.dumps(m), file=out, flush=True)


def configure(site):
    # Without a timeout a read waits for ever. Releases from 6 on repeat commands by default, which retry=Retry(NoBackoff(), 0) prevents.
    options.update(host=site["host"], port=site["port"], username=site.get("user"), password=site.get("pass"), db=site.get("db", 0), socket_timeout=1, socket_connect_timeout=1)
    if int(redis.__version__.split(".")[0]) >= 6:
        from redis.backoff import NoBackoff
        from redis.retry import Retry
        options["retry"] = Retry(NoBackoff(), 0)


class Threads:  # the blocking client
    lock = watched(redis.lock.Lock)

    def __init__(self):
        self.pool = ThreadPoolExecutor(256)

    def connect(self):
        self.redis = redis.Redis(**options)
        self.redis.ping()

    def serve(self, m):
        op = m["op"]
        if op == "open":
            configure(m["sites"][0])
            self.connect()
        elif op == "acquire":
            called = time.monotonic()
            lock = self.redis.lock(m["key"], timeout=m["ttl_ms"] / 1000, thread_local=False, lock_class=self.lock)
            lock.id = m["id"]
            try: return granted(m, lock, called) if lock.acquire(**how(m)) else {"busy": True}
            except CalledOff: return {"busy": True}  # cancelled between two tries, so no key was set
            finally: called_off.discard(m["id"])
        elif op == "cancel":
            called_off.add(m["of"])
        elif op == "extend":
            holds[m["hold"]].extend(m["ttl_ms"] / 1000, replace_ttl=True)
        elif op == "release":
            holds.pop(m["hold"]).release()
        return {"ok": True}  # also the answer to ping, cancel and close

    def answer(self, m):
        try: say(id=m["id"], **self.serve(m))
        except LockNotOwnedError: say(id=m["id"], lost=True)
        except Exception as e: say(id=m["id"], error=f"{type(e).__name__}: {e}")

    def run(self):
        for line in sys.stdin:
            m = json.loads(line)
            if m["op"] == "ping": say(id=m["id"], ok=True)
            else: self.pool.submit(self.answer, m)


class Loop:  # the client of redis.asyncio
    lock, tasks = watched(redis.asyncio.lock.Lock), {}  # tasks, by the id of the request

    async def serve(self, m):
        op = m["op"]
        if op == "open":
            configure(m["sites"][0])
            self.redis = redis.asyncio.Redis(**options)
            await self.redis.ping()
        elif op == "acquire":
            called = time.monotonic()
            lock = self.redis.lock(m["key"], timeout=m["ttl_ms"] / 1000, thread_local=False, lock_class=self.lock)
            return granted(m, lock, called) if await lock.acquire(**how(m)) else {"busy": True}
        elif op == "cancel" and m["of"] in self.tasks:
            self.tasks[m["of"]].cancel()
        elif op == "extend":
            await holds[m["hold"]].extend(m["ttl_ms"] / 1000, replace_ttl=True)
        elif op == "release":
            await holds.pop(m["hold"]).release()
        return {"ok": True}

    async def answer(self, m):
        try: say(id=m["id"], **await self.serve(m))
        except LockNotOwnedError: say(id=m["id"], lost=True)
        except (Exception, asyncio.CancelledError) as e: say(id=m["id"], error=f"{type(e).__name__}: {e}")
        finally: self.tasks.pop(m["id"])

    async def lines(self):
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            m = json.loads(line)
            self.tasks[m["id"]] = loop.create_task(self.answer(m))

    def run(self):
        asyncio.run(self.lines())


loop, mode = "asyncio" in sys.argv, [word for word in ("asyncio", "waits") if word in sys.argv]
say(hello="hammerlock-driver", protocol=1, name="-".join(["redis-py"] + mode), version=redis.__version__,
    claims=["excludes", "expires", "owned", "cleans"] + ["waits"] * ("waits" in mode), topologies=["single", "replica"])
(Loop() if loop else Threads()).run()
os._exit(0)

#!/usr/bin/env python3
# Measures redis-py's Lock without a driver: direct.py HOST PORT PASSWORD SECONDS WORKERS [asyncio]. It prints how often the workers
# have acquired and released a lock; each worker has its own key. "make drivers-perf" compares this with the driver.
import asyncio, sys, threading, time
import redis, redis.asyncio

host, port, password, seconds, workers = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4]), int(sys.argv[5])
options = dict(host=host, port=port, password=password, socket_timeout=1)
counts = [0] * workers


def thread(client, i, end):
    while time.monotonic() < end:
        lock = client.lock(f"direct{i}", timeout=5, thread_local=False)
        if lock.acquire(blocking=False):
            lock.release()
            counts[i] += 1


async def task(client, i, end):
    while time.monotonic() < end:
        lock = client.lock(f"direct{i}", timeout=5, thread_local=False)
        if await lock.acquire(blocking=False):
            await lock.release()
            counts[i] += 1


async def tasks():
    client, end = redis.asyncio.Redis(**options), time.monotonic() + seconds
    await asyncio.gather(*(task(client, i, end) for i in range(workers)))


if sys.argv[6:] == ["asyncio"]:
    asyncio.run(tasks())
else:
    client, end = redis.Redis(**options), time.monotonic() + seconds
    all = [threading.Thread(target=thread, args=(client, i, end)) for i in range(workers)]
    for t in all: t.start()
    for t in all: t.join()
print(sum(counts))

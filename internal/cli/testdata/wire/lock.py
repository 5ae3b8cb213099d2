"""Workers add to a number under redis-py's own lock, and print how many grants and releases they counted."""
import os, random, sys, threading, time
import redis

url, workers, visits, hold = os.environ["REDIS_URL"], int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
shared = redis.Redis.from_url(url) if "shared" in sys.argv else None
granted, released, late = [0] * workers, [0] * workers, [0] * workers


def work(n):
    r = shared or redis.Redis.from_url(url)
    for _ in range(visits):
        lock = r.lock("lock:page", timeout=1, sleep=0.002)
        lock.acquire()
        granted[n] += 1
        value = int(r.get("views:page") or 0)
        time.sleep(hold * random.random())
        r.set("views:page", value + 1)
        try:
            lock.release()
            released[n] += 1
        except redis.exceptions.LockNotOwnedError:
            late[n] += 1


threads = [threading.Thread(target=work, args=(n,)) for n in range(workers)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("granted", sum(granted), "released", sum(released), "late", sum(late), "views", int(redis.Redis.from_url(url).get("views:page")))

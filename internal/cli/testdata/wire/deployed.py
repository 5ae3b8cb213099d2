"""Workers take redis-py's own lock of a deployment on one server, behind sentinels, or of a cluster, and go on when it fails over. In a
crowd each takes one lock after another; of two, one works for long under a lock that the other one wants."""
import os, sys, threading, time
import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import LockError, RedisError
from redis.sentinel import Sentinel

how, workers, seconds, pages = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), 2
password = os.environ["REDIS_PASSWORD"]
sentinels = [tuple(a.split(":")) for a in os.environ["REDIS_SENTINELS"].split(",") if a]
nodes = [a.split(":") for a in os.environ["REDIS_NODES"].split(",")]


def client():
    if sentinels:
        s = Sentinel(sentinels, socket_timeout=0.5, sentinel_kwargs={"password": password})
        return s.master_for(os.environ["REDIS_MASTER"], socket_timeout=0.5, password=password)
    if len(nodes) == 1:
        return redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=0.5)
    return RedisCluster(startup_nodes=[ClusterNode(h, int(p)) for h, p in nodes], password=password, socket_timeout=0.5)


counted = threading.Lock()
counts = {"grants": 0, "releases": 0, "errors": 0}


def count(name):
    with counted:
        counts[name] += 1


def visit(r, page, lease, hold):
    try:
        lock = r.lock(f"lock:page{page}", timeout=lease, sleep=0.002, blocking_timeout=5)
        if lock.acquire():
            count("grants")
            time.sleep(hold)
            lock.release()
            count("releases")
            return True
    except LockError:
        pass
    except RedisError:
        count("errors")
        time.sleep(0.05)
    return False


def crowd(n, until):
    r = None
    for i in range(10**9):
        if time.time() > until:
            return
        try:
            r = r or client()
        except RedisError:
            time.sleep(0.05)
            continue
        visit(r, (n + i) % pages, 1, 0.005)


def two(n, until):
    r = client()
    if n == 0:
        visit(r, 0, 1, 0.005)
        time.sleep(1)
        visit(r, 0, 20, seconds)
    else:
        time.sleep(1.5)
        while not visit(r, 0, 20, 0.005) and time.time() < until:
            pass


until = time.time() + seconds
all = [threading.Thread(target={"crowd": crowd, "two": two}[how], args=(n, until)) for n in range(workers)]
for t in all:
    t.start()
for t in all:
    t.join()
print(counts, file=sys.stderr)

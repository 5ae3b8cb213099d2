"""Workers add to a number under a lock of their own making. The first argument says what is wrong with it."""
import os, sys, threading, time, uuid
import redis

how, workers, visits = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
LEASE, HOLD = 300, 0.002
url = os.environ["REDIS_URL"]
FREE = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
KEY = "lock:page"


SHARED = redis.Redis.from_url(url) if "shared" in sys.argv else None


def client():
    if SHARED:
        return SHARED
    if how == "retry":  # a client that sends again what had no answer
        from redis.backoff import NoBackoff
        from redis.retry import Retry
        return redis.Redis.from_url(url, socket_timeout=0.1, retry_on_timeout=True, retry=Retry(NoBackoff(), 3))
    return redis.Redis.from_url(url)


def acquire(r, token):
    if how == "setnx":
        if r.setnx(KEY, token):
            time.sleep(0.002)
            r.pexpire(KEY, LEASE)
            return True
        return False
    return r.set(KEY, token, nx=True, px=LEASE)


def release(r, token):
    if how in ("plain-del", "no-token"):
        r.delete(KEY)
    elif how == "get-del":
        if r.get(KEY) == token.encode():
            r.delete(KEY)
    else:
        r.eval(FREE, 1, KEY, token)


def work(n):
    r = client()
    for i in range(visits):
        token = "1" if how == "no-token" else uuid.uuid4().hex
        deadline = time.time() + 10
        while not acquire(r, token):
            if time.time() > deadline:
                return
            time.sleep(0.002)
        value = int(r.get("views:page") or 0)
        late = how in ("plain-del", "no-token", "renew-set", "right-late") and (n + i * workers) % 17 == 9
        time.sleep(LEASE / 1000 * 1.2 if late else HOLD)
        if how == "renew-set":
            r.set(KEY, token, px=LEASE)
            time.sleep(HOLD)
        r.set("views:page", value + 1)
        release(r, token)
        time.sleep(0.0005)


threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(workers)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("views", redis.Redis.from_url(url).get("views:page"), "of", workers * visits)

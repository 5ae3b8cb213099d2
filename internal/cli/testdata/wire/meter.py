"""Two programs of threads, told apart by their clients' names, take redis-py's own locks and log what they see of them."""
import json, os, sys, threading, time
import redis
from redis.lock import Lock

url, workers, visits = os.environ["REDIS_URL"], int(sys.argv[1]), int(sys.argv[2])
LEASE, HOLD, LATE = 0.3, 0.02, 0.45
guard = threading.Lock()
log = {name: dict(grants=0, tries=0, releases=0, late=0, waiting=0, most=0, waits=[], holds=[]) for name in ("shop", "stock")}


class Counted(Lock):
    refused, refusal, waited = False, 0, False

    def do_acquire(self, token):
        self.asked = time.monotonic()
        granted = super().do_acquire(token)
        self.refusal = self.refusal or time.monotonic()
        with guard:
            mine = log[self.program]
            mine["tries"] += 1
            if granted and self.refused:
                mine["waiting"] -= 1
            if not granted and not self.refused:
                mine["waiting"] += 1
                mine["most"] = max(mine["most"], mine["waiting"])
            self.refused = not granted
            self.waited = self.waited or not granted
        return granted


def work(name, n):
    r = redis.Redis.from_url(url, client_name=name)
    for i in range(visits):
        lock = Counted(r, f"lock:{name}:{i % 2}", timeout=LEASE, sleep=0.002)
        lock.program = name
        began = time.monotonic()
        lock.acquire()
        got = time.monotonic()
        time.sleep(LATE if i % 20 == 10 and n == 0 else HOLD)
        left = time.monotonic()
        try:
            lock.release()
            on_time = True
        except redis.exceptions.LockError:
            on_time = False
        gone = time.monotonic()
        with guard:
            mine = log[name]
            mine["grants"] += 1
            mine["releases" if on_time else "late"] += 1
            # What is seen between the program and the server is no shorter than the one, and no longer than the other.
            if lock.waited:
                mine["waits"].append((max(lock.asked - lock.refusal, 0), got - began))
            if on_time:
                mine["holds"].append((left - got, gone - lock.asked))


threads = [threading.Thread(target=work, args=(name, n)) for name in log for n in range(workers)]
for t in threads:
    t.start()
for t in threads:
    t.join()
with open(os.environ["METER_LOG"], "w") as f:
    json.dump(log, f)

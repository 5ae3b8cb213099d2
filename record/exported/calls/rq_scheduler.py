# The lock of rq's scheduler, whose lease is interval + 60 seconds.
import redis
from rq.scheduler import RQScheduler


class Client:
    def __init__(self, port):
        self.redis = redis.Redis(port=port)

    def acquire(self, key, lease):
        self.scheduler = RQScheduler([key], self.redis, interval=int(lease) - 60, logging_level="ERROR")
        return key in self.scheduler.acquire_locks()

    def extend(self, lease):
        self.scheduler.heartbeat()
        return True

    def release(self):
        self.scheduler.stop()
        return True

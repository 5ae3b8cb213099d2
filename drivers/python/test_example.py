"""A lock and its contract test. Run python3 -m unittest -v test_example, or pytest test_example.py; HAMMERLOCK is the path of verify."""
import hammerlock
from template import IF_OURS, redis


class Lock:
    def __init__(self, sites):
        self.redis = lambda *words: redis(*words, site=sites[0])

    def acquire(self, key, token, ttl_ms):
        return self.redis("SET", key, token, "NX", "PX", ttl_ms)

    def extend(self, key, token, ttl_ms):
        return self.redis("EVAL", IF_OURS % '"PEXPIRE", KEYS[1], ARGV[2]', 1, key, token, ttl_ms)

    def release(self, key, token):
        return self.redis("EVAL", IF_OURS % '"DEL", KEYS[1]', 1, key, token)


class PlainDel(Lock):
    """Is broken: it releases the lock even if another holder has it. Its tests must fail."""

    def release(self, key, token):
        return self.redis("DEL", key)


SOME = "contention", "late-holder", "renewal"  # without scenarios=SOME, all scenarios are run
TestLock = hammerlock.tests(Lock, scenarios=SOME)
TestPlainDel = hammerlock.tests(PlainDel, scenarios=SOME)

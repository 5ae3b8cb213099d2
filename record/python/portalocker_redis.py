#!/usr/bin/python3
# A driver for portalocker's RedisLock, which is a subscription: it has no lease, and ends with its connection.
import os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../drivers/python"))
import template
import portalocker, redis
from portalocker.exceptions import AlreadyLocked

locks = {}  # by token


def acquire(key, token, ttl_ms):
    site = template.site
    connection = redis.Redis(host=site["host"], port=site["port"], username=site.get("user"), password=site.get("pass"), db=site.get("db", 0),
                             socket_connect_timeout=1, health_check_interval=10)
    lock = portalocker.RedisLock(key, connection=connection, fail_when_locked=True, timeout=0)
    try:
        lock.acquire()
    except AlreadyLocked:
        connection.close()
        return False
    locks[token] = lock, connection
    return True


def extend(key, token, ttl_ms):
    raise NotImplementedError("it has no lease")


def release(key, token):
    lock, connection = locks.pop(token)
    lock.release()
    connection.close()
    return True


template.NAME, template.VERSION, template.CLAIMS = "portalocker", portalocker.__version__, ["excludes", "renews"]
template.acquire, template.extend, template.release = acquire, extend, release
template.main()

#!/usr/bin/env python3
"""Locks in the manner of strangers, written before the scenarios that try them: strangers.py NAME is a driver of one.

Each has a first line that says whether it is right, and what is wrong with it.
"""
import hashlib, os, random, secrets, socket, sys, tempfile, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../drivers/python"))
import template
from template import IF_OURS, site

LOCKS, local = {}, threading.local()
TRUST = ["excludes", "expires", "owned"]


def lock(name, claims=TRUST + ["cleans"], **hello):
    return lambda cls: LOCKS.setdefault(name, (cls, claims, hello)) and cls


class Conn:
    """A connection that speaks RESP."""

    def __init__(self, timeout=2, db=True, addr=None):
        self.s = socket.create_connection(addr.rsplit(":", 1) if addr else (site["host"], site["port"]), timeout)
        self.f = self.s.makefile("rb")
        self.login()
        if db and site.get("db"):
            self.call("SELECT", site["db"])

    def login(self):
        if "pass" in site:
            self.call("AUTH", *filter(None, (site.get("user"), site["pass"])))

    def call(self, *words):
        words = [str(w).encode() for w in words]
        self.s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words))
        return self.read()

    def read(self):
        line = self.f.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("connection closed")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"-":
            raise ServerError(rest)
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        if int(rest) < 0:
            return None
        if kind == b"$":
            return self.f.read(int(rest) + 2)[:-2].decode()
        return [self.read() for _ in range(int(rest))]

    def close(self):
        self.f.close()
        self.s.close()


class ServerError(OSError):
    pass


class Pool:
    """Connections for one call at a time. One that failed is thrown away."""
    timeout, db, addr = 2, True, None

    def __init__(self):
        self.idle, self.mutex = [], threading.Lock()

    def make(self):
        return Conn(self.timeout, self.db, self.addr)

    def call(self, *words):
        with self.mutex:
            c = self.idle.pop() if self.idle else None
        c = c or self.make()
        try:
            reply = c.call(*words)
        except ServerError:
            self.idle.append(c)
            raise
        except OSError:
            c.close()
            raise
        self.idle.append(c)
        return reply


class Plain:
    """Right: SET NX PX, compare and delete."""

    def __init__(self):
        self.pool = Pool()
        self.call = self.pool.call

    def acquire(self, key, token, ttl, *_):
        return self.call("SET", key, token, "NX", "PX", ttl) == "OK"

    def extend(self, key, token, ttl):
        return self.call("EVAL", IF_OURS % '"PEXPIRE", KEYS[1], ARGV[2]', 1, key, token, ttl)

    def release(self, key, token):
        return self.call("EVAL", IF_OURS % '"DEL", KEYS[1]', 1, key, token)


lock("plain")(Plain)


# 10. A key that outlives its lease by design.

@lock("end-field", TRUST)
class EndField(Plain):
    """Right: the end is a field, by the server's clock; the key stays a minute longer."""
    NOW = 'local t = redis.call("TIME") local now = t[1] * 1000 + math.floor(t[2] / 1000) '
    OURS = NOW + ('if redis.call("HGET", KEYS[1], "owner") ~= ARGV[1] or tonumber(redis.call("HGET", KEYS[1], "end")) <= now '
                  'then return 0 end ')

    def acquire(self, key, token, ttl, *_):
        return self.call("EVAL", self.NOW + 'local e = tonumber(redis.call("HGET", KEYS[1], "end") or 0) '
                         'if e > now then return 0 end redis.call("HSET", KEYS[1], "owner", ARGV[1], "end", now + ARGV[2]) '
                         'redis.call("PEXPIRE", KEYS[1], ARGV[2] + 60000) return 1', 1, key, token, ttl) == 1

    def extend(self, key, token, ttl):
        return self.call("EVAL", self.OURS + 'redis.call("HSET", KEYS[1], "end", now + ARGV[2]) '
                         'redis.call("PEXPIRE", KEYS[1], ARGV[2] + 60000) return 1', 1, key, token, ttl)

    def release(self, key, token):
        return self.call("EVAL", self.OURS + 'redis.call("DEL", KEYS[1]) return 1', 1, key, token)


@lock("end-field-long", TRUST)
class EndFieldLong(EndField):
    """Wrong: the end that is written is five times the lease: others are refused by it."""

    def acquire(self, key, token, ttl, *_):
        return super().acquire(key, token, 5 * ttl)


@lock("no-expiry-after-error")
class NoExpiry(Plain):
    """Wrong: SETNX, then PEXPIRE; whoever dies in between leaves the lock taken for ever."""

    def acquire(self, key, token, ttl, *_):
        if not self.call("SETNX", key, token):
            return False
        time.sleep(0.002)
        return bool(self.call("PEXPIRE", key, ttl))


# 11. Sessions.

@lock("flock", ["excludes", "owned", "session"])
class Flock(Plain):
    """Right: flock on a file. It ends with the process."""

    def __init__(self):
        import fcntl
        self.fcntl, self.open, self.dir = fcntl, {}, os.path.join(tempfile.gettempdir(), "hammerlock-flock")
        os.makedirs(self.dir, exist_ok=True)

    def acquire(self, key, token, ttl, *_):
        f = open(os.path.join(self.dir, hashlib.sha1(key.encode()).hexdigest()), "w")
        try:
            self.fcntl.flock(f, self.fcntl.LOCK_EX | self.fcntl.LOCK_NB)
        except BlockingIOError:
            f.close()
            return False
        self.open[token] = f
        return True

    def extend(self, key, token, ttl):
        return token in self.open

    def release(self, key, token):
        self.open.pop(token).close()
        return True


@lock("client-id", ["excludes", "owned", "session"])
class ClientID(Plain):
    """Right: the key names the connection of its holder, and who finds it gone takes the lock by compare and set."""
    alive = staticmethod(lambda list, id: any(line.startswith(f"id={id} ") for line in list.splitlines()))

    def acquire(self, key, token, ttl, *_):
        c = Conn()
        mine = f'{c.call("CLIENT", "ID")}:{token}'
        self.__dict__.setdefault("conns", {})[token] = c, mine
        if c.call("SET", key, mine, "NX") == "OK" or self.takeover(c, key, mine):
            return True
        del self.conns[token]
        c.close()
        return False

    def takeover(self, c, key, mine):
        other = c.call("GET", key)
        return other and not self.alive(c.call("CLIENT", "LIST"), other.split(":")[0]) and \
            c.call("EVAL", IF_OURS % '"SET", KEYS[1], ARGV[2]', 1, key, other, mine) == "OK"

    def extend(self, key, token, ttl):
        return self.conns[token][0].call("EVAL", IF_OURS % '"EXISTS", KEYS[1]', 1, key, self.conns[token][1])

    def release(self, key, token):
        c, mine = self.conns.pop(token)
        try:
            return c.call("EVAL", IF_OURS % '"DEL", KEYS[1]', 1, key, mine)
        finally:
            c.close()


@lock("client-id-steals", ["excludes", "owned", "session"])
class ClientIDSteals(ClientID):
    """Wrong: who finds the holder gone deletes the key, whoever has it by now, and takes it."""

    def takeover(self, c, key, mine):
        other = c.call("GET", key)
        if not other or self.alive(c.call("CLIENT", "LIST"), other.split(":")[0]):
            return False
        time.sleep(0.001)
        c.call("DEL", key)
        return c.call("SET", key, mine, "NX") == "OK"


# 11. Readers and permits.

@lock("rw", TRUST + ["cleans", "readers"])
class RW(Plain):
    """Right: readers are in a sorted set by the end of their leases, by the server's clock."""
    NOW = EndField.NOW + 'redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now) '
    TOUCH = ('local last = redis.call("ZREVRANGE", KEYS[2], 0, 0, "WITHSCORES")[2] '
             'if last then redis.call("PEXPIREAT", KEYS[2], math.floor(last)) end ')

    def acquire(self, key, token, ttl, *_):
        if local.m.get("mode") == "read":
            return self.call("EVAL", self.NOW + 'if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end '
                             'redis.call("ZADD", KEYS[2], now + ARGV[2], ARGV[1]) ' + self.TOUCH + 'return 1',
                             2, key, key + ":r", token, ttl) == 1
        return self.call("EVAL", self.NOW + 'if redis.call("EXISTS", KEYS[1]) == 1 or redis.call("ZCARD", KEYS[2]) > 0 '
                         'then return 0 end redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2]) return 1',
                         2, key, key + ":r", token, ttl) == 1

    def extend(self, key, token, ttl):
        return self.call("EVAL", self.NOW + 'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], '
                         'ARGV[2]) end if redis.call("ZSCORE", KEYS[2], ARGV[1]) then redis.call("ZADD", KEYS[2], now + ARGV[2], '
                         'ARGV[1]) ' + self.TOUCH + ' return 1 end return 0', 2, key, key + ":r", token, ttl)

    def release(self, key, token):
        return self.call("EVAL", self.NOW + 'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end '
                         'return redis.call("ZREM", KEYS[2], ARGV[1])', 2, key, key + ":r", token)


@lock("rw-dead-reader", TRUST + ["readers"])
class RWDeadReader(RW):
    """Wrong: a reader has no lease, so that one that died blocks the writers for ever."""

    def acquire(self, key, token, ttl, *_):
        return super().acquire(key, token, 10**9 if local.m.get("mode") == "read" else ttl)


@lock("rw-shared-expiry", TRUST + ["readers"])
class RWSharedExpiry(Plain):
    """Wrong: one count of readers with the lease of the last: a dead reader is counted as long as others come."""

    def acquire(self, key, token, ttl, *_):
        if local.m.get("mode") == "read":
            return self.call("EVAL", 'if redis.call("EXISTS", KEYS[1]) == 1 then return 0 end redis.call("INCR", KEYS[2]) '
                             'redis.call("PEXPIRE", KEYS[2], ARGV[1]) return 1', 2, key, key + ":r", ttl) == 1
        return self.call("EVAL", 'if redis.call("EXISTS", KEYS[1]) == 1 or tonumber(redis.call("GET", KEYS[2]) or 0) > 0 '
                         'then return 0 end redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2]) return 1',
                         2, key, key + ":r", token, ttl) == 1

    def extend(self, key, token, ttl):
        return self.call("EVAL", 'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end '
                         'return redis.call("PEXPIRE", KEYS[2], ARGV[2])', 2, key, key + ":r", token, ttl)

    def release(self, key, token):
        return self.call("EVAL", 'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end '
                         'if redis.call("EXISTS", KEYS[2]) == 0 then return 0 end '
                         'if redis.call("DECR", KEYS[2]) < 1 then redis.call("DEL", KEYS[2]) end return 1',
                         2, key, key + ":r", token)


# 16. Equal tokens.

@lock("seeded")
class Seeded(Plain):
    """Wrong: every process seeds its generator alike, so that two workers have the same tokens one day."""

    def __init__(self):
        super().__init__()
        self.rand = {}

    def acquire(self, key, token, ttl, *_):
        r = self.rand.setdefault(local.m["worker"] % 4, random.Random(7))
        token = f"{r.getrandbits(64):x}"
        return token if super().acquire(key, token, ttl) else False


# 1. What is on its way when a call is given up.

class Hasty(Plain):
    """Gives a call up after 60 ms."""

    def __init__(self):
        super().__init__()
        self.pool.timeout = 0.06


@lock("one-token")
class OneToken(Hasty):
    """Wrong: a worker's token is the same for all its holds, so that a release that is executed late hits the next one."""

    def acquire(self, key, token, ttl, *_):
        token = f'{os.getpid()}-{local.m["worker"]}'
        return token if super().acquire(key, token, ttl) else False


@lock("late-del")
class LateDel(Hasty):
    """Wrong: GET, then DEL: the DEL of a call that was given up hits the next hold."""

    def release(self, key, token):
        if self.call("GET", key) != token:
            return False
        return self.call("DEL", key)


# 6. Extensions.

@lock("spares-expire")
class SparesExpire(Plain):
    """Wrong: an extension is not sent while half of the lease is left, and says that it was."""

    def extend(self, key, token, ttl):
        if self.call("PTTL", key) > ttl / 2:
            return self.call("GET", key) == token
        return super().extend(key, token, ttl)


@lock("capped-extension")
class CappedExtension(Plain):
    """Wrong: an extension asks for what the acquire asked for, whatever it is told."""

    def acquire(self, key, token, ttl, *_):
        self.__dict__.setdefault("ttl", {})[token] = ttl
        return super().acquire(key, token, ttl)

    def extend(self, key, token, ttl):
        return super().extend(key, token, min(ttl, self.ttl[token]))


# 14. Servers that answer errors.

@lock("error-granted")
class ErrorGranted(Plain):
    """Wrong: an error that the server answers counts as granted."""

    def acquire(self, key, token, ttl, *_):
        try:
            return self.call("SET", key, token, "NX", "PX", ttl) is not None
        except ServerError:
            return True


@lock("evalsha-or-del")
class EvalshaOrDel(Plain):
    """Wrong: where the script is gone it falls back to GET and DEL, and never loads it again."""
    RELEASE = IF_OURS % '"DEL", KEYS[1]'

    def release(self, key, token):
        if not hasattr(self, "sha"):
            self.sha = self.call("SCRIPT", "LOAD", self.RELEASE)
        try:
            return self.call("EVALSHA", self.sha, 1, key, token)
        except ServerError:
            if self.call("GET", key) != token:
                return False
            return self.call("DEL", key)


@lock("evalsha")
class Evalsha(EvalshaOrDel):
    """Right: where the script is gone it sends it."""

    def release(self, key, token):
        try:
            return self.call("EVALSHA", hashlib.sha1(self.RELEASE.encode()).hexdigest(), 1, key, token)
        except ServerError as e:
            if "NOSCRIPT" not in str(e):
                raise
            return self.call("EVAL", self.RELEASE, 1, key, token)


# 15. Servers as in life.

@lock("forgets-db")
class ForgetsDB(Plain):
    """Wrong: only the first connection of a process selects the database."""

    def __init__(self):
        super().__init__()
        self.pool.db = True

    def acquire(self, key, token, ttl, *_):
        granted = super().acquire(key, token, ttl)
        self.pool.db = False
        return granted


# 3. After the server has lost something.

@lock("restores")
class Restores(Plain):
    """Wrong: when a connection has broken, the next one writes anew what this client believes to hold."""

    def __init__(self):
        super().__init__()
        self.mine, self.lost = {}, False
        self.call = self.again

    def again(self, *words):
        try:
            if self.lost:
                self.pool.call("PING")
                self.lost = False
                for token, (key, ttl) in list(self.mine.items()):
                    self.pool.call("SET", key, token, "PX", ttl)
            return self.pool.call(*words)
        except ServerError:
            raise
        except OSError:
            self.lost = True
            raise

    def acquire(self, key, token, ttl, *_):
        if not super().acquire(key, token, ttl):
            return False
        self.mine[token] = key, ttl
        return True

    def release(self, key, token):
        self.mine.pop(token, None)
        return super().release(key, token)


# 8. Clusters.

CLUSTER = {"topologies": ["single", "cluster"]}


def key_of(words):
    return words[3] if words[0] == "EVAL" else words[1]


@lock("cluster", **CLUSTER)
class Cluster(Plain):
    """Right: it remembers where each key is, and goes where MOVED and ASK send it."""

    def __init__(self):
        self.pools, self.at = {}, {}

    def pool_of(self, addr):
        pool = self.pools.setdefault(addr, Pool())
        pool.addr = addr
        return pool

    def call(self, *words):
        key, asking = key_of(words), False
        addr = self.at.get(key) or site["addrs"][0]
        for _ in range(5):
            try:
                if asking:
                    c = Conn(addr=addr)
                    c.call("ASKING")
                    try:
                        return c.call(*words)
                    finally:
                        c.close()
                return self.pool_of(addr).call(*words)
            except ServerError as e:
                kind, *rest = str(e).split(" ")
                if not self.redirected(key, kind):
                    raise
                addr, asking = rest[1], kind == "ASK"
                if not asking:
                    self.at[key] = addr
        raise OSError("too many redirections")

    def redirected(self, key, kind):
        return kind in ("MOVED", "ASK")


@lock("moved-refused", **CLUSTER)
class MovedRefused(Cluster):
    """Wrong: it learns where a key is once, and takes any later error for a refusal."""

    def acquire(self, key, token, ttl, *_):
        try:
            return super().acquire(key, token, ttl)
        except ServerError:
            return False

    def release(self, key, token):
        try:
            return super().release(key, token)
        except ServerError:
            return False

    def redirected(self, key, kind):
        return key not in self.at and super().redirected(key, kind)


# 13. What lasts long.

@lock("capped-lease")
class CappedLease(Plain):
    """Wrong: it never asks for more than 5 s, and the holder believes in what it asked for."""

    def acquire(self, key, token, ttl, *_):
        return super().acquire(key, token, min(ttl, 5000))

    def extend(self, key, token, ttl):
        return super().extend(key, token, min(ttl, 5000))


# 5. A refused try that cleans up.

@lock("finally-del")
class FinallyDel(Plain):
    """Wrong: a try that was refused removes, with `finally`, what it has not got."""

    def acquire(self, key, token, ttl, *_):
        granted = False
        try:
            granted = super().acquire(key, token, ttl)
            return granted
        finally:
            if not granted:
                self.call("DEL", key)


# 2. Waiters that have left.

@lock("left-waiters", TRUST + ["waits"])
class LeftWaiters(Plain):
    """Wrong: a release wakes the first of a list of waiters, in which those who gave up still are; others sleep for ten leases."""
    sleeps = 10

    def stand(self, key, token):
        self.call("RPUSH", key + ":q", token)

    def leave(self, key, token):
        pass

    def wait(self, key, token, ttl, wait):
        end = time.monotonic() + wait
        while True:
            tried = time.monotonic()
            if self.acquire(key, token, ttl):
                return tried
            left = end - time.monotonic()
            if left <= 0:
                self.leave(key, token)
                return None
            self.stand(key, token)
            c = Conn(timeout=left + 2)
            c.call("BLPOP", key + ":w:" + token, max(min(left, self.sleeps * ttl / 1000), 0.01))
            c.close()

    def release(self, key, token):
        done = super().release(key, token)
        self.wake(key)
        return done

    def wake(self, key):
        self.call("EVAL", self.NEXT, 1, key)

    NEXT = ('local n = redis.call("LPOP", KEYS[1] .. ":q") if n then redis.call("RPUSH", KEYS[1] .. ":w:" .. n, 1) '
            'redis.call("PEXPIRE", KEYS[1] .. ":w:" .. n, 5000) end ')


@lock("waiters", TRUST + ["waits"])
class Waiters(LeftWaiters):
    """Right: those who give up take themselves out, or wake the next if they were woken; none sleeps for longer than a lease, nor beside
    a free lock."""
    sleeps = 1

    def stand(self, key, token):
        self.call("EVAL", 'redis.call("LREM", KEYS[1] .. ":q", 0, ARGV[1]) redis.call("RPUSH", KEYS[1] .. ":q", ARGV[1]) '
                  'if redis.call("EXISTS", KEYS[1]) == 0 then ' + self.NEXT + 'end', 1, key, token)

    def leave(self, key, token):
        self.call("EVAL", 'if redis.call("LREM", KEYS[1] .. ":q", 0, ARGV[1]) == 0 or redis.call("EXISTS", KEYS[1]) == 0 then '
                  + self.NEXT + 'end', 1, key, token)


@lock("token-list", TRUST + ["waits"])
class TokenList(Plain):
    """Right: a release leaves one token in a list; who waits pops it, for a lease at most, and takes its connection along when it goes."""
    stays = False

    def wait(self, key, token, ttl, wait):
        end = time.monotonic() + wait
        while True:
            tried = time.monotonic()
            if self.acquire(key, token, ttl):
                return tried
            left = end - tried
            if left <= 0:
                return None
            got = threading.Event()
            c = Conn(timeout=3600)
            threading.Thread(target=self.pop, args=(c, key, got, ttl), daemon=True).start()
            got.wait(min(left, wait if self.stays else ttl / 1000))
            if not self.stays:
                c.s.shutdown(socket.SHUT_RDWR)

    def pop(self, c, key, got, ttl):
        try:
            c.call("BLPOP", key + ":t", 60 if self.stays else ttl / 1000)
        except OSError:
            pass
        got.set()
        c.close()

    def release(self, key, token):
        return self.call("EVAL", IF_OURS.replace("then", 'then redis.call("DEL", KEYS[2]) redis.call("RPUSH", KEYS[2], 1) '
                         'redis.call("PEXPIRE", KEYS[2], 5000)') % '"DEL", KEYS[1]', 2, key, key + ":t", token)


@lock("token-list-stays", TRUST + ["waits"])
class TokenListStays(TokenList):
    """Wrong: who gives up leaves its BLPOP behind, which pops the token that another would need."""
    stays = True


@lock("undo-late")
class UndoLate(Plain):
    """Wrong: who got no answer to his SET undoes it by a plain DEL, which may come long after."""

    def acquire(self, key, token, ttl, *_):
        try:
            return super().acquire(key, token, ttl)
        except OSError:
            try:
                self.call("DEL", key)
            except OSError:
                pass
            raise


# 9. At most once a tick.

@lock("once", ["excludes", "expires", "once"])
class Once(Plain):
    """Right: the key is that of a tick, and nobody deletes it."""

    def release(self, key, token):
        return True


@lock("once-finally", ["excludes", "expires", "once"])
class OnceFinally(Plain):
    """Wrong: the lock is given back when the job is done, which is before the last clock has come to its tick."""


# 4. Different leases of one lock.

@lock("rw-own-age", TRUST + ["readers"])
class RWOwnAge(RW):
    """Wrong: readers are kept by when they came, and who comes drops those who have been there for longer than his own lease."""
    NOW = EndField.NOW + 'if ARGV[2] then redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now - ARGV[2]) end '
    TOUCH = 'redis.call("ZADD", KEYS[2], now, ARGV[1]) redis.call("PEXPIRE", KEYS[2], 60000) '


@lock("rw-newest-lease", TRUST + ["readers"])
class RWNewestLease(RW):
    """Wrong: the readers' key lasts as long as the lease of the newest of them."""
    TOUCH = 'redis.call("PEXPIRE", KEYS[2], ARGV[2]) '


@lock("set", TRUST + ["cleans", "sets", "crosses"])
class Set(Plain):
    """Right: all keys in one script, each with its owner and the end of the lease."""
    FREE = 'for _, k in ipairs(KEYS) do if redis.call("EXISTS", k) == 1 then return 0 end end '
    TAKE = 'for _, k in ipairs(KEYS) do redis.call("SET", k, ARGV[1], "PX", ARGV[2]) end return 1'
    OURS = 'for _, k in ipairs(KEYS) do if redis.call("GET", k) ~= ARGV[1] then return 0 end end '

    def __init__(self):
        super().__init__()
        self.keys = {}

    def all(self, script, token, *words):
        keys = self.keys[token]
        return self.call("EVAL", script, len(keys), *keys, token, *words) == 1

    def acquire(self, key, token, ttl, *_):
        self.keys[token] = local.m["keys"]
        return self.all(self.FREE + self.TAKE, token, ttl)

    def extend(self, key, token, ttl):
        return self.all(self.OURS + 'for _, k in ipairs(KEYS) do redis.call("PEXPIRE", k, ARGV[2]) end return 1', token, ttl)

    def release(self, key, token):
        return self.all(self.OURS + 'redis.call("DEL", unpack(KEYS)) return 1', token)


@lock("set-own-age", TRUST + ["sets", "crosses"])
class SetOwnAge(Set):
    """Wrong: each key has the time at which it was taken, and who comes takes one over that is older than his own lease."""
    FREE = EndField.NOW + ('for _, k in ipairs(KEYS) do if redis.call("HEXISTS", k, "since") == 1 and '
                           'now - redis.call("HGET", k, "since") < tonumber(ARGV[2]) then return 0 end end ')
    TAKE = ('for _, k in ipairs(KEYS) do redis.call("HSET", k, "owner", ARGV[1], "since", now) redis.call("PEXPIRE", k, 60000) end '
            'return 1')
    OURS = EndField.NOW + 'for _, k in ipairs(KEYS) do if redis.call("HGET", k, "owner") ~= ARGV[1] then return 0 end end '

    def extend(self, key, token, ttl):
        return self.all(self.OURS + self.TAKE, token)


class Conn3(Conn):
    """A connection that speaks RESP3, with what servers push beside the replies."""

    def login(self):
        self.call("HELLO", 3, *(("AUTH", site.get("user", "default"), site["pass"]) if "pass" in site else ()))
        self.call("CLIENT", "TRACKING", "ON")

    def read(self):
        line = self.f.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("connection closed")
        kind, rest = line[:1], line[1:-2].decode()
        if kind in b"-!":
            raise ServerError(rest if kind == b"-" else self.f.read(int(rest) + 2)[:-2].decode())
        if kind in b":(":
            return int(rest)
        if kind == b"+":
            return rest
        if kind == b"_":
            return None
        if kind == b"#":
            return rest == "t"
        if kind == b"$":
            return self.f.read(int(rest) + 2)[:-2].decode()
        many = [self.read() for _ in range(int(rest) * (2 if kind in b"%|" else 1))]
        return self.read() if kind in b">|" else many


@lock("resp3")
class Resp3(Plain):
    """Right: the same in RESP3, with keys that are tracked."""

    def __init__(self):
        super().__init__()
        self.pool.make = lambda: Conn3(self.pool.timeout)


@lock("resp3-null")
class Resp3Null(Resp3):
    """Wrong: a refusal is known by the null of RESP2; that of RESP3 is taken for a grant."""

    def acquire(self, key, token, ttl, *_):
        return self.call("SET", key, token, "NX", "PX", ttl) != "$-1"


@lock("cached-owner")
class CachedOwner(Resp3):
    """Wrong: an extension and a release ask a cache whose the lock is, and do not heed what is pushed."""

    def __init__(self):
        super().__init__()
        self.owner = {}

    def acquire(self, key, token, ttl, *_):
        if not super().acquire(key, token, ttl):
            return False
        self.owner[key] = token
        return True

    def extend(self, key, token, ttl):
        return self.owner.get(key) == token and self.call("PEXPIRE", key, ttl)

    def release(self, key, token):
        if self.owner.get(key) == token:
            del self.owner[key]
            return self.call("DEL", key)
        return super().release(key, token)


# 18. Late commands of holders.

@lock("first-digits")
class FirstDigits(Plain):
    """Wrong: a release compares the first digit of the token alone, so that one in sixteen late ones hits the next hold."""

    def release(self, key, token):
        return self.call("EVAL", IF_OURS.replace("==", ":sub(1, 1) ==").replace('redis.call("GET", KEYS[1])', '(redis.call("GET", KEYS[1]) or "x")')
                         % '"DEL", KEYS[1]', 1, key, token[0])


# 8. Writes that are held while reads are answered.

@lock("extended-by-get")
class ExtendedByGet(Plain):
    """Wrong: an extension that is not answered has been done where a GET still finds the token."""

    def __init__(self):
        super().__init__()
        self.reads = Pool()
        self.pool.timeout = 0.06

    def extend(self, key, token, ttl):
        try:
            return super().extend(key, token, ttl)
        except TimeoutError:
            if self.reads.call("GET", key) == token:
                return True
            raise


@lock("impatient")
class Impatient(Plain):
    """Right: a call that is not answered for 60 ms is given up, and no more is said of it."""

    def __init__(self):
        super().__init__()
        self.pool.timeout = 0.06


# Public reports of 2026-11.

@lock("pexpire-seconds")
class PexpireSeconds(Plain):
    """Foundatio.Redis 73. Wrong: an extension has seconds where milliseconds are meant, so that the lease ends at once."""

    def extend(self, key, token, ttl):
        return super().extend(key, token, ttl // 1000)


@lock("expire-millis")
class ExpireMillis(Plain):
    """redlock-rb 44. Wrong: an extension has milliseconds where seconds are meant: the lease lasts a thousand times as long."""

    def extend(self, key, token, ttl):
        return self.call("EVAL", IF_OURS % '"EXPIRE", KEYS[1], ARGV[2]', 1, key, token, ttl)


@lock("forgets-token", ["excludes", "owned", "cleans"])
class ForgetsToken(Plain):
    """redis-py 3847. Wrong: the lock has no lease, and a release that fails has forgotten the token: nobody can give it back."""

    def acquire(self, key, token, *_):
        return self.call("SET", key, token, "NX") == "OK"


@lock("acquire-or-renew", TRUST + ["cleans", "renews"])
class AcquireOrRenew(Plain):
    """ray 63773. Wrong: a renewal takes a lock that is free, and one that is under way at the step-down takes it for nobody."""
    TAKE = ('local v = redis.call("GET", KEYS[1]) if v and v ~= ARGV[1] then return 0 end '
            'redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2]) return 1')
    undoes = False

    def __init__(self):
        super().__init__()
        self.leading, self.deposed = {}, set()

    def take(self, key, token, ttl):
        return self.call("EVAL", self.TAKE, 1, key, token, ttl) == 1

    def acquire(self, key, token, ttl, *_):
        began = time.monotonic()
        if not self.take(key, token, ttl):
            return False
        if time.monotonic() > began + ttl * 0.9 / 1000:
            raise OSError("the term is over already")
        self.leading[token] = began
        threading.Thread(target=self.renew, args=(key, token, ttl), daemon=True).start()
        threading.Thread(target=self.watch, args=(token, ttl, local.m["id"]), daemon=True).start()
        return True

    def renew(self, key, token, ttl):
        while token in self.leading:
            time.sleep(ttl / 4000)
            call = time.monotonic()
            try:
                if token not in self.leading:
                    return
                took = self.take(key, token, ttl)
                if token in self.leading:
                    self.leading[token] = call if took else 0
                elif took and self.undoes and token in self.deposed:
                    self.release(key, token)
            except OSError:
                pass

    def watch(self, token, ttl, hold):
        while token in self.leading:
            if time.monotonic() > self.leading[token] + ttl * 0.97 / 1000:
                self.deposed.add(token)
                if self.leading.pop(token, None) is not None:
                    template.say(event="lost", hold=hold)
                return
            time.sleep(0.005)

    def release(self, key, token):
        self.leading.pop(token, None)
        return super().release(key, token)


@lock("acquire-or-renew-undone", TRUST + ["cleans", "renews"])
class AcquireOrRenewUndone(AcquireOrRenew):
    """ray 63773. Right: what a renewal has taken after the step-down is given back."""
    undoes = True


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in LOCKS:
        sys.exit(f"strangers.py NAME, one of {', '.join(LOCKS)}")
    cls, template.CLAIMS, hello = LOCKS[name]
    template.NAME, template.MORE, made, serve = name, hello, [], template.serve

    def served(m):
        local.m = m
        if m["op"] == "open":
            site.update(m["sites"][0])
            made.append(cls())
            template.acquire, template.extend, template.release = made[0].acquire, made[0].extend, made[0].release
        elif m["op"] == "acquire" and m.get("wait_ms") and "waits" in template.CLAIMS:
            began, token = time.monotonic(), secrets.token_hex(16)
            template.holds[m["id"]] = m["key"], token
            tried = made[0].wait(m["key"], token, m["ttl_ms"], m["wait_ms"] / 1000)
            if tried is None:
                del template.holds[m["id"]]
                return {"busy": True, "token": token}
            return {"ok": True, "token": token, "tried_ms": (tried - began) * 1000}
        return serve(m)

    template.serve = served
    template.main()


main()

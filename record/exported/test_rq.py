# exclusion: two workers held the lock at once, 74 times after 45 incidents in 186 holds; w00 and w04 at 1.365494 s: foreign-release
#
#   w00 was granted hold 0.206 of page 0 at 1.316679 s for 400 ms counted from 1.307962 s
#   so no other worker may hold it before 1.705962 s, or its release, called at 1.840571 s, whose effect is unknown
#   w02 released at 1.357589 s what was not its own; that freed the lock of w00
#   w04 was granted hold 4.206 of page 0 at 1.365494 s for 400 ms counted from 1.351409 s
#   the fault stall-worker from 0.604258 s to 1.357507 s: held w02 between load and store for 520ms
#   the fault stall-worker from 1.200525 s to 1.840554 s: held w00 between load and store for 520ms
#
# Written by Hammerlock (verify export --test) of exec:rq@1.13.0:
#   bin/verify --topology single --lock 'exec:/usr/bin/python3 record/python/rq_scheduler.py' --scenario late-holder --seed 1
#
# The test tells the story more slowly. It needs a redis-server on the PATH, and nothing of Hammerlock. Each client speaks to the
# server through a proxy of its own, which holds, cuts or refuses the messages that the story names. The test fails if two clients
# hold the lock at once, or if a call succeeds that must be refused.
import re, socket, subprocess, tempfile, threading, time

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


LEASE = 2
LINGER = 0.999  # by how much longer the library lets a lease last
OWNED = False  # a release says whether the lock was still the client's

STORY = [  # ms, client, what it does, what happens to a message of it
    (0, "a", "acquire", ""),
    (4987, "b", "acquire", ""),
    (5204, "c", "acquire", "late request 1"),
    (5235, "a", "release", ""),
    (5275, "c", "go on", ""),
    (5275, "d", "acquire", ""),
]
everyone, failures, judging = {}, [], threading.Lock()


def test_foreign_release():
    with socket.create_server(("127.0.0.1", 0)) as free: port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", folder], stdout=subprocess.DEVNULL)
        try: tell(port)
        finally:
            server.kill()
            server.wait()
    assert not failures, "; ".join(failures)


def tell(port):
    for _, who, _, _ in STORY: everyone.get(who) or everyone.update({who: Actor(who, port)})
    begun = time.monotonic()
    for at, who, act, fault in STORY:
        time.sleep(max(begun + at / 1000 - time.monotonic(), 0))
        a = everyone[who]
        f, a.said = a.next(fault), "held"
        if act != "go on": a.thread = start(a.call, act, f)
        while a.thread.is_alive() and not f.held.wait(0.005): pass
        print(f"{(time.monotonic() - begun) * 1000:.0f} ms: {who}: {act}, {a.said} {fault}")
    for a in everyone.values(): a.next("")


def start(do, *args):
    thread = threading.Thread(target=do, args=args, daemon=True)
    thread.start()
    return thread


class Fault:  # what happens to the n-th message of a call, one way or the other, as in "late reply 2"
    def __init__(self, text):
        self.what, self.way, self.n = (text.split() + ["", "", ""])[:3]
        self.seen, self.held, self.open = 0, threading.Event(), threading.Event()


class Actor:  # a client, what it believes, and the proxy through which it speaks to the server
    def __init__(self, name, port):
        self.name, self.since, self.until, self.over, self.fault, self.mutex = name, 0, 0, 0, Fault(""), threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        start(self.accept, port)
        self.lock = Client(self.listener.getsockname()[1])
        assert self.lock.acquire("warm-" + name, LEASE)
        for act in "extend", "release": self.attempt(act)  # the server is to know all scripts before the story begins

    def accept(self, port):
        while True: start(self.serve, self.listener.accept()[0], port)

    def call(self, act, f):
        called, yes = self.attempt(act)
        end = called + LEASE / 10
        while act == "acquire" and not yes and not f.way and time.monotonic() < end:
            time.sleep(0.01)  # a lease may end a moment later than in the story
            called, yes = self.attempt(act)
        with judging: self.judge(act, f, called, yes)

    def judge(self, act, f, called, yes):
        now, until = time.monotonic(), called + LEASE if LEASE else float("inf")
        self.said = "yes" if yes else "no"
        if not yes and f.what == "must": failures.append(f"{self.name} must be granted the lock: no client holds it any more")
        if not yes: return
        for b in everyone.values():
            if b is not self and now < b.until and (OWNED and b.since < called if act == "release" else now < until):
                failures.append(f"{self.name}: the {act} must be refused: {b.name} holds the lock for {b.until - now:.2f} s more")
        if act == "extend" and LEASE and called > self.over:
            failures.append(f"{self.name}: the extend must be refused: its lease has been over for {called - self.over:.2f} s")
        if act != "release":  # over: the server has forgotten it by then
            self.since, self.until, self.over = now, until, now + LEASE + LINGER

    def attempt(self, act):
        called = time.monotonic()
        if act == "release": self.until = 0
        try: return called, getattr(self.lock, act)(*{"acquire": ("story", LEASE), "extend": (LEASE,), "release": ()}[act])
        except Exception: return called, False

    def next(self, text):  # says what happens next, and lets go on what is held
        with self.mutex: before, self.fault = self.fault, Fault(text)
        before.open.set()
        return self.fault

    def serve(self, client, port):
        while True:
            try: server = socket.create_connection(("127.0.0.1", port))
            except OSError: time.sleep(0.01)  # it is about to start
            else: break
        ready = []  # the last request was one that makes the connection ready
        start(self.hand, server, client, "reply", ready)
        self.hand(client, server, "request", ready)

    # A message comes in one piece, for commands are short and wait for their replies.
    def hand(self, source, to, way, ready):
        try:
            while some := source.recv(65536):
                with self.mutex:
                    if way == "request": ready[:] = SET_UP.findall(some)
                    f, ours = self.fault, self.fault.way == way and not ready
                    f.seen += ours
                    hit = ours and f.seen == int(f.n)
                if hit and f.what == "late":
                    f.held.set()
                    f.open.wait()
                if hit and f.what == "cut": break
                if hit and f.what == "error": source.sendall(b"-LOADING Redis is loading the dataset in memory\r\n")
                else: to.sendall(some)
        except OSError: pass  # its other end is gone
        for s in source, to:
            try: s.shutdown(socket.SHUT_RDWR)
            except OSError: pass


SET_UP = re.compile(rb"\*\d+\r\n\$\d+\r\n(hello|client|auth|select|ping|info|command)\r\n", re.I)

if __name__ == "__main__": test_foreign_release()

#!/usr/bin/env python3
"""A contract test of your lock in unittest or pytest, with one test for each scenario. test_example.py is an example.

tests(Lock) returns a TestCase. It starts bin/verify, which uses the locks of this process, and reads the verdicts. For each worker
process of the suite it makes a Lock(sites), with the servers to use (docs/DRIVERS.md); several exist at the same time. A Lock has the
methods of template.py: acquire(key, token, ttl_ms), extend(key, token, ttl_ms) and release(key, token). Several threads call them at
the same time. They may be coroutines; then they share one event loop. A lock that cannot be extended has no method extend. If the
lock has a method close(), it is called at the end. Use pytest -n only with --dist loadscope; otherwise each worker of pytest runs
verify again.
"""
import asyncio, inspect, json, os, secrets, shlex, shutil, socket, subprocess, sys, tempfile, threading, traceback, unittest


def tests(lock, claims=("excludes", "expires", "owned", "cleans"), scenarios=(), topology="single", flags=(), more=None):
    """Makes the TestCase. No scenarios = all; flags = more flags for verify; more = more of the hello message, as {"permits": 3}."""
    verify = shutil.which(os.environ.get("HAMMERLOCK", "bin/verify"))
    if not verify:
        raise FileNotFoundError("there is no bin/verify here: the variable HAMMERLOCK must name Hammerlock's program verify")
    verify = os.path.abspath(verify)

    class LockTest(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.folder, cls.calls = tempfile.mkdtemp(prefix="hammerlock-"), Calls()
            path = os.path.join(cls.folder, "s")
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen(64)
            hello = dict(hello="hammerlock-driver", protocol=1, name=lock.__name__, version="1", claims=list(claims), **more or {})
            threading.Thread(target=accept, args=(listener, lock, hello, cls.calls), daemon=True).start()
            program = shlex.join([sys.executable, os.path.abspath(__file__), path])
            only = ["--scenario", ",".join(scenarios)] if scenarios else []
            done = subprocess.run([verify, "--topology", topology, "--lock", "exec:" + program, "--json", "--quiet", "--out", cls.folder,
                                   *only, *flags],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            listener.close()
            os.remove(path)
            cls.calls.end()
            if done.returncode == 0 or not done.stdout:
                shutil.rmtree(cls.folder)
            if not done.stdout:
                raise RuntimeError(f"verify ended with {done.returncode}: {done.stderr}")
            cls.result = json.loads(done.stdout)
            cls.runs = {run.get("scenario"): run for run in cls.result["runs"] or []}  # of several attempts, the last one

        def test_verdict(self):
            exit = self.result["exit"]
            self.assertEqual(exit["code"], 0, f'{exit["reason"]}; kept in {self.folder}')

    def one(name):
        def test(self):
            run = self.runs.get(name) or self.skipTest("it was not run: it does not apply to this lock, or another one failed before")
            wrong = [v for v in run["verdicts"] if v["status"] == "fail"]
            open = [v for v in run["verdicts"] if v["status"] == "inconclusive"]
            if wrong:
                again = shlex.join([verify, "check", os.path.join(self.folder, run["name"])])
                self.fail("\n".join([f'{v["checker"]}: {v["summary"]}' for v in wrong] + wrong[0].get("story", []) +
                                    [wrong[0].get("remedy", ""), *self.calls.hints(), f'kept; judged again by: {again}',
                                     f'the same random choices: flags=("--seed", "{run["seed"]}")']))
            if open:
                self.skipTest(f'undecided: {open[0]["checker"]}: {open[0]["summary"]}')
        return test

    LockTest.__name__ = LockTest.__qualname__ = lock.__name__ + "Test"
    for name in scenarios or listed(verify):
        setattr(LockTest, "test_" + name.replace("-", "_"), one(name))
    return LockTest


def listed(verify):
    lines = subprocess.run([verify, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    lines = lines[lines.index("scenarios") + 1:]
    return [line.split()[0] for line in lines[:lines.index("")] if not line.startswith("   ")]


class Calls:
    """Calls the methods of locks, in threads or on the event loop, and checks their results."""

    def __init__(self):
        self.locks, self.raised, self.returned, self.loop = [], set(), set(), asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def call(self, lock, name, *words):
        method = getattr(lock, name)
        result = method(*words)
        if inspect.isawaitable(result):
            result, error = asyncio.run_coroutine_threadsafe(outcome(result), self.loop).result()
            if error:
                raise error
        if name == "acquire":
            self.returned.add(type(result))
        if result is None and name in ("extend", "release"):
            code = getattr(inspect.unwrap(method), "__code__", None)
            where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
            raise TypeError(f"{name}{where} returned None: it must return True, or False if the lock was not ours any more")
        try:
            return result.decode() if isinstance(result, bytes) else result
        except UnicodeDecodeError:
            return result  # the answer then has no token

    def hints(self):
        """Returns advice about mistakes that a verdict does not show."""
        return ["acquire has returned None only, which means busy: is a return missing?"] if self.returned == {type(None)} else []

    def error(self, e, make):
        """Describes an exception and the last line in the lock's own file. Prints the traceback, but only once for each such line."""
        lines = [line for line in traceback.extract_tb(e.__traceback__) if line.filename != __file__]
        own = [line for line in lines if line.filename == inspect.getfile(make)]
        where = "".join(f", {line.filename}:{line.lineno}" for line in (own or lines)[-1:])
        if (type(e), where) not in self.raised:
            self.raised.add((type(e), where))
            traceback.print_exception(type(e), e, e.__traceback__)
        return repr(e) + where

    def end(self):
        for lock in self.locks:
            try:
                hasattr(lock, "close") and self.call(lock, "close")
            except Exception:
                traceback.print_exc()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


async def outcome(awaitable):
    try:
        return await awaitable, None
    except BaseException as e:  # some exceptions would end the event loop
        return None, e


def accept(listener, lock, hello, calls):
    while True:
        try:
            conn = listener.accept()[0]
        except OSError:
            return
        threading.Thread(target=Session(conn, lock, hello, calls).run, daemon=True).start()


class Session:
    """Answers the requests of one driver program that the suite started; each program has its own connection."""

    def __init__(self, conn, make, hello, calls):
        self.conn, self.make, self.hello, self.holds, self.writing = conn, make, hello, {}, threading.Lock()
        self.calls = calls

    def run(self):
        with self.conn, self.conn.makefile() as lines:
            self.say(**self.hello)
            for line in lines:
                threading.Thread(target=self.answer, args=[json.loads(line)], daemon=True).start()

    def say(self, **m):
        with self.writing:
            self.conn.sendall(json.dumps(m).encode() + b"\n")

    def answer(self, m):
        try:
            a = self.serve(m)
        except BaseException as e:  # without an answer, the suite would blame the lock
            a = {"error": self.calls.error(e, self.make), "token": self.holds.get(m["id"], [""])[-1]}
        try:
            self.say(id=m["id"], **a)
        except OSError:
            pass  # the suite has ended the program

    def serve(self, m):
        if m["op"] == "open":
            self.lock = self.make(m["sites"])
            self.calls.locks.append(self.lock)
        elif m["op"] == "acquire":
            token = secrets.token_hex(16)
            self.holds[m["id"]] = m["key"], token
            granted = self.calls.call(self.lock, "acquire", m["key"], token, m["ttl_ms"],
                                      *(m[by] for by in ("mode", "permits") if by in m))
            if not granted:
                del self.holds[m["id"]]
                return {"busy": True, "token": token}
            if isinstance(granted, (str, bytes)):
                self.holds[m["id"]] = m["key"], granted
            return {"ok": True} if isinstance(granted, bytes) else {"ok": True, "token": self.holds[m["id"]][1]}
        elif m["op"] == "extend" and not hasattr(self.lock, "extend"):
            return {"unsupported": True}
        elif m["op"] == "extend" and not self.calls.call(self.lock, "extend", *self.holds[m["hold"]], m["ttl_ms"]):
            return {"lost": True}
        elif m["op"] == "release" and not self.calls.call(self.lock, "release", *self.holds.pop(m["hold"])):
            return {"lost": True}
        return {"ok": True}


def bridge(path):
    """Is the driver program that the suite starts. It connects the suite to the process of the tests."""
    conn = socket.socket(socket.AF_UNIX)
    conn.connect(path)

    def back():
        while data := conn.recv(1 << 16):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        os._exit(0)

    threading.Thread(target=back, daemon=True).start()
    while data := os.read(0, 1 << 16):
        conn.sendall(data)


if __name__ == "__main__":
    bridge(sys.argv[1])

#!/usr/bin/env python3
"""A contract test in your own runner, unittest or pytest: one test a scenario. test_example.py shows it.

tests(Lock) is a TestCase. It starts bin/verify, which visits pages under the locks of this process, and reads its verdicts. Lock(sites)
is made once for each worker process of the suite, with its servers (docs/DRIVERS.md); several live at a time. It has the methods of
template.py: acquire(key, token, ttl_ms), extend(key, token, ttl_ms) and release(key, token), which several threads call at once.
"""
import json, os, secrets, shlex, socket, subprocess, sys, tempfile, threading, unittest


def tests(lock, claims=("excludes", "expires", "owned", "cleans"), scenarios=(), topology="single", flags=(), more=None):
    """Makes the TestCase. No scenarios are all; flags are more of verify's, more is more of the greeting, as {"permits": 3}."""
    verify = os.environ.get("HAMMERLOCK", "bin/verify")

    class LockTest(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "s")
                listener = socket.socket(socket.AF_UNIX)
                listener.bind(path)
                listener.listen(64)
                hello = dict(hello="hammerlock-driver", protocol=1, name=lock.__name__, version="1", claims=list(claims), **more or {})
                threading.Thread(target=accept, args=(listener, lock, hello), daemon=True).start()
                program = shlex.join([sys.executable, os.path.abspath(__file__), path])
                only = ["--scenario", ",".join(scenarios)] if scenarios else []
                done = subprocess.run([verify, "--topology", topology, "--lock", "exec:" + program, "--json", "--quiet", "--out", folder,
                                       *only, *flags],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                listener.close()
            if not done.stdout:
                raise RuntimeError(f"verify ended with {done.returncode}: {done.stderr}")
            cls.result = json.loads(done.stdout)
            cls.runs = {run.get("scenario"): run for run in cls.result["runs"] or []}  # the last attempt counts

        def test_verdict(self):
            exit = self.result["exit"]
            self.assertEqual(exit["code"], 0, exit["reason"])

    def one(name):
        def test(self):
            run = self.runs.get(name) or self.skipTest("it was not run: it does not apply to this lock, or another one failed before")
            wrong = [v for v in run["verdicts"] if v["status"] == "fail"]
            open = [v for v in run["verdicts"] if v["status"] == "inconclusive"]
            if wrong:
                self.fail("\n".join([f'{v["checker"]}: {v["summary"]}' for v in wrong] + wrong[0].get("story", []) +
                                    [wrong[0].get("remedy", ""), run["command"]]))
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


def accept(listener, lock, hello):
    while True:
        try:
            conn = listener.accept()[0]
        except OSError:
            return
        threading.Thread(target=Session(conn, lock, hello).run, daemon=True).start()


class Session:
    """What one program of the suite asks, one connection each."""

    def __init__(self, conn, make, hello):
        self.conn, self.make, self.hello, self.holds, self.writing = conn, make, hello, {}, threading.Lock()

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
        except Exception as e:
            a = {"error": repr(e), "token": self.holds.get(m["id"], [""])[-1]}
        try:
            self.say(id=m["id"], **a)
        except OSError:
            pass  # the suite has ended its program

    def serve(self, m):
        if m["op"] == "open":
            self.lock = self.make(m["sites"])
        elif m["op"] == "acquire":
            token = secrets.token_hex(16)
            self.holds[m["id"]] = m["key"], token
            granted = self.lock.acquire(m["key"], token, m["ttl_ms"], *(m[by] for by in ("mode", "permits") if by in m))
            if not granted:
                del self.holds[m["id"]]
                return {"busy": True, "token": token}
            if isinstance(granted, str):
                self.holds[m["id"]] = m["key"], granted
            return {"ok": True, "token": self.holds[m["id"]][1]}
        elif m["op"] == "extend" and not self.lock.extend(*self.holds[m["hold"]], m["ttl_ms"]):
            return {"lost": True}
        elif m["op"] == "release" and not self.lock.release(*self.holds.pop(m["hold"])):
            return {"lost": True}
        return {"ok": True}


def bridge(path):
    """Is the program that the suite starts: it leads to the process of the tests."""
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

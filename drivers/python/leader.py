#!/usr/bin/env python3
"""A driver for a leader election with callbacks: elected answers acquire, deposed sends the event "lost", release resigns."""
import secrets, threading, time

import template
from template import IF_OURS, redis


class Election(threading.Thread):
    """Replace this class by your library. A candidate tries until it is elected, and leads until it is deposed or resigns."""

    def __init__(self, key, lease, elected, deposed):
        super().__init__(daemon=True)
        self.key, self.lease, self.elected, self.deposed = key, lease, elected, deposed
        self.identity, self.over, self.ending = secrets.token_hex(16), threading.Event(), threading.Lock()
        self.began = self.end = None  # of the time as leader; a renewal that was answered moves the end
        self.doubt = False  # a try had no answer, so it may have been successful

    def run(self):
        while not self.over.is_set():
            began = time.monotonic()
            try:
                if redis("SET", self.key, self.identity, "NX", "PX", int(self.lease * 1000)):
                    return self.lead(began)
            except OSError:
                self.doubt = True
            self.over.wait(0.02)

    def lead(self, began):
        self.began, self.end = began, began + self.lease * 0.98
        self.elected()
        threading.Thread(target=self.renew, daemon=True).start()
        while not self.over.wait(max(self.end - time.monotonic(), 0)):
            if time.monotonic() >= self.end:
                self.stop(self.deposed)

    def renew(self):
        pause = self.lease / 3
        while not self.over.wait(pause):
            call, pause = time.monotonic(), self.lease / 3
            try:
                longer = IF_OURS % '"PEXPIRE", KEYS[1], ARGV[2]'
                if not redis("EVAL", longer, 1, self.key, self.identity, int(self.lease * 1000)):
                    return self.stop(self.deposed)
                self.end = call + self.lease * 0.98
            except OSError:
                pause = self.lease / 10

    def stop(self, tell=lambda: None):
        with self.ending:
            if not self.over.is_set():
                self.over.set()
                tell()

    def resign(self):
        """Ends the candidacy or the leadership. Returns False if it was not the leader any more."""
        self.stop()
        self.join()
        return redis("EVAL", IF_OURS % '"DEL", KEYS[1]', 1, self.key, self.identity)


def serve(m):
    if m["op"] == "acquire":
        began, elected = time.monotonic(), threading.Event()
        term = Election(m["key"], m["ttl_ms"] / 1000, elected.set, lambda: template.say(event="lost", hold=m["id"]))
        terms[m["id"]] = term
        term.start()
        if elected.wait(max(m["wait_ms"] / 1000, 0.1)):
            return {"ok": True, "token": term.identity, "tried_ms": (term.began - began) * 1000}
        if not term.resign() and not term.doubt:
            return {"busy": True, "token": term.identity}
        raise OSError("it may have been elected when it withdrew")
    if m["op"] == "release":
        return {"ok": True} if terms.pop(m["hold"]).resign() else {"lost": True}
    return plain(m)


terms, plain, template.serve = {}, template.serve, serve
template.extend = None  # the library renews by itself
template.NAME, template.CLAIMS = "leader", ["excludes", "expires", "owned", "renews", "waits"]
template.main()

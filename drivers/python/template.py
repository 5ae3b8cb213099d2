#!/usr/bin/env python3
# A driver in 30 lines, to begin with: SET NX PX, and scripts that compare the token. It needs no library. docs/DRIVERS.md is the protocol.
import json, os, secrets, socket, sys, threading
out, writing, holds, site = os.fdopen(os.dup(1), "w"), threading.Lock(), {}, {}
os.dup2(2, 1)  # whoever prints, prints to standard error: standard output is the protocol's
IF_OURS = 'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call(%s) end return 0'
def redis(*words):  # one command and its reply
    login = [("AUTH", *filter(None, (site.get("user"), site["pass"])))] if "pass" in site else []
    with socket.create_connection((site["host"], site["port"]), 2) as s, s.makefile("rwb") as f:
        for command in login + [("SELECT", site.get("db"))] * ("db" in site) + [words]:
            f.write(b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in (str(w).encode() for w in command)))
            reply = f.flush() or f.readline().decode().strip()
            if reply[:1] not in ("+", ":", "$"): raise OSError(reply or "connection closed")
    return int(reply[1:]) if reply[0] == ":" else reply != "$-1"
def serve(m):
    if m["op"] == "open": site.update(m["sites"][0])
    if m["op"] == "acquire":
        holds[m["id"]] = key, token = m["key"], secrets.token_hex(16)
        if not redis("SET", key, token, "NX", "PX", m["ttl_ms"]): return {"busy": True, "token": holds.pop(m["id"])[1]}
        return {"ok": True, "token": token}
    if m["op"] == "extend" and not redis("EVAL", IF_OURS % '"PEXPIRE", KEYS[1], ARGV[2]', 1, *holds[m["hold"]], m["ttl_ms"]): return {"lost": True}
    if m["op"] == "release" and not redis("EVAL", IF_OURS % '"DEL", KEYS[1]', 1, *holds.pop(m["hold"])): return {"lost": True}
    return {"ok": True}  # also to ping, cancel and close
def answer(m):
    try: say(id=m["id"], **serve(m))
    except Exception as e: say(id=m["id"], error=repr(e), token=holds.get(m["id"], [""])[-1])
def say(**m):
    with writing: print(json.dumps(m), file=out, flush=True)
say(hello="hammerlock-driver", protocol=1, name="template", version="1", claims=["excludes", "expires", "owned", "cleans", "busy_is_certain"])
for line in sys.stdin: threading.Thread(target=answer, args=[json.loads(line)], daemon=True).start()

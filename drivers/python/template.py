#!/usr/bin/env python3
"""A driver to begin with: fill in acquire, extend and release with calls of your library.

What stands there now is a right lock without a library: SET NX PX, and scripts that compare the token. Everything below the
three functions is the protocol of docs/DRIVERS.md, and can stay.
"""
import inspect, json, os, secrets, socket, sys, threading, traceback

NAME, VERSION = "template", "1"
CLAIMS = ["excludes", "expires", "owned", "cleans"]  # what your lock promises, and is judged by
MORE = {}  # more of the greeting, as the permits of a semaphore
IF_OURS = 'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call(%s) end return 0'
site = {}  # where the server is: host, port, and user, pass and db if they are needed


def acquire(key, token, ttl_ms):
    """Makes one try. True, or the token that your library has drawn; False if another holder has the lock."""
    return redis("SET", key, token, "NX", "PX", ttl_ms)


def extend(key, token, ttl_ms):
    """Makes the lease ttl_ms long from now on. False if the lock is not ours any more. extend = None if there is no such call."""
    return redis("EVAL", IF_OURS % '"PEXPIRE", KEYS[1], ARGV[2]', 1, key, token, ttl_ms)


def release(key, token):
    """Gives the lock back. False if it was not ours any more. What any of the three raises leaves open whether it happened."""
    return redis("EVAL", IF_OURS % '"DEL", KEYS[1]', 1, key, token)


def redis(*words, site=site):
    """Sends one command on a connection of its own, and returns its reply: a number, or whether there is one."""
    commands = [("AUTH", *filter(None, (site.get("user"), site["pass"])))] if "pass" in site else []
    commands += [("SELECT", site["db"])] if "db" in site else []
    with socket.create_connection((site["host"], site["port"]), 2) as s, s.makefile("rwb") as f:
        for command in [*commands, words]:
            words = [str(word).encode() for word in command]
            f.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words))
            f.flush()
            reply = f.readline().decode().strip()
            if reply[:1] not in ("+", ":", "$"):
                raise OSError(reply or "connection closed")
    return int(reply[1:]) if reply[0] == ":" else reply != "$-1"


def serve(m):
    """Answers a request. A hold is named by the id of its acquire."""
    if m["op"] == "open":
        site.update(m["sites"][0])
    elif m["op"] == "acquire":
        token = secrets.token_hex(16)
        holds[m["id"]] = m["key"], token
        granted = checked("acquire", acquire(m["key"], token, m["ttl_ms"], *(m[by] for by in ("mode", "permits") if by in m)))
        if not granted:
            del holds[m["id"]]
            return {"busy": True, "token": token}
        if isinstance(granted, str):
            holds[m["id"]] = m["key"], granted
        return {"ok": True, "token": holds[m["id"]][1]}
    elif m["op"] == "extend" and not (extend and checked("extend", extend(*holds[m["hold"]], m["ttl_ms"]))):
        return {"lost" if extend else "unsupported": True}
    elif m["op"] == "release" and not checked("release", release(*holds.pop(m["hold"]))):
        return {"lost": True}
    return {"ok": True}  # also to ping, cancel and close


def checked(name, result):
    """Refuses what a slip returns. None of acquire is False: clients say so of a key that is there."""
    if inspect.isawaitable(result) or result is None and name != "acquire":
        raise TypeError(f"{name} must return True or False, and returned {result!r}")
    return result.decode() if isinstance(result, bytes) else result


def answer(m):
    try:
        say(id=m["id"], **serve(m))
    except BaseException as e:  # a call without an answer is blamed on the lock
        say(id=m["id"], error=f"{e!r}, {traceback.extract_tb(e.__traceback__)[-1]}", token=holds.get(m["id"], [""])[-1])


def say(**m):
    with writing:
        print(json.dumps(m), file=out, flush=True)


holds, writing = {}, threading.Lock()
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a library prints goes to standard error: standard output is the protocol's


def main():
    say(hello="hammerlock-driver", protocol=1, name=NAME, version=VERSION, claims=CLAIMS, **MORE)
    for line in sys.stdin:
        threading.Thread(target=answer, args=[json.loads(line)], daemon=True).start()


if __name__ == "__main__":
    main()

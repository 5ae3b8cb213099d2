#!/usr/bin/env python3
"""A driver to begin with: replace the bodies of acquire, extend and release by calls of your library.

They are a correct lock without a library now: SET NX PX, and scripts that compare the token. You need not change the rest, which
is the protocol of docs/DRIVERS.md.
"""
import inspect, json, os, secrets, socket, sys, threading, traceback

NAME, VERSION = "template", "1"
CLAIMS = ["excludes", "expires", "owned", "cleans"]  # what your lock promises; the suite judges these claims
MORE = {}  # more fields of the hello message, for example {"permits": 3} for a semaphore
IF_OURS = 'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call(%s) end return 0'
site = {}  # address of the server: host and port; user, pass and db only if they are needed


def acquire(key, token, ttl_ms):
    """Makes one try. Returns True, or the token that your library has made; False = another holder has the lock."""
    return redis("SET", key, token, "NX", "PX", ttl_ms)


def extend(key, token, ttl_ms):
    """Sets the end of the lease to ttl_ms from now. Returns False if the lock was lost. Write extend = None if your library cannot extend."""
    return redis("EVAL", IF_OURS % '"PEXPIRE", KEYS[1], ARGV[2]', 1, key, token, ttl_ms)


def release(key, token):
    """Releases the lock. Returns False if it was lost before. An exception of these functions means: the call may have had an effect."""
    return redis("EVAL", IF_OURS % '"DEL", KEYS[1]', 1, key, token)


def redis(*words, site=site):
    """Sends a command on a new connection. Returns the number in the reply; for other replies, whether they are not nil."""
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
    """Answers a request. A request names a hold by the id of the request that acquired it."""
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
    return {"ok": True}  # also the answer to ping, cancel and close


def checked(name, result):
    """Refuses results that show a mistake. None as the result of acquire means False: clients return None if the key exists."""
    if inspect.isawaitable(result) or result is None and name != "acquire":
        raise TypeError(f"{name} must return True or False, and returned {result!r}")
    return result.decode() if isinstance(result, bytes) else result


def answer(m):
    try:
        say(id=m["id"], **serve(m))
    except BaseException as e:  # without an answer, the suite would blame the lock
        say(id=m["id"], error=f"{e!r}, {traceback.extract_tb(e.__traceback__)[-1]}", token=holds.get(m["id"], [""])[-1])


def say(**m):
    with writing:
        print(json.dumps(m), file=out, flush=True)


holds, writing = {}, threading.Lock()
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # libraries print to standard error: standard output is for the protocol


def main():
    say(hello="hammerlock-driver", protocol=1, name=NAME, version=VERSION, claims=CLAIMS, **MORE)
    for line in sys.stdin:
        threading.Thread(target=answer, args=[json.loads(line)], daemon=True).start()


if __name__ == "__main__":
    main()

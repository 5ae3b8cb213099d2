#!/usr/bin/env node
// Locks in the manner of strangers, written before the scenarios that try them: strangers.js NAME is a driver of one.
const net = require("net"), crypto = require("crypto"), readline = require("readline");

const site = {}, holds = new Map(), trust = ["excludes", "expires", "owned"];
const ifOurs = (call) => `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call(${call}) end return 0`;
const now = 'local t = redis.call("TIME") local now = t[1] * 1000 + math.floor(t[2] / 1000) ';
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const say = (m) => process.stdout.write(JSON.stringify(m) + "\n");

// One connection for all, which is made anew when it has failed.
class Client {
  constructor(timeout = 2000, onConnect = (c) => {
    if (site.pass) c.send("AUTH", ...[site.user, site.pass].filter(Boolean)).catch(() => {});
    if (site.db) c.send("SELECT", site.db).catch(() => {});
  }, to = site) { Object.assign(this, { timeout, onConnect, to, waiting: [] }); }
  connect() {
    const s = net.connect({ host: this.to.host, port: this.to.port }), waiting = [];
    let data = Buffer.alloc(0);
    s.on("data", (more) => {
      data = Buffer.concat([data, more]);
      for (let r; (r = parse(data, 0)); ) { data = data.subarray(r.end); const w = waiting.shift(); r.error ? w.reject(new Error(r.error)) : w.resolve(r.value); }
    });
    s.on("error", () => {}).on("close", () => { if (this.s === s) this.s = null; for (const w of waiting) w.reject(new Error("connection closed")); });
    Object.assign(this, { s, waiting });
    this.onConnect(this);
  }
  send(...words) {
    if (!this.s) this.connect();
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.s.write(`*${words.length}\r\n` + words.map((w) => `$${Buffer.byteLength(String(w))}\r\n${w}\r\n`).join(""));
    });
  }
  call(...words) {
    let timer;
    const late = new Promise((_, reject) => { timer = setTimeout(() => { reject(new Error("no answer")); }, this.timeout); });
    return Promise.race([this.send(...words), late]).finally(() => clearTimeout(timer));
  }
}

function parse(b, at) {
  const eol = b.indexOf("\r\n", at);
  if (eol < 0) return null;
  const kind = String.fromCharCode(b[at]), rest = b.toString("utf8", at + 1, eol);
  if (kind === "-") return { end: eol + 2, error: rest };
  if (kind === ":") return { end: eol + 2, value: Number(rest) };
  if (kind === "+") return { end: eol + 2, value: rest };
  if (Number(rest) < 0) return { end: eol + 2, value: null };
  if (kind === "$") { const end = eol + 4 + Number(rest); return b.length < end ? null : { end, value: b.toString("utf8", eol + 2, end - 2) }; }
  const value = [];
  let end = eol + 2;
  for (let i = 0; i < Number(rest); i++) { const r = parse(b, end); if (!r) return null; value.push(r.value); end = r.end; }
  return { end, value };
}

// A client of a cluster, which may change what it sends elsewhere.
class Cluster {
  constructor(again = (words) => words, asks = true) { Object.assign(this, { again, asks, clients: new Map(), at: new Map() }); }
  client(addr) {
    const [host, port] = addr.split(":");
    if (!this.clients.has(addr)) this.clients.set(addr, new Client(2000, undefined, { host, port }));
    return this.clients.get(addr);
  }
  async call(...words) {
    const key = words[0] === "EVAL" ? words[3] : words[1];
    let addr = this.at.get(key) || site.addrs[0], asking = false;
    for (let n = 0; n < 5; n++) {
      const c = this.client(addr);
      try {
        if (asking) c.send("ASKING").catch(() => {});
        return await c.call(...words);
      } catch (e) {
        const [, kind, to] = /^Error: (MOVED|ASK) \d+ (.*)$/.exec(String(e)) || [];
        if (!kind) throw e;
        addr = to;
        asking = this.asks && kind === "ASK";
        const known = this.at.has(key);
        if (kind === "MOVED") this.at.set(key, to);
        if (known) words = this.again(words);
      }
    }
    throw new Error("too many redirections");
  }
}

// Right: SET NX PX, compare and delete.
class Plain {
  constructor() { this.c = new Client(); }
  async acquire(key, token, ttl) { return (await this.c.call("SET", key, token, "NX", "PX", ttl)) === "OK"; }
  async extend(key, token, ttl) { return this.c.call("EVAL", ifOurs('"PEXPIRE", KEYS[1], ARGV[2]'), 1, key, token, ttl); }
  async release(key, token) { return this.c.call("EVAL", ifOurs('"DEL", KEYS[1]'), 1, key, token); }
}

const locks = {
  plain: [Plain],

  // 10. Right: the record stays when the lock is free, and says so.
  "end-field-kept": [class extends Plain {
    ours = now + 'local v = redis.call("HMGET", KEYS[1], "owner", "end") if v[1] ~= ARGV[1] or tonumber(v[2]) <= now then return 0 end ';
    async acquire(key, token, ttl) {
      return (await this.c.call("EVAL", now + `if tonumber(redis.call("HGET", KEYS[1], "end") or 0) > now then return 0 end
        redis.call("HSET", KEYS[1], "owner", ARGV[1], "end", now + ARGV[2]) redis.call("EXPIRE", KEYS[1], 3600) return 1`, 1, key, token, ttl)) === 1;
    }
    extend(key, token, ttl) { return this.c.call("EVAL", this.ours + 'redis.call("HSET", KEYS[1], "end", now + ARGV[2]) return 1', 1, key, token, ttl); }
    release(key, token) { return this.c.call("EVAL", this.ours + 'redis.call("HSET", KEYS[1], "end", 0) return 1', 1, key, token); }
  }, trust],
  // 10. Wrong: a try that is refused prolongs the key, so that who comes again and again is refused for ever after a crash.
  "refusal-prolongs": [class extends Plain {
    async acquire(key, token, ttl) {
      if (await super.acquire(key, token, ttl)) return true;
      await this.c.call("PEXPIRE", key, ttl);
      return false;
    }
  }],

  // 11. Wrong: a semaphore as a list; all permits out = the list is gone = initialised anew.
  "list-semaphore": [class extends Plain {
    async acquire(key, token, ttl) {
      return (await this.c.call("EVAL", `if redis.call("EXISTS", KEYS[1]) == 0 then for i = 1, 3 do redis.call("RPUSH", KEYS[1], i) end end
        return redis.call("LPOP", KEYS[1])`, 1, key)) !== null;
    }
    async extend() { return true; }
    async release(key) { await this.c.call("RPUSH", key, 1); return true; }
  }, ["excludes"], { permits: 3 }],
  // 11. Right: a semaphore as a sorted set by the ends of leases.
  semaphore: [class extends Plain {
    now = now + 'redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", now) ';
    async acquire(key, token, ttl, m) {
      return (await this.c.call("EVAL", this.now + `if redis.call("ZCARD", KEYS[1]) + ARGV[3] > 3 then return 0 end
        for i = 1, ARGV[3] do redis.call("ZADD", KEYS[1], now + ARGV[2], ARGV[1] .. ":" .. i) end
        redis.call("PEXPIRE", KEYS[1], math.max(ARGV[2], redis.call("PTTL", KEYS[1]))) return 1`, 1, key, token, ttl, m.permits || 1)) === 1;
    }
    extend(key, token, ttl) {
      return this.c.call("EVAL", this.now + `local n = 0 for i = 1, 3 do if redis.call("ZSCORE", KEYS[1], ARGV[1] .. ":" .. i) then
        redis.call("ZADD", KEYS[1], now + ARGV[2], ARGV[1] .. ":" .. i) n = n + 1 end end
        if n > 0 then redis.call("PEXPIRE", KEYS[1], math.max(ARGV[2], redis.call("PTTL", KEYS[1]))) end return n`, 1, key, token, ttl);
    }
    release(key, token) {
      return this.c.call("EVAL", this.now + 'return redis.call("ZREM", KEYS[1], ARGV[1] .. ":1", ARGV[1] .. ":2", ARGV[1] .. ":3")', 1, key, token);
    }
  }, trust, { permits: 3 }],

  // 4. Wrong: who comes drops the permits of those who came longer ago than his own lease (the book's semaphore).
  "semaphore-timeout": [class extends Plain {
    async acquire(key, token, ttl, m) {
      return (await this.c.call("EVAL", now + `redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", now - ARGV[2])
        if redis.call("ZCARD", KEYS[1]) + ARGV[3] > 3 then return 0 end
        for i = 1, ARGV[3] do redis.call("ZADD", KEYS[1], now, ARGV[1] .. ":" .. i) end
        redis.call("EXPIRE", KEYS[1], 60) return 1`, 1, key, token, ttl, m.permits || 1)) === 1;
    }
    extend(key, token) {
      return this.c.call("EVAL", now + `local n = 0 for i = 1, 3 do if redis.call("ZSCORE", KEYS[1], ARGV[1] .. ":" .. i) then
        redis.call("ZADD", KEYS[1], now, ARGV[1] .. ":" .. i) n = 1 end end return n`, 1, key, token);
    }
    release(key, token) { return this.c.call("ZREM", key, token + ":1", token + ":2", token + ":3"); }
  }, trust, { permits: 3 }],
  // 4. Wrong: the whole semaphore is a count that ends with the lease of the last who came.
  "semaphore-count": [class extends Plain {
    async acquire(key, token, ttl, m) {
      return (await this.c.call("EVAL", `if tonumber(redis.call("GET", KEYS[1]) or 0) + ARGV[2] > 3 then return 0 end
        redis.call("INCRBY", KEYS[1], ARGV[2]) redis.call("PEXPIRE", KEYS[1], ARGV[1]) return 1`, 1, key, ttl, m.permits || 1)) === 1 && ((this.n ??= new Map()).set(token, m.permits || 1), true);
    }
    extend(key, token, ttl) { return this.c.call("PEXPIRE", key, ttl); }
    release(key, token) {
      return this.c.call("EVAL", `if redis.call("EXISTS", KEYS[1]) == 0 then return 0 end
        if redis.call("DECRBY", KEYS[1], ARGV[1]) < 1 then redis.call("DEL", KEYS[1]) end return 1`, 1, key, this.n.get(token));
    }
  }, ["excludes", "expires"], { permits: 3 }],

  // 16. Wrong: the token is the time in milliseconds.
  "clock-token": [class extends Plain {
    async acquire(key, _, ttl) { const token = String(Date.now()); return (await super.acquire(key, token, ttl)) && token; }
  }],

  // 1. Wrong: a release that was given up is sent again later, as a plain DEL.
  "release-again": [class extends Plain {
    constructor() { super(); this.c.timeout = 60; }
    async release(key, token) {
      try { return await super.release(key, token); } catch (e) { setTimeout(() => this.c.call("DEL", key).catch(() => {}), 300); throw e; }
    }
  }],

  // 1. Wrong: tokens come from a pool of eight, which a release without an answer gives back, too.
  "token-pool": [class extends Plain {
    free = Array.from({ length: 64 }, (_, i) => `${crypto.randomUUID()}-${i}`);
    async acquire(key, _, ttl) {
      const token = this.free.pop();
      if (token && (await super.acquire(key, token, ttl).catch(() => false))) return token;
      if (token) this.free.push(token);
      return false;
    }
    async release(key, token) {
      try { return await super.release(key, token); } finally { this.free.push(token); }
    }
  }],
  // 2. Wrong: BLPOP is told milliseconds as seconds: after a crash a waiter sleeps for a thousand leases.
  "blpop-unit": [class extends Plain {
    async wait(key, token, ttl, wait) {
      for (const end = Date.now() + wait; ; ) {
        const tried = performance.now();
        if (await this.acquire(key, token, ttl)) return { tried };
        if (Date.now() >= end) return false;
        const c = new Client(3600e3);
        await Promise.race([c.call("BLPOP", key + ":w", ttl), sleep(end - Date.now())]);
        c.s.destroy();
      }
    }
    async release(key, token) {
      const done = await super.release(key, token);
      await this.c.call("EVAL", 'redis.call("DEL", KEYS[1]) redis.call("RPUSH", KEYS[1], 1) redis.call("PEXPIRE", KEYS[1], 1000)', 1, key + ":w");
      return done;
    }
  }, [...trust, "waits"]],
  // 2. Wrong: a release tells the first in line by a message; who has given up still stands in the line, and hears it.
  "line-of-channels": [class extends Plain {
    async wait(key, token, ttl, wait) {
      const end = Date.now() + wait;
      let tried = performance.now();
      if (await this.acquire(key, token, ttl)) return { tried };
      const c = new Client(3600e3), told = c.call("BLPOP", `${key}:${token}`, 60).catch(() => {}), again = () => { tried = performance.now(); return this.acquire(key, token, ttl); };
      await this.c.call("RPUSH", key + ":line", token);
      let granted = await again();
      while (!granted && Date.now() < end) {
        await Promise.race([told, sleep(end - Date.now())]);
        granted = await again();
      }
      c.s.destroy();
      return granted && { tried };
    }
    async release(key, token) {
      const done = await super.release(key, token), next = done && (await this.c.call("LPOP", key + ":line"));
      if (next) await this.c.call("EVAL", 'redis.call("RPUSH", KEYS[1], 1) redis.call("PEXPIRE", KEYS[1], 9000)', 1, `${key}:${next}`);
      return done;
    }
  }, [...trust, "waits"]],

  // 6. Wrong: an extension is a whole number of seconds, rounded down.
  "extends-seconds": [class extends Plain {
    extend(key, token, ttl) { return this.c.call("EVAL", ifOurs('"EXPIRE", KEYS[1], ARGV[2]'), 1, key, token, Math.max(1, Math.floor(ttl / 1000))); }
  }],

  // 14. Wrong: an error on release counts as released.
  "error-released": [class extends Plain {
    async release(key, token) { try { return await super.release(key, token); } catch { return true; } }
  }],

  // 15. Wrong: the database is selected at the start only; a new connection is on database 0.
  "forgets-db": [class extends Plain {
    constructor() {
      super();
      let first = true;
      this.c.onConnect = (c) => {
        if (site.pass) c.send("AUTH", ...[site.user, site.pass].filter(Boolean)).catch(() => {});
        if (site.db && first) c.send("SELECT", site.db).catch(() => {});
        first = false;
      };
    }
  }],

  // 3. Wrong: where Redis cannot be reached a mutex of the process takes its place, for three seconds.
  "local-fallback": [class extends Plain {
    local = new Map();
    away = 0;
    async acquire(key, token, ttl) {
      if (Date.now() > this.away) {
        try { return await super.acquire(key, token, ttl); } catch { this.away = Date.now() + 3000; }
      }
      const other = this.local.get(key);
      if (other && other.end > Date.now()) return false;
      this.local.set(key, { token, end: Date.now() + ttl });
      return true;
    }
    async extend(key, token, ttl) {
      const own = this.local.get(key);
      if (!own || own.token !== token) return super.extend(key, token, ttl);
      own.end = Date.now() + ttl;
      return true;
    }
    async release(key, token) {
      const own = this.local.get(key);
      if (!own || own.token !== token) return super.release(key, token);
      this.local.delete(key);
      return own.end > Date.now();
    }
  }],

  // 7. Wrong: the end of the lease is in the value, by the client's own clock, and who finds it over takes the lock.
  "wall-clock": [class extends Plain {
    async acquire(key, token, ttl) {
      const mine = `${token}|${Date.now() + ttl}`;
      return (await this.c.call("EVAL", `local v = redis.call("GET", KEYS[1])
        if v and tonumber(string.match(v, "|(.*)")) > tonumber(ARGV[2]) then return 0 end
        redis.call("SET", KEYS[1], ARGV[1], "PX", 60000) return 1`, 1, key, mine, Date.now())) === 1 && mine;
    }
    async extend() { throw new Error("it does not"); }
  }, trust],

  // 10. Right: the same by the server's clock, and the token is all of the value. The key stays for a minute.
  "server-clock": [class extends Plain {
    async acquire(key, token, ttl) {
      return (await this.c.call("EVAL", now + `local v = redis.call("GET", KEYS[1])
        if v and tonumber(string.match(v, "|(.*)")) > now then return false end
        local mine = ARGV[1] .. "|" .. (now + ARGV[2]) redis.call("SET", KEYS[1], mine, "PX", 60000) return mine`, 1, key, token, ttl)) || false;
    }
    async extend() { throw new Error("it does not"); }
    async release(key, token) {
      return (await this.c.call("EVAL", now + `if redis.call("GET", KEYS[1]) ~= ARGV[1] or tonumber(string.match(ARGV[1], "|(.*)")) <= now
        then return 0 end return redis.call("DEL", KEYS[1])`, 1, key, token)) === 1;
    }
  }, trust],

  // 8. Right: it goes where MOVED and ASK send it, and remembers MOVED.
  "cluster": [class extends Plain { constructor() { super(); this.c = new Cluster(); } }, undefined, { topologies: ["single", "cluster"] }],
  // 8. Wrong: a try that is sent elsewhere draws a new token, and its holder knows the first.
  "moved-token": [class extends Plain {
    constructor() {
      super();
      this.c = new Cluster((words) => (words[0] === "SET" ? ["SET", words[1], crypto.randomUUID(), ...words.slice(3)] : words));
    }
  }, undefined, { topologies: ["single", "cluster"] }],
  // 8. Wrong: what is to be asked elsewhere once is sent there without saying so, again and again, and then taken for done.
  "no-asking": [class extends Plain {
    constructor() { super(); this.c = new Cluster(undefined, false); }
    async acquire(key, token, ttl) { return this.tries(() => super.acquire(key, token, ttl)); }
    async release(key, token) { return this.tries(() => super.release(key, token)); }
    async tries(call) { try { return await call(); } catch (e) { if (/redirections/.test(e)) return true; throw e; } }
  }, undefined, { topologies: ["single", "cluster"] }],

  // 13. Wrong: who has waited for ten seconds takes the lock: its holder "must be dead".
  "takes-after-ten": [class extends Plain {
    since = new Map();
    async acquire(key, token, ttl, m) {
      const at = m.worker + key;
      if (await super.acquire(key, token, ttl)) { this.since.delete(at); return true; }
      if (!this.since.has(at)) this.since.set(at, Date.now());
      if (Date.now() - this.since.get(at) < 10000) return false;
      this.since.delete(at);
      return (await this.c.call("SET", key, token, "PX", ttl)) === "OK";
    }
  }],

  // 5. Wrong: a release removes all keys that begin with the lock's name, as its waiters' lists do.
  "prefix-del": [class extends Plain {
    async release(key, token) {
      return this.c.call("EVAL", ifOurs('"DEL", KEYS[1]').replace("return redis.call", `for _, k in ipairs(redis.call("KEYS", KEYS[1] .. "*")) do
        redis.call("DEL", k) end return 1 + 0 * redis.call`), 1, key, token);
    }
  }],

  // 11. Wrong: writers look for readers and then write, in two commands.
  "rw-two-steps": [class extends Plain {
    async acquire(key, token, ttl, m) {
      if (m.mode !== "read") return (await this.c.call("ZCARD", key + ":r")) === 0 && super.acquire(key, token, ttl);
      if (await this.c.call("EXISTS", key)) return false;
      await this.c.call("ZADD", key + ":r", Date.now() + ttl, token);
      await this.c.call("PEXPIRE", key + ":r", ttl);
      return true;
    }
    async release(key, token) { return (await this.c.call("ZREM", key + ":r", token)) || super.release(key, token); }
  }, [...trust, "readers"]],

  // 9. Right: who counts the tick first has it.
  "once-count": [class extends Plain {
    async acquire(key, token, ttl) {
      return (await this.c.call("EVAL", 'local n = redis.call("INCR", KEYS[1]) if n == 1 then redis.call("PEXPIRE", KEYS[1], ARGV[1]) end return n', 1, key, ttl)) === 1;
    }
    async release() { return true; }
  }, ["excludes", "expires", "once"]],
  // 9. Wrong: looks whether the tick has been run, and notes that it is running, in two steps.
  "last-run": [class extends Plain {
    async acquire(key, token, ttl) {
      if (await this.c.call("GET", key)) return false;
      await this.c.call("SET", key, Date.now(), "PX", ttl);
      return true;
    }
    async release() { return true; }
  }, ["excludes", "expires", "once"]],
  // 9. Wrong: the key lives for a fixed time that is "longer than any job", and shorter than clocks differ.
  "short-tick": [class extends Plain {
    async acquire(key, token) { return super.acquire(key, token, 150); }
    async release() { return true; }
  }, ["excludes", "expires", "once"]],
  // 8. Wrong: who gets no answer to a SET asks on another connection, and takes "not there" for a refusal.
  "asks-by-get": [class extends Plain {
    constructor() { super(); this.c.timeout = 60; this.reads = new Client(); }
    async acquire(key, token, ttl) {
      try { return await super.acquire(key, token, ttl); } catch (e) {
        if (String(e).includes("no answer") && (await this.reads.call("GET", key)) !== token) return false;
        throw e;
      }
    }
  }],
  // 8. Right: who gets no answer says so, and asks on another connection what to say of a release.
  "says-no-answer": [class extends Plain {
    constructor() { super(); this.c.timeout = 60; this.reads = new Client(); }
    async release(key, token) {
      try { return await super.release(key, token); } catch (e) {
        if ((await this.reads.call("GET", key)) === token) await sleep(100);
        throw e;
      }
    }
  }],

  // trigger.dev 3428. Right: a leader renews its lease, and is deposed in time if that fails.
  leads: [class extends Plain {
    held = new Set();
    deposes = true;
    every = 0.25;
    async acquire(key, token, ttl, m) {
      const call = performance.now();
      if (!(await super.acquire(key, token, ttl))) return false;
      this.held.add(token);
      this.lead(key, token, ttl, m.id, call);
      return true;
    }
    async lead(key, token, ttl, id, call) {
      const depose = () => { if (this.deposes && this.held.delete(token)) say({ event: "lost", hold: id }); };
      let end, timer;
      const until = (from) => { clearTimeout(timer); end = from + ttl * 0.97; timer = setTimeout(depose, end - performance.now()); };
      until(call);
      while (await sleep(ttl * this.every), this.held.has(token)) {
        const call = performance.now();
        try {
          if (call > end) throw new Error("cannot extend an already-expired lock");
          if (!(await this.extend(key, token, ttl))) depose();
          else until(call);
        } catch (e) { console.error(String(e)); }
      }
      clearTimeout(timer);
    }
    release(key, token) { this.held.delete(token); return super.release(key, token); }
  }, [...trust, "renews"]],
  // spring-integration 10546. Wrong: a release names the lock and its channel as keys, which have two slots of a cluster.
  "release-two-slots": [class extends Plain {
    constructor() { super(); this.c = new Cluster(); }
    release(key, token) { return this.c.call("EVAL", ifOurs('"DEL", KEYS[1]').replace("then", 'then redis.call("PUBLISH", KEYS[2], ARGV[1])'), 2, key, "channel:" + key, token); }
  }, undefined, { topologies: ["single", "cluster"] }],
  // spring-integration 10546. Right: the channel is an argument.
  "release-one-slot": [class extends Plain {
    constructor() { super(); this.c = new Cluster(); }
    release(key, token) { return this.c.call("EVAL", ifOurs('"DEL", KEYS[1]').replace("then", 'then redis.call("PUBLISH", ARGV[2], ARGV[1])'), 1, key, token, "channel:" + key); }
  }, undefined, { topologies: ["single", "cluster"] }],
};

// trigger.dev 3428. Wrong: an extension that fails is only logged; it leads in its own eyes for ever.
locks["leads-on"] = [class extends locks.leads[0] { deposes = false; }, locks.leads[1]];
// 18. Wrong: a renewal is for whole seconds, rounded down, and the next one comes when three fifths of the lease are over.
locks["leads-whole-seconds"] = [class extends locks.leads[0] {
  every = 0.6;
  extend(key, token, ttl) { return this.c.call("EVAL", ifOurs('"EXPIRE", KEYS[1], ARGV[2]'), 1, key, token, Math.floor(ttl / 1000)); }
}, locks.leads[1]];

// 18. Wrong: when the next renewal is due and when the term is over are times of the wall clock: who sets it back has no renewals.
locks["leads-by-wall-clock"] = [class extends locks.leads[0] {
  async lead(key, token, ttl, id) {
    for (let next = Date.now() + ttl / 4, end = Date.now() + ttl * 0.97; await sleep(5), this.held.has(token); ) {
      if (Date.now() > end && this.held.delete(token)) return say({ event: "lost", hold: id });
      if (Date.now() < next) continue;
      const began = Date.now();
      next = began + ttl / 4;
      this.extend(key, token, ttl).then((ours) => { end = ours ? Math.max(end, began + ttl * 0.97) : 0; }, () => {});
    }
  }
}, locks.leads[1]];

async function serve(m) {
  if (m.op === "open") { Object.assign(site, m.sites[0]); lock = new locks[name][0](); }
  if (m.op === "extend" && !(await lock.extend(...holds.get(m.hold), m.ttl_ms))) return { lost: true };
  if (m.op === "release") {
    const hold = holds.get(m.hold);
    holds.delete(m.hold);
    if (!(await lock.release(...hold))) return { lost: true };
  }
  if (m.op !== "acquire") return { ok: true };
  const token = crypto.randomBytes(16).toString("hex"), began = performance.now();
  holds.set(m.id, [m.key, token]);
  const granted = m.wait_ms && lock.wait ? await lock.wait(m.key, token, m.ttl_ms, m.wait_ms) : await lock.acquire(m.key, token, m.ttl_ms, m);
  if (typeof granted === "string") holds.set(m.id, [m.key, granted]);
  if (granted) return { ok: true, token: holds.get(m.id)[1], ...(granted.tried && { tried_ms: granted.tried - began }) };
  holds.delete(m.id);
  return { busy: true, token };
}

const name = process.argv[2];
let lock;
if (!locks[name]) { console.error(`strangers.js NAME, one of ${Object.keys(locks).join(", ")}`); process.exit(2); }
say({ hello: "hammerlock-driver", protocol: 1, name, version: "1", claims: locks[name][1] || [...trust, "cleans"], ...locks[name][2] });
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const m = JSON.parse(line);
  serve(m).then((a) => say({ id: m.id, ...a }), (e) => say({ id: m.id, error: String(e), token: (holds.get(m.id) || ["", ""])[1] }));
}).on("close", () => process.exit(0));

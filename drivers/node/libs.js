// The code for each library: how to acquire its lock, and which errors mean "busy" or "lost". Only these two are certain; after any other
// error the call may have had an effect. Clients do not repeat commands. They give up after a second, or after a tenth of the lease if
// there are several sites, because redlock waits for all of them.
const path = require("path");
const version = folder => require(path.join(folder, "package.json")).version;
const plain = ["excludes", "expires", "owned", "cleans"];

let clients = []; // ioredis clients, one for each site
async function open(sites, lease, Redis = require("ioredis")) {
  const patience = sites.length > 1 && lease ? lease / 10 : 1000;
  clients = sites.map(s => new Redis({
    host: s.host, port: s.port, username: s.user, password: s.pass, db: s.db, maxRetriesPerRequest: 0, commandTimeout: patience, connectTimeout: 1000, retryStrategy: () => 50,
  }));
  for (const c of clients) c.on("error", () => {}); // the calls report their errors
  for (const c of clients) {
    for (let tries = 100; ; tries--) { // the first command also waits for the connection
      try { await c.ping(); break; } catch (e) { if (!tries) throw e; }
    }
  }
  return clients;
}

// npm redlock 4: a LockError may mean busy or unreachable. If it means unreachable, there is also an event clientError. Each hold has its
// own instance of the library, so that its events are not mixed up with those of other holds.
function redlock4(folder) {
  const failures = [], r = new (require(folder))(clients, { retryCount: 0 });
  r.on("clientError", e => failures.push(e.message));
  return { r, failures };
}

async function redlock4Call(failures, certain, ttl, call) {
  failures.length = 0;
  const began = Date.now();
  try { return { ok: true, ...await call() }; } catch (e) {
    // The library may have decided by its own clock. Then the servers may still have the lock, or may have granted and released it.
    const asked = !/already expired/.test(e.message) && Date.now() - began < ttl / 2;
    return e.name === "LockError" && asked && failures.length === 0 ? { [certain]: true } : { error: `${e.name}: ${e.message} ${failures}` };
  }
}

const redlock = folder => ({
  version: version(folder), claims: plain, topologies: ["single", "redlock"], open,
  async acquire(key, ttl) {
    const { r, failures } = redlock4(folder), began = Date.now();
    return redlock4Call(failures, "busy", ttl, async () => {
      const lock = await r.lock(key, ttl);
      return { token: lock.value, valid_ms: Math.max(lock.expiration - began, 0), hold: { lock, failures } };
    });
  },
  async extend(hold, ttl) {
    const began = Date.now();
    return redlock4Call(hold.failures, "lost", ttl, async () => {
      hold.lock = await hold.lock.extend(ttl);
      return { valid_ms: Math.max(hold.lock.expiration - began, 0) };
    });
  },
  async release(hold) { return redlock4Call(hold.failures, "lost", Infinity, async () => { await hold.lock.unlock(); }); },
});

// redlock 5 and @sesamecare-oss/redlock: an ExecutionError has the votes of the sites. The answer is certain if each vote against it is a
// ResourceLockedError: the resource is locked by another holder, or not ours any more.
async function sesameCall(certain, call) {
  try { return { ok: true, ...await call() }; } catch (e) {
    const votes = (await Promise.all(e.attempts || [])).flatMap(a => [...a.votesAgainst.values()]);
    const sure = e.name === "ExecutionError" && votes.length > 0 && votes.every(v => v.name === "ResourceLockedError");
    return sure ? { [certain]: true } : { error: `${e.name}: ${e.message} ${votes.map(v => v.message)}` };
  }
}

let sesameLock;
const sesamecare = folder => ({
  version: version(folder), claims: plain, topologies: ["single", "redlock"],
  async open(sites, lease) {
    await open(sites, lease);
    const { default: old, Redlock = old } = require(folder);
    sesameLock = new Redlock(clients, { retryCount: 0 });
    sesameLock.on("error", () => {}); // the votes contain the errors
  },
  async acquire(key, ttl) {
    const began = Date.now();
    return sesameCall("busy", async () => {
      const lock = await sesameLock.acquire([].concat(key), ttl);
      return { token: lock.value, valid_ms: Math.max(lock.expiration - began, 0), hold: { lock } };
    });
  },
  async extend(hold, ttl) {
    const began = Date.now();
    return sesameCall("lost", async () => {
      hold.lock = await hold.lock.extend(ttl);
      return { valid_ms: Math.max(hold.lock.expiration - began, 0) };
    });
  },
  async release(hold) { return sesameCall("lost", async () => { await hold.lock.release(); }); },
});

// redis-semaphore: release does not tell whether the lock was still ours, so the driver does not claim "owned". By default the library
// renews leases, and calls onLockLost after a loss.
const semaphore = refresh => folder => ({
  version: version(folder), keys: "mutex:{key}", topologies: ["single"], open,
  claims: ["excludes", "expires", "cleans"].concat(refresh ? ["renews"] : []),
  async acquire(key, ttl, lost) {
    const { Mutex } = require(folder);
    const options = { lockTimeout: ttl, acquireAttemptsLimit: 1, retryInterval: 1, onLockLost: e => lost(e.message) };
    if (!refresh) options.refreshInterval = 0;
    const mutex = new Mutex(clients[0], key, options);
    return await mutex.tryAcquire() ? { ok: true, token: mutex.identifier, hold: mutex } : { busy: true };
  },
  async extend() { return { unsupported: true }; },
  async release(mutex) { await mutex.release(); return { ok: true }; },
});

// redis-lock: the library itself waits, and repeats its tries for ever, even after errors. The client "once" allows only one try.
// A release deletes the key, unless the lease has ended by the library's own clock.
async function nodeRedis(s, { createClient } = require("redis")) {
  const client = createClient({ socket: { host: s.host, port: s.port, reconnectStrategy: () => 50 }, username: s.user, password: s.pass, database: s.db });
  client.on("error", () => {});
  await client.connect();
  return client;
}

const callbackRedis = (s, { createClient }) => {
  const client = createClient({ host: s.host, port: s.port, user: s.user, password: s.pass, db: s.db, retry_strategy: () => 50 });
  client.on("error", () => {});
  return client;
};

let lockClient;
const redisLock = folder => ({
  version: version(folder), keys: "lock.{key}", claims: plain, topologies: ["single"],
  async open([s]) { lockClient = await nodeRedis(s); },
  acquire(key, ttl) {
    return new Promise(answer => {
      let tried = false, token;
      const once = {
        v4: {},
        async set(name, value, options) {
          if (tried) return new Promise(() => {}); // a second try never gets an answer
          tried = true;
          token = String(value);
          try {
            const reply = await lockClient.set(name, token, options);
            if (reply === null) answer({ busy: true });
            return reply;
          } catch (e) { answer({ error: `${e.name}: ${e.message}` }); throw e; }
        },
        del: name => lockClient.del(name),
      };
      require(folder)(once)(key, ttl).then(release => answer({ ok: true, token, hold: release }));
    });
  },
  async extend() { return { unsupported: true }; },
  async release(release) {
    const deleted = await release();
    if (deleted === undefined) return { error: "its lease is over by the library's own clock: nothing was sent" };
    return deleted === 1 ? { ok: true } : { lost: true };
  },
});

const installed = name => path.join(__dirname, "node_modules", name);
// several is for libraries that accept an array of keys instead of one key.
const several = lib => ({ ...lib, claims: [...lib.claims, "sets", "crosses"] });

const byName = {
  redlock: [redlock, "redlock"], sesamecare: [sesamecare, "@sesamecare-oss/redlock"], "redis-semaphore": [semaphore(false), "redis-semaphore"],
  "redis-semaphore-refresh": [semaphore(true), "redis-semaphore"], "redis-lock": [redisLock, "redis-lock"],
};
const find = name => byName[name] && byName[name][0](installed(byName[name][1]));

module.exports = { find, names: Object.keys(byName), open, nodeRedis, callbackRedis, version, plain, redlock, sesamecare, semaphore, redisLock, several };

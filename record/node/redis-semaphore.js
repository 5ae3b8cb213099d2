// The Mutex of redis-semaphore with its defaults: it renews its lease. It only accepts clients of the ioredis that it loads itself.
// Releases before 5 have no tryAcquire; their acquire tries until acquireTimeout is over.
module.exports = (folder, libs) => {
  const now = libs.semaphore(true)(folder), { Mutex } = require(folder);
  return {
    ...now, open: (sites, lease) => libs.open(sites, lease, require(require.resolve("ioredis", { paths: [folder] }))).then(all => { client = all[0]; }),
    acquire: Mutex.prototype.tryAcquire ? now.acquire : async (key, ttl, lost) => {
      const hold = new Mutex(client, key, { lockTimeout: ttl, acquireTimeout: 1, retryInterval: 1, onLockLost: e => lost(e.message) });
      try { await hold.acquire(); } catch (e) {
        if (/^Acquire mutex .* timeout$/.test(e.message)) return { busy: true };
        throw e;
      }
      return { ok: true, token: hold.identifier, hold };
    },
  };
};
let client;

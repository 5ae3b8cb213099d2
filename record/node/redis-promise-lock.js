// redis-promise-lock, with the client of npm redis 4. It counts leases in whole seconds.
module.exports = (folder, libs) => {
  let lock;
  return {
    claims: ["excludes", "expires", "cleans"], topologies: ["single"], keys: "redis-promise-lock:{key}", lingers_ms: 999,
    async open([s]) { lock = new (require(folder).Lock)(await libs.nodeRedis(s)); },
    async acquire(key, ttl) {
      const ok = await lock.acquireLock(key, { retryLimit: 1, retryDelay: 1, ttl: Math.ceil(ttl / 1000) }); // that is two tries
      return ok ? { ok, hold: key } : { busy: true };
    },
    async extend() { return { unsupported: true }; },
    async release(key) { await lock.releaseLock(key); return { ok: true }; },
  };
};

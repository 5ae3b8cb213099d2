// node-redisson with a lease of its own: without one its watchdog renews every hold for 30 s. A lock object a hold.
module.exports = (folder, libs) => {
  let redisson;
  return {
    claims: ["excludes", "expires", "owned", "cleans"], topologies: ["single"],
    async open([s]) {
      const { Redisson } = require(folder);
      redisson = new Redisson({ redis: { options: { host: s.host, port: s.port, username: s.user, password: s.pass, db: s.db, commandTimeout: 1000, maxRetriesPerRequest: 0, retryStrategy: () => 50 } } });
      redisson.redis.on("error", () => {});
      redisson.commandExecutor.subscribeRedis.on("error", () => {});
    },
    async acquire(key, ttl) {
      const hold = redisson.getLock(key);
      return await hold.tryLock(0n, BigInt(ttl)) ? { ok: true, hold } : { busy: true };
    },
    async extend() { return { unsupported: true }; },
    async release(hold) {
      try { await hold.unlock(); return { ok: true }; } catch (e) {
        if (/not locked by current client/.test(e.message)) return { lost: true };
        throw e;
      }
    },
  };
};

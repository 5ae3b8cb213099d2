// node-redisson with a given lease; without one, its watchdog renews each hold for 30 s. Each hold has its own lock object.
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

// murlock: runWithLock holds the lock while its function runs. The service is used without the rest of NestJS.
require(require("path").join(__dirname, "node_modules", "reflect-metadata"));
module.exports = (folder, libs) => {
  const { MurLockService } = require(folder), path = require("path");
  const { AsyncStorageManager } = require(path.join(folder, "dist/als/als-manager")), { AsyncStorageService } = require(path.join(folder, "dist/als/als.service"));
  let service;
  return {
    claims: ["excludes", "expires", "owned", "cleans"], topologies: ["single"],
    async open([s]) {
      const { AsyncLocalStorage } = require("async_hooks");
      const als = new AsyncStorageService(new AsyncStorageManager(new AsyncLocalStorage()));
      service = new MurLockService({
        redisOptions: { socket: { host: s.host, port: s.port }, username: s.user, password: s.pass, database: s.db },
        wait: 1, maxAttempts: 1, logLevel: "error", ignoreUnlockFail: false,
      }, als);
      await service.onModuleInit();
    },
    acquire(key, ttl) {
      return new Promise((answer, fail) => {
        const hold = {};
        const inside = () => new Promise(end => { hold.end = end; answer({ ok: true, hold }); });
        hold.ended = service.runWithLock(key, ttl, inside);
        hold.ended.catch(e => /Failed to obtain lock .* after 1 attempts/.test(e.message) ? answer({ busy: true }) : fail(e));
      });
    },
    async extend() { return { unsupported: true }; },
    async release(hold) {
      hold.end();
      try { await hold.ended; return { ok: true }; } catch (e) {
        return / key \S+: Failed to release lock for key \S+$/.test(e.message) ? { lost: true } : { error: e.message };
      }
    },
  };
};

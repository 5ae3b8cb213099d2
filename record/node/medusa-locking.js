// @medusajs/locking-redis with several keys. The folder medusa-utils-VERSION beside it has what it needs of @medusajs/framework/utils.
const fs = require("fs"), Module = require("module"), path = require("path"), { randomUUID } = require("crypto");

module.exports = (folder, libs) => {
  const beside = path.dirname(folder), utils = path.join(beside, fs.readdirSync(beside).find(n => n.startsWith("medusa-utils-")), "dist", "common");
  const load = Module._load;
  Module._load = (name, ...rest) => name === "@medusajs/framework/utils"
    ? { ...load(path.join(utils, "promise-all.js")), ...load(path.join(utils, "errors.js")) } : load(name, ...rest);
  const { RedisLockingProvider } = require(path.join(folder, "dist", "services", "redis-lock.js"));
  let locking;
  return {
    version: libs.version(folder), keys: "medusa_lock:{key}", topologies: ["single"], lingers_ms: 999, // leases are whole seconds
    claims: ["excludes", "expires", "owned", "cleans", "sets", "crosses"],
    execute: (...args) => locking.execute(...args),
    async open(sites, lease) { [locking] = (await libs.open(sites, lease)).map(redisClient => new RedisLockingProvider({ redisClient }, {})); },
    async acquire(keys, ttl) {
      const ownerId = randomUUID();
      try {
        await locking.acquire(keys, { ownerId, expire: Math.ceil(ttl / 1000) });
        return { ok: true, token: ownerId, hold: { keys, ownerId } };
      } catch (e) {
        return /Failed to acquire lock/.test(e.message) ? { busy: true, token: ownerId } : { error: e.message, token: ownerId, hold: { keys, ownerId } };
      }
    },
    async extend() { return { unsupported: true }; },
    async release({ keys, ownerId }) { return await locking.release(keys, { ownerId }) ? { ok: true } : { lost: true }; },
  };
};

// redlock-universal with ioredis: each key has a lock object. With several servers this is a RedLock.
module.exports = (folder, libs) => {
  let adapters;
  const lib = require(require("path").join(folder, "dist/index.cjs"));
  return {
    claims: libs.plain, topologies: ["single", "redlock"],
    async open(sites, lease) { adapters = (await libs.open(sites, lease)).map(c => new lib.IoredisAdapter(c)); },
    async acquire(key, ttl) {
      const options = { key, ttl, retryAttempts: 0, retryDelay: 1 };
      const lock = adapters.length > 1 ? lib.createRedlock({ ...options, adapters }) : lib.createLock({ ...options, adapter: adapters[0] });
      try {
        const handle = await lock.acquire();
        return { ok: true, token: handle.value, hold: { lock, handle } };
      } catch (e) {
        if (adapters.length === 1 && / is already held$/.test(e.message)) return { busy: true };
        throw e;
      }
    },
    async extend({ lock, handle }, ttl) { return await lock.extend(handle, ttl) ? { ok: true } : { lost: true }; },
    async release({ lock, handle }) { return await lock.release(handle) ? { ok: true } : { lost: true }; },
  };
};

// Verrou (of AdonisJS), which is an ES module.
module.exports = (folder, libs) => {
  let verrou;
  const own = async work => {
    try { await work(); return { ok: true }; } catch (e) {
      if (e.code === "E_LOCK_NOT_OWNED") return { lost: true };
      throw e;
    }
  };
  return {
    claims: libs.plain, topologies: ["single"],
    async open(sites, lease) {
      const [connection] = await libs.open(sites, lease);
      const { Verrou } = await import(`${folder}/build/index.js`), { redisStore } = await import(`${folder}/build/src/drivers/redis.js`);
      verrou = new Verrou({ default: "redis", stores: { redis: { driver: redisStore({ connection }) } } });
    },
    async acquire(key, ttl) {
      const hold = verrou.createLock(key, ttl);
      return await hold.acquireImmediately() ? { ok: true, token: hold.getOwner(), hold } : { busy: true };
    },
    extend: (hold, ttl) => own(() => hold.extend(ttl)),
    release: hold => own(() => hold.release()),
  };
};

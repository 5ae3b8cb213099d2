// ioredfour: the owner is identified by an index that counts up.
module.exports = (folder, libs) => {
  let lock;
  return {
    claims: ["excludes", "expires", "owned", "fences"], topologies: ["single"], keys: "lock:{key}",
    async open(sites, lease) { lock = new (require(folder))({ redis: (await libs.open(sites, lease))[0], namespace: "lock" }); },
    async acquire(key, ttl) {
      const hold = await lock.acquireLock(key, ttl);
      return hold.success ? { ok: true, fence: hold.index, hold } : { busy: true };
    },
    async extend(hold, ttl) {
      const extended = await lock.extendLock(hold, ttl);
      return extended.success ? { ok: true } : { lost: true };
    },
    async release(hold) {
      const { success, result } = await lock.releaseLock(hold);
      return success && result !== "expired" ? { ok: true } : { lost: true };
    },
  };
};

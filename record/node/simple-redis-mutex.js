// simple-redis-mutex 2 and later, with the client of npm redis: tryLock makes one try. A release returns no result, nor does an extension.
module.exports = (folder, libs) => {
  let client;
  return {
    claims: ["excludes", "expires", "cleans"].concat(+libs.version(folder)[0] >= 3 ? ["fences"] : []), topologies: ["single"],
    keys: "@simple-redis-mutex:lock-{key}",
    async open([s]) { client = await libs.nodeRedis(s); },
    async acquire(key, ttl) {
      const [ok, release] = await require(folder).tryLock(client, key, { timeout: ttl });
      return ok ? { ok, fence: release.fencingToken, hold: release } : { busy: true };
    },
    async extend() { return { unsupported: true }; },
    async release(release) { await release(); return { ok: true }; },
  };
};

// simple-redis-mutex 1, with ioredis. The library itself waits: it tries every retryTimeMillis until failAfterMillis have passed. When it
// gives up, a try may still be in progress, so the outcome is unknown.
module.exports = (folder, libs) => {
  let client;
  return {
    claims: ["excludes", "expires", "cleans", "waits", "busy_may_lie"],
    topologies: ["single"], keys: "@simple-redis-mutex:lock-{key}",
    async open(sites, lease) { [client] = await libs.open(sites, lease); },
    async acquire(key, ttl, lost, wait) {
      try {
        const release = await require(folder).lock(client, key, { timeoutMillis: ttl, failAfterMillis: Math.max(wait, 50) });
        return { ok: true, hold: release };
      } catch (e) {
        if (/could not be acquire/.test(e.message)) return { busy: true };
        throw e;
      }
    },
    async extend() { return { unsupported: true }; },
    async release(release) { await release(); return { ok: true }; },
  };
};

// ioredis-lock and its successor @microfleet/ioredis-lock.
module.exports = (folder, libs) => {
  let client;
  const call = async (no, certain, work) => {
    try { await work(); return { ok: true }; } catch (e) {
      if (certain.test(e.message)) return { [no]: true };
      throw e;
    }
  };
  return {
    claims: libs.plain, topologies: ["single"],
    use(given) { client = given; },
    async open(sites, lease) { [client] = await libs.open(sites, lease); },
    async acquire(key, ttl) {
      const { createLock } = require(folder), hold = createLock(client, { timeout: ttl, retries: 0 });
      return { ...await call("busy", /^Could not acquire lock on/, () => hold.acquire(key)), hold };
    },
    extend: (hold, ttl) => call("lost", /ha[sd] expired$/, () => hold.extend(ttl)),
    release: hold => call("lost", /ha[sd] expired$/, () => hold.release()),
  };
};

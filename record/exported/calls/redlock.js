// npm redlock, releases 3 to 5: acquire and release are lock and unlock of the older ones.
const Redis = require("ioredis"), redlock = require(process.env.LIBRARY || "redlock"), Redlock = redlock.default || redlock;

async function connect(port) {
  const client = new Redis({ port, maxRetriesPerRequest: 0, retryStrategy: () => 50 });
  client.on("error", () => {});
  const redlock = new Redlock([client], { retryCount: 0 });
  redlock.on("error", () => {});
  let lock;
  return {
    async acquire(key, lease) { return lock = await (redlock.lock ? redlock.lock(key, lease) : redlock.acquire([key], lease)); },
    async extend(lease) { return lock = await lock.extend(lease); },
    async release() { await (redlock.unlock ? lock.unlock() : lock.release()); return true; },
  };
}

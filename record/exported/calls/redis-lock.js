// npm redis-lock on npm redis. It waits for the lock as long as it takes: the client that it is given lets it try once.
const { createClient } = require("redis"), redisLock = require(process.env.LIBRARY || "redis-lock");

async function connect(port) {
  const client = createClient({ socket: { port, reconnectStrategy: () => 50 } });
  client.on("error", () => {});
  await client.connect();
  let release;
  return {
    acquire(key, lease) {
      return new Promise((answer, fail) => {
        const once = { v4: {}, del: name => client.del(name), set: (...all) => {
          once.set = () => new Promise(() => {});
          return client.set(...all).then(reply => { if (!reply) answer(false); return reply; }, fail);
        } };
        redisLock(once)(key, lease).then(done => { release = done; answer(true); });
      });
    },
    async extend() { throw new Error("it cannot extend"); },
    async release() { return await release() === 1; },
  };
}

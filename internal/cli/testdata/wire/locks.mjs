// Workers add to a number under a lock of npm: redlock, redis-semaphore's Mutex or its Semaphore of three. NODE_PATH has the packages.
import { createRequire } from "node:module";
const require = createRequire(process.env.NODE_PATH + "/");
const Redis = require("ioredis");
const [how, workers, visits] = [process.argv[2], +process.argv[3], +process.argv[4]];
const urls = (process.env.REDIS_URLS || process.env.REDIS_URL).split(",");
const clients = urls.map((u) => new Redis(u));
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
let granted = 0, released = 0;

async function locker(client) {
  if (how === "redlock") {
    const { default: Redlock } = await import(process.env.NODE_PATH + "/redlock/dist/esm/index.js").then((m) => (m.default.default ? m.default : m));
    const redlock = new Redlock(clients, { retryCount: 2000, retryDelay: 20, retryJitter: 18 });
    return async (visit) => {
      const lock = await redlock.acquire(["lock:page"], 1500);
      granted++;
      await visit();
      await lock.release();
      released++;
    };
  }
  const { Mutex, Semaphore } = require("redis-semaphore");
  const options = { lockTimeout: 1500, acquireTimeout: 60000, retryInterval: 5 };
  return async (visit) => {
    const m = how === "mutex" ? new Mutex(client, "page", options) : new Semaphore(client, "page", 3, options);
    await m.acquire();
    granted++;
    await visit();
    await m.release();
    released++;
  };
}

async function work() {
  const locked = await locker(clients[0]);
  for (let i = 0; i < visits; i++) {
    await locked(async () => {
      const n = +(await clients[0].get("views:page")) || 0;
      await sleep(2);
      await clients[0].set("views:page", n + 1);
    });
  }
}
await Promise.all(Array.from({ length: workers }, work));
console.error("granted", granted, "released", released, "views", await clients[0].get("views:page"));
for (const c of clients) c.disconnect();

#!/usr/bin/env node
// Measures a library without a driver: direct.js NAME HOST PORT PASSWORD SECONDS WORKERS. It prints how often the workers have acquired
// and released a lock; each worker has its own key. "make drivers-perf" compares this with the driver.
const [name, host, port, pass, seconds, workers] = process.argv.slice(2);
const lib = require("./libs").find(name);

async function worker(i, end) {
  let count = 0;
  while (Date.now() < end) {
    const { ok, hold } = await lib.acquire("direct" + i, 5000, () => {}, 0);
    if (ok && (await lib.release(hold)).ok) count++;
  }
  return count;
}

lib.open([{ host, port: +port, pass }]).then(async () => {
  const end = Date.now() + 1000 * seconds;
  const counts = await Promise.all(Array.from({ length: +workers }, (_, i) => worker(i, end)));
  process.stdout.write(counts.reduce((a, b) => a + b) + "\n", () => process.exit(0));
});

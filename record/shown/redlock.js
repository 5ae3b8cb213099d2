#!/usr/bin/env node
// A failed extension of npm redlock 3 and 4 gives the lock back, although the lease that the holder had before runs on:
//   node record/shown/redlock.js FOLDER-OF-REDLOCK PORT
// It exits with 1 if the key is gone while the former lease runs. Another client pauses the server's writes for 600 ms, so that the
// extension has no answer within the client's commandTimeout; what was sent is executed afterwards.
const path = require("path"), Redis = require(require.resolve("ioredis", { paths: [path.join(__dirname, "../../drivers/node")] }));
const [, , folder, port] = process.argv, pause = (ms) => new Promise((done) => setTimeout(done, ms));

(async () => {
  const client = new Redis({ port, commandTimeout: 150 }), other = new Redis({ port });
  const lib = require(path.resolve(folder)), redlock = new (lib.default || lib)([client], { retryCount: 0 });
  for (const event of ["error", "clientError"]) redlock.on(event, () => {});
  const acquire = () => (redlock.acquire ? redlock.acquire(["shown"], 3000) : redlock.lock("shown", 3000));
  await (await (await acquire()).extend(3000))[redlock.lock ? "unlock" : "release"](); // the server knows the scripts from now on
  const lock = await acquire(), until = lock.expiration;
  await other.call("CLIENT", "PAUSE", "600", "WRITE");
  const said = await lock.extend(3000).then(() => "done", (e) => e.name);
  await pause(900);
  const gone = !(await other.get("shown")), left = until - Date.now();
  console.log(`extend: ${said}; the former lease runs for ${left} ms more; the key is ${gone ? "gone" : "there"}`);
  process.exit(gone && left > 0 ? 1 : 0);
})();

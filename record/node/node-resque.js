// node-resque: the lock by which one of several schedulers leads. A scheduler tries for it again and again, which also renews it; each hold
// is a scheduler of a namespace of its own. Schedulers share a client, as an option allows; it is put in without their connect, which
// writes keys for a test. Leases are whole seconds.
module.exports = (folder, libs) => {
  const NR = require(folder), Scheduler = NR.Scheduler || NR.scheduler, callbacks = !NR.Scheduler;
  const key = "resque_scheduler_" + (callbacks ? "master" : "leader") + "_lock";
  const tries = callbacks ? "tryForMaster" : "tryForLeader", gives = callbacks ? "releaseMasterLock" : "releaseLeaderLock";
  const name = process.pid + "-" + require("crypto").randomUUID();
  let client, count = 0;
  const ask = (s, what) => new Promise((answer, fail) => {
    const failed = e => fail(e);
    s.removeAllListeners("error").on("error", failed); // later releases tell an error by this alone
    if (callbacks) s[what]((e, won) => e ? fail(e) : answer(won));
    else s[what]().then(answer, fail);
  });
  return {
    claims: ["excludes", "expires"], topologies: ["single"], keys: "{key}:" + key, lingers_ms: 999,
    async open(sites, lease) { [client] = await libs.open(sites, lease); },
    async acquire(page, ttl) {
      const seconds = Math.ceil(ttl / 1000);
      const s = new Scheduler({
        connection: { redis: client, namespace: page }, name: name + ":" + ++count, masterLockTimeout: seconds, leaderLockTimeout: seconds,
      });
      s.connection = s.queue.connection;
      s.connection.redis = client;
      return await ask(s, tries) ? { ok: true, token: s.name, hold: s } : { busy: true };
    },
    async extend(s) { return await ask(s, tries) ? { ok: true } : { lost: true }; },
    async release(s) { return await ask(s, gives) ? { ok: true } : { lost: true }; },
  };
};

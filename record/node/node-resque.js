// node-resque: the lock that decides which of several schedulers is the leader. A scheduler tries to get it again and again, which also
// renews it. Here each hold is a scheduler, with its own namespace. All schedulers share a client. It is set without their method connect,
// which would write test keys. Leases are whole seconds.
module.exports = (folder, libs) => {
  const NR = require(folder), Scheduler = NR.Scheduler || NR.scheduler, callbacks = !NR.Scheduler;
  const key = "resque_scheduler_" + (callbacks ? "master" : "leader") + "_lock";
  const tries = callbacks ? "tryForMaster" : "tryForLeader", gives = callbacks ? "releaseMasterLock" : "releaseLeaderLock";
  const name = process.pid + "-" + require("crypto").randomUUID();
  let client, count = 0;
  const ask = (s, what) => new Promise((answer, fail) => {
    const failed = e => fail(e);
    s.removeAllListeners("error").on("error", failed); // the only report of an error in later releases
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

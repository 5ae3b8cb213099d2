// node-redis-warlock, with the client of npm redis 3, which uses callbacks.
module.exports = (folder, libs) => {
  let warlock;
  // An undefined result means that the library has hidden an error.
  const outcome = result => result ? { ok: true } : result === 0 ? { lost: true } : { error: "no result" };
  const call = work => new Promise((done, fail) => work((e, ...values) => e ? fail(e) : done(values)));
  return {
    claims: libs.plain, topologies: ["single"], keys: "{key}:lock",
    async open([s]) { warlock = require(folder)(libs.callbackRedis(s, require("redis3"))); },
    async acquire(key, ttl) {
      const [unlock, id] = await call(cb => warlock.lock(key, ttl, cb));
      return unlock ? { ok: true, token: id, hold: { key, id, unlock } } : { busy: true };
    },
    async extend(hold, ttl) {
      const [result] = await call(cb => warlock.touch(hold.key, hold.id, ttl, cb));
      return outcome(result);
    },
    async release(hold) {
      const [result] = await call(cb => hold.unlock(cb));
      return outcome(result);
    },
  };
};

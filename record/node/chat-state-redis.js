// The lock of Chat SDK's Redis state, which is an ES module. Its release does not tell whether the lock was still ours.
module.exports = (folder, libs) => {
  let state;
  return {
    claims: ["excludes", "expires", "cleans"], topologies: ["single"], keys: "chat-sdk:lock:{key}",
    async open([s]) {
      const { createRedisState } = await import(`${folder}/dist/index.js`);
      const login = s.pass ? `${s.user || ""}:${s.pass}@` : "";
      state = createRedisState({ url: `redis://${login}${s.host}:${s.port}/${s.db || 0}`, logger: { info() {}, error() {}, warn() {}, debug() {} } });
      await state.connect();
    },
    async acquire(key, ttl) {
      const hold = await state.acquireLock(key, ttl);
      return hold ? { ok: true, token: hold.token, hold } : { busy: true };
    },
    async extend(hold, ttl) { return await state.extendLock(hold, ttl) ? { ok: true } : { lost: true }; },
    async release(hold) { await state.releaseLock(hold); return { ok: true }; },
  };
};

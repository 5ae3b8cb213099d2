// @medusajs/locking-redis as applications use it: the method execute waits for all keys, and holds them while a job runs.
module.exports = (folder, libs) => {
  const once = require("./medusa-locking.js")(folder, libs);
  return {
    ...once, claims: ["excludes", "expires", "sets", "crosses", "waits"], lingers_ms: 60000, // a lease lasts for the time to wait, or for a minute
    acquire(keys, ttl, lost, wait) {
      return new Promise(resolve => {
        const hold = {};
        hold.done = once.execute(keys, () => new Promise(over => { hold.over = over; resolve({ ok: true, hold }); }), { timeout: Math.max(Math.floor(wait / 1000), 1) })
          .catch(e => resolve(/Failed to acquire lock|Timed-out/.test(e.message) ? { busy: true } : { error: e.message }));
      });
    },
    async release(hold) { hold.over(); await hold.done; return { ok: true }; },
  };
};

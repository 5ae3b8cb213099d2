// A lock and its contract test. Run node --test example.test.js; the variable HAMMERLOCK is the path of verify.
const net = require("node:net"), { tests } = require("./hammerlock");
const ifOurs = (call) => `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call(${call}) end return 0`;

class Lock {
  constructor(sites) { this.site = sites[0]; }
  async acquire(key, token, ttl) { return (await this.redis("SET", key, token, "NX", "PX", ttl)) === "+OK"; }
  async extend(key, token, ttl) { return (await this.redis("EVAL", ifOurs('"PEXPIRE", KEYS[1], ARGV[2]'), 1, key, token, ttl)) === ":1"; }
  async release(key, token) { return (await this.redis("EVAL", ifOurs('"DEL", KEYS[1]'), 1, key, token)) === ":1"; }

  // Sends a command on a new connection, and returns the first line of the reply.
  redis(...words) {
    const { host, port, user, pass, db } = this.site, commands = pass ? [["AUTH", user, pass].filter(Boolean)] : [];
    if (db) commands.push(["SELECT", db]);
    commands.push(words);
    return new Promise((resolve, reject) => {
      const socket = net.connect({ host, port, timeout: 2000 });
      let read = "";
      socket.on("data", (data) => {
        const lines = (read += data).split("\r\n").slice(0, -1), bad = lines.find((line) => line.startsWith("-"));
        if (!bad && lines.length < commands.length) return;
        socket.destroy();
        bad ? reject(new Error(bad)) : resolve(lines[commands.length - 1]);
      });
      socket.on("timeout", () => socket.destroy(new Error("no answer")));
      socket.on("error", reject).on("close", () => reject(new Error("connection closed")));
      socket.write(commands.map((c) => `*${c.length}\r\n${c.map((w) => `$${Buffer.byteLength(String(w))}\r\n${w}\r\n`).join("")}`).join(""));
    });
  }
}

// Is broken: it releases the lock even if another holder has it. Its tests must fail.
class PlainDel extends Lock {
  async release(key) { return (await this.redis("DEL", key)) === ":1"; }
}

const scenarios = ["contention", "late-holder", "renewal"]; // without this list, all scenarios are run
for (const lock of [Lock, PlainDel]) tests(lock, { scenarios });

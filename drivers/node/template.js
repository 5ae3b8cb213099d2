#!/usr/bin/env node
// A driver to begin with: fill in acquire, extend and release with calls of your library. What stands there now is a right lock
// without a library: SET NX PX, and scripts that compare the token. Everything below the three functions is the protocol of
// docs/DRIVERS.md, and can stay.
const net = require("net"), crypto = require("crypto"), readline = require("readline");

const name = "node-template", version = "1";
const claims = ["excludes", "expires", "owned", "cleans"]; // what your lock promises, and is judged by
const ifOurs = (call) => `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call(${call}) end return 0`;
const site = {}; // where the server is: host, port, and user, pass and db if they are needed

// Makes one try. True, or the token that your library has drawn; false if another holder has the lock.
async function acquire(key, token, ttl) {
  return (await redis("SET", key, token, "NX", "PX", ttl)) === "+OK";
}

// Makes the lease ttl milliseconds long from now on. False if the lock is not ours any more. Delete it if the library has no such call.
async function extend(key, token, ttl) {
  return (await redis("EVAL", ifOurs('"PEXPIRE", KEYS[1], ARGV[2]'), 1, key, token, ttl)) === ":1";
}

// Gives the lock back. False if it was not ours any more. What any of the three throws leaves open whether it happened.
async function release(key, token) {
  return (await redis("EVAL", ifOurs('"DEL", KEYS[1]'), 1, key, token)) === ":1";
}

// Sends one command on a connection of its own, and returns the line that answers it.
function redis(...words) {
  const commands = site.pass ? [["AUTH", site.user, site.pass].filter(Boolean)] : [];
  if (site.db) commands.push(["SELECT", site.db]);
  commands.push(words);
  const text = (word) => `$${Buffer.byteLength(String(word))}\r\n${word}\r\n`;
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: site.host, port: site.port, timeout: 2000 });
    let read = "";
    socket.on("data", (data) => {
      const lines = (read += data).split("\r\n").slice(0, -1);
      const bad = lines.find((line) => line.startsWith("-"));
      if (!bad && lines.length < commands.length) return;
      socket.destroy();
      bad ? reject(new Error(bad)) : resolve(lines[commands.length - 1]);
    });
    socket.on("timeout", () => socket.destroy(new Error("no answer")));
    socket.on("error", reject).on("close", () => reject(new Error("connection closed")));
    socket.write(commands.map((c) => `*${c.length}\r\n${c.map(text).join("")}`).join(""));
  });
}

// Answers a request. A hold is named by the id of its acquire.
async function serve(m) {
  if (m.op === "open") Object.assign(site, m.sites[0]);
  if (m.op === "extend" && typeof extend === "undefined") return { unsupported: true };
  if (m.op === "extend" && !checked("extend", await extend(...holds.get(m.hold), m.ttl_ms))) return { lost: true };
  if (m.op === "release") {
    const hold = holds.get(m.hold);
    holds.delete(m.hold);
    if (!checked("release", await release(...hold))) return { lost: true };
  }
  if (m.op !== "acquire") return { ok: true }; // also to ping, cancel and close
  const token = crypto.randomBytes(16).toString("hex");
  holds.set(m.id, [m.key, token]);
  const granted = checked("acquire", await acquire(m.key, token, m.ttl_ms));
  if (typeof granted === "string") holds.set(m.id, [m.key, granted]);
  if (granted) return { ok: true, token: holds.get(m.id)[1] };
  holds.delete(m.id);
  return { busy: true, token };
}

// Refuses what a forgotten return gives. A token in a Buffer becomes a text.
function checked(name, result) {
  if (result === undefined) throw new TypeError(`${name} must return true or false, and returned undefined`);
  return Buffer.isBuffer(result) ? result.toString() : result;
}

const holds = new Map();
const say = (m) => process.stdout.write(JSON.stringify(m) + "\n");
console.log = console.error; // standard output is the protocol's
say({ hello: "hammerlock-driver", protocol: 1, name, version, claims });
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const m = JSON.parse(line);
  serve(m).then((a) => say({ id: m.id, ...a }), (e) => say({ id: m.id, error: String(e), token: (holds.get(m.id) || ["", ""])[1] }));
}).on("close", () => process.exit(0));

#!/usr/bin/env node
// A driver to begin with: replace the bodies of acquire, extend and release by calls of your library. They are a correct lock without
// a library now: SET NX PX, and scripts that compare the token. You need not change the rest, which is the protocol of
// docs/DRIVERS.md.
const net = require("net"), crypto = require("crypto"), readline = require("readline");

const name = "node-template", version = "1";
const claims = ["excludes", "expires", "owned", "cleans"]; // what your lock promises; the suite judges these claims
const ifOurs = (call) => `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call(${call}) end return 0`;
const site = {}; // address of the server: host and port; user, pass and db only if they are needed

// Makes one try. Returns true, or the token that your library has made; false = another holder has the lock.
async function acquire(key, token, ttl) {
  return (await redis("SET", key, token, "NX", "PX", ttl)) === "+OK";
}

// Sets the end of the lease to ttl milliseconds from now. Returns false if the lock was lost. Delete it if your library cannot extend.
async function extend(key, token, ttl) {
  return (await redis("EVAL", ifOurs('"PEXPIRE", KEYS[1], ARGV[2]'), 1, key, token, ttl)) === ":1";
}

// Releases the lock. Returns false if it was lost before. An error of these functions means: the call may have had an effect.
async function release(key, token) {
  return (await redis("EVAL", ifOurs('"DEL", KEYS[1]'), 1, key, token)) === ":1";
}

// Sends a command on a new connection, and returns the first line of the reply.
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

// Answers a request. A request names a hold by the id of the request that acquired it.
async function serve(m) {
  if (m.op === "open") Object.assign(site, m.sites[0]);
  if (m.op === "extend" && typeof extend === "undefined") return { unsupported: true };
  if (m.op === "extend" && !checked("extend", await extend(...holds.get(m.hold), m.ttl_ms))) return { lost: true };
  if (m.op === "release") {
    const hold = holds.get(m.hold);
    holds.delete(m.hold);
    if (!checked("release", await release(...hold))) return { lost: true };
  }
  if (m.op !== "acquire") return { ok: true }; // also the answer to ping, cancel and close
  const token = crypto.randomBytes(16).toString("hex");
  holds.set(m.id, [m.key, token]);
  const granted = checked("acquire", await acquire(m.key, token, m.ttl_ms));
  if (typeof granted === "string") holds.set(m.id, [m.key, granted]);
  if (granted) return { ok: true, token: holds.get(m.id)[1] };
  holds.delete(m.id);
  return { busy: true, token };
}

// Refuses undefined, the result of a function without a return. Converts a token in a Buffer to text.
function checked(name, result) {
  if (result === undefined) throw new TypeError(`${name} must return true or false, and returned undefined`);
  return Buffer.isBuffer(result) ? result.toString() : result;
}

const holds = new Map();
const say = (m) => process.stdout.write(JSON.stringify(m) + "\n");
console.log = console.error; // standard output is for the protocol
say({ hello: "hammerlock-driver", protocol: 1, name, version, claims });
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const m = JSON.parse(line);
  serve(m).then((a) => say({ id: m.id, ...a }), (e) => say({ id: m.id, error: String(e), token: (holds.get(m.id) || ["", ""])[1] }));
}).on("close", () => process.exit(0));

#!/usr/bin/env node
// Drivers for locks of npm packages (docs/DRIVERS.md). "node driver.js NAME" runs a lock of libs.js. "node driver.js FILE FOLDER" runs
// a lock from a file such as those in record/node, with the release of the package in the folder.
const { Console } = require("console"), path = require("path"), readline = require("readline");
global.console = new Console(process.stderr); // standard output is for the protocol

const [, , name, folder] = process.argv;
const libs = require("./libs");
const lib = folder ? require(path.resolve(name))(path.resolve(folder), libs) : libs.find(name);
if (!lib) {
  console.error("usage: node driver.js " + libs.names.join("|") + ", or node driver.js FILE FOLDER");
  process.exit(2);
}
if (folder) lib.version = libs.version(path.resolve(folder)).replace(/^v/, ""); // the folder's name is NAME-VERSION
const say = m => process.stdout.write(JSON.stringify(m) + "\n");
const holds = new Map(); // by the id of the request that acquired
const cancels = new Map(); // cancel functions of acquires in progress, by id

async function serve(m) {
  switch (m.op) {
    case "open": await lib.open(m.sites, m.lease_ms); break;
    case "acquire": {
      const acquiring = lib.acquire(m.keys || m.key, m.ttl_ms, error => say({ event: "lost", hold: m.id, error }), m.wait_ms);
      const cancelled = new Promise((_, reject) => cancels.set(m.id, () => reject(new Error("called off"))));
      try {
        const { hold, ...answer } = await Promise.race([acquiring, cancelled]);
        if (answer.ok) holds.set(m.id, hold);
        return answer;
      } finally {
        if (!cancels.delete(m.id)) acquiring.then(({ ok, hold }) => ok && lib.release(hold)).catch(() => {}); // as a "finally" would release it
      }
    }
    case "extend": return lib.extend(holds.get(m.hold), m.ttl_ms);
    case "release": {
      const hold = holds.get(m.hold);
      holds.delete(m.hold);
      return lib.release(hold);
    }
    case "cancel": {
      const cancel = cancels.get(m.of);
      cancels.delete(m.of);
      if (cancel) cancel();
      break;
    }
    case "close": setTimeout(() => process.exit(0), 20); break;
  }
  return { ok: true }; // also the answer to ping
}

say({ hello: "hammerlock-driver", protocol: 1, name: folder ? path.basename(folder).slice(0, -lib.version.length - 1) : name, version: lib.version, claims: lib.claims, topologies: lib.topologies, keys: lib.keys, lingers_ms: lib.lingers_ms });
readline.createInterface({ input: process.stdin, crlfDelay: Infinity }).on("line", async line => {
  const m = JSON.parse(line);
  try { say({ id: m.id, ...await serve(m) }); } catch (e) { say({ id: m.id, error: `${e.name}: ${e.message}` }); }
}).on("close", () => process.exit(0));

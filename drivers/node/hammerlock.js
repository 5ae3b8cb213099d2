#!/usr/bin/env node
// A contract test of your lock in node:test, with one test for each scenario. example.test.js is an example.
//
// tests(Lock) starts bin/verify, which uses the locks of this process, and reads the verdicts. For each worker process of the suite it
// makes a new Lock(sites), with the servers to use (docs/DRIVERS.md); several exist at the same time. A Lock has the methods of
// template.js: acquire(key, token, ttl), extend(key, token, ttl) and release(key, token). Several calls run at the same time. A lock
// that cannot be extended has no method extend. If the lock has a method close(), it is called at the end; it must close all clients,
// because an open one keeps node alive.
const { describe, before, after, it } = require("node:test"), { execFile, execFileSync } = require("node:child_process");
const assert = require("node:assert"), crypto = require("node:crypto"), fs = require("node:fs"), net = require("node:net");
const os = require("node:os"), path = require("node:path"), readline = require("node:readline");

// Declares the tests. No scenarios = all; flags = more flags for verify; more = more of the hello message, as { permits: 3 }.
function tests(Lock, { claims = ["excludes", "expires", "owned", "cleans"], scenarios, topology = "single", flags = [], more } = {}) {
  if (process.env.VITEST || process.env.JEST_WORKER_ID) throw new Error("these are tests of node:test: run the file with node --test");
  const named = process.env.HAMMERLOCK || "bin/verify";
  const folders = named.includes("/") ? [""] : process.env.PATH.split(":");
  const verify = folders.map((folder) => path.resolve(folder, named)).find(fs.existsSync);
  if (!verify) throw new Error(`there is no ${named} here: the variable HAMMERLOCK must name Hammerlock's program verify`);
  describe(Lock.name, () => {
    let result, folder, child;
    const locks = [];
    before(async () => {
      folder = fs.mkdtempSync(path.join(os.tmpdir(), "hammerlock-"));
      const socket = path.join(folder, "s");
      const hello = { hello: "hammerlock-driver", protocol: 1, name: Lock.name, version: "1", claims, ...more };
      const server = net.createServer((conn) => session(conn, Lock, hello, locks)).listen(socket);
      const args = ["--topology", topology, "--lock", `exec:'${process.execPath}' '${__filename}' '${socket}'`, "--json", "--quiet",
        "--out", folder, ...(scenarios ? ["--scenario", scenarios.join(",")] : []), ...flags];
      const [failed, stdout, stderr] = await new Promise((done) => {
        child = execFile(verify, args, { maxBuffer: 1 << 30 }, (...all) => done(all));
      });
      server.close();
      if (!failed || !stdout) fs.rmSync(folder, { recursive: true });
      for (const lock of locks) await Promise.resolve(lock.close?.()).catch((e) => console.error(e));
      if (!stdout) throw new Error(`verify: ${stderr || failed}`);
      result = JSON.parse(stdout);
    });
    after(() => {
      child.kill(); // in case the test runner has given up
      const open = () => console.error(`node lives on: does ${Lock.name} have a close() that ends its clients?`);
      setTimeout(open, 2000).unref();
    });
    for (const name of scenarios || listed(verify)) {
      it(name, (t) => {
        const run = result.runs.findLast((r) => r.scenario === name); // of several attempts, the last one
        if (!run) return t.skip("it was not run: it does not apply to this lock, or another one failed before");
        const wrong = run.verdicts.filter((v) => v.status === "fail"), open = run.verdicts.find((v) => v.status === "inconclusive");
        if (wrong.length) {
          assert.fail([...wrong.map((v) => `${v.checker}: ${v.summary}`), ...(wrong[0].story || []), wrong[0].remedy,
            `kept; judged again by: '${verify}' check '${path.join(folder, run.name)}'`,
            `the same random choices: flags: ["--seed", "${run.seed}"]`].join("\n"));
        }
        if (open) t.skip(`undecided: ${open.checker}: ${open.summary}`);
      });
    }
    it("verdict", () => assert.strictEqual(result.exit.code, 0, `${result.exit.reason}; kept in ${folder}`));
  });
}

function listed(verify) {
  const lines = execFileSync(verify, ["--list"], { encoding: "utf8" }).split("\n");
  const from = lines.indexOf("scenarios") + 1;
  return lines.slice(from, lines.indexOf("", from)).filter((line) => !line.startsWith("   ")).map((line) => line.trim().split(" ")[0]);
}

// Answers the requests of one driver program that the suite started.
function session(conn, Lock, hello, locks) {
  const holds = new Map(), say = (m) => conn.write(JSON.stringify(m) + "\n");
  let lock;
  const serve = async (m) => {
    if (m.op === "open") locks.push(lock = new Lock(m.sites));
    if (m.op === "extend" && !lock.extend) return { unsupported: true };
    if (m.op === "extend" && !(await call(lock, "extend", ...holds.get(m.hold), m.ttl_ms))) return { lost: true };
    if (m.op === "release") {
      const hold = holds.get(m.hold);
      holds.delete(m.hold);
      if (!(await call(lock, "release", ...hold))) return { lost: true };
    }
    if (m.op !== "acquire") return { ok: true };
    const token = crypto.randomBytes(16).toString("hex");
    holds.set(m.id, [m.key, token]);
    const granted = await call(lock, "acquire", m.key, token, m.ttl_ms, m.mode || m.permits);
    if (typeof granted === "string" || Buffer.isBuffer(granted)) holds.set(m.id, [m.key, granted]);
    if (granted) return { ok: true, token: Buffer.isBuffer(granted) ? undefined : holds.get(m.id)[1] };
    holds.delete(m.id);
    return { busy: true, token };
  };
  conn.on("error", () => {}); // the suite has ended the program
  say(hello);
  readline.createInterface({ input: conn }).on("error", () => {}).on("line", (line) => {
    const m = JSON.parse(line);
    const token = () => (holds.get(m.id) || ["", ""])[1];
    serve(m).then((a) => say({ id: m.id, ...a }), (e) => say({ id: m.id, error: String(e) + place(e), token: token() }));
  });
}

// Calls a method of the lock, and refuses undefined, which shows a mistake. Null as the result of acquire means false: clients return null
// if the key exists.
async function call(lock, name, ...words) {
  const result = await lock[name](...words);
  if (result === undefined) throw new TypeError(`${name} of ${lock.constructor.name} returned undefined: is a return missing?`);
  return Buffer.isBuffer(result) && Buffer.from(result.toString()).equals(result) ? result.toString() : result;
}

// Returns the place in the lock's own code that threw the error; empty = unknown.
function place(e) {
  const at = String(e?.stack).split("\n").find((l) => /^ +at /.test(l) && !/node_modules|node:/.test(l) && !l.includes(__filename));
  return at ? " " + at.trim() : "";
}

if (require.main === module) { // the driver program that the suite starts: it connects the suite to the process of the tests
  const conn = net.connect(process.argv[2]);
  process.stdin.pipe(conn).pipe(process.stdout);
  conn.on("close", () => process.exit(0));
}

module.exports = { tests };

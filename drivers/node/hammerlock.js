#!/usr/bin/env node
// A contract test in node:test: one test a scenario. example.test.js shows it.
//
// tests(Lock) starts bin/verify, which visits pages under the locks of this process, and reads its verdicts. new Lock(sites) is made
// once for each worker process of the suite, with its servers (docs/DRIVERS.md); several live at a time. It has the methods of
// template.js: acquire(key, token, ttl), extend(key, token, ttl) and release(key, token), of which several are called at once.
const { describe, before, it } = require("node:test"), { execFile, execFileSync } = require("node:child_process");
const assert = require("node:assert"), crypto = require("node:crypto"), fs = require("node:fs"), net = require("node:net");
const os = require("node:os"), path = require("node:path"), readline = require("node:readline");

// Declares the tests. No scenarios are all; flags are more of verify's, more is more of the greeting, as { permits: 3 }.
function tests(Lock, { claims = ["excludes", "expires", "owned", "cleans"], scenarios, topology = "single", flags = [], more } = {}) {
  const verify = process.env.HAMMERLOCK || "bin/verify";
  describe(Lock.name, () => {
    let result;
    before(async () => {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), "hammerlock-")), socket = path.join(folder, "s");
      const hello = { hello: "hammerlock-driver", protocol: 1, name: Lock.name, version: "1", claims, ...more };
      const server = net.createServer((conn) => session(conn, Lock, hello)).listen(socket);
      const args = ["--topology", topology, "--lock", `exec:'${process.execPath}' '${__filename}' '${socket}'`, "--json", "--quiet", "--out", folder,
        ...(scenarios ? ["--scenario", scenarios.join(",")] : []), ...flags];
      const [stdout, stderr] = await new Promise((done) => execFile(verify, args, { maxBuffer: 1 << 30 }, (e, out, err) => done([out, err || String(e)])));
      server.close();
      fs.rmSync(folder, { recursive: true });
      if (!stdout) throw new Error(`verify: ${stderr}`);
      result = JSON.parse(stdout);
    });
    for (const name of scenarios || listed(verify)) {
      it(name, (t) => {
        const run = result.runs.findLast((r) => r.scenario === name); // the last attempt counts
        if (!run) return t.skip("it was not run: it does not apply to this lock, or another one failed before");
        const wrong = run.verdicts.filter((v) => v.status === "fail"), open = run.verdicts.find((v) => v.status === "inconclusive");
        if (wrong.length) {
          assert.fail([...wrong.map((v) => `${v.checker}: ${v.summary}`), ...(wrong[0].story || []), wrong[0].remedy, run.command].join("\n"));
        }
        if (open) t.skip(`undecided: ${open.checker}: ${open.summary}`);
      });
    }
    it("verdict", () => assert.strictEqual(result.exit.code, 0, result.exit.reason));
  });
}

function listed(verify) {
  const lines = execFileSync(verify, ["--list"], { encoding: "utf8" }).split("\n");
  const from = lines.indexOf("scenarios") + 1;
  return lines.slice(from, lines.indexOf("", from)).filter((line) => !line.startsWith("   ")).map((line) => line.trim().split(" ")[0]);
}

// What one program of the suite asks.
function session(conn, Lock, hello) {
  const holds = new Map(), say = (m) => conn.write(JSON.stringify(m) + "\n");
  let lock;
  const serve = async (m) => {
    if (m.op === "open") lock = new Lock(m.sites);
    if (m.op === "extend" && !(await lock.extend(...holds.get(m.hold), m.ttl_ms))) return { lost: true };
    if (m.op === "release") {
      const hold = holds.get(m.hold);
      holds.delete(m.hold);
      if (!(await lock.release(...hold))) return { lost: true };
    }
    if (m.op !== "acquire") return { ok: true };
    const token = crypto.randomBytes(16).toString("hex");
    holds.set(m.id, [m.key, token]);
    const granted = await lock.acquire(m.key, token, m.ttl_ms, m.mode || m.permits);
    if (typeof granted === "string") holds.set(m.id, [m.key, granted]);
    if (granted) return { ok: true, token: holds.get(m.id)[1] };
    holds.delete(m.id);
    return { busy: true, token };
  };
  conn.on("error", () => {}); // the suite has ended its program
  say(hello);
  readline.createInterface({ input: conn }).on("error", () => {}).on("line", (line) => {
    const m = JSON.parse(line);
    serve(m).then((a) => say({ id: m.id, ...a }), (e) => say({ id: m.id, error: String(e), token: (holds.get(m.id) || ["", ""])[1] }));
  });
}

if (require.main === module) { // the program that the suite starts: it leads to the process of the tests
  const conn = net.connect(process.argv[2]);
  process.stdin.pipe(conn).pipe(process.stdout);
  conn.on("close", () => process.exit(0));
}

module.exports = { tests };

// exclusion: two workers held the lock at once, 7 times in 57 holds; w26 and w34 at 1.178963 s: double-grant
//
//   w26 was granted token e79b of page 0 at 0.878930 s for 400 ms counted from 0.829594 s
//   so no other worker may hold it before 1.377569 s, or its release, called at 1.301753 s, whose effect is unknown
//   w26 extended token e79b at 0.985305 s
//   w34 was granted token 343d of page 0 at 1.178963 s for 400 ms counted from 1.117481 s
//   cause not shown: the extension by w26 that was called at 1.086161 s had no answer, and may have given the lock back
//   the fault reset:450ms from 0.400552 s to 0.851367 s: clients had no connection for 450ms
//   the fault drop-reply:3 from 1.000469 s to 1.114165 s: the next 3 answers to clients are lost
//
// Written by Hammerlock (verify export --test) of exec:redlock@4.2.0:
//   bin/verify --topology single --lock 'exec:node drivers/node/driver.js record/node/redlock.js record/node/node_modules/redlock-4.2.0' --scenario lost-extensions --seed 1
//
// The test tells the story more slowly. It needs a redis-server on the PATH, and nothing of Hammerlock. Each client speaks to the
// server through a proxy of its own, which holds, cuts or refuses the messages that the story names. The test fails if two clients
// hold the lock at once, or if a call succeeds that must be refused.
const net = require("node:net"), { spawn } = require("node:child_process"), { test, after } = require("node:test");

// npm redlock, releases 3 to 5: acquire and release are lock and unlock of the older ones.
const Redis = require("ioredis"), redlock = require(process.env.LIBRARY || "redlock"), Redlock = redlock.default || redlock;

async function connect(port) {
  const client = new Redis({ port, maxRetriesPerRequest: 0, retryStrategy: () => 50 });
  client.on("error", () => {});
  const redlock = new Redlock([client], { retryCount: 0 });
  redlock.on("error", () => {});
  let lock;
  return {
    async acquire(key, lease) { return lock = await (redlock.lock ? redlock.lock(key, lease) : redlock.acquire([key], lease)); },
    async extend(lease) { return lock = await lock.extend(lease); },
    async release() { await (redlock.unlock ? lock.unlock() : lock.release()); return true; },
  };
}

const lease = 2000; // ms
const linger = 0; // ms, by how much longer the library lets a lease last
const owned = true; // a release says whether the lock was still the client's

const story = [ // ms, client, what it does, what happens to a message of it
  [0, "a", "acquire", ""],
  [749, "a", "extend", ""],
  [1282, "a", "extend", "cut reply 1"],
  [1439, "b", "acquire", ""],
  [1439, "c", "acquire", ""],
];

const now = () => performance.now(), sleep = ms => new Promise(done => setTimeout(done, Math.max(ms, 0)));
const listen = server => new Promise(done => server.listen(0, "127.0.0.1", () => done(server.address().port)));
const signal = () => { let set; const wait = new Promise(done => { set = done; }); return { set, wait }; };
const failures = [], all = {};

test("DoubleGrant", async () => {
  const free = net.createServer(), port = await listen(free);
  await new Promise(done => free.close(done));
  const server = spawn("redis-server", ["--bind", "127.0.0.1", "--port", port, "--save", ""], { stdio: "ignore", cwd: "/" });
  server.on("error", e => { throw e; }); // there is none on the PATH
  process.on("exit", () => server.kill("SIGKILL"));
  for (const [, who] of story) all[who] ??= await new Actor(who).start(port);
  const begun = now();
  for (const [at, who, act, fault] of story) {
    await sleep(begun + at - now());
    const a = all[who], f = a.next(fault);
    a.said = "held";
    if (act !== "go on") a.done = a.call(act, f);
    await Promise.race([a.done, f.held.wait]);
    console.log(`${Math.round(now() - begun)} ms: ${who}: ${act}, ${a.said} ${fault}`);
  }
  for (const a of Object.values(all)) a.next("");
  if (failures.length) throw new Error(failures.join("; "));
});
after(() => setTimeout(process.exit, 200)); // clients may go on for ever

// Actor is a client, what it believes, and the proxy through which it speaks to the server.
class Actor {
  constructor(name) { Object.assign(this, { name, since: 0, until: 0, over: 0, fault: {} }); }

  async start(port) {
    this.lock = await connect(await listen(net.createServer(c => this.serve(c, port))));
    if (!await this.lock.acquire("warm-" + this.name, lease)) throw new Error("the lock is not free");
    await this.lock.extend(lease).catch(() => {}); // the server is to know all scripts before the story begins
    await this.lock.release();
    return this;
  }

  async call(act, f) {
    let [called, yes] = await this.try(act);
    for (const end = called + lease / 10; act === "acquire" && !yes && !f.way && now() < end; ) {
      await sleep(10); // a lease may end a moment later than in the story
      [called, yes] = await this.try(act);
    }
    const at = now(), until = lease ? called + lease : Infinity;
    this.said = yes ? "yes" : "no";
    if (!yes && f.what === "must") failures.push(`${this.name} must be granted the lock: no client holds it any more`);
    if (!yes) return;
    for (const b of Object.values(all)) {
      if (b === this || at >= b.until || (act === "release" ? !owned || b.since >= called : at >= until)) continue;
      failures.push(`${this.name}: the ${act} must be refused: ${b.name} holds the lock for ${Math.round(b.until - at)} ms more`);
    }
    if (act === "extend" && lease && called > this.over)
      failures.push(`${this.name}: the extend must be refused: its lease has been over for ${Math.round(called - this.over)} ms`);
    if (act !== "release") Object.assign(this, { since: at, until, over: at + lease + linger }); // over: the server has forgotten it by then
  }

  async try(act) {
    const called = now(), words = { acquire: ["story", lease], extend: [lease], release: [] }[act];
    if (act === "release") this.until = 0;
    return [called, await this.lock[act](...words).catch(() => false)];
  }

  // next says what happens to the n-th message of a call, one way or the other, as in "late reply 2", and lets go on what is held.
  next(text) {
    const before = this.fault, [what, way, n] = text.split(" ");
    this.fault = { what, way, n, seen: 0, held: signal(), open: signal() };
    before.open?.set();
    return this.fault;
  }

  // serve hands on what a client and the server say. A message comes in one piece, for commands are short and wait for their replies.
  async serve(client, port) {
    const connected = () => new Promise(done => { const c = net.connect(port, "127.0.0.1", () => done(c)).on("error", () => done()); });
    let server, quiet = false; // quiet: the last request makes the connection ready
    while (!(server = await connected())) await sleep(10); // it is about to start
    const hand = (from, to, way) => {
      let before = Promise.resolve();
      from.on("error", () => {}).on("close", () => before.then(() => to.destroy())).on("data", d => {
        if (way === "request") quiet = setUp.test(d);
        const f = this.fault, hit = f.way === way && !quiet && ++f.seen === Number(f.n);
        before = before.then(async () => {
          if (hit && f.what === "late") { f.held.set(); await f.open.wait; }
          if (hit && f.what === "cut") { from.destroy(); to.destroy(); }
          else if (hit && f.what === "error") from.write("-LOADING Redis is loading the dataset in memory\r\n");
          else to.write(d);
        });
      });
    };
    hand(client, server, "request");
    hand(server, client, "reply");
  }
}

const setUp = /^\*\d+\r\n\$\d+\r\n(hello|client|auth|select|ping|info|command)\r\n/i;

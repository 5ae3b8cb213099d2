// The ownership strip shows who held the lock when. Each worker has a lane. The view goes from the whole run down to microseconds.
const gutter = 44, rails = 34, foot = 22;

function readVisits(at) {
  const n = new Numbers(at), rows = [];
  let w = -1, from = 0, id = 0, value = 0;
  while (n.more) {
    const v = {worker: n.next(), key: n.next()};
    if (v.worker !== w) { from = 0; id = 0; w = v.worker; }
    from += n.next();
    const flags = n.next();
    Object.assign(v, {from, store: flags & 3, release: flags >> 2 & 3, outcome: flags >> 4 & 3, crashed: flags >> 6 & 1,
      unknown: flags >> 7 & 1, reason: n.next(), tries: n.next(), end: n.after(from), grant: n.after(from)});
    if (v.grant !== Infinity) {
      v.call = v.grant - n.next();
      id += n.next();
      v.id = `${Math.floor(id / 2 ** 40) - 1}.${id % 2 ** 40}`;
      v.load = n.after(v.grant); v.storeCall = n.after(v.grant); v.storeReturn = n.after(v.grant);
      value += n.next(); v.value = value;
      v.relCall = n.after(v.grant); v.relReturn = n.after(v.grant); v.until = n.after(v.grant); v.lost = n.after(v.grant);
      v.held = Math.min(v.relCall, v.end);
      v.believed = Math.min(v.held, v.until, v.lost);
    } else v.held = v.from;
    (rows[v.worker] ||= []).push(v);
  }
  return rows;
}

function readOverlaps(at) {
  const n = new Numbers(at), all = [];
  let from = 0;
  while (n.more) {
    from += n.next();
    all.push({from, to: from + n.next(), a: n.next(), b: n.next(), key: n.next(), late: n.next() === 1});
  }
  return all;
}

// shade returns how dark a cell is, from 0 to 8, for the share of its time in which the lock was held. Only the share 0 gives 0. human.Shade
// does the same.
const shades = 8, shade = share => share > 0 ? Math.min(Math.max(Math.round(shades * share), 1), shades) : 0;

class Strip {
  constructor(box, run) {
    this.box = box; this.run = run; this.s = run.strip;
    this.rows = readVisits(this.s.rows);
    this.overlaps = readOverlaps(this.s.meets);
    this.current = -1;
    this.view = [this.start, this.s.end];
    this.build();
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
  }

  build() {
    const button = (text, title, on) => element("button", {type: "button", text, title, onclick: on});
    this.span = element("span", {class: "span"});
    const jumps = [];
    if (this.overlaps.length) jumps.push(
      button("‹", "overlap before (p)", () => this.jump(-1)),
      this.number = element("span", {class: "span", text: `${count(this.s.overlaps)} overlaps`}),
      button("›", "next overlap (n)", () => this.jump(1)));
    const tools = element("div", {class: "tools"},
      button(this.s.names ? "All" : "Whole run", "0", () => this.show(this.start, this.s.end)), button("−", "zoom out (-)", () => this.zoom(2)),
      button("+", "zoom in (+)", () => this.zoom(0.5)), button("←", "earlier", () => this.pan(-0.5)), button("→", "later", () => this.pan(0.5)),
      this.span, element("span", {class: "gap"}), ...jumps);
    this.canvas = element("canvas", {tabindex: "0", role: "img",
      "aria-label": "Who held the lock: a lane a worker. Keys: arrows move, plus and minus zoom, n and p go from overlap to overlap."});
    this.detail = element("div", {class: "detail", "aria-live": "polite"});
    this.detail.hidden = true;
    this.box.append(tools, this.canvas, this.legend(), this.detail);
    this.listen();
  }

  // name returns the number of the worker in a row.
  name(row) { return this.s.names ? this.s.names[row] : row; }

  get start() { return this.s.from || 0; }

  // follow shows the latest part of a run in progress.
  follow(s) {
    const whole = this.view[0] <= this.start && this.view[1] >= this.s.end;
    this.s = s;
    whole ? this.show(s.from, s.end) : this.show(...this.view);
  }

  legend() {
    const box = element("div", {class: "legend"});
    const item = (text, paint) => {
      const c = element("canvas", {width: 44, height: 24});
      c.className = "swatch";
      box.append(element("span", {}, c, " " + text));
      return () => { const x = c.getContext("2d"); x.clearRect(0, 0, 44, 24); paint(x); };
    };
    const kept = this.s.names ? () => () => {} : item; // of a run in progress, the page has no single visits, only sums
    this.swatches = [
      item("holds, the darker the more of the time", x => {
        x.fillStyle = color("hold");
        for (let i = 1; i <= shades; i++) { x.globalAlpha = i / shades; x.fillRect(5 * i - 3, 3, 5, 18); }
        x.globalAlpha = 1;
      }),
      item("waits", x => { x.fillStyle = color("wait"); x.fillRect(2, 9, 40, 6); }),
      kept("goes on after its lease", x => late(x, 2, 3, 40, 18)),
      item("overlap", x => { x.fillStyle = color("hold"); x.fillRect(2, 3, 40, 18); clash(x, 12, 3, 20, 18, false); }),
      kept("evidence of a verdict", x => diamond(x, 22, 12, 8)),
      item("fault", x => { x.fillStyle = color("fault"); x.fillRect(2, 3, 40, 18); hatch(x, 2, 3, 40, 18, color("faultline")); }),
    ];
    box.append(element("span", {text: "Drag moves; Ctrl + wheel, a double click or + zooms; a click shows operations."}));
    return box;
  }

  listen() {
    const c = this.canvas;
    let grabbed = null, moved = false;
    c.addEventListener("pointerdown", e => { grabbed = {x: e.offsetX, view: [...this.view]}; moved = false; c.setPointerCapture(e.pointerId); });
    c.addEventListener("pointermove", e => {
      if (!grabbed) return;
      const d = e.offsetX - grabbed.x;
      if (Math.abs(d) > 3) moved = true;
      if (moved) { const t = d * (grabbed.view[1] - grabbed.view[0]) / this.width; this.show(grabbed.view[0] - t, grabbed.view[1] - t); }
    });
    c.addEventListener("pointerup", e => { if (grabbed && !moved) this.click(e.offsetX, e.offsetY); grabbed = null; });
    c.addEventListener("dblclick", e => this.zoom(1 / 8, this.time(e.offsetX)));
    c.addEventListener("wheel", e => {
      if (!e.ctrlKey && document.activeElement !== c) return; // the wheel then scrolls the page
      e.preventDefault();
      this.zoom(Math.exp(e.deltaY / 300), this.time(e.offsetX));
    }, {passive: false});
    c.addEventListener("keydown", e => {
      const act = {ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5),
        "-": () => this.zoom(2), 0: () => this.show(this.start, this.s.end), n: () => this.jump(1), p: () => this.jump(-1)}[e.key];
      if (act) { e.preventDefault(); act(); }
    });
  }

  show(from, to) {
    const span = Math.min(Math.max(to - from, 1e3), this.s.end - this.start);
    from = Math.min(Math.max(from, this.start), this.s.end - span);
    this.view = [from, from + span];
    this.redraw();
  }

  zoom(by, around = (this.view[0] + this.view[1]) / 2) {
    const [a, b] = this.view;
    this.show(around - (around - a) * by, around + (b - around) * by);
  }

  pan(by) { const d = by * (this.view[1] - this.view[0]); this.show(this.view[0] + d, this.view[1] + d); }

  // jump shows the next overlap, enlarged so that the reader sees what happened.
  jump(step, span) {
    const n = this.overlaps.length;
    if (!n) return;
    this.current = (this.current + step + n) % n;
    if (step > 0 && this.current < 0) this.current = 0;
    const o = this.overlaps[this.current], edge = span ? (span - (o.to - o.from)) / 2 : Math.max((o.to - o.from) * 0.7, 5e4);
    this.number.textContent = `${count(this.current * this.s.every + 1)} of ${count(this.s.overlaps)} overlaps`;
    this.show(span ? (o.from + o.to - span) / 2 : o.from - edge, span ? (o.from + o.to + span) / 2 : o.to + edge);
    this.tell(o.from, o.to, o.key, `${worker(o.a)} and ${worker(o.b)} held page ${o.key} at the same time for ${duration(o.to - o.from)}, from ${clock(o.from)}`,
      v => v.worker === o.a || v.worker === o.b);
  }

  time(x) { return this.view[0] + (x - gutter) * (this.view[1] - this.view[0]) / this.width; }
  at(t) { return gutter + (t - this.view[0]) * this.width / (this.view[1] - this.view[0]); }

  layout() {
    const n = this.s.workers, ratio = devicePixelRatio || 1, wide = this.canvas.clientWidth || 600;
    this.lane = Math.max(3, Math.min(18, Math.floor(520 / n)));
    this.width = Math.max(Math.floor(wide - gutter - 4), 50);
    const high = rails + n * this.lane + foot;
    if (this.canvas.width !== Math.round(wide * ratio) || this.canvas.height !== Math.round(high * ratio)) {
      this.canvas.width = Math.round(wide * ratio); this.canvas.height = Math.round(high * ratio);
      this.canvas.height = Math.round(high * ratio);
      this.canvas.style.height = high + "px";
    }
    const ctx = this.canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, wide, high);
    return ctx;
  }

  redraw() {
    for (const paint of this.swatches) paint();
    const ctx = this.layout(), n = this.s.workers, [a, b] = this.view;
    this.colors = {hold: color("hold"), wait: color("wait"), muted: color("muted"), line: color("line"), soft: color("soft"), overlap: color("overlap")};
    const parts = this.parts(), cell = Math.max((b - a) / this.width, parts.every(p => p.exact) ? 0 : this.bucket());
    this.span.textContent = `${clock(a, b - a < 1e8 ? 6 : 3)} + ${duration(b - a)}, a cell is ${duration(cell)}`;
    ctx.fillStyle = this.colors.soft;
    ctx.fillRect(gutter, rails, this.width, n * this.lane);
    this.background(ctx);
    ctx.save();
    ctx.beginPath(); ctx.rect(gutter, 0, this.width, rails + n * this.lane); ctx.clip();
    this.lanes(ctx, parts);
    for (const p of parts) if (p.exact) this.tooLate(ctx, p);
    this.clashes(ctx);
    ctx.restore();
    this.labels(ctx);
  }

  // parts divides the view into two kinds of parts: exact ones, of which the page has all visits, and others, of which it has only sums.
  parts() {
    const [a, b] = this.view, parts = [];
    let at = a;
    for (const w of this.s.windows) {
      if (w.to < a || w.from > b) continue;
      const from = Math.max(w.from, a), to = Math.min(w.to, b);
      if (from > at) parts.push({from: at, to: from});
      parts.push({from, to, exact: true});
      at = to;
    }
    if (at < b) parts.push({from: at, to: b});
    return parts;
  }

  // below returns the number of visits in a row that begin before t.
  below(row, t) {
    let lo = 0, hi = row.length;
    while (lo < hi) { const m = (lo + hi) >> 1; row[m].from < t ? lo = m + 1 : hi = m; }
    return lo;
  }

  // seen calls the function each for every visit of a worker that overlaps the period from "from" to "to".
  seen(w, from, to, each) {
    const row = this.rows[w] || [];
    for (let i = Math.max(this.below(row, from) - 1, 0); i < row.length && row[i].from <= to; i++) if (row[i].end >= from) each(row[i]);
  }

  // tooLate hatches the times in which a worker went on after the end of its lease.
  tooLate(ctx, {from, to}) {
    for (let w = 0; w < this.s.workers; w++) this.seen(w, from, to, v => {
      const l = this.at(Math.max(v.believed, from)), r = this.at(Math.min(v.held, to));
      if (r > l) late(ctx, l, rails + w * this.lane, r - l, this.lane - 1);
    });
  }

  // shares returns, for each worker and each cell (a column of pixels), for which share of the time the worker waited and held the lock.
  // It uses single visits in exact parts, and sums in the other parts.
  shares(parts) {
    const W = this.width, rows = this.s.workers, waited = new Float32Array(rows * W), held = new Float32Array(rows * W);
    const column = t => (t - this.view[0]) * W / (this.view[1] - this.view[0]);
    const cells = (from, to, each) => { // also passes the share of each cell that lies between the times
      const a = column(from), b = column(to);
      for (let i = Math.min(Math.floor(a), W - 1), end = Math.min(Math.max(Math.ceil(b), i + 1), W); i < end; i++) each(i, Math.max(Math.min(b, i + 1) - Math.max(a, i), 1e-6));
    };
    const wide = this.bucket(), k = this.tier(), n = this.s.tiers[k].buckets;
    const bucket = (i, limit) => Math.max(0, Math.min(n - 1 + limit, (this.view[0] + i * (this.view[1] - this.view[0]) / W - this.start) / wide));
    for (const p of parts) {
      if (p.exact) {
        const add = (plane, w, a, b) => { if (b >= p.from && a <= p.to) cells(Math.max(a, p.from), Math.min(b, p.to), (i, of) => { plane[w * W + i] += of; }); };
        for (let w = 0; w < rows; w++) this.seen(w, p.from, p.to, v => {
          add(waited, w, v.from, Math.min(v.grant, v.end));
          if (v.grant !== Infinity) add(held, w, v.grant, v.believed);
        });
        continue;
      }
      cells(p.from, p.to, (i, of) => {
        const a = Math.floor(bucket(i, 0)), b = Math.max(a + 1, Math.ceil(bucket(i + 1, 1)));
        for (const [plane, known] of [[held, 0], [waited, 1]]) for (let w = 0, at = this.s.planes[k][known].at; w < rows; w++, at += n) {
          let sum = 0;
          for (let q = a; q < b; q++) sum += (page.bytes[at + q] / 255) ** 2;
          plane[w * W + i] += of * sum / (b - a);
        }
      });
    }
    return {waited, held};
  }

  // lanes paints the shares: first as a picture with one row of pixels for each worker, which it then stretches to the lanes.
  lanes(ctx, parts) {
    const W = this.width, rows = this.s.workers, all = this.shares(parts);
    const image = (shares, name) => {
      const c = new OffscreenCanvas(W, rows), x = c.getContext("2d"), data = x.createImageData(W, rows), ink = channels(this.colors[name]);
      shares.forEach((share, i) => data.data.set([...ink, 255 * shade(share) / shades], 4 * i));
      x.putImageData(data, 0, 0);
      return c;
    };
    const wait = image(all.waited, "wait"), hold = image(all.held, "hold"), h = this.lane - 1;
    ctx.imageSmoothingEnabled = false;
    for (let w = 0; w < rows; w++) {
      const y = rails + w * this.lane;
      ctx.drawImage(wait, 0, w, W, 1, gutter, y + h * 0.35, W, Math.max(h * 0.3, 1));
      ctx.drawImage(hold, 0, w, W, 1, gutter, y, W, h);
    }
  }

  // bucket returns the length of time for which the tier in use has one sum.
  bucket() { return (this.s.end - this.start) / this.s.tiers[this.tier()].buckets; }

  // tier returns the number of the finest picture of the whole run that is not much finer than the screen.
  tier() {
    let k = this.s.tiers.length - 1;
    while (k > 0 && this.s.tiers[k].buckets * (this.view[1] - this.view[0]) / (this.s.end - this.start) > 4 * this.width) k--;
    return k;
  }

  // clashes draws the overlaps on top of the lanes, and in the rail above the lanes. They are always wide enough to be visible.
  clashes(ctx) {
    const [a, b] = this.view, W = this.width, dots = Array.from({length: this.s.workers + 1}, () => new Uint8Array(W + 4));
    const dot = (row, x0, x1, old) => { // sets 2 for an overlap, or 1 for an overlap after the end of a lease
      for (let x = Math.max(0, Math.round(x0 - gutter) - 1); x <= Math.min(W, Math.max(x1, x0 + 1) - gutter + 1); x++) if (row[x] < 2) row[x] = old ? 1 : 2;
    };
    const rail = dots[this.s.workers], large = [];
    for (const o of this.overlaps) {
      if (o.to < a || o.from > b) continue;
      const x0 = Math.max(this.at(o.from), gutter), x1 = Math.min(this.at(o.to), gutter + W);
      dot(rail, x0, x1, o.late);
      for (const w of [o.a, o.b]) x1 - x0 > 12 ? large.push([w, x0, x1, o.late]) : dot(dots[w], x0, x1, o.late);
    }
    if (this.s.every > 1) this.traces(ctx, dots, dot);
    dots.forEach((row, w) => {
      const y = w < this.s.workers ? rails + w * this.lane : 20, h = w < this.s.workers ? this.lane - 1 : 10;
      for (let x = 0, from = 0; x <= W; x++) if (row[x] !== row[x + 1]) {
        if (row[x]) { ctx.fillStyle = color(row[x] === 2 ? "overlap" : "late"); ctx.fillRect(gutter + from, y, x + 1 - from, h); }
        from = x + 1;
      }
    });
    for (const [w, x0, x1, old] of large) clash(ctx, x0, rails + w * this.lane, x1 - x0, this.lane - 1, old);
    for (const m of this.s.marks) {
      if (m.to < a || m.from > b) continue;
      diamond(ctx, Math.max(this.at(m.from), gutter + 4), rails + m.worker * this.lane + this.lane / 2, Math.min(5, this.lane / 2 + 1));
      diamond(ctx, Math.max(this.at(m.from), gutter + 4), 25, 5);
    }
  }

  // traces draws the overlaps that are not in the list: as a mark or, if only a longer period is known in which they lie, as a line.
  traces(ctx, dots, dot) {
    const k = this.tier(), n = this.s.tiers[k].buckets, wide = this.bucket(), at = this.s.planes[k][2].at;
    const first = Math.max(0, Math.floor((this.view[0] - this.start) / wide)), last = Math.min(n - 1, Math.floor((this.view[1] - this.start) / wide));
    ctx.fillStyle = color("overlap");
    for (let w = 0; w < this.s.workers; w++) for (let i = first; i <= last; i++) if (page.bytes[at + w * n + i]) {
      const x0 = this.at(this.start + i * wide), x1 = this.at(this.start + (i + 1) * wide);
      if (x1 - x0 < 6) { dot(dots[w], x0, x1, false); dot(dots[this.s.workers], x0, x1, false); continue; }
      const high = Math.min(4, this.lane - 1);
      ctx.fillRect(x0, rails + (w + 1) * this.lane - 1 - high, x1 - x0, high);
      ctx.fillRect(x0, 26, x1 - x0, 4);
    }
  }

  background(ctx) {
    const n = this.s.workers;
    this.run.phases.forEach((p, i) => {
      const x = Math.max(this.at(p.from), gutter), end = Math.min(this.at(p.to), gutter + this.width);
      if (i % 2 && end > x) { ctx.fillStyle = color("soft"); ctx.fillRect(x, 0, end - x, rails + n * this.lane); }
    });
    for (const f of this.run.faults) {
      const x = Math.max(this.at(f.from), gutter), end = Math.min(f.to < 0 ? Infinity : this.at(f.to), gutter + this.width);
      if (end <= gutter || x >= gutter + this.width) continue;
      ctx.fillStyle = color("fault"); ctx.fillRect(x, 0, Math.max(end - x, 2), rails + n * this.lane);
      const [a, b] = inForce(f).map(t => t === Infinity ? end : Math.min(Math.max(this.at(t), x), end));
      hatch(ctx, a, 16, Math.max(b - a, 2), rails + n * this.lane - 16, color("faultline"), 11);
    }
    for (const r of this.run.roles || []) {
      const x = this.at(r.to);
      if (x < gutter || x > gutter + this.width) continue;
      ctx.save();
      ctx.strokeStyle = this.colors.muted; ctx.setLineDash([2, 3]);
      ctx.beginPath(); ctx.moveTo(x, 16); ctx.lineTo(x, rails + n * this.lane); ctx.stroke();
      ctx.restore();
    }
  }

  labels(ctx) {
    const n = this.s.workers, [a, b] = this.view;
    ctx.font = "11px system-ui, sans-serif"; ctx.textBaseline = "middle";
    ctx.fillStyle = this.colors.muted; ctx.textAlign = "right";
    const each = Math.max(1, Math.ceil(12 / this.lane));
    for (let w = 0; w < n; w += each) ctx.fillText(worker(this.name(w)), gutter - 6, rails + w * this.lane + this.lane / 2);
    ctx.textAlign = "left";
    let free = gutter;
    const named = [...this.run.phases, ...(this.run.roles || []).map(r => ({...r, from: r.to}))].map(p => ({...p, tint: "muted"})).concat(this.run.faults).sort((a, b) => a.from - b.from);
    for (const f of named) {
      const end = f.to < 0 ? Infinity : this.at(f.to), x = Math.max(this.at(f.from) + 3, free);
      if (end < gutter || this.at(f.from) > gutter + this.width) continue;
      const text = f.name.split("@")[0], w = ctx.measureText(text).width;
      if (x + w > gutter + this.width) continue;
      ctx.fillStyle = color(f.tint || "faultline"); ctx.fillText(text, x, 8);
      free = x + w + 10;
    }
    ctx.fillStyle = this.colors.muted; ctx.strokeStyle = this.colors.line; ctx.textAlign = "center";
    const raw = (b - a) / (this.width / 110), p = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(m => m * p).find(m => m >= raw);
    const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / 1e9))));
    const y = rails + n * this.lane;
    ctx.beginPath();
    for (let t = Math.ceil(a / step) * step; t <= b; t += step) {
      const x = this.at(t);
      ctx.moveTo(x, y); ctx.lineTo(x, y + 4);
      if (x > gutter + 30 && x < gutter + this.width - 30) ctx.fillText((t / 1e9).toFixed(digits) + " s", x, y + 13);
    }
    ctx.stroke();
  }

  click(x, y) {
    if (y < rails) {
      const t = this.time(x);
      let best = -1;
      this.overlaps.forEach((o, i) => { if (best < 0 || Math.abs(o.from - t) < Math.abs(this.overlaps[best].from - t)) best = i; });
      if (best >= 0) { this.current = best; this.jump(0); }
      return;
    }
    const w = Math.floor((y - rails) / this.lane), row = this.rows[w] || [], t = this.time(x), near = 4 * (this.view[1] - this.view[0]) / this.width;
    let found = null;
    for (let i = Math.max(0, this.below(row, t - near) - 1); i < row.length && row[i].from <= t + near; i++) if (row[i].end >= t - near) found = row[i];
    if (!found) {
      const near = this.s.windows.some(p => p.from <= t && p.to >= t);
      this.message(near ? `${worker(this.name(w))} did nothing at ${clock(t)}` : `Of ${clock(t)} only sums are kept, in pieces of ${duration((this.s.end - this.start) / this.s.tiers.at(-1).buckets)}: ` +
        (this.s.names ? "the report at the end has single visits." : "single visits are kept around overlaps, evidence and faults, and in a few windows drawn at random."));
      return;
    }
    const upto = found.grant === Infinity ? found.end : found.held, since = found.grant === Infinity ? found.from : found.grant;
    this.tell(since, upto, found.key, `${worker(w)} at ${clock(t)}, and who else held page ${found.key} meanwhile`, v => v === found || v.grant < upto && v.held > since);
  }

  message(text) { this.detail.hidden = false; this.detail.replaceChildren(element("p", {class: "note", text})); }

  // tell lists the operations of the visits that overlap the period from "from" to "to".
  tell(from, to, key, title, wanted) {
    const ops = [];
    for (const row of this.rows) if (row) for (let i = Math.max(0, this.below(row, from) - 1); i < row.length && row[i].from <= to; i++) {
      const v = row[i];
      if (v.key === key && v.end >= from && wanted(v)) operations(v, ops, this.s);
    }
    ops.sort((a, b) => a.at - b.at);
    const table = element("table", {class: "two"}, element("thead", {}, element("tr", {}, ...["Worker", "At", "Returned", "Took", "Operation"].map(text => element("th", {scope: "col", text})))));
    const body = element("tbody");
    for (const o of ops.slice(0, 60)) {
      const row = element("tr", {}, ...[worker(o.worker), clock(o.at), o.back === Infinity ? "never" : clock(o.back), o.back === Infinity || o.back === o.at ? "-" : duration(o.back - o.at), o.text].map(text => element("td", {text})));
      if (o.hot) row.className = "hot";
      body.append(row);
    }
    table.append(body);
    this.detail.hidden = false;
    this.detail.replaceChildren(element("h4", {text: title}), ops.length ? element("div", {class: "scroll"}, table) : element("p", {class: "note", text: "The operations of this moment are not kept."}));
    if (ops.length > 60) this.detail.append(element("p", {class: "note", text: `The first 60 of ${count(ops.length)} operations.`}));
  }
}

function operations(v, ops, {outcomes, reasons}) {
  const add = (at, back, text, hot) => ops.push({worker: v.worker, at, back, text, hot});
  if (v.grant === Infinity) {
    add(v.from, v.end, `waits for page ${v.key}: ${v.tries} tries, no grant (${outcomes[v.outcome]} ${reasons[v.reason]})`);
    return;
  }
  if (v.tries > 1) add(v.from, v.call, `tries ${v.tries - 1} times for page ${v.key}`);
  add(v.call, v.grant, `acquire ok, hold ${v.id}` + (v.until === Infinity ? "" : `, to be believed until ${clock(v.until)}`));
  if (v.load !== Infinity) add(v.load, v.load, "load returns");
  if (v.storeCall !== Infinity) add(v.storeCall, v.storeReturn, `store ${count(v.value)}: ${outcomes[v.store]}`, v.storeCall > v.believed);
  if (v.lost !== Infinity) add(v.lost, v.lost, v.crashed ? "dies" : "is told that the hold is lost", true);
  if (v.until < v.held) add(v.until, v.until, "its lease is over, it goes on", true);
  if (v.relCall !== Infinity) add(v.relCall, v.relReturn, `release: ${outcomes[v.release]}`, v.release !== 1);
}

// channels returns red, green and blue of a colour that is written as #rrggbb.
function channels(text) { return [1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16)); }

function late(ctx, x, y, w, h) {
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = color("late");
  ctx.globalAlpha = 0.35; ctx.fillRect(x, y, w, h);
  ctx.globalAlpha = 1; hatch(ctx, x, y, w, h, color("late"), 5);
  ctx.restore();
}

// clash marks an overlap by a colour and a cross. If there is no room for the cross, it draws a bar across the lane.
function clash(ctx, x, y, w, h, old) {
  ctx.save();
  ctx.fillStyle = color(old ? "late" : "overlap");
  ctx.fillRect(x, y, w, h);
  if (w > 12 && h > 7) {
    const r = Math.min(h / 2 - 2, 4), cx = Math.min(x + w / 2, x + 40), cy = y + h / 2;
    ctx.strokeStyle = "#fff"; ctx.lineWidth = 1.6;
    ctx.beginPath(); ctx.moveTo(cx - r, cy - r); ctx.lineTo(cx + r, cy + r); ctx.moveTo(cx + r, cy - r); ctx.lineTo(cx - r, cy + r); ctx.stroke();
  }
  ctx.restore();
}

function diamond(ctx, x, y, r) {
  ctx.save();
  ctx.fillStyle = color("ink"); ctx.strokeStyle = color("card"); ctx.lineWidth = 1;
  ctx.beginPath(); ctx.moveTo(x, y - r); ctx.lineTo(x + r, y); ctx.lineTo(x, y + r); ctx.lineTo(x - r, y); ctx.closePath(); ctx.fill(); ctx.stroke();
  ctx.restore();
}

drawings.strip = (box, run) => {
  if (!run.strip) return null;
  return page.strips[run.id] = new Strip(box, run);
};

start();

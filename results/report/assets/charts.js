// The charts. uPlot draws axes, lines and bars. Other things are drawn into the canvas of uPlot.
const drawings = {};
const height = 230;
const styles = [["blue", []], ["orange", [7, 4]], ["green", [2, 3]], ["pink", [10, 3, 2, 3]], ["gold", [4, 4]], ["sky", [12, 5]]];

function axis(more) {
  return Object.assign({
    stroke: () => color("muted"), font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif",
    grid: {stroke: () => color("line"), width: 1}, ticks: {stroke: () => color("line"), width: 1, size: 4},
  }, more);
}

const seconds = axis({size: 30, values: (u, all) => all.map(v => significantTick(v) + " s"), space: 60});
const lengths = axis({size: 58, values: (u, all) => all.map(v => v == null ? "" : tick(v)), space: 26});
const logLengths = Object.assign({}, lengths, {splits: (u, i, lo, hi) => rounds(lo, hi, u.bbox.height / devicePixelRatio / 24), filter: (u, all) => all});

// rounds returns round numbers for a logarithmic axis, at most as many as have room.
function rounds(lo, hi, most) {
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const all = [];
    for (let p = Math.floor(Math.log10(lo)); p <= Math.ceil(Math.log10(hi)); p++) for (const m of steps) {
      const v = m * 10 ** p;
      if (v >= lo * 0.999 && v <= hi * 1.001) all.push(v);
    }
    if (all.length <= most || steps.length === 1) return all;
  }
}
const logScale = {distr: 3, log: 10, range: (u, lo, hi) => logRange(lo, hi)};

function significantTick(v) { return String(Math.round(v * 1000) / 1000); }

// logRange returns the range of a logarithmic axis: at least a factor of ten; its ends are powers of the square root of ten.
function logRange(lo, hi) {
  if (!(lo > 0) || !(hi > 0)) return [1e3, 1e9];
  let a = Math.floor(2 * Math.log10(lo)) / 2, b = Math.ceil(2 * Math.log10(hi)) / 2;
  if (b - a < 1) { a -= 0.5; b = Math.max(b, a + 1); }
  return [10 ** a, 10 ** b];
}

function hatch(ctx, x, y, w, h, stroke, step = 7) {
  ctx.save();
  ctx.beginPath(); ctx.rect(x, y, w, h); ctx.clip();
  ctx.strokeStyle = stroke; ctx.globalAlpha *= 0.55; ctx.lineWidth = 1;
  ctx.beginPath();
  for (let i = Math.floor((x - h) / step) * step; i < x + w; i += step) { ctx.moveTo(i, y + h); ctx.lineTo(i + h, y); }
  ctx.stroke();
  ctx.restore();
}

// inForce returns the beginning and the end of the time in which a fault was active: after its injection and before its healing.
function inForce(f) {
  const to = f.to < 0 ? Infinity : f.to;
  return [f.in || f.from, f.out ? (f.out < 0 ? to : f.out) : to];
}

// faults shades the periods of faults behind a chart over time, and hatches them while the fault is active. It also marks role changes.
function faults(run) {
  return {hooks: {drawClear: u => {
    const {ctx, bbox} = u;
    for (const f of run.faults) {
      const a = Math.max(u.valToPos(f.from / 1e9, "x", true), bbox.left);
      const b = Math.min(f.to < 0 ? Infinity : u.valToPos(f.to / 1e9, "x", true), bbox.left + bbox.width);
      if (b < bbox.left || a > bbox.left + bbox.width) continue;
      const right = bbox.left + bbox.width, at = ns => Math.min(Math.max(ns === Infinity ? right : u.valToPos(ns / 1e9, "x", true), bbox.left), right);
      const [x, end] = inForce(f).map(at);
      ctx.save();
      ctx.fillStyle = color("fault"); ctx.fillRect(a, bbox.top, Math.max(b - a, 2), bbox.height);
      hatch(ctx, x, bbox.top, Math.max(end - x, 2), bbox.height, color("faultline"), 9 * devicePixelRatio);
      ctx.restore();
    }
    for (const r of run.roles || []) {
      const x = u.valToPos(r.to / 1e9, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.save();
      ctx.strokeStyle = color("ink"); ctx.globalAlpha = 0.6; ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
      ctx.restore();
    }
  }, draw: u => {
    const {ctx, bbox} = u;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`; ctx.textBaseline = "top"; ctx.textAlign = "left";
    let free = 0, row = 0;
    for (const f of run.faults) {
      const a = Math.max(u.valToPos(f.from / 1e9, "x", true), bbox.left);
      if (a > bbox.left + bbox.width) continue;
      const text = f.name.split("@")[0], w = ctx.measureText(text).width;
      row = a < free ? row + 1 : 0;
      free = Math.max(free, a + w + 8);
      const x = Math.min(a + 3, bbox.left + bbox.width - w - 2), y = bbox.top + 3 + row * 13 * devicePixelRatio;
      ctx.globalAlpha = 0.85; ctx.fillStyle = color("card"); ctx.fillRect(x - 2, y - 1, w + 4, 13 * devicePixelRatio);
      ctx.globalAlpha = 1; ctx.fillStyle = color("faultline"); ctx.fillText(text, x, y);
    }
    ctx.textBaseline = "bottom"; free = 0;
    let level = 0;
    for (const r of run.roles || []) {
      const at = u.valToPos(r.to / 1e9, "x", true), w = ctx.measureText(r.name).width;
      if (at < bbox.left || at > bbox.left + bbox.width) continue;
      const x = Math.min(at + 3, bbox.left + bbox.width - w - 2);
      level = x < free ? level + 1 : 0;
      if (level > 3) continue; // no room; the table below the chart lists all of them
      free = Math.max(free, x + w + 8);
      const y = bbox.top + bbox.height - 3 - level * 13 * devicePixelRatio;
      ctx.globalAlpha = 0.85; ctx.fillStyle = color("card"); ctx.fillRect(x - 2, y - 12 * devicePixelRatio, w + 4, 13 * devicePixelRatio);
      ctx.globalAlpha = 1; ctx.fillStyle = color("muted"); ctx.fillText(r.name, x, y);
    }
    ctx.restore();
  }}};
}

// outages draws a band with a name for each outage.
function outages(run) {
  return {hooks: {draw: u => {
    const {ctx, bbox} = u, right = bbox.left + bbox.width, high = 4 * devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`; ctx.textBaseline = "bottom"; ctx.textAlign = "left";
    let free = 0;
    for (const o of run.outages || []) {
      const a = Math.max(u.valToPos(o.from / 1e9, "x", true), bbox.left), b = Math.min(u.valToPos(o.to / 1e9, "x", true), right);
      if (b < bbox.left || a > right) continue;
      const y = bbox.top + bbox.height * 0.6, w = ctx.measureText(o.name).width, x = Math.max(Math.min(a, right - w - 2), bbox.left);
      ctx.fillStyle = color("overlap"); ctx.fillRect(a, y, Math.max(b - a, 2), high);
      if (x < free) continue; // no room; the table below the chart lists all of them
      free = x + w + 8;
      ctx.globalAlpha = 0.85; ctx.fillStyle = color("card"); ctx.fillRect(x - 2, y - 13 * devicePixelRatio, w + 4, 13 * devicePixelRatio);
      ctx.globalAlpha = 1; ctx.fillStyle = color("overlap"); ctx.fillText(o.name, x, y);
    }
    ctx.restore();
  }}};
}

// phases shades every second phase of the load behind a chart over time. It writes the names of all phases at the bottom.
function phases(run) {
  const each = (u, draw) => {
    const {ctx, bbox} = u, right = bbox.left + bbox.width;
    ctx.save();
    run.phases.forEach((p, i) => {
      const a = Math.max(u.valToPos(p.from / 1e9, "x", true), bbox.left), b = Math.min(u.valToPos(p.to / 1e9, "x", true), right);
      if (b > a) draw(ctx, bbox, p.name, i, a, b - a);
    });
    ctx.restore();
  };
  return {hooks: {drawClear: u => each(u, (ctx, bbox, name, i, x, w) => {
    ctx.fillStyle = color(i % 2 ? "soft" : "card"); ctx.fillRect(x, bbox.top, w, bbox.height);
  }), draw: u => each(u, (ctx, bbox, name, i, x, w) => {
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`; ctx.textBaseline = "bottom"; ctx.textAlign = "center";
    ctx.fillStyle = color("muted");
    if (ctx.measureText(name).width < w - 2) ctx.fillText(name, x + w / 2, bbox.top + bbox.height - 2);
    ctx.fillRect(x, bbox.top + bbox.height - 4 * devicePixelRatio, devicePixelRatio, 4 * devicePixelRatio);
  })}};
}

// chart makes a uPlot that adapts to the width of its box and to the theme. The source is the data, or a function that update calls again.
function chart(box, options, source) {
  const data = typeof source === "function" ? source() : source;
  const size = () => ({width: Math.max(box.clientWidth, 200), height: options.height || height});
  const u = new uPlot(Object.assign({padding: [8, 20, 0, 0], legend: {live: true, markers: {width: 0, fill: (u, i) => swatch(u.series[i])}}}, options, size()), data, box);
  const rest = () => u.root.classList.toggle("rest", u.cursor.idx == null); // without a cursor, the legend has no values
  (u.hooks.setCursor = u.hooks.setCursor || []).push(rest);
  rest();
  new ResizeObserver(() => { const s = size(); if (s.width !== u.width) u.setSize(s); }).observe(box);
  return {redraw: () => u.redraw(false, true), update: () => u.setData(source()), plot: u};
}

// line returns the style of a series; name is the name of its colour.
function line(name, dash = [], width = 2) { return {stroke: () => color(name), width, dash, ink: `var(--${name})`}; }

function stroke(i) { return line(...styles[i % styles.length]); }

// swatch paints the sample of a series for the legend: a line with the same dashes.
function swatch({dash = [], ink}) {
  let at = 0;
  const stops = dash.map((long, i) => { const from = at; at += long; return `${i % 2 ? "transparent" : ink} ${from}px ${at}px`; });
  return stops.length ? `repeating-linear-gradient(90deg, ${stops.join()})` : ink;
}

const fromSecond = (u, a, b) => a == null ? [0, 1] : [a, Math.max(b, a + 1)];

const inSeconds = {label: "at", value: (u, v) => v == null ? "-" : significantTick(v) + " s"};

drawings.rate = (box, run) => {
  if (!run.series) return null;
  const points = {show: () => run.series.at.length < 80, size: 4};
  return chart(box, {
    scales: {x: {time: false, range: fromSecond}, y: {range: (u, a, b) => [0, (b || 1) * 1.12]}}, cursor: {sync: {key: run.id}},
    axes: [seconds, axis({size: 50, values: (u, all) => all.map(v => count(v))})],
    series: [inSeconds, Object.assign(stroke(0), {label: "visits/s", points, value: (u, v) => v == null ? "-" : significant(v)})],
    plugins: [phases(run), faults(run), outages(run)],
  }, () => [run.series.at, run.series.rate]);
};

drawings.latency = (box, run) => {
  const s = run.series;
  if (!s) return null;
  const lines = [], data = [() => run.series.at];
  const points = {show: () => run.series.at.length < 80, size: 4};
  for (const [tag, dash] of [["response", []], ["acquire", [7, 4]]]) for (const [q, name, width] of [["p50", "blue", 1.5], ["p99", "orange", 2.2], ["max", "pink", 1]]) {
    const known = s.lines[tag] && s.lines[tag][q];
    if (!known || document.getElementById("data") && !known.some(v => v != null)) continue; // a live page keeps lines that have no values yet
    lines.push(Object.assign(line(name, dash, width), {label: `${tag} ${q}`, points, value: (u, v) => duration(v)}));
    data.push(() => run.series.lines[tag][q]);
  }
  return chart(box, {
    scales: {x: {time: false, range: fromSecond}, y: logScale}, cursor: {sync: {key: run.id}},
    axes: [seconds, logLengths], series: [inSeconds, ...lines], plugins: [phases(run), faults(run), outages(run)],
  }, () => data.map(of => of()));
};

const percentile = x => {
  if (x <= 1.0001) return "min";
  const places = Math.max(0, Math.round(Math.log10(x)) - 2);
  return "p" + (100 * (1 - 1 / x)).toFixed(x < 5 ? 0 : places);
};

// percentiles draws distributions with 1/(1-q) as the x axis for the quantile q. Each factor of ten is one more nine, as from p99 to p99.9.
function percentiles(box, all) {
  all = all.filter(l => l.points && l.points.length);
  if (!all.length) return null;
  const data = uPlot.join(all.map(l => [l.points.map(p => p[0]), l.points.map(p => Math.max(p[1], 1))]));
  const most = Math.max(...all.map(l => l.points.at(-1)[0]));
  return chart(box, {
    scales: {x: {time: false, distr: 3, range: () => [1, Math.max(10, most * 1.1)]}, y: logScale},
    axes: [axis({size: 30, space: 46, values: (u, v) => v.map(x => x == null ? "" : Math.abs(Math.log10(x) - Math.round(Math.log10(x))) < 1e-6 ? percentile(x) : "")}), logLengths],
    series: [{label: "percentile", value: (u, v) => v == null ? "-" : percentile(v)},
      ...all.map((l, i) => Object.assign(stroke(i), {label: l.label, spanGaps: true, points: {show: false}, value: (u, v) => v == null ? "-" : duration(v)}))],
  }, data);
}

const distribution = (run, tag, label) => ({label, points: run.series && run.series.lines[tag] && run.series.lines[tag].spectrum});

// compared returns the runs whose load is that of the chart.
const compared = box => page.runs.filter(r => r.load === Number(box.dataset.load));

drawings.spectrum = (box, run) => percentiles(box, [distribution(run, "response", "response"), distribution(run, "acquire", "acquire")]);
drawings.handoff = (box, run) => percentiles(box, [distribution(run, "handoff", "hand-off")]) || empty(box, "No hand-off was seen: nobody waited, or the lock does not exclude.");
drawings.spectra = box => percentiles(box, compared(box).map(r => distribution(r, "response", r.name)));

function empty(box, text) {
  box.append(element("p", {class: "note", text}));
  return null;
}

const ramps = {
  light: [[232, 240, 196], [94, 201, 160], [33, 128, 141], [59, 58, 128], [43, 10, 61]],
  dark: [[34, 36, 63], [51, 80, 141], [33, 144, 141], [108, 205, 90], [247, 226, 37]],
};

function ramp(x) {
  const stops = ramps[dark() ? "dark" : "light"], at = Math.min(Math.max(x, 0), 0.9999) * (stops.length - 1), i = Math.floor(at);
  return `rgb(${stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * (at - i))).join()})`;
}

drawings.heat = (box, run, tag) => {
  const s = run.series, m = s && s.heat[tag];
  if (!m || !m.cells.length) return empty(box, "Nothing to show.");
  const most = Math.log(1 + Math.max(...m.cells.map(c => c[2])));
  const edge = row => 10 ** (row / m.per);
  const first = s.at[0], last = s.at.at(-1) + s.step;
  const cells = u => {
    const {ctx, bbox} = u;
    ctx.save();
    ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
    for (const [i, row, n] of m.cells) {
      const x = u.valToPos(s.at[i], "x", true), right = u.valToPos(s.at[i] + s.step, "x", true);
      const y = u.valToPos(edge(row + 1), "y", true), below = u.valToPos(edge(row), "y", true);
      ctx.fillStyle = ramp(Math.log(1 + n) / most);
      ctx.fillRect(Math.floor(x), Math.floor(y), Math.ceil(right - x), Math.ceil(below - y));
    }
    ctx.restore();
  };
  return chart(box, {
    legend: {show: false}, cursor: {sync: {key: run.id}, y: false},
    scales: {x: {time: false, range: () => [first, last]}, y: {distr: 3, log: 10, range: () => [edge(m.first), edge(m.first + Math.max(m.rows, m.per))]}},
    axes: [seconds, logLengths], series: [{}, {points: {show: false}}],
    plugins: [phases(run), faults(run), {hooks: {drawAxes: cells}}],
  }, [[first, last], [null, null]]);
};

function level(value, text) {
  return {hooks: {draw: u => {
    const {ctx, bbox} = u, y = u.valToPos(value(), "y", true);
    ctx.save();
    ctx.strokeStyle = color("orange"); ctx.lineWidth = 1.5 * devicePixelRatio; ctx.setLineDash([6, 4]);
    ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
    ctx.restore();
  }}};
}

function bars(box, run, of, more) {
  const fill = () => color("blue") + "b0";
  return chart(box, Object.assign({
    scales: {x: {time: false, range: () => [-0.7, of().length - 0.3]}, y: more.scale},
    axes: [axis({size: 30, space: 34, incrs: [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 200, 500, 1000], values: (u, all) => all.map(v => Number.isInteger(v) ? worker(v) : "")}), more.axis],
    series: [{label: "worker", value: (u, v) => v == null ? "-" : worker(v)},
      Object.assign(line("blue", [], 1), {label: more.label, fill, points: {show: false}, value: more.value, paths: uPlot.paths.bars({size: [0.8, 40]})})],
    plugins: more.plugins || [],
  }), () => [of().map((_, i) => i), of()]);
}

drawings.shares = (box, run) => {
  const visits = () => (run.workers || []).map(w => w.visits);
  if (!visits().length) return null;
  const fair = () => visits().reduce((a, b) => a + b, 0) / visits().length;
  return bars(box, run, visits, {
    label: "visits", scale: {range: (u, a, b) => [0, Math.max(b, fair(), 1) * 1.1]}, value: (u, v) => v == null ? "-" : count(v),
    axis: axis({size: 50, values: (u, all) => all.map(count)}), plugins: [level(fair)],
  });
};

drawings.waits = (box, run) => {
  const waits = () => (run.workers || []).map(w => Math.max(w.longest_wait_ns, 1));
  if (!waits().length) return null;
  return bars(box, run, waits, {label: "longest wait", scale: {range: (u, a, b) => [0, b * 1.1]}, value: (u, v) => v == null ? "-" : duration(v), axis: lengths});
};

drawings.lorenz = (box, run) => {
  const curve = () => {
    const visits = (run.workers || []).map(w => w.visits).sort((a, b) => a - b), sum = visits.reduce((a, b) => a + b, 0);
    let so = 0;
    const x = [0], y = [0];
    visits.forEach((v, i) => { so += v; x.push(100 * (i + 1) / visits.length); y.push(100 * so / (sum || 1)); });
    return [x, y, x];
  };
  if (curve()[1].at(-1) === 0 && document.getElementById("data")) return empty(box, "No visit was counted.");
  const share = axis({size: 44, values: (u, all) => all.map(v => v + " %")});
  const format = (u, v) => v == null ? "-" : significant(v) + " %";
  return chart(box, {
    scales: {x: {time: false, range: [0, 100]}, y: {range: [0, 100]}}, axes: [axis({size: 30, values: share.values}), share],
    series: [{label: "poorest workers", value: format},
      Object.assign(stroke(0), {label: "their visits", fill: () => color("blue") + "22", points: {show: false}, value: format}),
      Object.assign(stroke(1), {label: "if equal", points: {show: false}, value: format})],
  }, curve);
};

// mark draws the verdict on a run as a shape: a disc = passed, a cross = failed, an empty square = undecided.
function mark(ctx, status, x, y, r) {
  ctx.lineWidth = r / 2.2; ctx.setLineDash([]);
  ctx.strokeStyle = ctx.fillStyle = color({pass: "pass", fail: "fail"}[status] || "unsure");
  ctx.beginPath();
  if (status === "pass") { ctx.arc(x, y, r, 0, 7); ctx.fill(); }
  else if (status === "fail") { ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x + r, y - r); ctx.lineTo(x - r, y + r); ctx.stroke(); }
  else { ctx.rect(x - r, y - r, 2 * r, 2 * r); ctx.stroke(); }
}

drawings.pareto = box => {
  const all = compared(box).filter(r => r.trips != null && r.p99 != null && r.p99 > 0).sort((a, b) => a.trips - b.trips || a.p99 - b.p99);
  if (!all.length) return empty(box, "No run has both a cost and a p99.");
  let best = Infinity;
  const front = all.filter(r => r.status === "pass" && r.p99 < best && (best = r.p99));
  const shapes = u => {
    const {ctx, bbox} = u, r = 5 * devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = color("pass"); ctx.lineWidth = 1.5 * devicePixelRatio; ctx.setLineDash([5, 4]);
    ctx.beginPath();
    for (const f of front) ctx.lineTo(u.valToPos(f.trips, "x", true), u.valToPos(f.p99, "y", true));
    ctx.stroke();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`; ctx.textBaseline = "middle"; ctx.textAlign = "left";
    const at = run => [u.valToPos(run.trips, "x", true), u.valToPos(run.p99, "y", true)];
    const taken = all.map(run => ({x: at(run)[0] - r, y: at(run)[1], w: 2 * r}));
    for (const run of all) {
      const [x, y] = at(run);
      mark(ctx, run.status, x, y, r);
      const w = ctx.measureText(run.name).width, line = 13 * devicePixelRatio, right = bbox.left + bbox.width - w - r;
      const tx = Math.max(x + 2 * r <= right ? x + 2 * r : x - 2 * r - w, bbox.left + r);
      const free = ty => ty > bbox.top + line / 2 && ty < bbox.top + bbox.height - line / 2 &&
        !taken.some(t => Math.abs(t.y - ty) < line && tx < t.x + t.w + r && t.x < tx + w + r);
      const near = Array.from({length: 41}, (_, i) => y + (i % 2 ? 1 : -1) * Math.ceil(i / 2) * line / 2); // places to try, the nearest to the mark first
      const ty = near.find(free);
      if (ty == null) continue; // no room; the table has the name
      taken.push({x: tx, y: ty, w});
      ctx.fillStyle = color("ink");
      ctx.fillText(run.name, tx, ty);
    }
    ctx.restore();
  };
  const made = chart(box, {
    legend: {show: false}, scales: {x: {time: false, range: (u, a, b) => [Math.max(0, a - 0.15 * (b - a) - 0.5), b + 0.15 * (b - a) + 0.5]}, y: logScale},
    axes: [axis({size: 46, label: "round trips a visit", labelSize: 16}), logLengths],
    series: [{}, {points: {show: false}, stroke: () => "transparent"}], plugins: [{hooks: {draw: shapes}}],
  }, [all.map(r => r.trips), all.map(r => r.p99)]);
  box.append(element("p", {class: "note", text: "● passed   ✕ a property failed   □ inconclusive"}));
  return made;
};

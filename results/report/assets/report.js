"use strict";
// Code for all parts of the page: the data, units, the colours of the theme, and drawing of a part when it becomes visible.
const page = {runs: [], bytes: null, drawn: [], waiting: new Map(), strips: {}};

const palette = new Map(); // colours of the current theme, by name

function color(name) {
  if (!palette.has(name)) palette.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  return palette.get(name);
}

function significant(x) {
  if (x === 0) return "0";
  const places = Math.max(2 - Number(x.toExponential(2).split("e")[1]), 0);
  return x.toFixed(Math.min(places, 6));
}

function duration(ns) {
  if (ns == null) return "-";
  const a = Math.abs(ns);
  if (a < 1e3) return Math.round(ns) + " ns";
  if (a < 999.5e3) return significant(ns / 1e3) + " µs";
  if (a < 999.5e6) return significant(ns / 1e6) + " ms";
  return significant(ns / 1e9) + " s";
}

// tick formats a duration for an axis, without needless digits.
function tick(ns) { return duration(ns).replace(/\.0+ /, " ").replace(/(\.\d*?)0+ /, "$1 "); }

function count(n) { return Math.round(n).toString().replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f"); }

function clock(ns, digits = 6) { return (ns / 1e9).toFixed(digits) + " s"; }

const worker = n => n < 0 ? "suite" : "w" + String(n).padStart(2, "0");

function element(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) {
    if (k === "text") e.textContent = v;
    else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
}

async function unpack() {
  const text = document.getElementById("data").textContent.trim().replace(/-/g, "+").replace(/_/g, "/");
  const raw = atob(text), packed = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) packed[i] = raw.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const all = new Uint8Array(await new Response(stream).arrayBuffer());
  const size = new DataView(all.buffer).getUint32(0, true);
  page.runs = JSON.parse(new TextDecoder().decode(all.subarray(4, 4 + size)));
  page.bytes = all.subarray(4 + size);
}

// Numbers reads the integers in a range of the bytes.
class Numbers {
  constructor(at) { this.b = page.bytes; this.i = at.at; this.end = at.at + at.size; }
  get more() { return this.i < this.end; }
  next() {
    let x = 0, scale = 1, byte;
    do { byte = this.b[this.i++]; x += (byte & 127) * scale; scale *= 128; } while (byte > 127);
    return x % 2 ? -(x + 1) / 2 : x / 2;
  }
  after(base) { const n = this.next(); return n === 0 ? Infinity : base + (n - 1) / 2; }
}

function dark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  palette.clear();
  document.getElementById("theme").textContent = dark() ? "Light" : "Dark";
  for (const d of page.drawn) d.redraw();
}

function draw(box) {
  const make = page.waiting.get(box);
  if (!make) return;
  page.waiting.delete(box);
  const made = make(box);
  if (made) page.drawn.push(Object.assign(made, {kind: box.dataset.chart}));
  box.dataset.drawn = made ? "yes" : "empty";
}

function drawAll() { for (const box of [...page.waiting.keys()]) draw(box); }

function plan() {
  const seen = new IntersectionObserver(all => {
    for (const e of all) if (e.isIntersecting) { seen.unobserve(e.target); draw(e.target); }
  }, {rootMargin: "400px"});
  for (const box of document.querySelectorAll("[data-chart]")) {
    const home = box.closest("[data-run]");
    const run = home && page.runs.find(r => r.id === home.dataset.run);
    const kind = box.dataset.chart;
    const [name, part] = kind.split("-");
    page.waiting.set(box, b => drawings[name](b, run, part));
    const place = box.getBoundingClientRect();
    if (place.width && place.top < innerHeight) draw(box); // draw it immediately: a program that takes a picture of the page does not scroll
    else seen.observe(box);
  }
}

async function start() {
  const button = document.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", () => theme(dark() ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme());
  for (const b of document.querySelectorAll("[data-copy]")) {
    b.hidden = false;
    b.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(b.dataset.copy); b.textContent = "Copied"; }
      catch { getSelection().selectAllChildren(b.previousElementSibling); b.textContent = "Selected"; }
    });
  }
  theme();
  await (document.getElementById("data") ? unpack() : live());
  plan();
  for (const b of document.querySelectorAll("[data-from]")) {
    const run = b.closest("[data-run]").dataset.run;
    const box = document.querySelector(`#${run} [data-chart=strip]`);
    if (!box) continue;
    b.hidden = false;
    b.addEventListener("click", () => {
      draw(box);
      const from = Number(b.dataset.from), to = Number(b.dataset.to), edge = Math.max((to - from) / 8, 2e5);
      page.strips[run].show(from - edge, to + edge);
      box.scrollIntoView({block: "center"});
    });
  }
  const unfold = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1)), fold = target && target.closest("details");
    if (!fold) return;
    fold.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();
  let before = "";
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme || "";
    for (const d of document.querySelectorAll("details:not(.fold)")) d.open = true; // of many runs, only those that the reader has opened are printed
    drawAll();
    theme("light");
  });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.theme; theme(before); });
  document.documentElement.dataset.ready = "yes";
}

// The live page shows a run in progress. New data replace the old, so that the page does not grow.

// live waits for the first frame, and then updates the page with each event.
function live() {
  const run = {id: "run0", faults: [], phases: [], workers: [], series: {at: [], rate: [], lines: {}}, strip: null};
  page.runs = [run];
  page.bytes = new Uint8Array(0);
  return new Promise(ready => {
    const source = new EventSource("events");
    source.addEventListener("series", e => { run.series = JSON.parse(e.data); refresh(["rate", "latency"]); });
    source.addEventListener("frame", e => { show(run, JSON.parse(e.data)); if (run.workers.length) ready(); });
    source.addEventListener("end", e => {
      source.close();
      if (JSON.parse(e.data).report) location.reload(); // the run has ended: the same address now has the report
      else document.getElementById("stage").textContent = "It has ended, without a report.";
    });
    source.onerror = () => { document.getElementById("stage").textContent = "The connection is lost; it is tried again."; };
  });
}

function refresh(kinds) {
  for (const d of page.drawn) if (kinds.includes(d.kind)) d.update();
}

function show(run, f) {
  const text = (id, t) => { const e = document.getElementById(id); if (e.textContent !== t) e.textContent = t; };
  const [state, sign, word, said] = f.safety;
  document.getElementById("verdict").className = "banner " + state;
  document.title = `${word} · ${f.title} · Hammerlock`;
  text("sign", sign); text("word", word); text("safety", said); text("note", f.note); text("command", f.command);
  document.getElementById("command").parentElement.hidden = !f.command;
  text("stage", `${f.title} · ${f.stage}` + (f.at ? ` · ${clock(f.at, 1)} of ${clock(f.to, 1)}` : ""));
  document.documentElement.dataset.at = f.at;
  document.getElementById("tiles").replaceChildren(...f.tiles.map(([name, value, more]) =>
    element("div", {}, element("span", {text: name}), element("b", {text: value}), element("small", {text: more}))));
  for (const id of ["events", "nodes"]) document.getElementById(id).replaceChildren(...f[id].map(row => element("tr", {}, ...row.map(t => element("td", {text: t})))));
  const done = document.getElementById("done");
  done.hidden = !f.done || !f.done.length;
  if (done.childElementCount !== (f.done || []).length) done.replaceChildren(...f.done.map(d => element("a", {href: d.link, text: d.name})));
  for (const e of document.querySelectorAll("#run0 > :not(#tiles):not(#lanes)")) e.hidden = f.bare;
  run.faults = f.faults; run.phases = f.phases;
  run.workers = f.workers || [];
  lanes(run, f.lanes);
  refresh(["shares", "lorenz", "waits"]);
}

// lanes converts the lanes of the workers to the strip of a report; each cell becomes a bucket.
function lanes(run, l) {
  document.getElementById("lanes").hidden = !l;
  if (!l) return;
  const raw = atob(l.planes), n = raw.length / 3;
  page.bytes = Uint8Array.from(raw, c => c.charCodeAt(0));
  const strip = {workers: l.workers.length, names: l.workers, from: l.from, end: l.end, every: 2, overlaps: 0, windows: [], marks: [],
    tiers: [{buckets: l.cells}], planes: [[0, n, 2 * n].map(at => ({at, size: n}))], rows: {at: 0, size: 0}, meets: {at: 0, size: 0}};
  run.strip = strip;
  document.getElementById("lanesnote").textContent = `In pieces of ${duration((l.end - l.from) / l.cells)}, the darker the longer the lock was held in it.` +
    (l.hidden ? ` ${l.workers.length} workers are shown, those that hold, are late or wait longest; ${l.hidden} are not.` : "");
  const shown = page.strips.run0;
  if (shown) shown.follow(strip);
}

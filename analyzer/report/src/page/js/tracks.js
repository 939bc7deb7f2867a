// SPDX-License-Identifier: MIT OR Apache-2.0
// Charts of many marks on the window's axis: calls for durability, latencies, and the places on the disk.
"use strict";

const tracks = (() => {
  const { h } = dom;
  const SYNCS = 34;
  const HEAT = 84;
  const MAP = 150;
  /** The height of the axis of time. */
  const FOOT = 18;
  /** The heat's lowest latency, µs, and its steps a doubling. */
  const STEPS = 3;
  const DOUBLINGS = 24;

  /** A track: its chart is painted by `paintOn(pen, width, window)`, which returns what `tell` and `click` need. */
  const track = (desk, /** @type {{title: string, height: number, paintOn: Function, tell: Function, click?: Function, note: string, aria: string, legend?: () => string[][]}} */ { title, height, paintOn, tell, click, note, aria, legend }) => {
    const canvas = dom.canvas({ role: "img", "aria-label": aria });
    const cross = h("div", { class: "cross", hidden: true });
    const plot = h("div", { class: "plot" }, canvas.element, cross);
    const said = h("span", { class: "soft" }, note);
    const element = h("div", { class: "timed track" }, h("div", { class: "label" }, h("b", {}, title), said), plot);
    let width = 0;
    let seen = null;
    const framed = (pen, w, from, to) => {
      paint.axis(pen, from, to, { x: 0, width: w }, height + 1, 1);
      return paintOn(pen, w, from, to);
    };
    const light = () => {
      if (!width || element.hidden) return;
      const [from, to] = desk.window();
      seen = framed(canvas.size(width, height + FOOT), width, from, to);
      if (seen?.said) said.textContent = seen.said;
    };
    dom.onWidth(plot, (now) => { width = now; if (desk.result) light(); });
    const at = (event) => {
      const box = plot.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    desk.timed(plot, { cross, tell: (event, us) => (seen ? tell(seen, ...at(event), us) : null), click: click ? (event) => seen && click(seen, ...at(event)) : null });
    const of = () => ({
      title: `${desk.sheet.name}: ${title.toLowerCase()}`, note: `${said.textContent}; ${desk.words()}`, source: desk.source(), warnings: desk.sheet.missing, legend: legend?.() ?? null, width: 1000, height: height + FOOT,
      draw: (pen, w) => framed(pen, w, ...desk.window()),
    });
    element.querySelector(".label").append(save.menu(title, { chart: of }));
    return { element, light, title, chart: of };
  };

  /** A cell's mark grows with the logarithm of its sum. */
  const strength = (value, most) => 0.3 + 0.7 * (Math.log1p(value) / Math.log1p(most));

  const syncs = (desk) => {
    const { store } = desk;
    const { calls } = store.tables;
    if (!calls) return null;
    const { about } = store.words;
    const durable = new Set(about.durable);
    const rows = [...Array(calls.rows).keys()].filter((row) => durable.has(calls.call[row]));
    if (!rows.length) return null;
    const longest = rows.reduce((most, row) => Math.max(most, calls.took[row]), 0);
    const paintOn = (pen, w, from, to) => {
      const { sync, strong } = paint.colours();
      const bars = [];
      let mine = 0;
      const x = (us) => ((us - from) / (to - from)) * w;
      const filled = [];
      for (const row of rows) {
        const start = calls.start[row];
        if (start >= to) break;
        if (start < from - longest || start + calls.took[row] < from) continue;
        // Those of others are pale: what they force out may be anybody's.
        const is = durability.passes(desk, row);
        if (is) mine += 1;
        pen.fillStyle = is ? sync : strong;
        pen.globalAlpha = is ? 1 : 0.45;
        const level = Math.max(0, [0, 1, 2, 3].findIndex((one) => (filled[one] ?? -Infinity) <= start));
        filled[level] = start + calls.took[row];
        const bar = { x: Math.max(0, x(start)), y: 2 + level * 8, row };
        bar.w = Math.max(1, Math.min(w, x(start + calls.took[row])) - bar.x);
        pen.fillRect(bar.x, bar.y, bar.w, 6.5);
        bars.push(bar);
      }
      pen.globalAlpha = 1;
      return { bars, said: `${format.some(mine, "call")}, from the call to its return${mine < bars.length ? `; pale: ${format.some(bars.length - mine, "call")} of others or for other files` : ""}` };
    };
    const find = (seen, x, y) => seen.bars.findLast((bar) => x >= bar.x - 2 && x <= bar.x + bar.w + 2 && Math.abs(y - bar.y - 3) < 6);
    return track(desk, {
      title: "Calls over time", height: SYNCS, paintOn, note: "", aria: "Calls for durability over time; the table below has them",
      tell: (seen, x, y) => {
        const bar = find(seen, x, y);
        if (!bar) return null;
        const { row } = bar;
        return [h("b", {}, `${about.calls[calls.call[row]]}(${store.words.files[calls.file[row]] ?? ""})`), h("div", {}, `${store.words.whos[calls.who[row]].name} · ${format.us(calls.took[row])}`)];
      },
      click: (seen, x, y) => { const bar = find(seen, x, y); if (bar) desk.details.call(bar.row); },
    });
  };

  const latency = (desk) => {
    const { store } = desk;
    const rows = STEPS * DOUBLINGS;
    const stepOf = (us) => Math.min(rows - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, us)) * STEPS)));
    const paintOn = (pen, w, from, to) => {
      const columns = Math.max(1, Math.floor(w / 4));
      const counts = new Float64Array(columns * rows);
      let [low, high, most] = [rows, 0, 0];
      const ignored = store.eachWait({ ...desk.selection, from, to }, (us, cell, time, many) => {
        const step = stepOf(us);
        const at = step * columns + Math.min(columns - 1, Math.floor(((time - from) / (to - from)) * columns));
        counts[at] += many;
        low = Math.min(low, step);
        high = Math.max(high, step);
        most = Math.max(most, counts[at]);
      });
      const { bar, soft, sans, line } = paint.colours();
      if (low > high) return { said: "no request with a known latency" };
      const tall = HEAT / (high - low + 1);
      pen.fillStyle = bar;
      for (let step = low; step <= high; step += 1) {
        for (let column = 0; column < columns; column += 1) {
          const value = counts[step * columns + column];
          if (!value) continue;
          pen.globalAlpha = strength(value, most);
          pen.fillRect(column * (w / columns), HEAT - (step - low + 1) * tall, w / columns, Math.max(1.5, tall - 0.5));
        }
      }
      pen.globalAlpha = 1;
      pen.font = `11px ${sans}`;
      pen.textBaseline = "bottom";
      for (let power = 0; power < 8; power += 1) {
        const y = HEAT - (Math.log2(10 ** power) * STEPS - low) * tall;
        if (y < 12 || y > HEAT) continue;
        pen.fillStyle = line;
        pen.fillRect(0, y, w, 1);
        pen.fillStyle = soft;
        pen.fillText(format.us(10 ** power), 2, y);
      }
      return { counts, columns, low, tall, from, to, said: `time ↑ (log) from Q to C; darker: more${ignored.length ? ". Of a summed-up trace it does not obey programs and files" : ""}` };
    };
    return track(desk, {
      title: "Latency over time", height: HEAT, paintOn, note: "", aria: "Latencies over time; the table below has their percentiles",
      tell: (seen, x, y, us) => {
        if (!seen.counts) return null;
        const step = seen.low + Math.floor((HEAT - y) / seen.tall);
        const column = Math.min(seen.columns - 1, Math.floor(((us - seen.from) / (seen.to - seen.from)) * seen.columns));
        return [h("b", {}, format.some(seen.counts[step * seen.columns + column] ?? 0, "request")), h("div", { class: "soft" }, `${format.us(Math.round(2 ** (step / STEPS)))} to ${format.us(Math.round(2 ** ((step + 1) / STEPS)))} · at ${format.moment(us)}`)];
      },
    });
  };

  const places = (desk) => {
    const { store } = desk;
    const { bands } = store.words;
    if (!bands.length) return null;
    const lines = bands.reduce((all, band) => Math.max(all, band.row + band.rows), 0);
    /** The band of a sector; it is often that of the one before. */
    let latest = bands[0];
    const bandOf = (sector) => {
      if (sector >= latest.from && sector < latest.to) return latest;
      for (const band of bands) {
        if (sector >= band.from && sector < band.to) {
          latest = band;
          return band;
        }
      }
      return null;
    };
    const lineOf = (band, sector) => band.row + Math.min(band.rows - 1, Math.floor(((sector - band.from) / (band.to - band.from)) * band.rows));
    const GAP = 3;
    const height = MAP + GAP * (bands.length - 1);
    const y = (line) => (line / lines) * MAP + GAP * Math.max(0, bands.findLastIndex((band) => band.row <= line));
    const paintOn = (pen, w, from, to) => {
      const { kinds, line: grey } = paint.colours();
      bands.slice(1).forEach((band) => { pen.fillStyle = grey; pen.fillRect(0, y(band.row) - 2, w, 1); });
      const columns = Math.max(1, Math.floor(w / 3));
      const wide = kinds.length;
      const sums = new Float64Array(columns * lines);
      const colour = new Uint8Array(columns * lines);
      const by = new Float32Array(columns * lines * wide);
      store.eachPlace({ ...desk.selection, from, to }, (sector, bytes, time, cell) => {
        const band = bandOf(sector);
        if (!band || !bytes) return;
        const at = lineOf(band, sector) * columns + Math.min(columns - 1, Math.floor(((time - from) / (to - from)) * columns));
        sums[at] += bytes;
        by[at * wide + store.colours[store.kinds.layer[cell]]] += bytes;
      });
      for (let at = 0; at < sums.length; at += 1) if (sums[at]) for (let k = 1; k < wide; k += 1) if (by[at * wide + k] > by[at * wide + colour[at]]) colour[at] = k;
      let most = 1;
      for (const value of sums) if (value > most) most = value;
      const tall = Math.max(1.5, MAP / lines);
      for (let line = 0; line < lines; line += 1) {
        for (let column = 0; column < columns; column += 1) {
          const at = line * columns + column;
          if (!sums[at]) continue;
          pen.globalAlpha = strength(sums[at], most);
          pen.fillStyle = kinds[colour[at]];
          pen.fillRect(column * (w / columns), y(line), Math.max(2, w / columns), tall);
        }
      }
      pen.globalAlpha = 1;
      return { sums, columns, from, to, colour };
    };
    return track(desk, {
      title: "Places on the disk", height, paintOn, legend: () => store.words.colours.slice(0, 6).map((name, k) => [`--k${k}`, name]), note: "sectors ↓; a line is a part of the disk that was not touched", aria: "Places on the disk over time, written and read",
      tell: (seen, x, py, us) => {
        const line = [...Array(lines).keys()].findLast((one) => y(one) <= py) ?? 0;
        const band = bands.findLast((one) => one.row <= line) ?? bands[0];
        const column = Math.min(seen.columns - 1, Math.floor(((us - seen.from) / (seen.to - seen.from)) * seen.columns));
        const at = line * seen.columns + column;
        const sector = band.from + Math.floor(((line - band.row) / band.rows) * (band.to - band.from));
        return [h("b", {}, `${format.bytes(seen.sums[at] ?? 0)} at ${format.place(sector)}`), h("div", { class: "soft" }, `sector ${format.count(sector)} on, at ${format.moment(us)}`), seen.sums[at] ? h("div", {}, dom.swatch(seen.colour[at]), ` mostly ${store.words.colours[seen.colour[at]]}`) : null];
      },
    });
  };

  /** A tab of its own for the places on the disk. */
  const make = (desk) => {
    const one = places(desk);
    if (!one) return { name: "Places", title: "Places on the disk", element: h("p", { class: "note" }, "No place on the disk was written or read."), draw: () => {}, by: "class,kind" };
    return { name: "Places", title: "Places on the disk", element: h("div", {}, one.element, h("p", { class: "note" }, "Darker: more bytes. The table “Hottest ranges” in the tab Sizes has the places that were written most.")), draw: one.light, by: "class,kind" };
  };
  return { make, syncs, latency };
})();

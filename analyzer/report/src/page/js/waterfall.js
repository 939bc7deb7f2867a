// SPDX-License-Identifier: MIT OR Apache-2.0
// One transaction: its calls above, and what the device did meanwhile below. Requests of a lane that touch are drawn as one,
// and none is left out.
"use strict";

const waterfall = (() => {
  const { h, s, button } = dom;
  const [TOP, FOOT] = [2, 20];
  const [LOW, HIGH] = [15, 30];
  /** The most lanes of a brief one: of calls, and of requests. */
  const BRIEF = [6, 5];

  /** Bars that touch, or are nearer than half a pixel, become one: [{from, to, items}]. */
  const merged = (items, near) => {
    const out = [];
    for (const item of [...items].sort((a, b) => a.from - b.from)) {
      const last = out[out.length - 1];
      if (last && item.from <= last.to + near) {
        last.to = Math.max(last.to, item.to);
        last.items.push(item);
      } else out.push({ from: item.from, to: item.to, items: [item] });
    }
    return out;
  };

  /** @typedef {{from: number, to: number, device?: number, call?: number, row?: number}} Item
   *  @typedef {{name: string, group: number, fill: string, strong: boolean, items: Item[]}} Lane */

  /** The transaction's call that forced each of its rows, as the analyser tells: row → call. Calls that began in the same µs are not
   * told apart. */
  const forcers = (store, one) => {
    const { calls } = store.tables;
    const begun = new Map();
    for (const call of one.calls) begun.set(calls.start[call], begun.has(calls.start[call]) ? null : call);
    return new Map(one.rows.map((row) => [row, begun.get(store.rows.forced[row] - 1) ?? null]).filter(([, call]) => call !== null));
  };

  /** The lanes of a transaction: calls, what the device did for it, and what it did for others.
   * @returns {Lane[]} */
  const lanesOf = (desk, one, brief) => {
    const { store } = desk;
    const { words, rows, cells, ops } = store;
    const { calls } = store.tables;
    const durable = new Set(words.about.durable);
    const lanes = new Map();
    const add = (name, group, fill, strong, item) => {
      if (!lanes.has(`${group} ${name}`)) lanes.set(`${group} ${name}`, { name, group, fill, strong, items: [] });
      lanes.get(`${group} ${name}`).items.push(item);
    };
    for (const row of one.calls) {
      const file = words.files[calls.file[row]];
      const is = durable.has(calls.call[row]);
      add(`${words.about.calls[calls.call[row]]} ${file ? file.split("/").pop() : ""}`, 0, is ? "ink" : "fill-call", is, { from: calls.start[row], to: calls.start[row] + calls.took[row], call: row });
    }
    for (const row of one.rows) {
      const c = rows.cell[row];
      const layer = words.layers[cells.layer[c]];
      // A flush is of the device, whoever asked for it.
      const mine = cells.who[c] === one.who || layer.op !== null;
      const read = cells.op[c] === ops.READ ? "reads: " : "";
      const end = rows.time[row];
      const wait = Math.max(0, rows.wait[row] - 1);
      const item = { from: end - wait, device: end - wait + Math.max(0, rows.queue[row] - 1), to: end, row };
      const fill = layer.op === "device_flush" || layer.op === "flush" ? "fill-flush" : `fill-${layer.colour}`;
      add(mine ? `${read}${layer.name}` : "for others", mine ? 1 : 2, mine ? fill : "fill-call", false, item);
    }
    const all = [...lanes.values()].sort((a, b) => a.group - b.group || a.items[0].from - b.items[0].from);
    if (!brief) return all;
    // What does not fit is drawn together: the shortest calls, the lanes with the fewest requests.
    const shortened = (group, most, name) => {
      const mine = all.filter((lane) => (group === 0 ? lane.group === 0 : lane.group > 0));
      if (mine.length <= most) return mine;
      const weight = (lane) => lane.items.reduce((sum, { from, to }) => sum + to - from, lane.strong ? 1e9 : 0);
      const kept = new Set([...mine].sort((a, b) => weight(b) - weight(a)).slice(0, most - 1));
      const rest = mine.filter((lane) => !kept.has(lane));
      return [...mine.filter((lane) => kept.has(lane)), { name, group, fill: "fill-call", strong: false, items: rest.flatMap(({ items }) => items) }];
    };
    return [...shortened(0, BRIEF[0], "other calls"), ...shortened(1, BRIEF[1], "other requests")];
  };

  /** Draws a transaction; a brief one has at most some lanes and a fixed height. */
  const svg = (desk, one, w, { brief = false, height = 0 } = {}) => {
    const { store } = desk;
    const { calls } = store.tables;
    const lanes = lanesOf(desk, one, brief);
    const extra = brief ? 0 : 1;
    const tall = brief ? Math.max(LOW, Math.min(HIGH, (height - TOP - FOOT) / lanes.length)) : 20;
    const whole = TOP + (lanes.length + extra) * tall + FOOT;
    const left = Math.min(w * 0.4, Math.max(60, ...lanes.map((lane) => chart.measure(lane.name, 11, lane.strong ? "bold" : "normal"))) + 10);
    const x = chart.linear([one.from, Math.max(one.to, one.from + 1)], [left, w - 10]);
    const near = ((one.to - one.from) / (w - left)) * 0.5;
    const fit = chart.fitter();
    const round = (value) => Math.round(value * 10) / 10;
    const bar = (from, to, y, cls, tip, pick) => {
      const [a, b] = [Math.max(left, x(from)), Math.min(w - 10, x(to))];
      return s("rect", { x: round(a), y: round(y + 2), width: round(Math.max(1.5, b - a)), height: round(tall - 5), rx: 1.5, class: cls, onpointermove: (event) => desk.tip(tip, event), onpointerleave: () => desk.tip(null), onclick: pick ?? null });
    };
    const tip = (name, group) => {
      const [item] = group.items;
      const rows = new Set(group.items.map(({ row }) => row));
      return [h("b", {}, name), h("div", {}, `${format.us(group.to - group.from)} from ${format.us(group.from - one.from)}`),
        group.items.length > 1 ? h("div", {}, `${format.some(rows.size, "part")} of requests or calls`) : item.row !== undefined ? details.short(store.row(item.row)) : calls.bytes[item.call] ? h("div", {}, format.bytes(calls.bytes[item.call])) : null];
    };
    const out = [];
    const forced = forcers(store, one);
    /** Where each call is drawn, and where the requests that each forced are. */
    const [callsAt, requestsAt] = [new Map(), []];
    const textIn = (from, to, y, on) => {
      const words = format.us(to - from);
      if (x(to) - x(from) > chart.measure(words, 11) + 10) out.push(s("g", { class: on }, chart.text(x(from) + 5, y + tall / 2 + 3.5, words, { class: "small" })));
    };
    if (extra) {
      out.push(chart.text(left - 7, TOP + tall / 2 + 4, "waits for", { "text-anchor": "end", class: "small strong" }));
      one.pieces.forEach((piece) => out.push(bar(piece.from, piece.to, TOP, `fill-wait-${piece.kind}`, [h("b", {}, waits.KINDS[piece.kind]), ` ${format.us(piece.to - piece.from)}`])));
    }
    lanes.forEach((lane, nth) => {
      const y = TOP + (nth + extra) * tall;
      const first = nth > 0 && lanes[nth - 1].group === 0 && lane.group > 0;
      if (nth || extra) out.push(s("line", { class: first ? "split" : "rule", x1: 0, x2: w, y1: round(y - 0.5), y2: round(y - 0.5) }));
      out.push(chart.text(left - 7, y + tall / 2 + 3, fit(lane.name, left - 8, 11, lane.strong ? "bold" : "normal"), { "text-anchor": "end", "data-name": lane.name, class: `small${lane.strong ? " strong" : ""}` }));
      for (const group of merged(lane.items, near)) {
        for (const { from, call, row } of group.items) {
          if (call !== undefined) callsAt.set(call, y + tall - 3);
          else if (forced.has(row)) requestsAt.push({ at: x(from), y: y + 2, call: forced.get(row) });
        }
        const pick = group.items.length > 1 ? null : group.items[0].row !== undefined ? () => desk.openRequest(group.items[0].row) : () => desk.details.call(group.items[0].call);
        const queued = group.items.some(({ device, from }) => device > from);
        out.push(bar(group.from, group.to, y, `${lane.fill}${queued ? " pale" : ""}`, tip(lane.name, group), pick));
        if (queued) merged(group.items.map((item) => ({ ...item, from: item.device })), near).forEach((part) => out.push(bar(part.from, part.to, y, lane.fill, tip(lane.name, group), pick)));
        if (lane.strong) textIn(group.from, group.to, y, "on-ink");
        if (lane.fill === "fill-flush" && !queued) textIn(group.from, group.to, y, "on-6");
      }
    });
    // Of several that would be drawn over each other, one is.
    const arrows = new Map(requestsAt.map((one) => [[one.call, one.y, Math.round(one.at / 4)].join(), one]));
    for (const { at, y, call } of arrows.values()) {
      if (!callsAt.has(call)) continue;
      const tipAt = Math.min(w - 10, Math.max(left, at)) + 1;
      out.push(s("path", { class: "arrow", d: `M${round(tipAt)},${round(callsAt.get(call))}V${round(y - 4)}m-3,0h6l-3,4z` }));
    }
    const time = chart.ticks(0, one.to - one.from, Math.max(2, (w - left) / 80));
    out.push(chart.bottom((value) => x(one.from + value), time, whole - FOOT, (value) => format.us(value), [left - 10, w]));
    return chart.root(w, whole, `A transaction of ${format.us(one.to - one.from)}; the table has its calls and requests`, {}, out);
  };

  /** Its calls and requests as a table. */
  const tableOf = (desk, one) => {
    const { store } = desk;
    const { calls } = store.tables;
    const { words } = store;
    return {
      title: "Calls and requests of a transaction", columns: [{ name: "what", unit: "text" }, { name: "file", unit: "text" }, { name: "start", unit: "us" }, { name: "took", unit: "us", bar: true }, { name: "bytes", unit: "bytes", sum: true }, { name: "process", unit: "text" }],
      rows: [
        ...one.calls.map((row) => [`${words.about.calls[calls.call[row]]}()`, words.files[calls.file[row]], calls.start[row] - one.from, calls.took[row], calls.bytes[row], words.whos[calls.who[row]].name]),
        ...one.rows.map((row) => { const is = store.row(row); return [`${is.op} ${is.layer.part ?? is.layer.name}`, is.file, is.time - (is.wait ?? 0) - one.from, is.wait, is.bytes, is.who]; }),
      ].sort((a, b) => a[2] - b[2]),
    };
  };
  const LEGEND = [["--sync", "calls for durability, with an arrow to each request that one forced"], ["--call", "other calls, and requests for others"]];
  const pictureOf = (desk, one, node) => ({
    title: `${desk.sheet.name}: a transaction of ${format.us(one.to - one.from)}`, note: "pale: in the queue, not yet in the device", legend: LEGEND, source: desk.source(), warnings: desk.sheet.missing, node,
  });

  /** A transaction with its words and its buttons, below the picture of all. */
  const draw = (desk, at, { next }) => {
    const { store } = desk;
    const { words } = store;
    const { calls, transactions: table } = store.tables;
    const one = waits.of(store, at);
    const plot = h("div", { class: "fall" });
    dom.onWidth(plot, (width) => plot.replaceChildren(svg(desk, one, width)));
    const sums = [...one.sums].map((value, kind) => (value > 0 ? `${waits.KINDS[kind]} ${format.us(value)}` : null)).filter(Boolean).join(", ");
    const durable = one.calls.filter((row) => words.about.durable.includes(calls.call[row]));
    const parts = waits.partsOfAll(calls, durable).map((us, part) => (us > 0 ? `${waits.PARTS[part]} ${format.us(us)}` : null)).filter(Boolean).join(", ");
    return h("section", { class: "transaction" },
      h("div", { class: "head" }, h("h3", {}, `${words.about.databases[table.database[at]] ?? "A database"}: ${format.us(one.to - one.from)} at ${format.moment(one.from)}`),
        button("‹ earlier", () => next(-1)), button("later ›", () => next(1)), button("Select its time", () => desk.during(one.from, one.to + 1)), save.menu("this transaction", { table: () => tableOf(desk, one), chart: () => pictureOf(desk, one, () => plot.querySelector("svg")) })),
      h("p", { class: "note" }, `It waited for: ${sums}. ${parts ? `Its ${format.some(durable.length, "call")} for durability waited for: ${parts}. ` : ""}${format.some(one.calls.length, "call")}, ${format.some(one.rows.length, "part")} of requests, whoever they were for. An arrow leads from a call to a request that it forced. Pale: not yet in the device.`),
      plot);
  };
  return { draw, svg, tableOf, pictureOf, merged, forcers };
})();

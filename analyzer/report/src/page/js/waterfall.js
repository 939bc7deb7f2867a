// SPDX-License-Identifier: MIT OR Apache-2.0
// One transaction: what it waited for at each moment, its calls, and what the device did meanwhile. Requests of a lane that
// touch are drawn as one, and none is left out.
"use strict";

const waterfall = (() => {
  const { h, button } = dom;
  const ROW = 20;
  const HEAD = 4;

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

  /** The lanes of a transaction: {name, bars: [{from, to, colour, items}]}. */
  const lanesOf = (desk, one, near) => {
    const { store } = desk;
    const { words, rows, cells } = store;
    const { calls } = store.tables;
    const lanes = new Map();
    const lane = (name, order) => {
      if (!lanes.has(name)) lanes.set(name, { name, order, items: [] });
      return lanes.get(name).items;
    };
    for (const row of one.calls) {
      const name = words.about.calls[calls.call[row]];
      const file = words.files[calls.file[row]];
      const from = calls.start[row];
      lane(`${name} ${file ? file.split("/").pop() : ""}`, 0).push({ from, to: from + calls.took[row], call: row, fill: words.about.durable.includes(calls.call[row]) ? "accent" : "strong" });
    }
    for (const row of one.rows) {
      const c = rows.cell[row];
      const layer = words.layers[cells.layer[c]];
      const mine = cells.who[c] === one.who || layer.op !== null;
      const name = mine ? (layer.op ? layer.name : `${words.ops[cells.op[c]]} ${layer.name}`) : "for others";
      const end = rows.time[row];
      lane(name, mine ? 1 : 2).push({ from: end - Math.max(0, rows.wait[row] - 1), to: end, row, fill: mine ? layer.colour : "strong" });
    }
    return [...lanes.values()].sort((a, b) => a.order - b.order || a.items[0].from - b.items[0].from).map(({ name, items }) => ({ name, bars: merged(items, near), items }));
  };

  const draw = (desk, at, { next }) => {
    const { store } = desk;
    const { words } = store;
    const { calls, transactions: table } = store.tables;
    const one = waits.of(store, at);
    const chart = dom.canvas({ role: "img", "aria-label": `A transaction of ${format.us(one.to - one.from)}; the table has its calls and requests` });
    const plot = h("div", { class: "plot" }, chart.element);
    const labels = h("div", { class: "labels" });
    let hits = [];
    const paintOn = (pen, w) => {
      const colours = paint.colours();
      const span = Math.max(1, one.to - one.from);
      const x = (us) => ((us - one.from) / span) * w;
      hits = [];
      const bar = (from, to, y, fill, what) => {
        const left = Math.max(0, x(from));
        const wide = Math.max(1.5, Math.min(w, x(to)) - left);
        pen.fillStyle = fill;
        pen.fillRect(left, y, wide, ROW - 5);
        hits.push({ x: left, y, w: wide, what });
      };
      one.pieces.forEach((piece) => bar(piece.from, piece.to, HEAD, colours.wait[piece.kind], [h("b", {}, waits.KINDS[piece.kind]), ` ${format.us(piece.to - piece.from)}`]));
      const all = lanesOf(desk, one, (span / w) * 0.5);
      all.forEach(({ name, bars }, nth) => {
        const y = HEAD + (nth + 1) * ROW;
        pen.fillStyle = colours.line;
        pen.fillRect(0, y - 3, w, 1);
        for (const group of bars) {
          const { fill } = group.items[0];
          const says = [h("b", {}, name), h("div", {}, `${format.us(group.to - group.from)} from ${format.us(group.from - one.from)}`), group.items.length > 1 ? h("div", {}, `${format.some(group.items.length, "part")} of requests or calls`) : group.items[0].row !== undefined ? details.short(store.row(group.items[0].row)) : h("div", {}, format.bytes(calls.bytes[group.items[0].call]))];
          bar(group.from, group.to, y, typeof fill === "number" ? colours.kinds[fill] : colours[fill], says);
          hits[hits.length - 1].row = group.items.length === 1 ? group.items[0].row : undefined;
        }
      });
      const bottom = HEAD + (all.length + 1) * ROW;
      paint.axis(pen, 0, span, { x: 0, width: w }, bottom, 0);
      return all;
    };
    const heightOf = () => HEAD + (lanesOf(desk, one, 0).length + 1) * ROW + 18;
    dom.onWidth(plot, (width) => {
      const all = paintOn(chart.size(width, heightOf()), width);
      labels.replaceChildren(h("div", { class: "step" }, h("b", {}, "waits for")), ...all.map(({ name, items }) => h("div", { class: "step", title: name }, dom.shorten(name, 30), items.length > 1 ? h("span", { class: "soft" }, ` ${format.count(items.length)}`) : null)));
    });
    const hit = (event) => {
      const { left, top } = plot.getBoundingClientRect();
      const [x, y] = [event.clientX - left, event.clientY - top];
      return hits.findLast((box) => x >= box.x - 1 && x <= box.x + box.w + 1 && y >= box.y && y <= box.y + ROW - 4);
    };
    plot.addEventListener("pointermove", (event) => desk.tip(hit(event)?.what ?? null, event));
    plot.addEventListener("pointerleave", () => desk.tip(null));
    plot.addEventListener("click", (event) => { const row = hit(event)?.row; if (row !== undefined) desk.details.request(row); });
    const sums = [...one.sums].map((value, kind) => (value > 0 ? `${waits.KINDS[kind]} ${format.us(value)}` : null)).filter(Boolean).join(", ");
    const durable = one.calls.filter((row) => words.about.durable.includes(calls.call[row]));
    const parts = waits.partsOfAll(calls, durable).map((us, part) => (us > 0 ? `${waits.PARTS[part]} ${format.us(us)}` : null)).filter(Boolean).join(", ");
    const list = () => ({
      title: "Calls and requests of a transaction", columns: [{ name: "what", unit: "text" }, { name: "file", unit: "text" }, { name: "start", unit: "us" }, { name: "took", unit: "us", bar: true }, { name: "bytes", unit: "bytes", sum: true }, { name: "process", unit: "text" }],
      rows: [
        ...one.calls.map((row) => [`${words.about.calls[calls.call[row]]}()`, words.files[calls.file[row]], calls.start[row] - one.from, calls.took[row], calls.bytes[row], words.whos[calls.who[row]].name]),
        ...one.rows.map((row) => { const is = store.row(row); return [`${is.op} ${is.layer.part ?? is.layer.name}`, is.file, is.time - (is.wait ?? 0) - one.from, is.wait, is.bytes, is.who]; }),
      ].sort((a, b) => a[2] - b[2]),
    });
    return h("section", { class: "transaction" },
      h("div", { class: "head" }, h("h3", {}, `${words.about.databases[table.database[at]] ?? "A database"}: ${format.us(one.to - one.from)} at ${format.moment(one.from)}`),
        button("‹ earlier", () => next(-1)), button("later ›", () => next(1)), button("Select its time", () => desk.during(one.from, one.to + 1)), save.menu("this transaction", { table: list, chart: () => ({ title: `Transaction of ${format.us(one.to - one.from)}`, note: sums, source: desk.source(), width: 1000, height: heightOf(), draw: (pen, w) => paintOn(pen, w) }) })),
      h("p", { class: "note" }, `It waited for: ${sums}. ${parts ? `Its ${format.some(durable.length, "call")} for durability waited for: ${parts}. ` : ""}${format.some(one.calls.length, "call")}, ${format.some(one.rows.length, "part")} of requests, whoever they were for.`),
      h("div", { class: "timed" }, labels, plot));
  };
  return { draw, merged };
})();

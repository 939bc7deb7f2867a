// SPDX-License-Identifier: MIT OR Apache-2.0
// SQLite's transactions: each a dot by its start and its duration, coloured by what it waited for most; and one of them with its
// calls and requests.
"use strict";

const transactions = (() => {
  const { h, button } = dom;
  const HEIGHT = 190;
  const FOOT = 18;

  const { quantile } = waits;

  const make = (desk) => {
    const { store } = desk;
    const { words } = store;
    const table = store.tables.transactions;
    if (!table?.rows) {
      const why = store.tables.calls ? "The system calls of this trace show no transaction of SQLite." : "This trace has no system calls, which show transactions.";
      return { name: "Transactions", title: "Transactions of SQLite", element: h("p", { class: "note" }, why), draw: () => {}, by: "cause_database" };
    }
    const waiting = () => waits.known(store);
    const canvas = dom.canvas({ role: "img", "aria-label": "Transactions by start and duration; the table has them all" });
    const cross = h("div", { class: "cross", hidden: true });
    const plot = h("div", { class: "plot" }, canvas.element, cross);
    const label = h("div", { class: "label" });
    const legend = h("ul", { class: "legend" });
    const words0 = h("p", { class: "note" });
    const detail = h("div");
    let width = 0;
    let shown = [];
    let bounds = [1, 1];
    let chosen = -1;

    const y = (took) => {
      const [low, high] = bounds;
      return HEIGHT - 6 - (Math.log(Math.max(1, took) / low) / Math.log(high / low)) * (HEIGHT - 14);
    };
    const paintOn = (pen, w) => {
      const [from, to] = desk.window();
      const colours = paint.colours();
      const x = (us) => ((us - from) / (to - from)) * w;
      paint.axis(pen, from, to, { x: 0, width: w }, HEIGHT, 1);
      pen.font = `11px ${colours.sans}`;
      for (let power = Math.floor(Math.log10(bounds[0])); power <= Math.ceil(Math.log10(bounds[1])); power += 1) {
        const at = y(10 ** power);
        if (at < 8 || at > HEIGHT) continue;
        pen.fillStyle = colours.line;
        pen.fillRect(0, at, w, 1);
        pen.fillStyle = colours.soft;
        pen.textBaseline = "bottom";
        pen.fillText(format.us(10 ** power), 2, at);
      }
      const { most } = waiting();
      const size = shown.length > 3000 ? 3 : 5;
      for (const at of shown) {
        pen.fillStyle = colours.wait[most[at]];
        const left = x(table.start[at]);
        pen.fillRect(left, y(table.took[at]) - size / 2, Math.max(size, (table.took[at] / (to - from)) * w), size);
      }
      if (chosen >= 0) {
        pen.strokeStyle = colours.ink;
        pen.strokeRect(x(table.start[chosen]) - 4, y(table.took[chosen]) - 6, Math.max(size, (table.took[chosen] / (to - from)) * w) + 8, 12);
      }
    };
    const redraw = () => width && paintOn(canvas.size(width, HEIGHT + FOOT), width);
    dom.onWidth(plot, (now) => { width = now; if (desk.result) redraw(); });

    const nearest = (event) => {
      const box = plot.getBoundingClientRect();
      const [px, py] = [event.clientX - box.left, event.clientY - box.top];
      const [from, to] = desk.window();
      let [best, distance] = [-1, 24 * 24];
      for (const at of shown) {
        const [left, right] = [table.start[at], table.start[at] + table.took[at]].map((us) => ((us - from) / (to - from)) * width);
        const dx = px < left ? left - px : px > right ? px - right : 0;
        const dy = y(table.took[at]) - py;
        if (dx * dx + dy * dy < distance) [best, distance] = [at, dx * dx + dy * dy];
      }
      return best;
    };
    const sumsOf = (at) => [...waiting().sums.slice(at * waits.KINDS.length, (at + 1) * waits.KINDS.length)];
    const tell = (event) => {
      const at = nearest(event);
      if (at < 0) return null;
      return [h("b", {}, words.about.databases[table.database[at]] ?? "a database"), h("div", {}, `${format.us(table.took[at])} from ${format.moment(table.start[at])}`),
        ...sumsOf(at).map((value, kind) => (value > 0 ? h("div", {}, h("span", { class: `swatch wait-${kind}` }), ` ${waits.KINDS[kind]} ${format.us(value)}`) : null))];
    };
    desk.timed(plot, { tell, cross, click: (event) => { const at = nearest(event); if (at >= 0) desk.openTransaction(at); } });

    /** Opens one, which an address may name that is not there. */
    const show = (at) => {
      if (!(at >= 0 && at < table.rows)) return;
      chosen = at;
      detail.replaceChildren(waterfall.draw(desk, at, {
        next: (by) => {
          const place = shown.indexOf(chosen) + by;
          if (shown[place] !== undefined) desk.openTransaction(shown[place]);
        },
      }));
      redraw();
    };
    const list = () => {
      const rows = shown.map((at) => Object.assign([words.about.databases[table.database[at]] ?? "not known", words.whos[table.who[at]].name, table.start[at], table.took[at], ...sumsOf(at)], { at }));
      return { title: "Transactions", columns: [{ name: "database", unit: "text" }, { name: "process", unit: "text" }, { name: "start", unit: "moment" }, { name: "took", unit: "us", bar: true, sum: true }, ...waits.KINDS.map((name) => ({ name, unit: "us", sum: true }))], rows };
    };
    const slowest = button("Show the slowest", () => { if (shown.length) desk.openTransaction(shown.reduce((best, at) => (table.took[at] > table.took[best] ? at : best))); });
    const draw = () => {
      shown = waits.selected(desk);
      const times = Float64Array.from(shown, (at) => table.took[at]).sort();
      bounds = times.length ? [Math.max(1, times[0] * 0.8), Math.max(2, times[times.length - 1] * 1.2)] : [1, 10];
      const sums = waits.sumsOf(store, shown);
      const whole = sums.reduce((all, value) => all + value, 0);
      legend.replaceChildren(...sums.map((value, kind) => (value > 0 ? h("li", {}, h("span", { class: `swatch wait-${kind}` }), ` ${waits.KINDS[kind]} `, h("span", { class: "soft" }, `${format.us(value)} · ${format.percent(value, whole)}`)) : null)).filter(Boolean));
      // Bytes of the processes that made them, not of all.
      const makers = new Set(shown.map((at) => table.who[at]));
      let bytes = 0;
      store.cells.who.forEach((who, c) => { if (makers.has(who) && store.cells.op[c] === store.ops.WRITE) bytes += desk.result.bytes[c]; });
      const [a, b] = desk.window();
      const inside = shown.filter((at) => table.start[at] >= a && table.start[at] + table.took[at] <= b);
      const each = inside.length && desk.selection.terms.every(({ dim }) => dim === "app" || dim === "proc") ? ` What made them, ${format.some(makers.size, "process", "processes")}, wrote ${format.bytes(bytes)} to the device: ${format.bytes(bytes / inside.length)} for each.` : "";
      words0.textContent = times.length ? `${format.some(times.length, "transaction")}: half took at most ${format.us(quantile(times, 0.5))}, 90 % ${format.us(quantile(times, 0.9))}, 99 % ${format.us(quantile(times, 0.99))}, the slowest ${format.us(times[times.length - 1])}.${each}` : "No transaction of this selection.";
      const [, , left] = words.about.left_out;
      if (left) words0.textContent += ` ${format.count(left)} faster ones are not in the page.`;
      label.replaceChildren(h("b", {}, "Transactions"), h("span", { class: "soft" }, "start → , duration ↑ (log). A dot’s colour is what it waited for most; a click opens it."), slowest);
      if (store.summed) label.append(h("span", { class: "soft" }, "The rows of this trace are summed up, so that waiting for the device is not told apart."));
      redraw();
    };
    return {
      name: "Transactions", title: "Transactions of SQLite", draw, table: list, pick: (row) => desk.openTransaction(row.at), by: "cause_database",
      element: h("div", {}, words0, h("div", { class: "timed" }, label, plot), legend, detail),
      chart: () => ({ title: `${desk.sheet.name}: transactions`, note: `start and duration; ${desk.words()}`, source: desk.source(), warnings: desk.sheet.missing, legend: waits.KINDS.map((name, kind) => [`--w${kind}`, `waits for ${name}`]), width: 1000, height: HEIGHT + FOOT, draw: (pen, w) => paintOn(pen, w) }),
      show,
    };
  };
  return { make };
})();

// SPDX-License-Identifier: MIT OR Apache-2.0
// Two or more traces: on one axis of time, and what changed, by layer, program and operation.
"use strict";

const compare = (() => {
  const { h, s } = dom;
  const HEIGHT = 62;
  const ROW = 40;
  const UNITS = ["each transaction", "each second", "whole trace"];
  const WAYS = [["part", "Layers"], ["app", "Programs"], ["why", "Operations"], ["op", "Requests"]];

  /** Bytes by label, or requests by operation. */
  const sumsOf = (theStore, dim) => {
    const result = theStore.ask(choice.ALL);
    const { WRITE } = theStore.ops;
    const values = dim === "op" ? null : result.bytes.map((value, c) => (theStore.cells.op[c] === WRITE ? value : 0));
    const sums = dim === "op" ? theStore.requestsBy(result, theStore.cells.op, theStore.words.ops.length) : theStore.by(result, dim, values);
    return new Map(theStore.dims[dim].labels.flatMap((label, at) => (sums[at] > 0 ? [[label ?? "not known", sums[at]]] : [])));
  };

  const stacked = (traces) => {
    const span = Math.max(...traces.map(({ theStore }) => theStore.span));
    const rows = traces.map(({ sheet, theStore }) => {
      const chart = dom.canvas({ role: "img", "aria-label": `${sheet.name}: bytes over time; the tables below have the sums` });
      const plot = h("div", { class: "plot" }, chart.element);
      const result = theStore.ask(choice.ALL);
      dom.onWidth(plot, (width) => {
        const pen = chart.size(width, HEIGHT);
        const count = Math.max(1, Math.floor(width / 2));
        const wide = theStore.words.colours.length;
        const bins = theStore.bins(result, 0, span, count, [new Int8Array(theStore.cells.rows)], 1);
        const [up, down] = paint.most(bins, 0, count, wide);
        const high = down > 0 ? 26 : 42;
        paint.stack(pen, bins, 0, count, wide, false, { x: 0, width, base: high, height: high - 1 }, Math.max(up, down), "root");
        paint.stack(pen, bins, 0, count, wide, true, { x: 0, width, base: high + 1, height: 43 - high }, Math.max(up, down), "root");
        paint.axis(pen, 0, span, { x: 0, width }, 45, 0);
      });
      const total = [...sumsOf(theStore, "part").values()].reduce((all, value) => all + value, 0);
      return h("div", { class: "timed" }, h("div", { class: "label" }, h("b", {}, sheet.name), h("span", { class: "soft" }, `${format.bytes(total)} written in ${format.us(theStore.span)}`)), plot);
    });
    return h("div", {}, rows, h("p", { class: "note" }, "Each from its first completion, on one axis of time; root scale, each by its own largest rate."));
  };

  /** What a figure is divided by. */
  const divisor = (unit, { sheet, theStore }) => (unit === 0 ? sheet.transactions : unit === 1 ? theStore.span / 1e6 : 1);

  const table = (traces, dim, unit) => {
    const sums = traces.map((trace) => {
      const by = divisor(unit, trace);
      return new Map([...sumsOf(trace.theStore, dim)].map(([label, value]) => [label, value / by]));
    });
    const labels = [...new Set(sums.flatMap((one) => [...one.keys()]))];
    const rows = labels.map((label) => {
      const values = sums.map((one) => one.get(label) ?? 0);
      return [label, ...values, values[values.length - 1] - values[0]];
    }).sort((a, b) => Math.abs(b[b.length - 1]) - Math.abs(a[a.length - 1]));
    return rows;
  };

  const figure = (dim, value) => (dim === "op" ? format.short(value) : format.bytes(value));
  const tableOf = (traces, dim, unit, title) => {
    const rows = table(traces, dim, unit);
    const most = Math.max(...rows.map((row) => Math.abs(row[row.length - 1])), 1e-9);
    const head = [title, ...traces.map(({ sheet }) => sheet.name), traces.length > 2 ? `change, ${traces[0].sheet.name} to the last` : "change", ""];
    const body = rows.map((row) => {
      const change = row[row.length - 1];
      const bar = h("span", { class: `change ${change < 0 ? "shrank" : "grew"}` });
      bar.style.width = `${(Math.abs(change) / most) * 50}%`;
      return h("tr", {}, h("td", { class: "text" }, row[0]), row.slice(1, -1).map((value) => h("td", { class: "number" }, figure(dim, value))), h("td", { class: "number" }, `${change > 0 ? "+" : change < 0 ? "−" : ""}${figure(dim, Math.abs(change))}`), h("td", { class: "changes", "aria-hidden": "true" }, bar));
    });
    const all = () => ({ title: `Compared by ${title.toLowerCase()}`, columns: head.slice(0, -1).map((name) => ({ name })), rows });
    return h("div", { class: "grid" }, h("div", { class: "grid-tools" }, save.menu(title, { table: all })),
      h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `${title} compared` }, h("table", {}, h("thead", {}, h("tr", {}, head.map((name, at) => (name ? h("th", { scope: "col", class: at ? "number" : "text" }, h("span", { class: "plain" }, name)) : h("td", {}))))), h("tbody", {}, body))));
  };

  /** The change by layer and its parts: a box is as wide as its change, less on the left, more on the right. */
  const icicleOf = (traces, unit) => {
    const groups = new Map();
    for (const row of table(traces, "part", unit)) {
      const [layer, part] = row[0].split(" › ");
      const change = row[row.length - 1];
      if (!groups.has(layer)) groups.set(layer, { layer, change: 0, size: 0, parts: [] });
      const group = groups.get(layer);
      group.change += change;
      group.size += Math.abs(change);
      group.parts.push([part ?? layer, change]);
    }
    const order = [...groups.values()].sort((a, b) => a.change - b.change);
    const whole = order.reduce((all, group) => all + group.size, 0);
    const box = h("div", { class: "icicle" });
    dom.onWidth(box, (width) => {
      const out = [];
      const one = (x, y, wide, name, change) => {
        const text = `${change < 0 ? "−" : "+"}${format.bytes(Math.abs(change))}`;
        out.push(s("g", { role: "listitem" }, s("title", {}, `${name}: ${text}`), s("rect", { x, y, width: Math.max(0.5, wide - 1), height: ROW - 1, rx: 2, class: change < 0 ? "shrank" : "grew" }),
          wide > 40 ? s("g", { "aria-hidden": "true" }, [s("text", { x: x + 5, y: y + 16, class: "strong" }, dom.shorten(name, Math.floor((wide - 8) / 7.9))), s("text", { x: x + 5, y: y + 32 }, dom.shorten(text, Math.floor((wide - 8) / 7.2)))]) : null));
      };
      let x = 0;
      for (const group of order) {
        const wide = (group.size / whole) * width;
        one(x, 0, wide, group.layer, group.change);
        let left = x;
        for (const [name, change] of group.parts.sort((a, b) => a[1] - b[1])) {
          const part = (Math.abs(change) / whole) * width;
          if (part >= 1) one(left, ROW, part, name, change);
          left += part;
        }
        x += wide;
      }
      box.replaceChildren(whole ? s("svg", { role: "list", "aria-label": "Change by layer", viewBox: `0 0 ${width} ${2 * ROW}`, height: 2 * ROW }, out) : h("p", { class: "note" }, "Nothing changed."));
    });
    return h("div", {}, box, h("p", { class: "note" }, `From ${traces[0].sheet.name} to ${traces[traces.length - 1].sheet.name}: a box is as wide as what its bytes written changed by; less is blue, more is orange.`));
  };

  const draw = (article, data, traces) => {
    const place = h("div");
    const known = UNITS.map((_, unit) => traces.every((trace) => divisor(unit, trace)));
    const units = UNITS.filter((_, unit) => known[unit]);
    let unit = UNITS.indexOf(units[0]);
    let way = 0;
    const fill = () => {
      const [dim, title] = WAYS[way];
      place.replaceChildren(way === 0 ? icicleOf(traces, unit) : "", tableOf(traces, dim, unit, title));
    };
    fill();
    article.replaceChildren(
      h("section", { class: "panel" }, h("h1", {}, "Compared"), data.compared.map(({ sentence }) => h("p", { class: "finding" }, sentence)), stacked(traces)),
      h("section", { class: "panel" }, h("h2", {}, "What changed"),
        h("div", { class: "tools" }, dom.options("For", units, 0, (at) => { unit = UNITS.indexOf(units[at]); fill(); }), dom.options("By", WAYS.map(([, name]) => name), 0, (at) => { way = at; fill(); })), place),
      h("section", { class: "panel" }, h("h2", {}, "All figures"), data.compared.map(({ grids }) => h("div", { class: "tables" }, grids.filter((table) => table.rows.length).map((table) => grid.draw(grid.ofPage(table)))))));
  };
  return { draw };
})();

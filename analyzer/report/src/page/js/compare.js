// SPDX-License-Identifier: MIT OR Apache-2.0
// Two or more traces on one axis of time and one scale, and what each wrote, by layer, program and operation.
"use strict";

const compare = (() => {
  const { h, s } = dom;
  const UNITS = ["each transaction", "each second", "whole trace"];
  const WAYS = [["part", "Layers"], ["app", "Programs"], ["why", "Operations"], ["op", "Requests"]];
  const [ROW, FOOT, RIGHT] = [58, 20, 10];
  /** The most lines of a table; what is left is one line. */
  const MOST = 40;

  /** Bytes by label, or requests by operation. */
  const sumsOf = (theStore, dim) => {
    const result = theStore.ask(choice.ALL);
    const { WRITE } = theStore.ops;
    const values = dim === "op" ? null : result.bytes.map((value, c) => (theStore.cells.op[c] === WRITE ? value : 0));
    const sums = dim === "op" ? theStore.requestsBy(result, theStore.cells.op, theStore.words.ops.length) : theStore.by(result, dim, values);
    return new Map(theStore.dims[dim].labels.flatMap((label, at) => (sums[at] > 0 ? [[label ?? "not known", sums[at]]] : [])));
  };
  const written = (theStore) => [...sumsOf(theStore, "part").values()].reduce((all, value) => all + value, 0);

  /** All traces, one below the other: bars of one length and one scale, with each trace's name. */
  const stacked = (traces) => {
    const span = Math.max(...traces.map(({ theStore }) => theStore.span));
    const bin = Math.max(0, ...traces.map(({ theStore }) => theStore.words.bin_us ?? 0));
    const length = when.lengthOf(span, bin || null);
    const bars = Math.max(1, Math.ceil(span / length));
    const wide = traces[0].theStore.words.colours.length;
    const all = traces.map(({ theStore }) => theStore.bins(theStore.ask(choice.ALL), 0, bars * length, bars, [new Int8Array(theStore.cells.rows)], 1));
    const [up, down] = all.reduce(([a, b], bins) => { const [c, d] = paint.most(bins, 0, bars, wide); return [Math.max(a, c), Math.max(b, d)]; }, [0, 0]);
    const most = up || down;
    const isRate = span >= 1e6;
    const per = isRate ? length / 1e6 : 1;
    const tell = (value) => (value ? `${format.bytes(value)}${isRate ? "/s" : ""}` : "0");
    const box = h("div", { class: "bars" });
    const svg = (w) => {
      const names = traces.map(({ sheet }) => sheet.name);
      const side = Math.min(w * 0.3, Math.max(...names.map((name) => chart.measure(name, 12, "bold")), 110)) + 14;
      const left = side + Math.max(chart.measure(tell(chart.ticks(0, most / per, 3).all.at(-1)), 11), 30) + 8;
      const x = chart.linear([0, bars * length], [left, w - RIGHT]);
      const step = x(length) - x(0);
      const marks = chart.ticks(0, most / per, 3);
      const fit = chart.fitter();
      const rows = traces.map(({ theStore, sheet }, nth) => {
        const top = nth * (ROW + 8) + 6;
        const y = chart.linear([0, most], [top + ROW, top]);
        const out = [];
        for (let at = 0; at < bars; at += 1) {
          let sum = 0;
          // Of a trace of reads only, the bars are reads.
          for (let k = 0; k < wide; k += 1) {
            const value = all[nth][at * wide * 2 + (up ? 0 : wide) + k];
            if (value <= 0) continue;
            out.push(chart.rect(x(at * length), y(sum + value), Math.max(0.7, step - Math.min(0.6, step / 4)), y(sum) - y(sum + value), { class: `fill-${k}` }));
            sum += value;
          }
        }
        return s("g", {}, chart.text(0, top + 14, fit(sheet.name, side - 10, 12, "bold"), { class: "strong", "data-name": sheet.name }), chart.text(0, top + 30, `${format.bytes(written(theStore))} written`, { class: "soft small" }), chart.text(0, top + 44, `in ${format.us(theStore.span)}`, { class: "soft small" }),
          chart.left((value) => y(value * per), marks, [left, w - RIGHT], tell), out);
      });
      const bottom = traces.length * (ROW + 8) + 2;
      const time = chart.ticks(0, span, Math.max(2, (w - left) / 110));
      return chart.root(w, bottom + FOOT, "Each trace over time, on one scale; the tables below have the sums", {}, rows, chart.bottom(x, time, bottom, (value) => format.moment(value, time.step), [left - 10, w]));
    };
    dom.onWidth(box, (width) => box.replaceChildren(svg(width)));
    const { colours } = traces[0].theStore.words;
    const has = colours.flatMap((name, k) => (all.some((bins) => { for (let at = k; at < bins.length; at += wide) if (bins[at] > 0) return true; return false; }) ? [[k, name]] : []));
    const missing = traces.flatMap(({ sheet }) => sheet.missing.map((line) => `${sheet.name}: ${line}`));
    const note = `a bar is ${format.us(length)}; all on one scale${down > 0 && up > 0 ? "; without reads" : ""}`;
    const menu = save.menu("all traces over time", { chart: () => ({ title: "Traces over time", note, source: "mostrace report", warnings: missing, legend: has.map(([k, name]) => [`--k${k}`, name]), node: () => box.querySelector("svg") }) });
    return h("div", {}, h("div", { class: "tools" }, h("h2", {}, "When"), chart.legend(has.map(([k, name]) => [`back-${k}`, name])), h("span", { class: "end" }, h("span", { class: "soft" }, note), menu)), box);
  };

  /** What a figure is divided by. */
  const divisor = (unit, { sheet, theStore }) => (unit === 0 ? sheet.transactions : unit === 1 ? theStore.span / 1e6 : 1);

  /** The figures of all traces by label: [label, one of each trace], the largest first. */
  const figures = (traces, dim, unit) => {
    const sums = traces.map((trace) => {
      const by = divisor(unit, trace);
      return new Map([...sumsOf(trace.theStore, dim)].map(([label, value]) => [label, value / by]));
    });
    const labels = [...new Set(sums.flatMap((one) => [...one.keys()]))];
    const rows = labels.map((label) => [label, ...sums.map((one) => one.get(label) ?? 0)]);
    const size = (row) => Math.max(...row.slice(1));
    rows.sort((a, b) => size(b) - size(a));
    const rest = rows.slice(MOST);
    if (rest.length < 2) return rows;
    return [...rows.slice(0, MOST), [`${format.count(rest.length)} more`, ...traces.map((_, nth) => rest.reduce((all, row) => all + row[nth + 1], 0))]];
  };

  /** A table of all traces: each figure with a bar, all on one scale, and how it differs from the first trace's. */
  const tableOf = (traces, dim, unit, title) => {
    const rows = figures(traces, dim, unit);
    const most = Math.max(...rows.flatMap((row) => row.slice(1)), 1e-9);
    const figure = (value) => (dim === "op" ? format.short(value) : format.bytes(value));
    const differs = (value, base) => {
      if (value === base) return "";
      if (!base) return "new";
      const times = value / base;
      // What is left is not nothing.
      if (times > 0 && times < 0.005) return `÷${"\u00a0"}${format.count(Math.round(1 / times))}`;
      return times >= 2 ? format.times(times) : `${times > 1 ? "+" : "−"}${format.rounded(Math.abs(value - base), base)}`;
    };
    const head = [title.slice(0, -1), ...traces.map(({ sheet }) => sheet.name)];
    const total = ["all", ...traces.map((_, nth) => rows.reduce((all, row) => all + row[nth + 1], 0))];
    const cells = (row, isBar) => [h("td", { class: "text" }, row[0]), ...row.slice(1).map((value, nth) => {
      const change = nth ? differs(value, row[1]) : "";
      const bar = h("span", { class: "measure", "aria-hidden": "true" }, h("span", { class: "back-bar" }));
      bar.style.width = `${(value * 100) / most}%`;
      return h("td", { class: "number" }, figure(value), nth ? h("span", { class: value > row[1] ? "grew" : "shrank" }, change) : null, isBar && value ? bar : null);
    })];
    const all = () => ({ title: `Compared by ${title.toLowerCase()}`, columns: head.map((name) => ({ name })), rows });
    return h("div", { class: "grid" }, h("div", { class: "grid-tools" }, save.menu(title, { table: all }), h("span", { class: "soft" }, `beside a figure: how it differs from ${traces[0].sheet.name}’s`)),
      h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `${title} compared` }, h("table", {}, h("thead", {}, h("tr", {}, head.map((name, at) => h("th", { scope: "col", class: at ? "number" : "text" }, h("span", { class: "plain" }, name))))),
        h("tbody", {}, rows.map((row) => h("tr", {}, cells(row, true)))), dim === "op" ? null : h("tfoot", {}, h("tr", {}, cells(total, false))))));
  };

  const draw = (article, data, traces) => {
    const place = h("div");
    const units = UNITS.filter((_, unit) => traces.every((trace) => divisor(unit, trace)));
    let unit = UNITS.indexOf(units[0]);
    let way = 0;
    const fill = () => {
      const [dim, title] = WAYS[way];
      place.replaceChildren(tableOf(traces, dim, unit, title));
    };
    fill();
    const warnings = traces.flatMap(({ sheet }) => sheet.missing.map((line) => h("p", { class: "notice bad" }, `${sheet.name}: ${line}`)));
    article.replaceChildren(
      h("section", { class: "panel" }, h("h1", {}, data.compared[0] ?? `${traces.length} traces compared`), data.compared.slice(1).map((line) => h("p", {}, line)), warnings, stacked(traces)),
      h("section", { class: "panel" }, h("div", { class: "tools" }, h("h2", {}, "What each wrote"), dom.options("For", units, 0, (at) => { unit = UNITS.indexOf(units[at]); fill(); }), dom.options("By", WAYS.map(([, name]) => name), 0, (at) => { way = at; fill(); })), place));
  };
  return { draw };
})();

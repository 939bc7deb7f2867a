// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws how long requests took.
"use strict";

const latency = (() => {
  const { h } = dom;

  const draw = (sheet) => {
    const data = sheet.latency;
    const series = data.series.map((one) => ({ ...one, cells: { at: heatmap.places(one.skip), count: one.count, most: Math.max(1, ...one.count.map((n) => Math.log2(n + 1))) } }));
    let shown = series[0];
    const ns = (row) => 2 ** (data.first + row / data.steps);
    // Empty rows are not drawn.
    const used = series[0].cells.at.map((at) => Math.floor(at / data.columns));
    const low = Math.max(0, Math.min(...used) - 1);
    const rows = Math.min(data.rows, Math.max(...used) + 2) - low;
    const shifted = (cells) => ({ ...cells, at: cells.at.map((at) => at - low * data.columns) });
    const names = series.map((one) => one.name);
    const select = h("select", {
      "aria-label": "Requests of",
      onchange: (event) => { shown = series[event.target.selectedIndex]; map.show(shifted(shown.cells)); },
    }, names.map((name) => h("option", {}, name)));
    const map = used.length ? heatmap.draw("latency", {
      name: "Requests by latency, over time",
      columns: data.columns, bin_ns: data.bin_ns, bands: [{ row: 0, rows }], cells: shifted(shown.cells),
      paint: (nth) => [`--k${shown.colour ?? 0}`, 0.18 + (0.82 * Math.log2(shown.cells.count[nth] + 1)) / shown.cells.most],
      line: (row) => format.ns(Math.round(ns(row + low))),
      lines: (band, from, to) => {
        const out = [];
        for (let power = 2; power < 12; power++) {
          const row = (Math.log2(10 ** power) - data.first) * data.steps - low;
          if (row >= from && row < to) out.push(row);
        }
        return out;
      },
      describe: (nth, row, band, when) => {
        const range = `${format.ns(ns(row + low))} to ${format.ns(ns(row + low + 1))}`;
        if (nth === undefined) return [`No request took ${range} then: ${when}.`];
        return [h("b", {}, `${format.count(shown.cells.count[nth])} requests took ${range}`), ` – ${shown.name}, ${when}.`];
      },
    }, select) : null;
    const columns = [["requests of", "text"], ["requests", "count"]];
    for (const what of ["q2c", "d2c"]) for (const part of ["p50", "p90", "p99", "max"]) columns.push([`${what} ${part}`, "ns"]);
    const table = {
      title: "Percentiles", note: "q2c: from the submission to the completion, which is what a submitter waits for; d2c: from the device's side, once it was issued",
      columns: columns.map(([name, unit]) => ({ name, unit })),
      rows: series.map((one) => [one.name, Math.max(one.q2c.count, one.d2c.count),
        ...["q2c", "d2c"].flatMap((what) => ["p50", "p90", "p99", "max"].map((part) => one[what][part]))]),
    };
    return h("div", {}, map?.element, grid.draw(table));
  };
  return { draw };
})();

// SPDX-License-Identifier: MIT OR Apache-2.0
// Programs, processes, files and folders of the selection, with what each cost in every layer.
"use strict";

const files = (() => {
  const { h } = dom;
  const WAYS = [["app", "Programs"], ["proc", "Processes"], ["file", "Files"], ["why", "Operations that caused it"], ["layer", "Layers"], ["known", "How certain the cause is"]];
  const NONE = { app: "nobody known", proc: "nobody known", file: "no known file", why: "not known" };

  /** The figures by a dimension: name, bytes by kind, reads, requests, and when it was first and last touched. */
  const table = (desk, dim) => {
    const { store, result } = desk;
    const { words, cells, rows } = store;
    const code = store.codes(dim);
    const many = store.dims[dim].labels.length;
    const wide = words.colours.length;
    const written = new Float64Array(many * wide);
    const sums = { write: new Float64Array(many), read: new Float64Array(many), discard: new Float64Array(many) };
    const { WRITE, READ } = store.ops;
    const discard = store.ops.of("discard");
    for (let c = 0; c < cells.rows; c += 1) {
      if (cells.op[c] === WRITE) {
        written[code[c] * wide + store.colours[cells.layer[c]]] += result.bytes[c];
        sums.write[code[c]] += result.bytes[c];
      } else if (cells.op[c] === READ) sums.read[code[c]] += result.bytes[c];
      else if (cells.op[c] === discard) sums.discard[code[c]] += result.bytes[c];
    }
    // Requests by operation: the numbers of a dimension, times the operations.
    const both = Int32Array.from(code, (value, c) => value * words.ops.length + cells.op[c]);
    const counts = store.requestsBy(result, both, many * words.ops.length);
    const [first, last] = [new Float64Array(many).fill(Infinity), new Float64Array(many).fill(-1)];
    for (let row = result.from; row < result.to; row += 1) {
      const c = rows.cell[row];
      if (!result.ok[c]) continue;
      const at = code[c];
      if (rows.time[row] < first[at]) first[at] = rows.time[row];
      if (rows.time[row] > last[at]) last[at] = rows.time[row];
    }
    const of = (at, op) => counts[at * words.ops.length + store.ops.of(op)];
    const order = [...Array(many).keys()].filter((at) => last[at] >= 0).sort((a, b) => sums.write[b] + sums.read[b] - sums.write[a] - sums.read[a] || sums.discard[b] - sums.discard[a]);
    const columns = [
      { name: { app: "program", proc: "process", file: "file", why: "operation", layer: "layer", known: "certainty" }[dim], unit: "text" },
      { name: "written", unit: "bytes", bar: true, sum: true }, ...words.colours.slice(0, 6).map((name) => ({ name, unit: "bytes", sum: true })), { name: "writes", unit: "count" },
      { name: "flushes", unit: "count", note: "flushes that were asked for" }, { name: "read", unit: "bytes", sum: true }, { name: "reads", unit: "count" }, { name: "discarded", unit: "bytes", sum: true },
      { name: "first", unit: "moment" }, { name: "last", unit: "moment" },
    ];
    const rowsOf = order.map((at) => [
      store.dims[dim].labels[at] ?? NONE[dim] ?? "not known", sums.write[at], ...written.slice(at * wide, at * wide + 6), of(at, "write"), of(at, "flush"), sums.read[at], of(at, "read"), sums.discard[at], first[at], last[at],
    ]);
    // Columns without a figure are left out.
    const keep = columns.map((column, at) => at < 2 || rowsOf.some((row) => row[at] > 0));
    const some = (list) => list.filter((_, at) => keep[at]);
    const title = WAYS.find(([name]) => name === dim)[1];
    return { title, columns: some(columns), rows: rowsOf.map((row, nth) => Object.assign(some(row), { value: store.dims[dim].labels[order[nth]] })), colours: written, wide, order };
  };

  const make = (desk) => {
    let way = 2;
    const place = h("div");
    const draw = () => {
      const [dim] = WAYS[way];
      const made = table(desk, dim);
      const at = new Map(made.rows.map((row, nth) => [row, made.order[nth]]));
      const reads = !made.rows.some((row) => row[1] > 0);
      if (reads) made.columns.forEach((column) => { column.bar = column.name === "read"; });
      place.replaceChildren(grid.draw(made, {
        heading: null, pick: (row, event) => desk.pick(dim, row.value, event), picked: (row) => choice.has(desk.selection, dim, row.value),
        strips: reads ? null : (row) => made.colours.slice(at.get(row) * made.wide, at.get(row) * made.wide + 6),
      }));
    };
    const ways = dom.options("By", WAYS.map(([, name]) => name), way, (at) => { way = at; draw(); });
    return {
      name: "Files", title: "Files and programs", draw, isTable: true, table: () => table(desk, WAYS[way][0]),
      element: h("div", {}, ways, h("p", { class: "note" }, "What each caused, in its own contents and in the filesystem. A click on a name selects it, Ctrl-click adds it, Alt-click leaves it out."), place),
      get by() { return { app: "cause_or_submitter", proc: "cause_or_submitter", file: "cause_or_file", why: "cause_op", layer: "class,kind,role,home_kind", known: "cause_known" }[WAYS[way][0]]; },
    };
  };
  return { make, table };
})();

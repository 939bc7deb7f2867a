// SPDX-License-Identifier: MIT OR Apache-2.0
// Sizes and order of the requests of the selection; rewrites and hot ranges of the whole trace.
"use strict";

const sizes = (() => {
  const { h } = dom;

  /** The requests of the selection: [{bytes, op, sequential}] summed up by size. */
  const tables = (desk) => {
    const { store, result } = desk;
    const { rows, cells, words, FLAG } = store;
    const bySize = new Map();
    const order = new Map();
    let request = null;
    const end = () => {
      if (!request?.ok) return;
      const { bytes, op, sequential } = request;
      const size = bySize.get(bytes) ?? { writes: 0, reads: 0, other: 0 };
      size[op === store.ops.WRITE ? "writes" : op === store.ops.READ ? "reads" : "other"] += 1;
      bySize.set(bytes, size);
      const key = words.ops[op];
      const one = order.get(key) ?? { all: 0, sequential: 0, bytes: 0, ofBytes: 0 };
      one.all += 1;
      one.bytes += bytes;
      if (sequential) {
        one.sequential += 1;
        one.ofBytes += bytes;
      }
      order.set(key, one);
    };
    // A request may begin before the first row of the selection.
    let row = result.from;
    while (row > 0 && !(rows.flags[row] & FLAG.first)) row -= 1;
    for (; row < rows.rows; row += 1) {
      if (rows.flags[row] & FLAG.first) {
        end();
        if (row >= result.to) {
          request = null;
          break;
        }
        request = { bytes: 0, op: cells.op[rows.cell[row]], sequential: (rows.flags[row] & FLAG.sequential) !== 0, ok: false };
      }
      request.bytes += rows.bytes[row];
      if (result.ok[rows.cell[row]]) request.ok = true;
    }
    end();
    const number = (name, unit, more) => ({ name, unit, ...more });
    return [
      {
        title: "Sizes of requests", note: "A request that has a part in the selection counts with its whole size.",
        columns: [number("size, bytes", "count"), number("requests", "count", { bar: true, sum: true }), number("writes", "count", { sum: true }), number("reads", "count", { sum: true }), number("bytes", "bytes", { sum: true })],
        rows: [...bySize].map(([bytes, { writes, reads, other }]) => [bytes, writes + reads + other, writes, reads, bytes * (writes + reads + other)]).sort((a, b) => b[1] - a[1]),
      },
      {
        title: "Order of requests", note: "Sequential: begins where the request of the same direction that was issued before it ended.",
        columns: [number("operation", "text"), number("requests", "count", { bar: true }), number("sequential", "count"), number("bytes", "bytes"), number("of them sequential", "bytes")],
        rows: [...order].filter(([, one]) => one.bytes > 0).map(([name, one]) => [name, one.all, one.sequential, one.bytes, one.ofBytes]),
      },
    ];
  };

  const make = (desk) => {
    const { sheet, store } = desk;
    const place = h("div", { class: "tables" });
    const whole = [sheet.sizes, sheet.order, sheet.rewrites, sheet.hottest].filter((table) => table?.rows.length).map((table) => grid.draw(grid.ofPage({ ...table, title: `${table.title}, of the whole trace` })));
    const draw = () => {
      if (!store.summed) place.replaceChildren(...tables(desk).filter((table) => table.rows.length).map((table) => grid.draw(table)));
    };
    return { name: "Sizes", title: "Sizes, order and rewrites", element: h("div", {}, place, h("div", { class: "tables" }, whole)), draw, isTable: true, by: "size" };
  };
  return { make };
})();

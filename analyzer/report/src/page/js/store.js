// SPDX-License-Identifier: MIT OR Apache-2.0
// The rows of a trace, or their sums, and what a selection of them adds up to. Every view asks here.
//
// A row is a number of a cell and some numbers of its own. A cell is what rows have in common: operation, process, file,
// layer, cause. So a selection is decided once for each cell, and a pass over the rows only looks it up.
"use strict";

const store = (() => {
  /** The bits of the column `flags`. */
  const FLAG = { first: 1, sequential: 2, fua: 4, no_q: 8 };
  const UP = new Set(["write", "read"]);

  /** Puts rows in the order of time; rows of one request stay together. */
  const sortByTime = (table) => {
    const { time } = table;
    let sorted = true;
    for (let row = 1; row < table.rows && sorted; row += 1) sorted = time[row] >= time[row - 1];
    if (sorted) return table;
    const order = Array.from({ length: table.rows }, (_, row) => row).sort((a, b) => time[a] - time[b] || a - b);
    const out = { rows: table.rows };
    for (const [name, values] of Object.entries(table)) if (name !== "rows") out[name] = values.constructor.from(order, (row) => values[row]);
    return out;
  };

  /** The first row at or after a time. */
  const after = (time, us) => {
    let [low, high] = [0, time.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (time[middle] < us) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  /** The numbers of different words, and the number of each word's group. */
  const grouped = (labels) => {
    const names = [];
    const by = new Map();
    const of = Int32Array.from(labels, (label) => {
      if (!by.has(label)) {
        by.set(label, names.length);
        names.push(label);
      }
      return by.get(label);
    });
    return { names, of };
  };

  /** A layer with its part, as one name. */
  const partOf = (layer) => (layer.part === null ? layer.name : `${layer.name} › ${layer.part}`);

  /** Takes what `unpack` read. */
  const make = ({ words, tables }) => {
    const empty = { rows: 0, time: [], cell: [], bytes: [] };
    const cells = tables.cells ?? { rows: 0, op: [], who: [], file: [], own: [], layer: [], why: [], known: [] };
    const rows = sortByTime(tables.rows ?? empty);
    const summed = words.bin_us !== null;
    const waits = summed ? tables.waits : rows;
    const places = summed ? tables.places : rows;
    const apps = grouped(words.whos.map((who) => who.group));
    const colours = words.layers.map((layer) => layer.colour);
    const layers = grouped(words.layers.map((layer) => layer.name));
    const parts = grouped(words.layers.map(partOf));
    const span = words.span_us + 1;

    /** For each dimension: its labels, and the number of the label of a cell. */
    const dims = {
      app: { labels: apps.names, column: "who", through: apps.of },
      proc: { labels: words.whos.map((who) => who.name), column: "who" },
      file: { labels: words.files, column: "file" },
      match: { labels: words.files, column: "file", test: (label, value) => label !== null && value !== null && label.toLowerCase().includes(value.toLowerCase()) },
      layer: { labels: layers.names, column: "layer", through: layers.of },
      part: { labels: parts.names, column: "layer", through: parts.of },
      colour: { labels: words.colours, column: "layer", through: Int32Array.from(colours) },
      op: { labels: words.ops, column: "op" },
      why: { labels: words.whys, column: "why" },
      known: { labels: words.known, column: "known" },
    };
    /** Returns the number of each cell's label in a dimension. */
    const codes = (dim, of = cells) => {
      const { column, through } = dims[dim];
      const values = of[column];
      return through ? Int32Array.from(values, (value) => through[value]) : values;
    };

    /** Decides for each cell whether it belongs to a selection. `of` may be the cells of a smaller table, which lack some
     * dimensions; `ignored` lists the terms that it cannot decide. */
    const decide = (selection, of = cells, knows = (/** @type {string} */ _) => true) => {
      const ok = new Uint8Array(of.rows).fill(1);
      const ignored = [];
      const byDim = new Map();
      for (const term of selection.terms) byDim.set(term.dim, [...(byDim.get(term.dim) ?? []), term]);
      for (const [dim, terms] of byDim) {
        if (!knows(dim)) {
          ignored.push(...terms);
          continue;
        }
        const { labels, test = (label, value) => label === value } = dims[dim];
        const only = terms.filter((term) => !term.not);
        const not = terms.filter((term) => term.not);
        const passes = Uint8Array.from(labels, (label) =>
          ((!only.length || only.some((term) => test(label, term.value))) && !not.some((term) => test(label, term.value)) ? 1 : 0));
        const code = codes(dim, of);
        for (let cell = 0; cell < of.rows; cell += 1) if (!passes[code[cell]]) ok[cell] = 0;
      }
      return { ok, ignored };
    };

    /** An interval's rows of a table: from the first to the one after the last. */
    const range = (selection, table) => (selection.from === null ? [0, table.rows] : [after(table.time, selection.from), after(table.time, selection.to)]);

    const opOf = (name) => words.ops.indexOf(name);
    const [WRITE, READ] = [opOf("write"), opOf("read")];

    /** What is measured: bytes that were written or read; of other operations only if they alone are selected. */
    const metric = (selection) => {
      const ops = selection.terms.filter((term) => term.dim === "op" && !term.not).map((term) => term.value);
      if (ops.length && ops.every((op) => op === "flush" || op === "device_flush")) return "requests";
      return ops.length && ops.every((op) => !UP.has(op)) ? "other bytes" : "bytes";
    };

    /** Adds up a selection: bytes and rows of each cell. */
    const ask = (selection) => {
      const { ok } = decide(selection);
      const [from, to] = range(selection, rows);
      const bytes = new Float64Array(cells.rows);
      const count = new Float64Array(cells.rows);
      const { cell, bytes: of, requests } = rows;
      if (requests) for (let row = from; row < to; row += 1) { const c = cell[row]; if (ok[c]) { bytes[c] += of[row]; count[c] += requests[row]; } }
      else for (let row = from; row < to; row += 1) { const c = cell[row]; if (ok[c]) { bytes[c] += of[row]; count[c] += 1; } }
      const some = (is) => { for (let c = 0; c < cells.rows; c += 1) if (is(c)) return true; return false; };
      const moved = (c) => cells.op[c] === WRITE || cells.op[c] === READ;
      let what = metric(selection);
      // Where nothing was written or read, what else was done is measured.
      if (what === "bytes" && !some((c) => bytes[c] > 0 && moved(c))) what = some((c) => bytes[c] > 0) ? "other bytes" : some((c) => count[c] > 0) ? "requests" : "bytes";
      const value = what === "requests" ? count : what === "other bytes" ? bytes : bytes.map((sum, c) => (moved(c) ? sum : 0));
      return { selection, ok, from, to, bytes, count, value, metric: what };
    };

    /** Adds up values of cells by a dimension's numbers. */
    const by = (result, dim, values = result.value) => {
      const code = codes(dim);
      const sums = new Float64Array(dims[dim].labels.length);
      for (let c = 0; c < cells.rows; c += 1) sums[code[c]] += values[c];
      return sums;
    };

    /** Counts requests by a number of each cell: a request counts once for each number that it has rows of. In sums, it counts where its
     * first row is. */
    const requestsBy = (result, code, numbers) => {
      const counts = new Float64Array(numbers);
      const { ok, from, to } = result;
      const { cell, flags, requests } = rows;
      if (requests) {
        for (let row = from; row < to; row += 1) if (ok[cell[row]]) counts[code[cell[row]]] += requests[row];
        return counts;
      }
      const last = new Int32Array(numbers).fill(-1);
      let request = 0;
      for (let row = from; row < to; row += 1) {
        if (flags[row] & FLAG.first) request += 1;
        const c = cell[row];
        if (!ok[c]) continue;
        const number = code[c];
        if (last[number] === request) continue;
        last[number] = request;
        counts[number] += 1;
      }
      return counts;
    };

    /** The sums of a selection by operation: {write: {bytes, requests}, …}. */
    const totals = (result) => {
      const sums = by(result, "op", result.bytes);
      const counts = requestsBy(result, cells.op, words.ops.length);
      return Object.fromEntries(words.ops.map((op, at) => [op, { bytes: sums[at], requests: counts[at] }]));
    };

    /** Calls back with each request of a selection that has a latency: its longest wait in µs, the cell of its first row, its
     * completion, and how many there are of it. */
    const eachWait = (selection, see) => {
      if (summed) {
        const { ok, ignored } = decide(selection, tables.kinds, (dim) => ["op", "layer", "part", "colour"].includes(dim));
        const [from, to] = range(selection, waits);
        for (let row = from; row < to; row += 1) if (ok[waits.cell[row]]) see(waits.wait[row] - 1, waits.cell[row], waits.time[row], waits.requests[row]);
        return ignored;
      }
      const { ok } = decide(selection);
      const [from, to] = range(selection, rows);
      const { flags, cell, wait, time } = rows;
      let longest = 0;
      let of = -1;
      let at = 0;
      for (let row = from; row <= to; row += 1) {
        if ((row === to || flags[row] & FLAG.first) && longest > 0) {
          see(longest - 1, of, at, 1);
          longest = 0;
        }
        if (row === to || !ok[cell[row]] || flags[row] & FLAG.no_q) continue;
        if (longest === 0) {
          of = cell[row];
          at = time[row];
        }
        if (wait[row] > longest) longest = wait[row];
      }
      return [];
    };

    /** Calls back with each place of a selection: sector, bytes, completion, cell. */
    const eachPlace = (selection, see) => {
      const some = (dim) => ["op", "layer", "part", "colour"].includes(dim);
      const { ok, ignored } = summed ? decide(selection, tables.kinds, some) : decide(selection);
      const [from, to] = range(selection, places);
      const { cell, sector, bytes, time } = places;
      for (let row = from; row < to; row += 1) if (ok[cell[row]] && sector[row] > 0) see(sector[row] - 1, bytes[row], time[row], cell[row], row);
      return ignored;
    };

    /** The cells that `eachWait` and `eachPlace` name. */
    const kinds = summed ? tables.kinds : cells;

    /** Adds up bytes over time for lanes. `lanes` are arrays of each cell's lane, or -1; `count` bins lie from `from` to `to`.
     * Returns for each lane and bin the bytes by colour, first written, then read. */
    const bins = (result, from, to, count, lanes, many) => {
      const wide = words.colours.length;
      const out = new Float64Array(many * count * wide * 2);
      const { ok, metric: what } = result;
      const slot = new Int16Array(cells.rows);
      for (let c = 0; c < cells.rows; c += 1) {
        const op = cells.op[c];
        const colour = colours[cells.layer[c]];
        const counts = what === "bytes" ? op === WRITE || op === READ : true;
        slot[c] = !ok[c] || !counts ? -1 : op === READ ? wide + colour : colour;
      }
      const [first, last] = [after(rows.time, from), after(rows.time, to)];
      const length = Math.max(1, to - from) / count;
      const { cell, bytes, time, requests } = rows;
      const stride = wide * 2;
      for (const lane of lanes) {
        for (let row = first; row < last; row += 1) {
          const c = cell[row];
          const k = slot[c];
          if (k < 0) continue;
          const l = lane[c];
          if (l < 0) continue;
          const bin = Math.min(count - 1, ((time[row] - from) / length) | 0);
          out[(l * count + bin) * stride + k] += what === "requests" ? (requests ? requests[row] : 1) : bytes[row];
        }
      }
      return out;
    };

    /** The rows of a selection within an interval, if there are not more than `most`. */
    const some = (result, from, to, most) => {
      if (summed) return null;
      const found = [];
      for (let row = after(rows.time, from), end = after(rows.time, to); row < end; row += 1) {
        if (!result.ok[rows.cell[row]]) continue;
        if (found.length >= most) return null;
        found.push(row);
      }
      return found;
    };

    /** What a row is, in words and numbers. */
    const row = (at) => {
      const c = rows.cell[at];
      const layer = words.layers[cells.layer[c]];
      const wait = rows.wait[at] > 0 ? rows.wait[at] - 1 : null;
      const queue = rows.queue[at] > 0 ? rows.queue[at] - 1 : null;
      const own = cells.own[c] === 0 ? words.files[cells.file[c]] : words.files[cells.own[c] - 1];
      return {
        at, op: words.ops[cells.op[c]], who: words.whos[cells.who[c]].name, app: apps.names[apps.of[cells.who[c]]], file: words.files[cells.file[c]], own, layer,
        why: words.whys[cells.why[c]], known: words.known[cells.known[c]], time: rows.time[at], bytes: rows.bytes[at], wait, queue,
        device: wait === null ? null : queue === null ? wait : wait - queue, sector: rows.sector[at] > 0 ? rows.sector[at] - 1 : null,
        fua: (rows.flags[at] & FLAG.fua) !== 0, sequential: (rows.flags[at] & FLAG.sequential) !== 0,
      };
    };

    return {
      words, tables, rows, cells, kinds, apps, dims, codes, colours, span, summed, decide, ask, by, requestsBy, totals, eachWait, eachPlace, bins, some, row, after, FLAG,
      ops: { WRITE, READ, of: opOf }, snap: (us) => (summed ? Math.round(us / words.bin_us) * words.bin_us : Math.round(us)),
    };
  };

  return { make, after, partOf, FLAG };
})();

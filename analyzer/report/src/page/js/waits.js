// SPDX-License-Identifier: MIT OR Apache-2.0
// What each transaction waited for. Only within its calls for durability does it wait for the device; at each moment of these
// it waits for the first of these that is under way for it: a flush, the device, the queue, or else the filesystem.
"use strict";

const waits = (() => {
  const KINDS = ["program", "filesystem", "cache flush", "device", "queue"];
  const [PROGRAM, FILESYSTEM, FLUSH, DEVICE, QUEUE] = KINDS.keys();
  const ORDER = [FLUSH, DEVICE, QUEUE];

  /** Cuts an interval into pieces, each with what is waited for: [{from, to, kind}]. `syncs` and the members of `under`
   * (by kind) are intervals [from, to], in any order. */
  const pieces = (from, to, syncs, under) => {
    const events = [];
    const add = (kind, [start, end]) => {
      const [a, b] = [Math.max(from, start), Math.min(to, end)];
      if (b > a) events.push([a, kind, 1], [b, kind, -1]);
    };
    syncs.forEach((one) => add(FILESYSTEM, one));
    ORDER.forEach((kind) => (under[kind] ?? []).forEach((one) => add(kind, one)));
    events.sort((a, b) => a[0] - b[0]);
    const active = new Array(KINDS.length).fill(0);
    const out = [];
    let at = from;
    const until = (end) => {
      if (end <= at) return;
      const kind = active[FILESYSTEM] === 0 ? PROGRAM : ORDER.find((one) => active[one] > 0) ?? FILESYSTEM;
      const last = out[out.length - 1];
      if (last?.kind === kind) last.to = end;
      else out.push({ from: at, to: end, kind });
      at = end;
    };
    for (const [time, kind, by] of events) {
      until(time);
      active[kind] += by;
    }
    until(to);
    return out;
  };

  /** Adds up pieces by kind. */
  const sums = (all) => {
    const out = new Float64Array(KINDS.length);
    all.forEach(({ from, to, kind }) => { out[kind] += to - from; });
    return out;
  };

  /** The calls of a process that begin in an interval. */
  const callsOf = (theStore, who, from, to) => {
    const { calls } = theStore.tables;
    const out = [];
    for (let row = store.after(calls.start, from); row < calls.rows && calls.start[row] <= to; row += 1) if (calls.who[row] === who && calls.start[row] + calls.took[row] <= to + 1) out.push(row);
    return out;
  };
  /** The rows that were completed in an interval, after they had begun in or before it. */
  const rowsOf = (theStore, from, to) => {
    const { rows } = theStore;
    const out = [];
    for (let row = store.after(rows.time, from); row < rows.rows && rows.time[row] <= to; row += 1) out.push(row);
    return out;
  };

  /** The transaction at an index, with its pieces, calls and rows. */
  const of = (theStore, at) => {
    const { transactions, calls } = theStore.tables;
    const [from, who] = [transactions.start[at], transactions.who[at]];
    const to = from + transactions.took[at];
    const { rows, cells, words, ops } = theStore;
    const durable = new Set(words.about.durable);
    const mine = callsOf(theStore, who, from, to);
    const syncs = mine.filter((row) => durable.has(calls.call[row])).map((row) => [calls.start[row], calls.start[row] + calls.took[row]]);
    const under = [];
    const all = theStore.summed ? [] : rowsOf(theStore, from, to);
    const [flush, deviceFlush] = [ops.of("flush"), ops.of("device_flush")];
    for (const row of all) {
      const c = rows.cell[row];
      const op = cells.op[c];
      const end = rows.time[row];
      const wait = Math.max(0, rows.wait[row] - 1);
      const queue = Math.max(0, rows.queue[row] - 1);
      if (op === deviceFlush || (op === flush && cells.who[c] === who)) (under[FLUSH] ??= []).push([end - wait, end]);
      else if ((op === ops.WRITE || op === ops.READ) && cells.who[c] === who) {
        (under[QUEUE] ??= []).push([end - wait, end - wait + queue]);
        (under[DEVICE] ??= []).push([end - wait + queue, end]);
      }
    }
    const parts = pieces(from, to, syncs, under);
    return { at, from, to, who, calls: mine, rows: all, pieces: parts, sums: sums(parts) };
  };

  /** For each transaction, what it waited for most; and the sums of each. */
  const all = (theStore) => {
    const { transactions } = theStore.tables;
    const most = new Uint8Array(transactions.rows);
    const sumsOf = new Float64Array(transactions.rows * KINDS.length);
    for (let at = 0; at < transactions.rows; at += 1) {
      const { sums: mine } = of(theStore, at);
      sumsOf.set(mine, at * KINDS.length);
      most[at] = mine.reduce((best, value, kind) => (value > mine[best] ? kind : best), 0);
    }
    return { most, sums: sumsOf };
  };

  /** What a call for durability waited for, in the order of the program's tables; the parts sum to its time. */
  const PARTS = ["data", "metadata", "commit’s beginning", "commit", "flush", "other"];
  const COLUMNS = ["data", "metadata", "commit_start", "commit", "flush"];
  const partsOf = (calls, row) => {
    const parts = COLUMNS.map((name) => calls[name][row]);
    return [...parts, Math.max(0, calls.took[row] - parts.reduce((all, value) => all + value, 0))];
  };
  /** The same of several calls, added up. */
  const partsOfAll = (calls, rows) => rows.reduce((all, row) => partsOf(calls, row).map((value, at) => value + all[at]), PARTS.map(() => 0));

  /** What all transactions of a trace waited for, which takes a pass over its rows. */
  const remembered = new WeakMap();
  const known = (theStore) => {
    if (!remembered.has(theStore)) remembered.set(theStore, all(theStore));
    return remembered.get(theStore);
  };

  /** The transactions that touch the window and whose process is selected. */
  const selected = (desk) => {
    const { store: theStore } = desk;
    const table = theStore.tables.transactions;
    if (!table) return [];
    const [from, to] = desk.window();
    const { apps, words } = theStore;
    const tests = desk.selection.terms.flatMap(({ dim, value, not }) => {
      const label = { app: (who) => apps.names[apps.of[who]], proc: (who) => words.whos[who].name }[dim];
      return label ? [(who) => (label(who) === value) !== not] : [];
    });
    const out = [];
    for (let at = 0; at < table.rows; at += 1) {
      if (table.start[at] + table.took[at] >= from && table.start[at] < to && tests.every((test) => test(table.who[at]))) out.push(at);
    }
    return out;
  };
  /** What several transactions waited for, by kind. */
  const sumsOf = (theStore, some) => {
    const { sums: of } = known(theStore);
    return KINDS.map((_, kind) => some.reduce((sum, at) => sum + of[at * KINDS.length + kind], 0));
  };
  /** The one whose duration is in the middle.
   * @param {number[]} some */
  const median = (theStore, some) => {
    const { took } = theStore.tables.transactions;
    return [...some].sort((a, b) => took[a] - took[b])[Math.max(0, Math.ceil(some.length / 2) - 1)] ?? -1;
  };
  const quantile = (sorted, part) => sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)];

  return { known, selected, sumsOf, median, quantile, KINDS, PARTS, pieces, sums, of, all, partsOf, partsOfAll };
})();

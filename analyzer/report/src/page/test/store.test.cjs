// SPDX-License-Identifier: MIT OR Apache-2.0
"use strict";

const test = require("node:test");
const assert = require("node:assert");
const { store } = require("./load.cjs")("store");
const { small, many, random } = require("./scene.cjs");

const term = (dim, value, not = false) => ({ dim, value, not });
const choice = (more = {}) => ({ from: null, to: null, terms: [], ...more });

test("a small trace adds up", () => {
  const it = store.make(small());
  const totals = it.totals(it.ask(choice()));
  assert.deepStrictEqual(totals.write, { bytes: 5461, requests: 1 });
  assert.deepStrictEqual([totals.read.bytes, totals.flush.requests], [8192, 1]);
  // Both parts of the request are of the program cp, so that it counts once there, and once for each process.
  const all = it.ask(choice());
  assert.deepStrictEqual([...it.requestsBy(all, it.codes("app"), 3)], [0, 2, 1]);
  assert.deepStrictEqual([...it.requestsBy(all, it.codes("proc"), 4)], [0, 2, 1, 1]);
  assert.deepStrictEqual([...it.by(all, "app")], [0, 5461, 8192]);
});

test("a request waits as long as its slowest part", () => {
  const it = store.make(small());
  const seen = [];
  it.eachWait(choice(), (us, cell, time) => seen.push([us, time]));
  // That of the flush is not known.
  assert.deepStrictEqual(seen, [[60, 100], [0, 2000]]);
});

test("rows are put in the order of time", () => {
  const data = small();
  data.tables.rows.time = Int32Array.from([3000, 3000, 2000, 100]);
  const it = store.make(data);
  assert.deepStrictEqual([...it.rows.time], [100, 2000, 3000, 3000]);
  assert.deepStrictEqual(it.ask(choice({ from: 0, to: 2500 })).to, 2);
});

/** The plain way: each row is looked at by itself. */
const plain = (data, selection) => {
  const { words, tables: { rows, cells } } = data;
  const label = {
    app: (c) => words.whos[cells.who[c]].group, proc: (c) => words.whos[cells.who[c]].name, file: (c) => words.files[cells.file[c]], layer: (c) => words.layers[cells.layer[c]].name,
    op: (c) => words.ops[cells.op[c]], why: (c) => words.whys[cells.why[c]], match: (c) => words.files[cells.file[c]],
  };
  const is = (one, c) => (one.dim === "match" ? (label.match(c) ?? "").includes(one.value) : label[one.dim](c) === one.value);
  const requests = new Set();
  let [bytes, request] = [0, -1];
  for (let row = 0; row < rows.rows; row += 1) {
    if (rows.flags[row] & 1) request += 1;
    if (selection.from !== null && (rows.time[row] < selection.from || rows.time[row] >= selection.to)) continue;
    const c = rows.cell[row];
    const dims = [...new Set(selection.terms.map((one) => one.dim))];
    const ok = dims.every((dim) => {
      const mine = selection.terms.filter((one) => one.dim === dim);
      const only = mine.filter((one) => !one.not);
      return (!only.length || only.some((one) => is(one, c))) && !mine.some((one) => one.not && is(one, c));
    });
    if (!ok) continue;
    bytes += rows.bytes[row];
    requests.add(request);
  }
  return { bytes, requests: requests.size };
};

test("random selections add up as when each row is looked at by itself", () => {
  const next = random(7);
  const values = { app: ["cp", "it's", null], proc: ["cp:1", "cp:2"], file: ["/a.db", "/video.mp4", null], layer: ["the database", "ext4's journal"], op: ["write", "read", "flush"], why: ["write", null], match: ["thumb", "a"] };
  const data = many(3000, 3);
  const it = store.make(data);
  let some = 0;
  for (let nth = 0; nth < 200; nth += 1) {
    const terms = Object.entries(values).filter(() => next() < 0.3).map(([dim, all]) => term(dim, all[Math.floor(next() * all.length)], next() < 0.3));
    const from = Math.floor(next() * data.words.span_us);
    const selection = choice({ terms, ...(next() < 0.7 ? { from, to: from + 1 + Math.floor(next() * 8000) } : {}) });
    const result = it.ask(selection);
    const wanted = plain(data, selection);
    const bytes = result.bytes.reduce((sum, value) => sum + value, 0);
    const [requests] = it.requestsBy(result, new Int32Array(it.cells.rows), 1);
    assert.deepStrictEqual({ bytes, requests }, wanted, JSON.stringify(selection));
    some += wanted.bytes > 0;
  }
  assert.ok(some > 50, `${some} selections have bytes`);
});

test("bins have every byte once", () => {
  const data = many(3000, 5);
  const it = store.make(data);
  const result = it.ask(choice());
  const bins = it.bins(result, 0, it.span, 37, [new Int8Array(it.cells.rows)], 1);
  const bytes = result.value.reduce((sum, value) => sum + value, 0);
  assert.strictEqual(bins.reduce((sum, value) => sum + value, 0), bytes);
});

// SPDX-License-Identifier: MIT OR Apache-2.0
"use strict";

const test = require("node:test");
const assert = require("node:assert");
const { store, chart, when, causes, waterfall } = require("./load.cjs")("format", "dom", "paint", "chart", "save", "choice", "store", "details", "waits", "causes", "when", "waterfall");
const { small, many } = require("./scene.cjs");

const total = (values) => [...values].reduce((all, value) => all + value, 0);

test("ticks are round, and within their interval", () => {
  assert.deepStrictEqual(chart.ticks(0, 45, 3), { step: 20, all: [0, 20, 40] });
  assert.deepStrictEqual(chart.ticks(-3, 3, 3).all, [-2, 0, 2]);
  assert.deepStrictEqual(chart.ticks(5, 5, 3).all, [5]);
  // No zero has a sign.
  assert.ok(chart.ticks(-1e-12, 400, 4).all.every((value) => !Object.is(value, -0)));
});

test("the length of a bar is round, and does not depend on a window", () => {
  assert.strictEqual(when.lengthOf(5_984_892, null), 50_000);
  assert.strictEqual(when.lengthOf(9_630_000, null), 50_000);
  // A trace of one request has a bar that can be told.
  assert.strictEqual(when.lengthOf(1, null), 1000);
  // Sums cannot be cut.
  assert.strictEqual(when.lengthOf(28_000_000, 13_672) % 13_672, 0);
});

test("a flow has every byte once on each side", () => {
  for (const data of [small(), many(2000, 9)]) {
    const it = store.make(data);
    const { value } = it.ask({ from: null, to: null, terms: [] });
    const { whole, causes: left, blocks, links } = causes.flow(it, value);
    assert.strictEqual(whole, total(value));
    for (const side of [left, blocks, links]) assert.strictEqual(total(side.map((one) => one.value)), whole);
    for (const cause of left) assert.strictEqual(total(links.filter((link) => link.cause === cause).map((link) => link.value)), cause.value);
  }
});

test("a cause says what was done to what", () => {
  const it = store.make(small());
  const { value } = it.ask({ from: null, to: null, terms: [] });
  const { causes: left, blocks } = causes.flow(it, value);
  assert.deepStrictEqual(left.map(({ title, sub }) => [title, sub]), [["cause not known", "handed over by it's:3"], ["write()", "into a.db"], ["a file is created", "video.mp4"]]);
  assert.deepStrictEqual(blocks.map(({ layer, name }) => [layer, name]), [["the database", "the database"], ["ext4's journal", "commit blocks"]]);
});

test("what was neither written nor read is measured where nothing was", () => {
  const data = small();
  data.tables.cells.op.fill(4);
  const it = store.make(data);
  assert.strictEqual(it.ask({ from: null, to: null, terms: [] }).metric, "other bytes");
  data.tables.rows.bytes.fill(0);
  assert.strictEqual(store.make(data).ask({ from: null, to: null, terms: [] }).metric, "requests");
});

test("bars that touch are one", () => {
  const bars = waterfall.merged([{ from: 5, to: 9 }, { from: 0, to: 5 }, { from: 20, to: 21 }], 0.5);
  assert.deepStrictEqual(bars.map(({ from, to, items }) => [from, to, items.length]), [[0, 9, 2], [20, 21, 1]]);
});

test("a name that looks like another is told apart from it", () => {
  // Each letter has six pixels.
  globalThis.document = { createElement: () => ({ getContext: () => ({ measureText: (text) => ({ width: text.length * 6 }) }) }), documentElement: null };
  globalThis.getComputedStyle = () => ({ getPropertyValue: () => "" });
  const fit = chart.fitter();
  assert.strictEqual(fit("app:17", 90), "app:17");
  assert.strictEqual(fit("app:17 (submitter)", 90), "app:1…ubmitter)");
  assert.strictEqual(fit("app:17", 90), "app:17");
  // The file's name says most of a path.
  assert.strictEqual(fit("/a/long/folder/test.db", 90), "…/test.db");
  assert.notStrictEqual(fit("/another/long/folder/test.db", 90), "…/test.db");
  assert.strictEqual(chart.fit("a name", 20), "");
});

// SPDX-License-Identifier: MIT OR Apache-2.0
"use strict";

const test = require("node:test");
const assert = require("node:assert");
const { waterfall } = require("./load.cjs")("dom", "store", "waits", "waterfall");

/** Rows that were forced by a call that began at these µs; null is not known. */
const traced = (starts, forced) => ({ tables: { calls: { start: starts } }, rows: { forced: forced.map((us) => (us === null ? 0 : us + 1)) } });

test("an arrow leads from the call that the analyser tells, and from no other", () => {
  const store = traced([0, 40, 90, 90], [40, null, 0, 41, 90]);
  const forcers = waterfall.forcers(store, { calls: [0, 1, 2, 3], rows: [0, 1, 2, 3, 4] });
  assert.deepStrictEqual([...forcers], [[0, 1], [2, 0]], "a call of another moment, or one of two, is none");
});

test("calls of other transactions force nothing here", () => {
  assert.strictEqual(waterfall.forcers(traced([0, 40], [0]), { calls: [1], rows: [0] }).size, 0);
});

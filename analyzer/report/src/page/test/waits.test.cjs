// SPDX-License-Identifier: MIT OR Apache-2.0
"use strict";

const test = require("node:test");
const assert = require("node:assert");
const { waits } = require("./load.cjs")("store", "waits");

const [PROGRAM, FILESYSTEM, FLUSH, DEVICE, QUEUE] = waits.KINDS.keys();

test("each moment is waited for one thing", () => {
  const under = [];
  under[QUEUE] = [[20, 30]];
  under[DEVICE] = [[30, 50], [85, 120]];
  under[FLUSH] = [[45, 60]];
  const pieces = waits.pieces(0, 100, [[10, 70], [90, 100]], under);
  assert.deepStrictEqual(pieces.map(({ from, to, kind }) => [from, to, kind]), [
    [0, 10, PROGRAM], [10, 20, FILESYSTEM], [20, 30, QUEUE], [30, 45, DEVICE], [45, 60, FLUSH], [60, 70, FILESYSTEM], [70, 90, PROGRAM], [90, 100, DEVICE],
  ]);
  assert.strictEqual(waits.sums(pieces).reduce((all, value) => all + value, 0), 100);
});

test("a transaction without calls is the program's own time", () => {
  assert.deepStrictEqual(waits.pieces(5, 9, [], [])[0], { from: 5, to: 9, kind: PROGRAM });
});

test("what a call waited for sums to its time", () => {
  const calls = { took: [100, 50], data: [10, 0], metadata: [0, 5], commit_start: [20, 0], commit: [30, 0], flush: [25, 45] };
  assert.deepStrictEqual(waits.partsOf(calls, 0), [10, 0, 20, 30, 25, 15]);
  assert.deepStrictEqual(waits.partsOfAll(calls, [0, 1]), [10, 5, 20, 30, 70, 15]);
  assert.strictEqual(waits.PARTS.length, 6);
});

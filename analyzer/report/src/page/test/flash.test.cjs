// SPDX-License-Identifier: MIT OR Apache-2.0
"use strict";

const test = require("node:test");
const assert = require("node:assert");
const { flash } = require("./load.cjs")("format", "dom", "chart", "flash");

const level = (fill, moved, layers) => ({ fill, ratio: 1.5 + moved, moved, padded: 0.25, least: 1, greatest: 9, is_steady: true, layers });
const it = { rounded: 1.25, at: 1, levels: [level(0.5, 0, []), level(0.9, 2, [["a", 0.75], ["b", 0.25]]), level(0.98, 8, [["b", 0.5], ["what was there before", 0.5]])] };

test("the layers of a row sum to what is moved, and those that are moved most come first", () => {
  const { columns, rows } = flash.table(it);
  const names = columns.map(({ name }) => name);
  assert.deepStrictEqual(names.slice(7), ["b", "what was there before", "a"]);
  for (const row of rows) {
    assert.strictEqual(row.length, columns.length);
    assert.strictEqual(row.slice(7).reduce((all, value) => all + value, 0), row[names.indexOf("moved")]);
  }
});

test("the curve rises, within its box", () => {
  const { of, most } = flash.points(it.levels, 400, 38);
  assert.ok(most >= 9.5);
  for (const [nth, point] of of.entries()) {
    assert.ok(point.x >= 38 && point.x < 400 && point.y >= 0 && point.y <= 200);
    if (nth) assert.ok(point.x > of[nth - 1].x && point.y < of[nth - 1].y);
  }
});

// SPDX-License-Identifier: MIT OR Apache-2.0
"use strict";

const test = require("node:test");
const assert = require("node:assert");
const { unpack } = require("./load.cjs")("unpack");

/** Writes a column as ../../pack.rs does, in another way: with big integers. */
const written = (values, coding, scale) => {
  const bytes = [];
  let before = 0n;
  for (const value of values.map((one) => BigInt(one) / BigInt(scale))) {
    const one = coding === "delta" ? value - before : value;
    before = value;
    let code = one < 0n ? -one * 2n - 1n : one * 2n;
    while (code > 127n) {
      bytes.push(Number(code & 127n) | 128);
      code >>= 7n;
    }
    bytes.push(Number(code));
  }
  return bytes;
};
const packed = (columns) => {
  const bodies = columns.map(({ values, coding, scale }) => written(values, coding, scale));
  const head = new TextEncoder().encode(JSON.stringify({ words: { name: "é" }, tables: [{ name: "rows", rows: columns[0].values.length, columns: columns.map(({ values, coding, scale }, at) => ({ name: `c${at}`, coding, scale, bytes: bodies[at].length, most: Math.max(...values), least: Math.min(...values) })) }] }));
  const length = new Uint8Array(new Uint32Array([head.length]).buffer);
  return Uint8Array.from([...length, ...head, ...bodies.flat()]);
};

test("every number comes back", () => {
  const values = [0, 1, -1, 63, 64, -64, -65, 8191, 8192, 2 ** 31, -(2 ** 40), Number.MAX_SAFE_INTEGER];
  const small = values.map((value) => (value % 2 ** 30) + 0);
  const { words, tables } = unpack.read(packed([{ values, coding: "plain", scale: 1 }, { values: small, coding: "delta", scale: 1 }, { values: small.map((value) => value * 512), coding: "plain", scale: 512 }]));
  assert.deepStrictEqual(words, { name: "é" });
  assert.deepStrictEqual([...tables.rows.c0], values);
  assert.ok(tables.rows.c0 instanceof Float64Array && tables.rows.c1 instanceof Int32Array);
  assert.deepStrictEqual([...tables.rows.c1], small);
  assert.deepStrictEqual([...tables.rows.c2], small.map((value) => value * 512));
});

test("what is compressed is opened", async () => {
  const bytes = packed([{ values: [5, 6, 9], coding: "delta", scale: 1 }]);
  const { gzipSync } = require("node:zlib");
  const { tables } = await unpack.open(gzipSync(bytes).toString("base64"));
  assert.deepStrictEqual([...tables.rows.c0], [5, 6, 9]);
});

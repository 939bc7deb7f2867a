// SPDX-License-Identifier: MIT OR Apache-2.0
// A small trace as `unpack` returns it, and a random one.
"use strict";

const words = () => ({
  start_ns: "5000000000000", span_us: 10000, bin_us: null,
  ops: ["write", "read", "flush", "device_flush", "discard", "write_zeroes", "other"],
  known: ["unknown", "exact", "shared"],
  colours: ["databases", "SQLite's journals", "file contents", "filesystem metadata", "filesystem journal", "unknown", "flushes"],
  whos: [{ name: null, group: null }, { name: "cp:1", group: "cp" }, { name: "cp:2", group: "cp" }, { name: "it's:3", group: "it's" }],
  files: [null, "/a.db", "/video.mp4", "/cache/thumb-203.jpg"],
  whys: [null, "write", "create"],
  layers: [
    { name: "the database", part: null, colour: 0, class: "data", kind: "regular", role: "db", home_kind: null, op: null },
    { name: "ext4's journal", part: "commit blocks", colour: 4, class: "journal", kind: "commit", role: null, home_kind: null, op: null },
    { name: "flushes asked for", part: null, colour: 6, class: null, kind: null, role: null, home_kind: null, op: "flush" },
  ],
  bands: [], about: { calls: [], durable: [], databases: [], left_out: [0, 0, 0] },
});

const columns = (rows) => {
  const names = Object.keys(rows[0]);
  return { rows: rows.length, ...Object.fromEntries(names.map((name) => [name, Int32Array.from(rows, (row) => row[name])])) };
};

/** Three requests: one in two parts of two processes, one read, one flush. */
const small = () => ({
  words: words(),
  tables: {
    cells: columns([
      { op: 0, known: 1, who: 1, file: 1, own: 0, layer: 0, why: 1 },
      { op: 0, known: 2, who: 2, file: 2, own: 0, layer: 1, why: 2 },
      { op: 1, known: 0, who: 3, file: 3, own: 0, layer: 0, why: 0 },
      { op: 2, known: 0, who: 1, file: 1, own: 0, layer: 2, why: 0 },
    ]),
    rows: columns([
      { flags: 1, time: 100, cell: 0, bytes: 4096, wait: 51, queue: 11, sector: 9 },
      { flags: 0, time: 100, cell: 1, bytes: 1365, wait: 61, queue: 11, sector: 17 },
      { flags: 1, time: 2000, cell: 2, bytes: 8192, wait: 1, queue: 1, sector: 25 },
      { flags: 9, time: 3000, cell: 3, bytes: 0, wait: 0, queue: 0, sector: 0 },
    ]),
  },
});

/** Numbers that look random and are the same in every run. */
const random = (seed) => () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32;
};

const many = (rows, seed) => {
  const next = random(seed);
  const pick = (most) => Math.floor(next() * most);
  const cells = Array.from({ length: 60 }, () => ({ op: pick(3), known: pick(3), who: pick(4), file: pick(4), own: 0, layer: pick(3), why: pick(3) }));
  let time = 0;
  const all = Array.from({ length: rows }, () => {
    const first = next() < 0.6;
    if (first) time += pick(20);
    return { flags: first ? 1 : 0, time, cell: pick(cells.length), bytes: pick(100) * 512, wait: pick(1000), queue: 1, sector: 1 + pick(10000) };
  });
  return { words: { ...words(), span_us: time }, tables: { cells: columns(cells), rows: columns(all) } };
};

module.exports = { small, many, random, words };

// SPDX-License-Identifier: MIT OR Apache-2.0
"use strict";

const test = require("node:test");
const assert = require("node:assert");
const { choice } = require("./load.cjs")("choice");
const { words } = require("./scene.cjs");

const term = (dim, value, not = false) => ({ dim, value, not });

test("an address holds a selection", () => {
  const selection = { from: 5, to: 900, terms: [term("app", "a&b=c"), term("file", "/x #1", true), term("why", null)] };
  const { selection: read, more } = choice.ofHash(choice.toHash(selection, { tab: "2", trace: null }));
  assert.deepStrictEqual(read, selection);
  assert.deepStrictEqual(more, { tab: "2" });
  assert.strictEqual(choice.toHash(choice.ALL), "");
});

test("an address may hold anything", () => {
  assert.deepStrictEqual(choice.ofHash("#t=9-5&t=x&not.nothing=1&constructor=2&app=").selection, { from: null, to: null, terms: [term("app", null)] });
});

test("a click selects, and another one takes it back", () => {
  const one = choice.only(choice.ALL, "app", "cp");
  assert.deepStrictEqual(one.terms, [term("app", "cp")]);
  assert.deepStrictEqual(choice.only(one, "app", "dd").terms, [term("app", "dd")]);
  assert.deepStrictEqual(choice.only(one, "app", "cp").terms, []);
  const two = choice.toggle(one, "app", "dd");
  assert.strictEqual(two.terms.length, 2);
  assert.deepStrictEqual(choice.toggle(two, "app", "cp").terms, [term("app", "dd")]);
  // What is left out cannot be selected too.
  assert.deepStrictEqual(choice.toggle(one, "app", "cp", true).terms, [term("app", "cp", true)]);
});

test("a condition says the same in SQL", () => {
  const sql = (selection) => choice.toSql({ ...choice.ALL, ...selection }, words());
  assert.strictEqual(sql({}), "");
  assert.strictEqual(sql({ from: 1, to: 20 }), "time_ns >= 5000000001000 AND time_ns < 5000000020000");
  assert.strictEqual(sql({ terms: [term("app", "cp"), term("op", "write")] }), "cause_or_submitter IN ('cp:1', 'cp:2') AND op = 'write'");
  assert.strictEqual(sql({ terms: [term("app", "it's")] }), "cause_or_submitter = 'it''s:3'");
  assert.strictEqual(sql({ terms: [term("file", null), term("file", "/a.db")] }), "(cause_or_file = '/a.db' OR cause_or_file IS NULL)");
  assert.strictEqual(sql({ terms: [term("layer", "the database")] }), "(kind = 'regular' AND role = 'db')");
  assert.strictEqual(sql({ terms: [term("part", "ext4's journal › commit blocks")] }), "(kind = 'commit' AND home_kind IS NULL)");
  assert.strictEqual(sql({ terms: [term("file", "/a.db", true)] }), "NOT coalesce(cause_or_file = '/a.db', 1 = 0)");
});

test("a word is quoted for a shell", () => {
  assert.strictEqual(choice.shell("run.most"), "run.most");
  assert.strictEqual(choice.shell("it's; rm -rf /"), "'it'\\''s; rm -rf /'");
});
